"""The failure monitor, without MPI: its ranks are plain processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from child_lines import expect, say

from pycobre.comm.failure import MONITOR_REPORT
from pycobre.comm.mpi import failure_monitor
from pycobre.comm.mpi.failure_monitor import FailureMonitor, start_failure_monitor

DEADLINE_S = 200.0

MONITORED = """
import mmap, os, sys
from pycobre.comm.mpi.failure_monitor import FailureMonitor
if len(sys.argv) > 2:
    held = [mmap.mmap(os.open(path, os.O_RDWR), 4096) for path in sys.argv[2:]]
print("here", flush=True)
monitor = FailureMonitor(int(sys.argv[1]), bytes.fromhex(sys.stdin.readline()))
print("registered", flush=True)
for line in sys.stdin:
    getattr(monitor, line.strip())()
    print("told", flush=True)
"""


@contextmanager
def monitor_of(count: int) -> Iterator[tuple[bytes, int]]:
    """The address of a failure monitor of that many ranks, and the end of a pipe that is its stderr."""
    read, write = os.pipe()
    saved = os.dup(2)
    try:
        os.dup2(write, 2)
        address = start_failure_monitor(count, MONITOR_REPORT)
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(write)
    try:
        yield address, read
    finally:
        os.close(read)


@contextmanager
def monitored(count: int, *files: Path) -> Iterator[tuple[list[subprocess.Popen[str]], int]]:
    """That many ranks that are registered with a failure monitor, and the end of a pipe that is its stderr."""
    ranks = []
    try:
        for rank in range(count):
            command = [sys.executable, "-c", MONITORED, str(rank), *map(str, files)]
            ranks.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for process in ranks:
            expect(process, "here")
        # Not before they are there: a monitor to which no rank connects does not wait for long.
        with monitor_of(count) as (address, read):
            for process in ranks:
                say(process, address.hex())
            for process in ranks:
                expect(process, "registered")
            yield ranks, read
    finally:
        for process in ranks:
            process.kill()
            process.communicate()


def tell(process: subprocess.Popen[str], word: str) -> None:
    say(process, word)
    expect(process, "told")


def said(read: int) -> str:
    """All that the monitor printed, once it has ended."""
    with os.fdopen(os.dup(read)) as text:
        return text.read()


def test_the_monitor_reports_the_first_that_dies() -> None:
    with monitored(3) as (ranks, read):
        ranks[1].kill()
        ranks[1].wait()
        for process in ranks:
            process.kill()
        text = said(read)
        assert text.startswith(f"pycobre: rank 1 (process {ranks[1].pid} on ")
        assert text.endswith(") died, and the job with it\n")
        assert text.count("\n") == 1


# Two ranks in the process of a monitor that does not look again before both of them have ended.
LATE = """
import os, select, socket, threading
from pycobre.comm.failure import MONITOR_REPORT
from pycobre.comm.mpi.failure_monitor import FailureMonitor, main

looks, epoll = threading.Semaphore(0), select.epoll

class Late:
    def __init__(self):
        self._events = epoll()
    def __getattr__(self, name):
        return getattr(self._events, name)
    def poll(self, timeout):
        looks.acquire()
        return self._events.poll(timeout)

os.fork, select.epoll = lambda: 0, Late
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("")
listener.listen()
monitor = threading.Thread(target=main, args=(listener, 2, os.getpid(), MONITOR_REPORT))
monitor.start()
ranks = []
for rank in range(2):
    looks.release(2)  # one for the connection, one for the name
    ranks.append(FailureMonitor(rank, listener.getsockname()))
for rank in ranks:
    rank._connection.close()
looks.release()
monitor.join()
"""


def test_a_monitor_that_is_late_reports_the_first_all_the_same() -> None:
    """Also when the one that it heard last has ended too: it was looked at, and waits for its turn again."""
    command = [sys.executable, "-c", LATE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert done.stderr.startswith("pycobre: rank 0 (process ")
    assert done.stderr.count("\n") == 1


def test_the_monitor_does_not_outlive_a_start_that_was_killed(tmp_path: Path) -> None:
    """The launcher waits for the end of its ranks' output, which the monitor holds."""
    source = Path(failure_monitor.__file__).read_text()
    patient = tmp_path / "patient_monitor.py"  # its timeout does not end it within the deadline
    patient.write_text(source.replace("_TIMEOUT_S = 30.0", "_TIMEOUT_S = 3600.0"))
    assert patient.read_text() != source
    code = (
        "import os, sys\nfrom pycobre.comm.mpi import failure_monitor\nfailure_monitor.__file__ = sys.argv[1]\n"
        "failure_monitor.start_failure_monitor(2, '')\nos.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, str(patient)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (-9, "")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        numbers = [str(listener.fileno()), "2", str(gone.pid), MONITOR_REPORT]
        late = subprocess.run(
            [sys.executable, "-I", "-S", patient, *numbers],
            capture_output=True,
            pass_fds=[listener.fileno()],
            timeout=DEADLINE_S,
            check=False,
        )
    assert (late.returncode, late.stderr) == (0, b"")


def test_the_monitor_does_not_report_ranks_that_leave() -> None:
    with monitored(2) as (ranks, read):
        tell(ranks[0], "leave")
        ranks[0].kill()
        tell(ranks[1], "leave")
        assert said(read) == ""
        tell(ranks[1], "leave")  # nobody listens any more, and nobody minds


def test_a_suppressed_monitor_reports_nothing() -> None:
    with monitored(2) as (ranks, read):
        tell(ranks[1], "suppress")
        ranks[0].kill()
        assert said(read) == ""


def test_the_first_may_leave_before_the_last_has_come() -> None:
    with monitor_of(2) as (address, read):
        first = FailureMonitor(0, address)
        first.leave()
        assert (
            first._connection.recv(1) == b""
        )  # the monitor has closed the connection, and waits for the second
        second = FailureMonitor(1, address)
        first._connection.close()
        second._connection.close()
        assert "rank 1 (process " in said(read)


def test_nobody_is_named_while_one_who_has_not_come_may_have_died_before() -> None:
    with monitor_of(2) as (address, read):
        FailureMonitor(0, address)._connection.close()
        assert said(read) == ""
        with pytest.raises(ConnectionRefusedError):
            FailureMonitor(1, address)


@pytest.fixture
def segments() -> Iterator[tuple[Path, Path]]:
    """A file as MPICH makes it, and one of another program."""
    paths = (
        Path(f"/dev/shm/mpich_shm_pycobre-test-{os.getpid()}"),
        Path(f"/dev/shm/pycobre-test-{os.getpid()}"),
    )
    for path in paths:
        path.write_bytes(bytes(4096))
    try:
        yield paths
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("end", ["death", "suppress"])
def test_the_monitor_removes_what_the_library_would_leave(end: str, segments: tuple[Path, Path]) -> None:
    with monitored(2, *segments) as (ranks, read):
        if end == "death":
            ranks[1].kill()
        else:
            tell(ranks[1], "suppress")
        said(read)
        assert [path.exists() for path in segments] == [False, True]


def test_the_monitor_leaves_the_library_its_files_when_all_ends_well(segments: tuple[Path, Path]) -> None:
    with monitored(2, *segments) as (ranks, read):
        for process in ranks:
            tell(process, "leave")
        said(read)
        assert [path.exists() for path in segments] == [True, True]
