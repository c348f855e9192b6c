"""The matrix: every way to run the two reference studies gives the same bytes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "comm"))

from mpi_environments import environment, job_variables, mpiexec, require_environment  # noqa: E402

STUDIES = ("hydro", "markov")
PROGRAM = str(HERE / "reference_run.py")
SABOTAGE = HERE.parent / "faults" / "sabotage"


class Way(NamedTuple):
    """One way to run a study; under MPI the backend's name has the library's in it."""

    backend: str
    ranks: int
    threads: int

    def __str__(self) -> str:
        return f"{self.backend}-{self.ranks}x{self.threads}"


def ran(command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=280, env={**os.environ, **environ}, check=False
    )


def said(command: list[str], **environ: str) -> dict[str, str]:
    done = ran(command, **environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def command(study: str, way: Way, *rest: str) -> list[str]:
    """How to run a study; under MPI with the launcher of that library's environment."""
    program = [PROGRAM, study, way.backend.partition("-")[0], str(way.ranks), str(way.threads), *rest]
    if not way.backend.startswith("mpi"):
        return [sys.executable, *program]
    library = way.backend.partition("-")[2]
    # mpi4py of the environment must be found before this process's own module path.
    start = f"import mpi4py, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path({PROGRAM!r}, run_name='__main__')"
    return [*mpiexec(library, way.ranks), str(environment(library) / "bin/python"), "-c", start, *program]


def surroundings(way: Way) -> dict[str, str]:
    """What such a run needs in its environment; skips where there is no MPI."""
    if not way.backend.startswith("mpi"):
        return {}
    library = way.backend.partition("-")[2]
    require_environment(library)
    return job_variables(library)


def fingerprint(study: str, way: Way, *rest: str, hash_seed: str = "0") -> dict[str, str]:
    environ = surroundings(way)
    return said(command(study, way, *rest), **environ, PYTHONHASHSEED=hash_seed)


@pytest.fixture(scope="module")
def expected() -> dict[str, dict[str, str]]:
    return {study: fingerprint(study, Way("local", 1, 1)) for study in STUDIES}


def test_the_fingerprint_covers_everything_promised(expected: dict[str, dict[str, str]]) -> None:
    common = {"iterations", "lower bound", "upper bound", "policy file", "convergence"}
    assert set(expected["hydro"]) >= common | {"costs", "hydros", "thermals", "buses"}
    assert set(expected["markov"]) >= common | {"paths", "states"}
    assert expected["hydro"]["policy file"] != expected["markov"]["policy file"]


#: Every way of the matrix; those that the suite runs always, with one study each, and the rest.
USUAL = [
    Way("local", 1, 1),  # a second time
    Way("local", 1, 4),
    Way("shm", 2, 1),
    Way("shm", 3, 4),
    Way("shm", 4, 1),
    Way("tcp", 2, 4),
    Way("tcp", 3, 1),
    Way("tcp", 4, 1),
    Way("mpi-mpich", 2, 1),
    Way("mpi-openmpi", 4, 1),
]
WHOLE = [
    *(Way("local", 1, threads) for threads in (1, 4)),
    *(
        Way(backend, ranks, threads)
        for backend in ("shm", "tcp")
        for ranks in (2, 3, 4)
        for threads in (1, 4)
    ),
    *(Way(f"mpi-{library}", ranks, 1) for library in ("mpich", "openmpi") for ranks in (2, 4)),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("way", USUAL, ids=str)
def test_same_bits(study: str, way: Way, expected: dict[str, dict[str, str]]) -> None:
    seed = str(1 + USUAL.index(way))
    assert fingerprint(study, way, hash_seed=seed) == expected[study]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("way", WHOLE, ids=str)
def test_same_bits_in_the_whole_matrix(study: str, way: Way, expected: dict[str, dict[str, str]]) -> None:
    """Each twice, with other hash seeds."""
    for seed in ("11", "12"):
        assert fingerprint(study, way, hash_seed=seed) == expected[study]


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
    study: str, first: Way, victim: int, second: Way, directory: Path, expected: dict[str, str]
) -> None:
    """Kill a rank while rank 0 writes the fourth checkpoint, and go on elsewhere: all quantities are the same."""
    output = directory / "output"
    where = {"phase": "replace", "nth": 4, "at_rank": 0, "victim": victim, "delay_s": 0.0, "hold_s": 0.0}
    fault = {**where, "directory": str(directory), "action": "kill"}
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


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("study", "first", "victim", "second"), KILLED, ids=str)
def test_same_bits_after_a_kill(
    study: str, first: Way, victim: int, second: Way, tmp_path: Path, expected: dict[str, dict[str, str]]
) -> None:
    check_resumed(study, first, victim, second, tmp_path, expected[study])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("study", "first", "victim", "second"), MORE_KILLED, ids=str)
def test_same_bits_after_a_kill_under_mpi(
    study: str, first: Way, victim: int, second: Way, tmp_path: Path, expected: dict[str, dict[str, str]]
) -> None:
    check_resumed(study, first, victim, second, tmp_path, expected[study])
