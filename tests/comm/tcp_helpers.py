"""Groups of tcp ranks as threads of one process: quick to start, and easy to disturb."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pycobre.comm import Communicator, ReduceOp, TcpBackend, TcpConfig
from pycobre.comm.tcp import acceptor
from pycobre.comm.tcp import engine as engines
from pycobre.comm.tcp import join as tcp_join
from pycobre.comm.tcp.handshake import Stage, WorkerSide
from pycobre.testing.starters import TcpStarter

TOKEN = "correct horse battery staple"
DROPPED = "dropped a connection from 127.0.0.1:"


class PythonStarter(TcpStarter):
    """Ranks without the native module."""

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        native, engines.native = engines.native, None
        try:
            return super().connect(environ)
        finally:
            engines.native = native


class AuthenticatedStarter(TcpStarter):
    """Ranks whose frames are authenticated although they are on loopback."""

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        return super().connect({**environ, "COBRE_TCP_AUTH": "always"})


class AuthenticatedPythonStarter(PythonStarter, AuthenticatedStarter):
    """The same without the native module."""


@pytest.fixture(params=["native", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every engine in turn."""
    if request.param == "python":
        monkeypatch.setattr(engines, "native", None)
    elif engines.native is None:
        pytest.skip("pycobre._native.tcp was not built")
    return str(request.param)


@pytest.fixture(autouse=True)
def patient_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a handshake may take longer than it may, and another attempt logs more lines."""
    monkeypatch.setattr(acceptor, "_HANDSHAKE_S", 200.0)
    monkeypatch.setattr(tcp_join, "_ATTEMPT_S", 200.0)
    monkeypatch.setattr(tcp_join, "_LAST_ATTEMPT_S", 200.0)


@dataclass
class Gathering:
    """A group that is being started: ranks may be added, unauthenticated peers may connect first."""

    size: int
    options: dict[str, Any]
    pool: ThreadPoolExecutor
    ranks: dict[int, Future[TcpBackend]] = field(default_factory=dict)
    port: int = 0

    def add(self, rank: int, **options: Any) -> Future[TcpBackend]:
        """Start a worker."""
        self.ranks[rank] = self.pool.submit(TcpBackend, self.config(rank, **options))
        return self.ranks[rank]

    def config(self, rank: int, **options: Any) -> TcpConfig:
        common = {"coordinator": "127.0.0.1", "bind_addr": "127.0.0.1", "port": self.port, "token": TOKEN}
        common["connect_timeout_ms"] = 200_000
        return TcpConfig(rank=rank, size=self.size, **{**common, **self.options, **options})

    def all(self) -> list[TcpBackend]:
        """All ranks, once they have met."""
        return [self.ranks[rank].result(200) for rank in sorted(self.ranks)]


@contextmanager
def gathering(size: int, **options: Any) -> Iterator[Gathering]:
    """Rank 0 listens on a free port; the others are for the caller to add. Whatever was started is closed."""
    with ThreadPoolExecutor(size) as pool:
        group = Gathering(size, options, pool)
        listening = threading.Event()

        def note(port: int) -> None:
            group.port = port
            listening.set()

        group.ranks[0] = pool.submit(TcpBackend, group.config(0), on_listening=note)
        group.ranks[0].add_done_callback(lambda _: listening.set())
        assert listening.wait(200)
        try:
            yield group
        finally:
            for future in group.ranks.values():
                if future.exception(200) is None:
                    future.result().close()


@contextmanager
def running(size: int, **options: Any) -> Iterator[list[TcpBackend]]:
    """A complete group."""
    with gathering(size, **options) as group:
        for rank in range(1, size):
            group.add(rank)
        yield group.all()


def on_all(comms: list[TcpBackend], body: Callable[..., Any], *args: Any) -> list[Any]:
    """Run `body(comm, *args)` on every rank at once; an exception is returned in place of its result."""
    with ThreadPoolExecutor(len(comms)) as pool:
        futures = [pool.submit(body, comm, *args) for comm in comms]
        return [future.exception(200) or future.result() for future in futures]


def train_a_little(comm: Communicator, iterations: int) -> None:
    """A loop of collectives as training makes them, every value checked."""
    rank, size = comm.rank, comm.size
    counts, displs = tuple(range(1, size + 1)), tuple(r * (r + 1) // 2 for r in range(size))
    for iteration in range(iterations):
        found = np.zeros(sum(counts))
        comm.allgatherv(np.full(rank + 1, rank + iteration, float), found, counts, displs)
        assert np.array_equal(found, np.repeat(np.arange(size) + iteration, counts))
        total = np.zeros(3)
        comm.allreduce(np.arange(3.0) + rank, total, ReduceOp.SUM)
        assert np.array_equal(total, size * np.arange(3.0) + size * (size - 1) / 2)
        message = np.full(100, iteration if rank == iteration % size else -1)
        comm.broadcast(message, iteration % size)
        assert np.all(message == iteration)
        if iteration % 10 == 0:
            large = np.zeros(200_000)
            comm.broadcast(np.full(200_000, 7.0) if rank == 0 else large, 0)
            assert rank == 0 or np.all(large == 7.0)
        comm.barrier()


class LogLines(logging.Handler):
    """What a coordinator's threads log, for a test to wait for: they may do so a moment after it was felt."""

    def __init__(self) -> None:
        super().__init__()
        self._messages: list[str] = []
        self._grown = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._grown:
            self._messages.append(record.getMessage())
            self._grown.notify_all()

    def with_words(self, words: str) -> list[str]:
        """The messages so far that contain these words."""
        with self._grown:
            return [message for message in self._messages if words in message]

    def wait_for(self, words: str, count: int = 1) -> list[str]:
        """The messages with these words, once there are so many."""
        with self._grown:
            assert self._grown.wait_for(lambda: len(self.with_words(words)) >= count, 200), self._messages
            return self.with_words(words)


@contextmanager
def log_lines() -> Iterator[LogLines]:
    """The warnings of the tcp backend from here on."""
    handler = LogLines()
    logger = logging.getLogger("pycobre.comm.tcp.backend")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def receive(sock: socket.socket, count: int) -> bytes:
    """Exactly so many bytes, or fewer if the peer hangs up."""
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            break
        data += more
    return data


def shake_hands(sock: socket.socket, rank: int, size: int, token: str | None) -> WorkerSide:
    """Be a worker up to the answer to the proof; returns the handshake as far as it went."""
    side = WorkerSide(rank, size, token, "the coordinator")
    sock.sendall(side.hello)
    while side.refused is None and side.stage is not Stage.WELCOME:
        data = sock.recv(side.wanted)
        if not data:
            break
        sock.sendall(side.feed(data))
    return side
