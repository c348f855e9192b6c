"""What becomes of an MPI job in which something goes wrong: it ends, soon, and says which rank it was."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from mpi_environments import environment, job_variables, mpiexec, require_environment
from waiting import until

from pycobre.testing.leaks import session_members

LIBRARIES = ("mpich", "openmpi")
DEADLINE_S = 240.0  # a job takes about one second; the machine may be busy


@dataclass(frozen=True)
class Ended:
    """A job that ended."""

    code: int
    output: str
    processes: list[int]


class Job:
    """A job of three ranks, or as many as given, running one function of mpi_jobs."""

    def __init__(
        self,
        library: str,
        name: str,
        directory: Path,
        *,
        size: int = 3,
        python: str = "",
        environ: dict[str, str] | None = None,
    ) -> None:
        self.directory = directory
        program = environment(python or library) / "bin/python"
        self.process = subprocess.Popen(
            [*mpiexec(library, size), program, "-W", "ignore", "-m", "mpi_jobs", name, directory],
            # A killed launcher of Open MPI leaves files in the temporary directory.
            env={**os.environ, **job_variables(library), "TMPDIR": str(directory), **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def end(self) -> Ended:
        """Wait for the end; a job that does not end within the deadline is killed and fails the test."""
        try:
            output, _ = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            for process in {*session_members({self.process.pid}), *self._processes()}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            output, _ = self.process.communicate()
            pytest.fail(f"the job did not end within {DEADLINE_S} s:\n{output.decode(errors='replace')}")
        return Ended(self.process.returncode, output.decode(errors="replace"), self._processes())

    def segments(self) -> set[str]:
        """Shared-memory files that MPICH made for the job."""
        return {path for report in self.directory.glob("segments-*") for path in report.read_text().split()}

    def _processes(self) -> list[int]:
        return [int(report.name.partition("-")[2]) for report in self.directory.glob("process-*")]


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> str:
    require_environment(request.param)
    return str(request.param)


def run(library: str, name: str, directory: Path, **options: object) -> Ended:
    return Job(library, name, directory, **options).end()  # type: ignore[arg-type]


def test_a_job_that_goes_well(library: str, tmp_path: Path) -> None:
    job = run(library, "good", tmp_path)
    assert job.code == 0, job.output
    assert all(f"rank {rank} got 3" in job.output for rank in range(3)), job.output


@pytest.mark.parametrize("name", ["raise_at_once", "raise_later", "raise_in_with"])
def test_a_rank_that_raises_ends_the_job_with_its_traceback(library: str, name: str, tmp_path: Path) -> None:
    job = run(library, name, tmp_path)
    assert job.code != 0
    assert "Traceback (most recent call last)" in job.output
    assert "ValueError: the reservoir is empty" in job.output
    did = "aborted: ValueError: the reservoir is empty" if name == "raise_in_with" else "raised ValueError"
    assert f"pycobre: rank 1 of 3 {did}" in job.output


def test_a_thread_that_raises_ends_the_job(library: str, tmp_path: Path) -> None:
    job = run(library, "raise_in_thread", tmp_path)
    assert job.code != 0
    assert "IndexError: list index out of range" in job.output
    assert "pycobre: rank 1 of 3 raised IndexError in thread pump: ending the job" in job.output


def test_sys_exit_in_a_with_block_is_no_failure(library: str, tmp_path: Path) -> None:
    job = run(library, "exit_in_with", tmp_path)
    assert (job.code, "pycobre:" in job.output) == (0, False), job.output


def test_abort_ends_the_job_with_the_reason(library: str, tmp_path: Path) -> None:
    job = run(library, "abort", tmp_path)
    assert job.code != 0
    assert "pycobre: rank 1 of 3 aborted: the reservoir is empty" in job.output


def test_a_stopped_rank_is_named_when_patience_ends(library: str, tmp_path: Path) -> None:
    job = run(library, "stand_still", tmp_path, environ={"COBRE_MPI_TIMEOUT_SECS": "1"})
    assert job.code != 0
    named = r"pycobre: rank 1 \(process \d+ on .*\) has been stopped for 1 s; rank \d had come to allreduce"
    assert re.search(named, job.output), job.output


def test_a_killed_rank_is_named(library: str, tmp_path: Path) -> None:
    job = run(library, "die", tmp_path)
    assert job.code != 0
    # By Open MPI's launcher, a rank or the failure monitor; MPICH's launcher reports one that it killed itself.
    said = r"rank 1 with PID \d+|pycobre: rank 1 \(process \d+ on \S+\) died"
    assert re.search(said, job.output), job.output


@pytest.mark.parametrize("name", ["good", "die", "raise_at_once", "abort", "exit_early"])
def test_no_shared_memory_is_left(library: str, name: str, tmp_path: Path) -> None:
    job = Job(library, name, tmp_path)
    ended = job.end()
    assert (ended.code == 0) == (name == "good"), ended.output
    if library == "mpich":
        assert job.segments()
    # The launcher may end a moment before the failure monitor, which removes them.
    until(lambda: not any(map(os.path.exists, job.segments())), timeout_s=30.0)


@pytest.mark.parametrize("name", ["exit_early", "close_early"])
def test_a_rank_that_leaves_early_is_named(library: str, name: str, tmp_path: Path) -> None:
    job = run(library, name, tmp_path)
    assert job.code != 0
    assert "needs it in allreduce, collective 2 of this communicator" in job.output
    assert "rank 1 closed its communicator after 1 collective, but rank" in job.output


def test_an_error_of_the_library_is_raised_and_mpi_is_not_trusted_any_more(
    library: str, tmp_path: Path
) -> None:
    job = run(library, "fail_inside", tmp_path, size=2)
    assert job.code != 0
    told = r"rank 1 caught broadcast: on rank 1 of 2 MPI said ERR_TAG \(code (\d+)\)"
    caught = re.search(told, job.output)
    assert caught, job.output
    assert int(caught[1]) > 0
    assert (
        "pycobre: rank 1 of 2 comes to its end after a collective that failed: ending the job" in job.output
    )


def test_an_interrupt_of_one_rank_ends_the_job(library: str, tmp_path: Path) -> None:
    job = run(library, "interrupt_one", tmp_path)
    assert job.code == 128 + signal.SIGINT, job.output
    said = [line for line in job.output.splitlines() if line.startswith("pycobre:")]
    assert said == ["pycobre: rank 1 of 3 raised KeyboardInterrupt: ending the job"], job.output


def test_an_interrupt_of_the_launcher_reaches_every_rank(library: str, tmp_path: Path) -> None:
    job = Job(library, "wait_forever", tmp_path)
    deadline = time.monotonic() + DEADLINE_S
    while len(list(tmp_path.glob("waiting-*"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    job.process.send_signal(signal.SIGINT)
    ended = job.end()
    assert ended.code != 0, ended.output
    while any(map(alive, ended.processes)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ended.processes) == 3
    assert [process for process in ended.processes if alive(process)] == []


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", ["own_world", "forget_to_close", "finalise_without_closing"])
def test_a_program_may_initialise_and_finalise_mpi_itself(library: str, name: str, tmp_path: Path) -> None:
    job = run(library, name, tmp_path)
    assert (job.code, "pycobre:" in job.output) == (0, False), job.output


@pytest.mark.parametrize(("launcher", "python"), [LIBRARIES, LIBRARIES[::-1]])
def test_the_launchers_library_is_used_whatever_is_installed(
    launcher: str, python: str, tmp_path: Path
) -> None:
    require_environment(launcher)
    require_environment(python)
    job = run(launcher, "good", tmp_path, python=python)
    assert job.code == 0, job.output
    assert all(f"rank {rank} got 3" in job.output for rank in range(3)), job.output


@pytest.mark.parametrize(
    ("launcher", "python", "announced", "found"),
    [
        ("mpich", "openmpi", "PMI_SIZE announces 3 ranks", "mpi4py uses Open MPI 5."),
        ("openmpi", "mpich", "OMPI_COMM_WORLD_SIZE announces 3 ranks", "mpi4py uses MPICH 5."),
    ],
)
def test_a_launcher_of_another_mpi_is_refused(
    launcher: str, python: str, announced: str, found: str, tmp_path: Path
) -> None:
    require_environment(launcher)
    wrong = require_environment(python) / "lib" / {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}[python]
    job = run(launcher, "good", tmp_path, python=python, environ={"MPI4PY_LIBMPI": str(wrong)})
    assert job.code != 0
    assert announced in job.output
    assert "so 3 copies of the same run would start" in job.output
    assert found in job.output
    assert "Start with the mpiexec that belongs to" in job.output
    assert " got " not in job.output
