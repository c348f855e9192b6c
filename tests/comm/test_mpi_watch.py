"""Noticing that a peer is gone, without MPI: the peers are plain processes that trade their cards by pipe."""

from __future__ import annotations

import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until_asleep

from pycobre.comm.mpi import failure_monitor as mpi_witness
from pycobre.comm.mpi import watch as mpi_watch
from pycobre.comm.mpi.failure_monitor import Witness, start_witness
from pycobre.comm.mpi.watch import Card, PeerWatch, departure

DEADLINE_S = 200.0

PEER = """
import sys
from pycobre.comm.mpi.watch import Card, PeerWatch
watch = PeerWatch(1, lambda text: print(text, flush=True))
sys.stdout.write(watch.card().pack().hex() + "\\n")
sys.stdout.flush()
watch.start([Card.unpack(bytes.fromhex(sys.stdin.readline()))])
for line in sys.stdin:
    getattr(watch, line.split()[0])(int(line.split()[1]))
    print("told", flush=True)
"""


@contextmanager
def peer(card: Card) -> Iterator[tuple[subprocess.Popen[str], Card]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        theirs = Card.unpack(bytes.fromhex(process.stdout.readline()))
        process.stdin.write(card.pack().hex() + "\n")
        process.stdin.flush()
        yield process, theirs
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_a_peer_that_is_stopped_is_reported_when_patience_ends() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put, patience_s=0.2)
    with peer(watch.card()) as (process, card):
        watch.start([watch.card(), card])
        watch.latest = "allgatherv", 8
        process.send_signal(signal.SIGSTOP)
        text = reports.get(timeout=DEADLINE_S)
    watch.leave(8)
    assert f"rank 1 (process {card.process} on " in text
    assert (
        ") has been stopped for 0.2 s; rank 0 had come to allgatherv, collective 8. COBRE_MPI_TIMEOUT" in text
    )


def test_a_peer_that_goes_on_in_time_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the patience is used up, then it goes on; what counts is standing still without a break."""
    looks: queue.Queue[bool] = queue.Queue()
    reports: queue.Queue[str] = queue.Queue()
    stopped = iter([True] * 9 + [False] + [True] * 9 + [False])

    def look(process: int) -> bool:
        found = next(stopped, False)
        looks.put(found)
        return found

    monkeypatch.setattr(mpi_watch, "_is_stopped", look)
    watch = PeerWatch(0, reports.put, patience_s=0.1)
    with peer(watch.card()) as (_, card):
        watch.start([card])
        assert sum(looks.get(timeout=DEADLINE_S) for _ in range(21)) == 18
    watch.leave(1)
    assert [
        text for text in iter(lambda: reports.get() if not reports.empty() else "", "") if "stopped" in text
    ] == []


def test_a_peer_that_dies_is_reported_with_its_process() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.card()) as (process, card):
        watch.start([watch.card(), card])
        watch.latest = "allreduce", 8
        process.kill()
        text = reports.get(timeout=DEADLINE_S)
    watch.leave(8)
    assert text.startswith(f"rank 1 (process {process.pid} on ")
    assert text.endswith(") died; rank 0 had come to allreduce, collective 8")


def test_a_peer_that_died_before_it_was_watched_is_reported() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.card()) as (process, card):
        process.kill()
        process.wait()
        watch.start([card])
        assert "rank 1" in reports.get(timeout=DEADLINE_S)
    watch.leave(0)


def test_a_peer_that_leaves_is_reported_only_to_who_waits_for_it() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.card()) as (process, card):
        watch.start([card])
        watch.latest = "barrier", 5  # the last one that the peer took part in
        assert process.stdin is not None
        process.stdin.write("leave 5\n")
        process.stdin.close()
        assert process.wait(DEADLINE_S) == 0  # its end comes after its notice, and is no death
        pause = threading.Event()
        while not watch.departed:
            pause.wait(0.001)
    assert watch.lost_for(5) is None
    assert watch.lost_for(6) == (1, 5)
    assert departure(0, "allreduce", 6, 1, 5) == (
        "rank 0 needs rank 1 in allreduce, collective 6 of this communicator, but rank 1 closed it, or came "
        "to its end, after collective 5"
    )
    watch.leave(6)
    assert reports.empty()


def test_a_rank_that_waits_when_its_peer_leaves_is_told_in_vain() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.card()) as (process, card):
        watch.start([card])
        watch.latest = "allreduce", 6
        assert process.stdin is not None
        process.stdin.write("leave 5\n")
        process.stdin.flush()
        assert reports.get(timeout=DEADLINE_S) == departure(0, "allreduce", 6, 1, 5)
    watch.leave(6)


def test_the_end_of_a_peer_that_ends_the_job_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its death is no news; where the launcher does nothing about it, a survivor does, and knows the code."""
    monkeypatch.setattr(mpi_watch, "_LAUNCHER_GRACE_S", 0.5)
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.card()) as (process, card):
        watch.start([card])
        watch.latest = "allreduce", 6
        assert watch.announced_code() is None
        say(process, "announce_end 130")
        expect(process, "told")
        assert watch.announced_code() == 130
        assert reports.empty()  # it is being ended, not lost
        process.kill()
        text = reports.get(timeout=DEADLINE_S)
    watch.leave(6)
    assert text == "rank 1 ended the job with code 130, but rank 0 still lives 0.5 s later"
    assert reports.empty()


class SlowLine:
    """A line with one notice; whoever takes it is held up before it can note it down."""

    def __init__(self, line: socket.socket, notice: bytes) -> None:
        self._line, self._notices = line, [notice]
        self.taken, self.go_on = threading.Event(), threading.Event()

    def recv(self, size: int) -> bytes:
        if not self._notices:
            raise BlockingIOError
        notice = self._notices.pop()
        self.taken.set()
        assert self.go_on.wait(DEADLINE_S)
        return notice

    def __getattr__(self, name: str) -> object:
        return getattr(self._line, name)


def test_a_code_that_another_thread_is_about_to_note_down_is_waited_for() -> None:
    watch = PeerWatch(0, lambda text: None)
    watch.start([])
    line = watch._socket = SlowLine(watch._socket, struct.pack("<qqq", 1, 1, 130))
    asking: queue.Queue[int] = queue.Queue()

    def ask() -> int | None:
        asking.put(threading.get_native_id())
        return watch.announced_code()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(watch.announced_code)
        assert line.taken.wait(DEADLINE_S)
        second = pool.submit(ask)
        until_asleep(os.getpid(), asking.get(timeout=DEADLINE_S))
        line.go_on.set()
        assert [first.result(DEADLINE_S), second.result(DEADLINE_S)] == [130, 130]
    watch.leave(0)


def test_of_two_who_see_a_death_the_second_leaves_the_end_to_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rank 2 waits for its turn while rank 0, which lives, has the word."""
    monkeypatch.setattr(mpi_watch, "_LAUNCHER_GRACE_S", 0.5)
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(2, reports.put)
    first = PeerWatch(0, reports.put)
    with peer(watch.card()) as (process, card):
        first.start([watch.card()])
        watch.start([first.card(), card])
        first.announce_end(1)
        process.kill()
        assert reports.get(timeout=DEADLINE_S).startswith(
            "rank 0 ended the job with code 1, but rank 2 still"
        )
    for each in (watch, first):
        each.leave(0)


def test_a_rank_that_has_left_can_still_be_asked() -> None:
    watch = PeerWatch(0, lambda text: None)
    watch.start([])
    watch.leave(0)
    assert watch.announced_code() is None
    watch.announce_end(1)


def test_peers_of_another_process_namespace_are_not_watched() -> None:
    watch = PeerWatch(0, lambda text: None)
    watch.start([watch.card()._replace(rank=1, namespace=1)])
    assert watch._peers == {}
    watch.leave(0)


WITNESSED = """
import sys
from pycobre.comm.mpi.failure_monitor import Witness
print("here", flush=True)
witness = Witness(int(sys.argv[1]), bytes.fromhex(sys.stdin.readline()))
print("heard", flush=True)
for line in sys.stdin:
    getattr(witness, line.strip())()
    print("told", flush=True)
"""


@contextmanager
def witness_of(count: int) -> Iterator[tuple[bytes, int]]:
    """The address of a witness of that many ranks, and the end of a pipe that is its stderr."""
    read, write = os.pipe()
    saved = os.dup(2)
    try:
        os.dup2(write, 2)
        address = start_witness(count)
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(write)
    try:
        yield address, read
    finally:
        os.close(read)


@contextmanager
def witnessed(count: int) -> Iterator[tuple[list[subprocess.Popen[str]], int]]:
    """That many ranks that a witness has heard of, and the end of a pipe that is its stderr."""
    ranks = []
    try:
        for rank in range(count):
            command = [sys.executable, "-c", WITNESSED, str(rank)]
            ranks.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for process in ranks:
            expect(process, "here")
        # Not before they are there: a witness to whom nobody comes does not wait for long.
        with witness_of(count) as (address, read):
            for process in ranks:
                say(process, address.hex())
            for process in ranks:
                expect(process, "heard")
            yield ranks, read
    finally:
        for process in ranks:
            process.kill()
            process.communicate()


def say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def expect(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{word}\n"


def tell(process: subprocess.Popen[str], word: str) -> None:
    say(process, word)
    expect(process, "told")


def said(read: int) -> str:
    """All that the witness wrote, once it has ended."""
    with os.fdopen(os.dup(read)) as text:
        return text.read()


def test_the_witness_names_the_first_that_dies() -> None:
    with witnessed(3) as (ranks, read):
        ranks[1].kill()
        ranks[1].wait()
        for process in ranks:
            process.kill()
        text = said(read)
        assert text.startswith(f"pycobre: rank 1 (process {ranks[1].pid} on ")
        assert text.endswith(") died, and the job with it\n")
        assert text.count("\n") == 1


# Two ranks in the process of a witness that does not look again before both of them have ended.
LATE = """
import os, select, socket, threading
from pycobre.comm.mpi.failure_monitor import Witness, main

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
witness = threading.Thread(target=main, args=(listener, 2, os.getpid()))
witness.start()
ranks = []
for rank in range(2):
    looks.release(2)  # one for the connection, one for the name
    ranks.append(Witness(rank, listener.getsockname()))
for rank in ranks:
    rank._line.close()
looks.release()
witness.join()
"""


def test_a_witness_that_is_late_names_the_first_all_the_same() -> None:
    """Also when the one that it heard last has ended too: it was looked at, and waits for its turn again."""
    command = [sys.executable, "-c", LATE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert done.stderr.startswith("pycobre: rank 0 (process ")
    assert done.stderr.count("\n") == 1


def test_the_witness_does_not_outlive_a_start_that_was_killed(tmp_path: Path) -> None:
    """The launcher waits for the end of its ranks' output, which the witness holds."""
    source = Path(mpi_witness.__file__).read_text()
    patient = tmp_path / "patient_witness.py"  # its timeout does not end it within the deadline
    patient.write_text(source.replace("_TIMEOUT_S = 30.0", "_TIMEOUT_S = 3600.0"))
    assert patient.read_text() != source
    code = (
        "import os, sys\nfrom pycobre.comm import mpi_witness\nmpi_witness.__file__ = sys.argv[1]\n"
        "mpi_witness.start_witness(2)\nos.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, str(patient)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (-9, "")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        numbers = [str(listener.fileno()), "2", str(gone.pid)]
        late = subprocess.run(
            [sys.executable, "-I", "-S", patient, *numbers],
            capture_output=True,
            pass_fds=[listener.fileno()],
            timeout=DEADLINE_S,
            check=False,
        )
    assert (late.returncode, late.stderr) == (0, b"")


def test_the_witness_says_nothing_of_those_who_leave() -> None:
    with witnessed(2) as (ranks, read):
        tell(ranks[0], "leave")
        ranks[0].kill()
        tell(ranks[1], "leave")
        assert said(read) == ""
        tell(ranks[1], "leave")  # nobody listens any more, and nobody minds


def test_the_witness_is_silent_when_told_that_all_is_said() -> None:
    with witnessed(2) as (ranks, read):
        tell(ranks[1], "hush")
        ranks[0].kill()
        assert said(read) == ""


def test_the_first_may_leave_before_the_last_has_come() -> None:
    with witness_of(2) as (address, read):
        first = Witness(0, address)
        first.leave()
        assert first._line.recv(1) == b""  # the witness has hung up, and stays for the second
        second = Witness(1, address)
        first._line.close()
        second._line.close()
        assert "rank 1 (process " in said(read)


def test_nobody_is_named_while_one_who_has_not_come_may_have_died_before() -> None:
    with witness_of(2) as (address, read):
        Witness(0, address)._line.close()
        assert said(read) == ""
        with pytest.raises(ConnectionRefusedError):
            Witness(1, address)
