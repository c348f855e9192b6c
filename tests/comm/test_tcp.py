"""The tcp backend beyond the conformance suites: sizes around every limit, mixed engines, threads, signals, forks."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tcp_helpers import PythonStarter, engine, gathering, on_all, running, train_a_little
from waiting import until, until_asleep, until_exists

from pycobre.comm import (
    CollectiveFailed,
    Communicator,
    HeapRegion,
    InvalidCommunicator,
    LocalBackend,
    ReduceOp,
    TcpBackend,
    create_communicator,
)
from pycobre.comm.fold import fold_into
from pycobre.comm.tcp import engine as engines
from pycobre.comm.tcp.collect import CHUNK_BYTES, MAX_CHUNK_BYTES, WINDOW_BYTES
from pycobre.comm.tcp.wire import SMALL_BYTES, Call, Kind, Operation, dtype_code
from pycobre.errors import WorkerError
from pycobre.testing import run_ranks
from pycobre.testing.starters import TcpStarter

__all__ = ["engine"]


def pattern(rank: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Bytes that differ by rank and place."""
    return (np.arange(nbytes, dtype=np.uint32) * (2 * rank + 3) >> 3).astype(np.uint8)


SIZES = [0, 1, SMALL_BYTES // 3, SMALL_BYTES - 1, SMALL_BYTES, SMALL_BYTES + 1]
SIZES += [
    WINDOW_BYTES - 8,
    WINDOW_BYTES,
    WINDOW_BYTES + 8,
    CHUNK_BYTES - 1,
    CHUNK_BYTES,
    CHUNK_BYTES + 1,
    MAX_CHUNK_BYTES + 5,
]


def move_sizes(comm: Communicator) -> None:
    """Every size on which frames are cut differently, in uneven blocks, backwards and with gaps."""
    rank, size = comm.rank, comm.size
    for step, nbytes in enumerate(SIZES):
        counts = tuple(nbytes // (1 + (r + step) % size) for r in range(size))
        displs = tuple(sum(counts[r + 1 :]) + 3 * (size - r) for r in range(size))
        recv = np.full(sum(counts) + 3 * size + 3, 255, np.uint8)
        expected = recv.copy()
        for r in range(size):
            expected[displs[r] : displs[r] + counts[r]] = pattern(r, counts[r])
        comm.allgatherv(pattern(rank, counts[rank]), recv, counts, displs)
        assert np.array_equal(recv, expected), f"allgatherv of {nbytes} bytes"
        root = step % size
        buf = pattern(rank, nbytes)
        comm.broadcast(buf, root)
        assert np.array_equal(buf, pattern(root, nbytes)), f"broadcast of {nbytes} bytes"
        reduced = np.zeros(nbytes // 8 + 1)
        comm.allreduce(np.arange(reduced.size) / (rank + 3), reduced, ReduceOp.SUM)
        expected_sum = np.zeros(reduced.size)
        fold_into(expected_sum, [np.arange(reduced.size) / (r + 3) for r in range(size)], ReduceOp.SUM)
        assert np.array_equal(reduced, expected_sum), f"allreduce of {reduced.size} numbers"


AUTHENTICATE = pytest.mark.parametrize("authenticate", [False, True], ids=["", "authenticated"])


@AUTHENTICATE
@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_way_to_cut_a_payload(engine: str, size: int, authenticate: bool) -> None:
    with running(size, authenticate=authenticate) as comms:
        assert on_all(comms, move_sizes) == [None] * size


def values(rank: int, count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Random bits of that dtype: extremes, infinities, signed zeros, subnormals, NaN on rank 0."""
    rng = np.random.default_rng(1000 + rank)
    data = rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "f":
        ordinary = rng.choice(np.array([0.0, -0.0, 1.5, -1.5, np.inf, 3e-5], dtype), count)
        data = np.where(np.isfinite(data) & (rng.random(count) < 0.5), data, ordinary).astype(dtype)
        if rank == 0:
            data[::7] = np.nan
        data[data == -np.inf] = 1.0  # infinities of both signs make NaN out of nothing; one sign is enough
    return data


def reduce_letters(comm: Communicator, letters: str, count: int) -> None:
    for letter in letters:
        dtype = np.dtype(letter)
        for op in ReduceOp:
            recv, expected = np.empty(count, dtype), np.empty(count, dtype)
            comm.allreduce(values(comm.rank, count, dtype), recv, op)
            fold_into(expected, [values(rank, count, dtype) for rank in range(comm.size)], op)
            same = (recv == expected) & (np.signbit(recv) == np.signbit(expected))
            both_nan = (recv != recv) & (expected != expected)
            assert np.all(same | both_nan), f"{dtype} {op}"


@pytest.mark.parametrize("count", [5, 40_000], ids=["gathered", "folded by rank 0"])
@AUTHENTICATE
def test_allreduce_has_the_bits_of_the_fold(engine: str, count: int, authenticate: bool) -> None:
    with running(3, authenticate=authenticate) as comms:
        assert on_all(comms, reduce_letters, "bBhHiIlLqQefdg", count) == [None] * 3


class MixedStarter(TcpStarter):
    """Ranks of which every other one has no native module."""

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        native = engines.native
        if int(environ["COBRE_TCP_RANK"]) % 2 == int(environ.get("PYTHON_RANKS", "1")):
            engines.native = None
        try:
            return super().connect(environ)
        finally:
            engines.native = native


@pytest.mark.parametrize("auth", ["auto", "always"])
@pytest.mark.parametrize("python_ranks", ["0", "1"])
def test_both_engines_in_one_run(python_ranks: str, auth: str) -> None:
    environ = {"PYTHON_RANKS": python_ranks, "COBRE_TCP_AUTH": auth}
    run_ranks(MixedStarter(), 4, move_sizes, environ=environ, timeout=200)
    run_ranks(MixedStarter(), 3, reduce_letters, "efd", 40_000, environ=environ, timeout=200)


class LateBytes:
    """A relay in front of the coordinator that holds one worker's bytes back until it is told."""

    def __init__(self, port: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.go = threading.Event()
        self.go.set()
        self._port = port
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def _serve(self) -> None:
        inside, _ = self.listener.accept()
        outside = socket.create_connection(("127.0.0.1", self._port))
        for source, target, gated in ((inside, outside, True), (outside, inside, False)):
            thread = threading.Thread(target=self._pump, args=(source, target, gated))
            self._threads.append(thread)
            thread.start()

    def _pump(self, source: socket.socket, target: socket.socket, gated: bool) -> None:
        while data := source.recv(1 << 16):
            if gated:
                self.go.wait()
            target.sendall(data)
        with suppress(OSError):  # it may have gone first
            target.shutdown(socket.SHUT_WR)
        if gated:
            self._threads[2].join(200)
            source.close()
            target.close()

    def close(self) -> None:
        self.listener.close()
        for thread in self._threads:
            thread.join(200)


@AUTHENTICATE
def test_blocks_are_forwarded_before_a_late_rank_comes(engine: str, authenticate: bool) -> None:
    """Rank 2 has all of rank 1's megabytes while rank 3's are still on their way."""
    with gathering(4, authenticate=authenticate) as group:
        relay = LateBytes(group.port)
        try:
            group.add(1)
            group.add(2)
            group.add(3, port=relay.listener.getsockname()[1])
            comms = group.all()
            assert on_all(comms, train_a_little, 1) == [None] * 4
            relay.go.clear()
            count = 2 * CHUNK_BYTES
            counts, displs = [count] * 4, [count * rank for rank in range(4)]
            results = [np.zeros(4 * count, np.uint8) for _ in comms]

            def gather(comm: Communicator) -> None:
                comm.allgatherv(np.full(count, comm.rank + 1, np.uint8), results[comm.rank], counts, displs)

            done: list[Any] = []
            thread = threading.Thread(target=lambda: done.extend(on_all(comms, gather)))
            thread.start()
            until(lambda: bool(results[2][2 * count - 1] == 2))
            assert not relay.go.is_set()
            assert not done
            relay.go.set()
            thread.join(200)
            assert done == [None] * 4
            for result in results:
                assert np.array_equal(result, np.repeat(np.arange(1, 5), count))
        finally:
            relay.go.set()
            for future in group.ranks.values():
                future.result().close()
            relay.close()


def abort_elsewhere(comm: TcpBackend, told: threading.Barrier) -> str:
    """Ranks 0 and 1 wait in a collective, rank 1 aborts meanwhile, and rank 2 comes once both have failed.

    Were it to come any earlier, rank 0 could find that all had entered and complete.
    """
    if comm.rank == 2:
        told.wait(200)
        with suppress(CollectiveFailed):  # all the others had entered, so this one may complete
            comm.barrier()
    aborting = threading.Thread(target=abort_when_asleep, args=(comm, threading.get_native_id()))
    if comm.rank == 1:
        aborting.start()
    with pytest.raises(CollectiveFailed) as caught:
        comm.barrier()
    if comm.rank == 1:
        aborting.join(200)
    if comm.rank != 2:
        told.wait(200)
    assert caught.value.rank == 1
    return caught.value.message


def abort_when_asleep(comm: TcpBackend, waiting: int) -> None:
    """Abort once the thread `waiting` of this process sleeps in its collective."""
    until_asleep(os.getpid(), waiting)
    comm.abort("from another thread")


def test_abort_while_another_thread_is_in_a_collective(engine: str) -> None:
    with running(3) as comms:
        texts = on_all(comms, abort_elsewhere, threading.Barrier(3))
        assert ["rank 1 aborted: from another thread" in str(text) for text in texts] == [True] * 3, texts


def work_until_told(comm: Communicator, directory: str) -> int:
    """Make collectives until rank 0 finds the file that says stop."""
    comm.barrier()
    Path(directory, f"part-{comm.rank}").write_text(str(os.getpid()))
    Path(directory, f"part-{comm.rank}").rename(Path(directory, f"pid-{comm.rank}"))
    stop, large = np.zeros(1), np.zeros(1 << 20)
    rounds = 0
    while not stop[0]:
        train_a_little(comm, 1)
        comm.broadcast(large, 0)  # most of the time somebody is to read more than its connection holds
        stop[0] = Path(directory, "stop").exists()
        comm.broadcast(stop, 0)
        rounds += 1
    return rounds


@pytest.mark.parametrize("starter", [TcpStarter(), PythonStarter()], ids=["native", "python"])
def test_a_job_that_is_stopped_as_a_whole_does_not_time_out(starter: TcpStarter, tmp_path: Path) -> None:
    """As by Ctrl-Z: the clock went on, but nobody was waiting."""
    results: list[Any] = []

    def run() -> None:
        environ = {"COBRE_TCP_TIMEOUT_SECS": "10"}
        results.extend(run_ranks(starter, 3, work_until_told, str(tmp_path), environ=environ, timeout=200))

    thread = threading.Thread(target=run)
    thread.start()
    for rank in range(3):
        until_exists(str(tmp_path / f"pid-{rank}"))
    pids = [int((tmp_path / f"pid-{rank}").read_text()) for rank in range(3)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(11.0)
    for pid in reversed(pids):
        os.kill(pid, signal.SIGCONT)
    (tmp_path / "stop").touch()
    thread.join()
    assert len(set(results)) == 1


def two_barriers(comm: Communicator) -> None:
    """Rank 1 had come to the first, so for the others it may be complete."""
    comm.barrier()
    comm.barrier()


def interrupt_me(comm: Communicator, directory: str) -> str:
    """Rank 1 is interrupted in a collective, as by Ctrl-C, and goes on to make another."""
    entering, interrupted = Path(directory, "entering"), Path(directory, "interrupted")
    pids = np.zeros(3, np.int64)
    comm.allgatherv(np.array([os.getpid()]), pids, [1, 1, 1], [0, 1, 2])
    if comm.rank == 0:
        until_exists(entering)  # it may still be asleep in the collective before this one
        until_asleep(int(pids[1]))
        os.kill(int(pids[1]), signal.SIGINT)
        until_exists(interrupted)
    if comm.rank == 1:
        entering.touch()
        with pytest.raises(KeyboardInterrupt):
            comm.barrier()
        interrupted.touch()
    with pytest.raises(CollectiveFailed) as caught:
        two_barriers(comm)
    assert caught.value.rank == 1
    return caught.value.message


def test_an_interrupted_collective_is_the_last(tmp_path: Path) -> None:
    found = run_ranks("tcp", 3, interrupt_me, str(tmp_path))
    assert found == ["rank 1 broke off barrier: KeyboardInterrupt: "] * 3


def compute_with_the_interpreter_locked(comm: Communicator, seconds: float) -> None:
    """All ranks are busy for much longer than the timeout, and cannot run a line of Python meanwhile."""
    comm.barrier()
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    train_a_little(comm, 2)


def test_slow_ranks_are_not_disturbed() -> None:
    run_ranks("tcp", 3, compute_with_the_interpreter_locked, 12.0, environ={"COBRE_TCP_TIMEOUT_SECS": "6"})


def patience_is_with_silence(comm: Communicator) -> None:
    """Rank 2 comes late, but within the timeout after rank 0, which itself came late for rank 1."""
    comm.barrier()
    time.sleep({0: 5.0, 1: 0.0, 2: 13.0}[comm.rank])
    comm.barrier()


def test_a_worker_waits_as_long_as_the_coordinator_does() -> None:
    """Rank 1 waits 13 s with a timeout of 12 s: rank 0 tells it in time that they are waiting for others."""
    run_ranks("tcp", 3, patience_is_with_silence, environ={"COBRE_TCP_TIMEOUT_SECS": "12"})


def broadcast_and_meet(comm: TcpBackend, message: np.ndarray[Any, Any]) -> None:
    comm.broadcast(message, 0)
    comm.barrier()


def finish_and_go_on(comm: TcpBackend, count: int) -> int | None:
    """Take part in a broadcast that rank 2 enters and never reads, then meet in a barrier; whom that blames."""
    message = np.zeros(count)
    if comm.rank == 2:
        code = dtype_code(message.dtype)
        call = Call(Operation.BROADCAST, code.letter, 0, code.itemsize, 0, code.fields, 1, count, 0)
        comm._sockets[0].sendall(call.header(Kind.CALL, block=2))
        return None
    with pytest.raises(CollectiveFailed, match=r"rank 2 .*did not respond for") as caught:
        broadcast_and_meet(comm, message)
    return caught.value.rank


def test_who_is_ahead_waits_as_long_as_the_coordinator_does(engine: str) -> None:
    """Rank 1 has its result, is in the next collective, and has less patience than rank 0 with rank 2."""
    with gathering(3, timeout_s=8.0) as group:
        group.add(1, timeout_s=6.0)
        group.add(2)
        assert on_all(group.all(), finish_and_go_on, 8_000_000) == [2, 2, None]


def fork_and_die(comm: TcpBackend, signal_file: str) -> str:
    """Rank 1 dies; a child it forked lives on and must not keep the connection open."""
    comm.barrier()
    if comm.rank == 1:
        child = os.fork()
        if child == 0:
            with pytest.raises(InvalidCommunicator, match="belongs to the process that forked this one"):
                comm.barrier()
            comm.close()
            until_exists(signal_file)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(CollectiveFailed) as caught:
        comm.barrier()
    Path(signal_file).touch()
    assert caught.value.rank == 1
    return caught.value.message


def test_a_forked_child_does_not_hide_the_death_of_a_rank(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        run_ranks("tcp", 2, fork_and_die, str(tmp_path / "noticed"))
    (death,) = caught.value.exceptions
    assert isinstance(death, WorkerError)
    assert (death.rank, death.exit_code) == (1, -9)


def test_regions_are_on_the_heap_and_nodes_are_single() -> None:
    with running(2) as comms, comms[0].create_shared_region(10, float) as region:
        assert isinstance(region, HeapRegion)
        with comms[0].split_local() as node:
            assert isinstance(node, LocalBackend)


def test_the_environment_selects_it() -> None:
    environ = {"COBRE_COMM_BACKEND": "tcp", "COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "1"}
    with create_communicator(environ=environ) as comm:
        assert isinstance(comm, TcpBackend)


def move_more_than_four_gibibytes(comm: Communicator, count: int) -> None:
    buf = np.zeros(count, np.uint8)
    if comm.rank == 0:
        buf[[0, 2**32 - 1, 2**32, count - 1]] = 1, 2, 3, 4
    comm.broadcast(buf, 0)
    assert list(buf[[0, 2**32 - 1, 2**32, count - 1]]) == [1, 2, 3, 4]
    assert np.count_nonzero(buf) == 4


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_payloads_beyond_four_gibibytes() -> None:
    needed = 2 * (2**32 + 1000)
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < 1.3 * needed:
        pytest.skip(f"it needs {needed >> 30} GiB of free memory, there are {free >> 30}")
    run_ranks("tcp", 2, move_more_than_four_gibibytes, 2**32 + 1000, timeout=200)
