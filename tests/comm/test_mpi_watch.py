"""Noticing that a peer is gone, without MPI: the peers are plain processes."""

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

import pytest
from child_lines import expect, say
from waiting import until_asleep

from pycobre.comm.mpi import watch as mpi_watch
from pycobre.comm.mpi.watch import PeerInfo, PeerWatch, departure

DEADLINE_S = 200.0

PEER = """
import sys
from pycobre.comm.mpi.watch import PeerInfo, PeerWatch
watch = PeerWatch(1, lambda text: print(text, flush=True))
sys.stdout.write(watch.own_info().pack().hex() + "\\n")
sys.stdout.flush()
watch.start([PeerInfo.unpack(bytes.fromhex(sys.stdin.readline()))])
for line in sys.stdin:
    getattr(watch, line.split()[0])(int(line.split()[1]))
    print("told", flush=True)
"""


@contextmanager
def peer(info: PeerInfo) -> Iterator[tuple[subprocess.Popen[str], PeerInfo]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        theirs = PeerInfo.unpack(bytes.fromhex(process.stdout.readline()))
        process.stdin.write(info.pack().hex() + "\n")
        process.stdin.flush()
        yield process, theirs
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_a_peer_that_is_stopped_is_reported_at_the_timeout() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put, timeout_s=0.2)
    with peer(watch.own_info()) as (process, info):
        watch.start([watch.own_info(), info])
        watch.latest = "allgatherv", 8
        process.send_signal(signal.SIGSTOP)
        text = reports.get(timeout=DEADLINE_S)
    watch.leave(8)
    assert f"rank 1 (process {info.process} on " in text
    assert (
        ") has been stopped for 0.2 s; rank 0 had come to allgatherv, collective 8. If that is intended"
        in text
    )


def test_a_peer_that_goes_on_in_time_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the timeout has passed, then it goes on; what counts is standing still without a break."""
    looks: queue.Queue[bool] = queue.Queue()
    reports: queue.Queue[str] = queue.Queue()
    stopped = iter([True] * 9 + [False] + [True] * 9 + [False])

    def look(process: int) -> bool:
        found = next(stopped, False)
        looks.put(found)
        return found

    monkeypatch.setattr(mpi_watch, "_is_stopped", look)
    watch = PeerWatch(0, reports.put, timeout_s=0.1)
    with peer(watch.own_info()) as (_, info):
        watch.start([info])
        assert sum(looks.get(timeout=DEADLINE_S) for _ in range(21)) == 18
    watch.leave(1)
    assert [
        text for text in iter(lambda: reports.get() if not reports.empty() else "", "") if "stopped" in text
    ] == []


def test_a_peer_that_dies_is_reported_with_its_process() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.own_info()) as (process, info):
        watch.start([watch.own_info(), info])
        watch.latest = "allreduce", 8
        process.kill()
        text = reports.get(timeout=DEADLINE_S)
    watch.leave(8)
    assert text.startswith(f"rank 1 (process {process.pid} on ")
    assert text.endswith(") died; rank 0 had come to allreduce, collective 8")


def test_a_peer_that_died_before_it_was_watched_is_reported() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.own_info()) as (process, info):
        process.kill()
        process.wait()
        watch.start([info])
        assert "rank 1" in reports.get(timeout=DEADLINE_S)
    watch.leave(0)


def test_a_peer_that_leaves_is_reported_only_to_who_waits_for_it() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.own_info()) as (process, info):
        watch.start([info])
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
        "rank 1 closed its communicator after 5 collectives, but rank 0 needs it in allreduce, collective 6 of this "
        "communicator. All ranks must make the same collectives in the same order."
    )
    watch.leave(6)
    assert reports.empty()


def test_a_rank_that_waits_when_its_peer_leaves_is_told_in_vain() -> None:
    reports: queue.Queue[str] = queue.Queue()
    watch = PeerWatch(0, reports.put)
    with peer(watch.own_info()) as (process, info):
        watch.start([info])
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
    with peer(watch.own_info()) as (process, info):
        watch.start([info])
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
    with peer(watch.own_info()) as (process, info):
        first.start([watch.own_info()])
        watch.start([first.own_info(), info])
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
    watch.start([watch.own_info()._replace(rank=1, namespace=1)])
    assert watch._peers == {}
    watch.leave(0)
