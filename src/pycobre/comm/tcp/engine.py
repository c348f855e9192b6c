"""What runs the collectives of one rank: native, in Python, alone, or refusing."""

from __future__ import annotations

import select
import socket
import time
from typing import Any, Protocol

import numpy as np

from pycobre.comm.config import TcpConfig
from pycobre.comm.fold import fold_into
from pycobre.comm.tcp.collect import CoordinatorStar
from pycobre.comm.tcp.failure import CommFailure
from pycobre.comm.tcp.mac import SessionKeys
from pycobre.comm.tcp.sealed import SealedStream
from pycobre.comm.tcp.star import Star, WorkerStar
from pycobre.comm.tcp.stream import Stream
from pycobre.comm.tcp.wire import REDUCE_CODES, DtypeCode

try:
    from pycobre._native import tcp as native
except ImportError:  # no compiler when pycobre was installed
    native = None  # type: ignore[assignment]

__all__ = ["Alone", "Engine", "Refusing", "linger", "make_engine", "python_engine"]

Array = np.ndarray[Any, Any]
Fields = tuple[int, int, int, bytes]


class Engine(Protocol):
    """The collectives: each returns None, or what went wrong (the fields of a `CommFailure`).

    After failure, only `tell` is called.
    """

    def allgatherv(
        self,
        sequence: int,
        code: DtypeCode,
        layout: int,
        send: Array,
        recv: Array,
        counts: tuple[int, ...],
        displs: tuple[int, ...],
        /,
    ) -> Fields | None: ...

    def allreduce(
        self, sequence: int, code: DtypeCode, send: Array, recv: Array, reduce: int, /
    ) -> Fields | None: ...

    def broadcast(self, sequence: int, code: DtypeCode, buf: Array, root: int, /) -> Fields | None: ...

    def barrier(self, sequence: int, /) -> Fields | None: ...

    def tell(self, rank: int, frame: bytes, timeout_s: float, /) -> bool: ...

    def inspect(self, rank: int, /) -> Fields | None: ...

    def interrupt(self) -> None: ...


def make_engine(
    config: TcpConfig, sockets: dict[int, socket.socket], keys: dict[int, SessionKeys] | None = None
) -> Engine:
    """The fastest engine for these connections; those of ranks that have `keys` carry authenticated frames."""
    if config.uses_tls or native is None:
        return python_engine(config, sockets, keys)
    descriptors = []
    for sock in sockets.values():
        sock.setblocking(False)
        descriptors.append(sock.fileno())
    found = tuple((keys or {}).get(rank) for rank in sockets)
    return native.Star(config.rank, config.size, tuple(descriptors), found, config.timeout_s, _fold_bytes)


def python_engine(
    config: TcpConfig, sockets: dict[int, socket.socket], keys: dict[int, SessionKeys] | None = None
) -> Star:
    """The engine that runs everywhere."""
    streams = [_stream(config, rank, sock, (keys or {}).get(rank)) for rank, sock in sockets.items()]
    if config.rank == 0:
        return CoordinatorStar(0, config.size, streams, config.timeout_s)
    return WorkerStar(config.rank, config.size, streams[0], config.timeout_s)


def _stream(config: TcpConfig, rank: int, sock: socket.socket, keys: SessionKeys | None) -> Stream:
    if config.uses_tls:
        from pycobre.comm.tcp.tls import TlsStream

        return TlsStream(sock, rank)
    return Stream(sock, rank) if keys is None else SealedStream(sock, rank, keys)


def _fold_bytes(letter: int, itemsize: int, reduce: int, out: memoryview, parts: list[memoryview]) -> None:
    """Fold dtypes for which the native engine has no kernel."""
    dtype = np.dtype(f"{chr(letter)}{itemsize}")
    op = next(op for op, code in REDUCE_CODES.items() if code == reduce)
    fold_into(np.frombuffer(out, dtype), [np.frombuffer(part, dtype) for part in parts], op)


class Alone:
    """The engine of a single rank: identity copies and no-ops."""

    def allgatherv(
        self,
        sequence: int,
        code: DtypeCode,
        layout: int,
        send: Array,
        recv: Array,
        counts: tuple[int, ...],
        displs: tuple[int, ...],
    ) -> None:
        """Copy."""
        recv.reshape(-1)[displs[0] : displs[0] + counts[0]] = send.reshape(-1)

    def allreduce(self, sequence: int, code: DtypeCode, send: Array, recv: Array, reduce: int) -> None:
        """Copy."""
        recv.reshape(-1)[...] = send.reshape(-1)

    def broadcast(self, sequence: int, code: DtypeCode, buf: Array, root: int) -> None:
        """Do nothing."""

    def barrier(self, sequence: int) -> None:
        """Do nothing."""

    def tell(self, rank: int, frame: bytes, timeout_s: float) -> bool:
        """There is nobody to tell."""
        return True

    def inspect(self, rank: int) -> None:
        """There is nobody to inspect."""

    def interrupt(self) -> None:
        """Nothing here ever waits."""


class Refusing:
    """The engine after a failure: every collective fails for the same reason again."""

    def __init__(self, reason: CommFailure) -> None:
        self._reason = reason

    def _refuse(self, *_: Any, **__: Any) -> CommFailure:
        return self._reason

    allgatherv = allreduce = broadcast = barrier = inspect = _refuse

    def tell(self, rank: int, frame: bytes, timeout_s: float) -> bool:
        """The peers have been told why."""
        return False

    def interrupt(self) -> None:
        """Nothing here ever waits."""


def linger(sockets: list[socket.socket], timeout_s: float) -> None:
    """Read what peers still send until they disconnect too, so that the last frame sent to them is not lost.

    Closing a socket with unread bytes resets the connection, which may overtake what was sent before.
    """
    open_sockets = {sock.fileno(): sock for sock in sockets}
    poller = select.poll()
    for sock in sockets:
        poller.register(sock, select.POLLIN)
    deadline = time.monotonic() + timeout_s
    while open_sockets and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poller.poll(left * 1000):
            try:
                ended = not open_sockets[descriptor].recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:  # reset: there is nobody left to lose anything
                ended = True
            if ended:
                poller.unregister(descriptor)
                del open_sockets[descriptor]
