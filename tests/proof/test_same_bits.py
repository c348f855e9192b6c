"""The matrix: every way to run the two reference studies gives the same bytes."""

import json
import os
from pathlib import Path

import pytest
from matrix import (
    HERE,
    PLAIN,
    STUDIES,
    Fingerprint,
    Way,
    command,
    differences,
    fingerprint,
    ran,
    surroundings,
)

pytestmark = [
    pytest.mark.timeout(1200),  # environments with MPI may have to be made first
    pytest.mark.xdist_group("same bits"),  # what is expected is computed once
]

SABOTAGE = HERE.parent / "faults" / "sabotage"


@pytest.fixture(scope="module")
def expected() -> dict[str, Fingerprint]:
    return {study: fingerprint(study, PLAIN) for study in STUDIES}


def test_the_fingerprint_covers_everything_promised(expected: dict[str, Fingerprint]) -> None:
    common = {"iterations", "lower bound", "upper bound", "cuts", "policy file", "convergence"}
    assert set(expected["hydro"]) >= common | {"costs", "hydros", "thermals", "buses"}
    assert set(expected["markov"]) >= common | {"paths", "states"}
    assert expected["hydro"]["policy file"] != expected["markov"]["policy file"]


#: Every backend with more ranks than one, every number of threads; the rest of the matrix is for `.ci/run`.
FEW = [Way("local", 1, 4), Way("shm", 3, 4), Way("tcp", 2, 1), Way("mpi-mpich", 2, 1)]
MATRIX = [
    *(Way("local", 1, threads) for threads in (1, 4)),
    *(Way("shm", ranks, threads) for ranks in (2, 3, 4) for threads in (1, 4)),
    *(Way("tcp", ranks, 1) for ranks in (2, 3, 4)),
    *(Way(f"mpi-{library}", ranks, 1) for library in ("mpich", "openmpi") for ranks in (2, 4)),
]
#: Combinations that say little more, and a second time for those above.
MORE = [*MATRIX, *(Way("tcp", ranks, 4) for ranks in (2, 3, 4))]


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("way", FEW, ids=str)
def test_same_bits_in_few_ways(study: str, way: Way, expected: dict[str, Fingerprint]) -> None:
    """Each with a hash seed of its own."""
    assert not differences(study, [way._replace(hash_seed=51 + FEW.index(way))], expected[study])


@pytest.mark.ci
@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("way", MATRIX, ids=str)
def test_same_bits(study: str, way: Way, expected: dict[str, Fingerprint]) -> None:
    """Each with a hash seed of its own; the first one is what is expected, a second time."""
    seeded = way._replace(hash_seed=1 + MATRIX.index(way))
    assert not differences(study, [seeded], expected[study])


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("way", MORE, ids=str)
def test_same_bits_again(study: str, way: Way, expected: dict[str, Fingerprint]) -> None:
    """Each twice, with other hash seeds."""
    ways = [way._replace(hash_seed=seed) for seed in (101, 102)]
    assert not differences(study, ways, expected[study])


KILLED = [
    ("hydro", Way("shm", 3, 1), 1, Way("tcp", 2, 4)),
    ("markov", Way("tcp", 2, 1), 0, Way("local", 1, 1)),
    ("markov", Way("local", 1, 4), 0, Way("shm", 4, 1)),
]
MORE_KILLED = [
    ("hydro", Way("mpi-mpich", 2, 1), 1, Way("shm", 3, 1)),
    ("hydro", Way("local", 1, 1), 0, Way("mpi-openmpi", 4, 1)),
    ("markov", Way("mpi-openmpi", 2, 1), 0, Way("mpi-mpich", 4, 1)),
]


def check_resumed(
    study: str, first: Way, victim: int, second: Way, directory: Path, expected: Fingerprint
) -> None:
    """Kill a rank while rank 0 writes the fourth checkpoint, and go on elsewhere: all quantities are the same."""
    output = directory / "output"
    where = {"phase": "replace", "within": "checkpoints", "nth": 4, "at_rank": 0, "victim": victim}
    fault = {**where, "delay_s": 0.0, "hold_s": 0.0, "directory": str(directory), "action": "kill"}
    environ = surroundings(first)
    path = [str(SABOTAGE), environ.get("PYTHONPATH", "")]
    environ = {
        **environ,
        "PYCOBRE_FAULT": json.dumps(fault),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }
    killed = ran(command(study, first, str(output)), **environ)
    assert killed.returncode != 0
    assert (directory / "strike").exists()
    written = sorted(path.name for path in (output / "checkpoints").glob("*.cobre"))
    assert written[-1] in ("00000003.cobre", "00000004.cobre")
    assert fingerprint(study, second, str(output), "resume") == expected


@pytest.mark.parametrize(("study", "first", "victim", "second"), KILLED, ids=str)
def test_same_bits_after_a_kill(
    study: str, first: Way, victim: int, second: Way, tmp_path: Path, expected: dict[str, Fingerprint]
) -> None:
    check_resumed(study, first, victim, second, tmp_path, expected[study])


@pytest.mark.slow
@pytest.mark.parametrize(("study", "first", "victim", "second"), MORE_KILLED, ids=str)
def test_same_bits_after_a_kill_under_mpi(
    study: str, first: Way, victim: int, second: Way, tmp_path: Path, expected: dict[str, Fingerprint]
) -> None:
    check_resumed(study, first, victim, second, tmp_path, expected[study])
