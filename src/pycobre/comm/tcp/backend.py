"""Ranks anywhere, over TCP: rank 0 coordinates, the workers connect to it once and stay.

The collectives themselves are native (`pycobre._native.tcp`) where that module is there and the connections
are not encrypted; both speak the same protocol. See docs/explanation/backends/tcp.md.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from pycobre.comm import failure as failure_text
from pycobre.comm.api import Backend, Buffer, ReduceOp
from pycobre.comm.config import TcpConfig
from pycobre.comm.local import LocalBackend
from pycobre.comm.misuse import forked
from pycobre.comm.region import HeapRegion
from pycobre.comm.tcp import sockets as tcp_sockets
from pycobre.comm.tcp.acceptor import Acceptor
from pycobre.comm.tcp.engine import Alone, Engine, Refusing, linger, make_engine
from pycobre.comm.tcp.failure import CommFailure, FailureKind, explain, reported
from pycobre.comm.tcp.join import join
from pycobre.comm.tcp.mac import SessionKeys
from pycobre.comm.tcp.wire import REDUCE_CODES, dtype_code, failure_frame, layout_code, shutdown_frame
from pycobre.errors import CollectiveFailed

__all__ = ["TcpBackend"]

log = logging.getLogger("pycobre.comm.tcp.backend")

_TELL_S = 0.2
_LINGER_S = 0.2
_INTERRUPT_S = 1.0
# Looking up an enum member hashes its name; these comparisons by identity are on the path of every allreduce.
_SUM, _MIN = ReduceOp.SUM, ReduceOp.MIN
_SUM_CODE, _MIN_CODE, _MAX_CODE = (REDUCE_CODES[op] for op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX))


class TcpBackend(Backend):
    """One rank of a group that meets at rank 0's port. Constructing it is collective.

    `on_listening(port)` is called on rank 0 once it listens and before it waits for the others: the way to
    learn a port that the system chose (`port=0`) in time to tell the workers. A launcher that starts rank 0
    as another process binds the port itself and passes the socket (`TcpConfig.listen_fd`).

    Raises `InitializationFailed` when the ranks do not come together within `connect_timeout_ms`, when the
    coordinator refuses this one, or when anybody on the network could join.
    """

    def __init__(self, config: TcpConfig, *, on_listening: Callable[[int], None] | None = None) -> None:
        super().__init__(config.rank, config.size)
        self._timeout_s = config.timeout_s
        self._tls = config.uses_tls
        self._turn = threading.Lock()  # held by whoever uses the connections: a collective, or the acceptor
        self._failure: CommFailure | None = None
        self._leaving: CommFailure | None = None
        self._acceptor: Acceptor | None = None
        self._sockets: dict[int, socket.socket] = {}
        self._addresses: dict[int, str] = {}
        self._keys: dict[int, SessionKeys] = {}
        self._port = config.port
        self._star: Engine = Alone()
        _open_backends.add(self)
        with self._turn:  # the acceptor may know of a disconnect before the star is there to tell of it
            if config.size > 1:
                if config.rank == 0:
                    self._coordinate(config, on_listening)
                else:
                    self._connected({0: join(config)})
                self._star = make_engine(config, self._sockets, self._keys)

    @property
    def port(self) -> int:
        """The port rank 0 listens on."""
        return self._port

    @property
    def is_leader(self) -> bool:
        """True: without shared memory every rank fills its own copy."""
        return True

    def _coordinate(self, config: TcpConfig, on_listening: Callable[[int], None] | None) -> None:
        tls = None
        if config.uses_tls:
            from pycobre.comm.tcp.tls import server_context

            tls = server_context(config)
        listener = tcp_sockets.listen(config)
        self._port = listener.getsockname()[1]
        log.info(
            "tcp: rank 0 of %d listens on %s", self._size, tcp_sockets.address_text(listener.getsockname())
        )
        self._acceptor = Acceptor(
            listener,
            config,
            deadline=time.monotonic() + config.connect_timeout_ms / 1000,
            tls=tls,
            on_disconnect=self._peer_disconnected,
        )
        try:
            if on_listening is not None:
                on_listening(self._port)
            self._connected(self._acceptor.wait_for_all())
        except BaseException:
            self._acceptor.close()
            raise

    def _connected(self, peers: dict[int, tcp_sockets.Connection]) -> None:
        self._sockets = {rank: peer.sock for rank, peer in peers.items()}
        self._addresses = {rank: peer.address for rank, peer in peers.items()}
        self._keys = {rank: peer.keys for rank, peer in peers.items() if peer.keys is not None}
        for rank, address in self._addresses.items():
            log.debug("tcp: messages with rank %d at %s are %s", rank, address, self._protection(rank))

    def _protection(self, rank: int) -> str:
        if rank in self._keys:
            return "authenticated"
        return "encrypted" if self._tls else "neither authenticated nor encrypted"

    def _allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...]
    ) -> None:
        code, layout = dtype_code(send.dtype), layout_code(counts)
        self._run("allgatherv", sequence, code, layout, send, recv, counts, displs)

    def _allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        reduce = _SUM_CODE if op is _SUM else _MIN_CODE if op is _MIN else _MAX_CODE
        self._run("allreduce", sequence, dtype_code(send.dtype), send, recv, reduce)

    def _broadcast(self, sequence: int, buf: Buffer, root: int) -> None:
        self._run("broadcast", sequence, dtype_code(buf.dtype), buf, root)

    def _barrier(self, sequence: int) -> None:
        self._run("barrier", sequence)

    def _run(self, operation: str, *call: Any) -> None:
        """Let the engine make a collective; whatever keeps it from completing is told to the peers."""
        with self._turn:
            try:
                failure = getattr(self._star, operation)(*call)
            except BaseException as error:
                why = f"{type(error).__name__}: {error}"
                text = failure_text.broke_off(failure_text.rank_name(self._rank), operation, why)
                self._declare(reported(self._rank, text))
                raise
            if failure is not None:
                raise self._failed(operation, CommFailure(*failure))

    def _abort(self, reason: str) -> None:
        """Tell the peers now or, when a collective is going on in another thread, let that one tell them."""
        failure = reported(self._rank, failure_text.aborted(self._rank, reason))
        if self._turn.acquire(blocking=False):
            try:
                self._declare(failure)
            finally:
                self._turn.release()
        else:
            self._leaving = failure
            self._star.interrupt()

    def _close(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
        mine = self._turn.acquire(blocking=False)
        if not mine:
            text = failure_text.closed_in_collective(failure_text.rank_name(self._rank))
            self._leaving = reported(self._rank, text)
            self._star.interrupt()
            mine = self._turn.acquire(timeout=_INTERRUPT_S)
        if self._failure is None and mine:
            for rank in self._sockets:
                self._star.tell(rank, shutdown_frame(self._sequence), _TELL_S)
        for sock in self._sockets.values():
            with suppress(OSError):  # the peer may have gone first
                sock.shutdown(socket.SHUT_WR if mine else socket.SHUT_RDWR)
        if not mine:
            return  # a collective below us on the stack still uses the sockets: they end with it
        if self._failure is not None:
            linger(list(self._sockets.values()), _LINGER_S)
        for sock in self._sockets.values():
            sock.close()
        self._star = Alone()
        self._turn.release()

    def _peer_disconnected(self, rank: int) -> bool:
        """Called by the acceptor when a worker's connection ended; False while a collective goes on."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if self._failure is None:
                failure = self._star.inspect(rank)
                if failure is None:
                    return False
                blamed, text = self._explain(CommFailure(*failure))
                # At the end of a healthy run somebody is the first to close.
                log.log(
                    logging.DEBUG if failure[0] == FailureKind.SHUTDOWN else logging.INFO, "tcp: %s", text
                )
                self._declare(reported(blamed, text), told=rank)
        finally:
            self._turn.release()
        return True

    def _failed(self, operation: str, failure: CommFailure) -> CollectiveFailed:
        """The error of a collective that did not complete; the peers are told why."""
        if failure.kind == FailureKind.INTERRUPTED and self._leaving is not None:
            failure = self._leaving
        rank, text = self._explain(failure)
        gone = failure.rank if failure.kind in (FailureKind.DISCONNECTED, FailureKind.SHUTDOWN) else -1
        self._declare(reported(rank, text), told=gone)
        return CollectiveFailed(operation, 0, text, rank=rank)

    def _explain(self, failure: CommFailure) -> tuple[int | None, str]:
        return explain(failure, self._rank, self._addresses, self._timeout_s)

    def _declare(self, reason: CommFailure, told: int = -1) -> None:
        """From now on no collective completes, and everybody knows why. Call while holding the turn."""
        if self._failure is not None:
            return
        self._failure = reason
        frame = failure_frame(reason.rank, reason.data)
        for rank in self._sockets:
            if rank != told:
                self._star.tell(rank, frame, _TELL_S)
        self._star = Refusing(reason)
        if self._rank > 0:
            with suppress(OSError):  # this wakes the coordinator's acceptor
                self._sockets[0].shutdown(socket.SHUT_WR)

    def _forget(self) -> None:
        """In a forked child: let go of the connections, which would otherwise outlive this rank unnoticed."""
        for sock in self._sockets.values():
            sock.close()
        self._sockets = {}
        if self._acceptor is not None:
            self._acceptor.forget()
            self._acceptor = None
        self._turn = threading.Lock()
        self._failure = reported(self._rank, str(forked(self._rank)))
        self._star = Refusing(self._failure)

    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> HeapRegion:
        return HeapRegion(count, dtype)

    def _split_local(self) -> LocalBackend:
        return LocalBackend()


_open_backends: weakref.WeakSet[TcpBackend] = weakref.WeakSet()


def _after_fork() -> None:
    for backend in list(_open_backends):
        backend._forget()


os.register_at_fork(after_in_child=_after_fork)
