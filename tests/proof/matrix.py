"""The comparison behind every claim about bits: run the reference studies in many ways, and say what differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "comm"))

from mpi_environments import environment, job_variables, mpiexec, require_environment  # noqa: E402

STUDIES = ("hydro", "markov")
PROGRAM = str(HERE / "reference_run.py")

Fingerprint = dict[str, str]


class Way(NamedTuple):
    """One way to run a study; under MPI the backend's name has the library's in it."""

    backend: str
    ranks: int
    threads: int
    hash_seed: int = 0

    def __str__(self) -> str:
        return f"{self.backend}-{self.ranks}x{self.threads}"


#: One process, one thread: what all others are compared with.
PLAIN = Way("local", 1, 1)


def ran(command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
    """What a command did; its environment has these variables too."""
    return subprocess.run(
        command, capture_output=True, text=True, timeout=500, env={**os.environ, **environ}, check=False
    )


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
    seed = {"PYTHONHASHSEED": str(way.hash_seed)}
    if not way.backend.startswith("mpi"):
        return seed
    library = way.backend.partition("-")[2]
    require_environment(library)
    return job_variables(library) | seed


def fingerprint(study: str, way: Way, *rest: str, mutation: str = "") -> Fingerprint:
    """Hashes of everything a study's run promises, with one of the careless ways in its processes if one is named."""
    environ = surroundings(way)
    if mutation:
        path = [str(HERE / "mutation"), environ.get("PYTHONPATH", "")]
        environ |= {"PYCOBRE_MUTATION": mutation, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = ran(command(study, way, *rest), **environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def differences(
    study: str, ways: Iterable[Way], expected: Fingerprint, *, mutation: str = ""
) -> dict[str, list[str]]:
    """For every way that is not as expected, the quantities that differ."""
    found = {}
    for way in ways:
        got = fingerprint(study, way, mutation=mutation)
        if got != expected:
            names = sorted(expected.keys() | got.keys())
            found[f"{way}, hash seed {way.hash_seed}"] = [n for n in names if expected.get(n) != got.get(n)]
    return found
