"""Rank 0's acceptor thread: runs the handshake, rejects unauthenticated peers, detects disconnects.

One thread for all of it, from before the first worker arrives until the communicator is closed. It does not
read from a worker that was accepted: it asks the kernel to be woken when that connection ends, and now and then
whether data on it goes unanswered, so it cannot disturb a collective, and costs next to nothing while nobody
connects or leaves. Unauthenticated peers cost a bounded number of connections, each for a bounded time; when there
are `MAX_PENDING` of them the one that has been waiting longest is dropped, so a worker, which needs milliseconds,
always gets through.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pycobre.comm.config import TcpConfig
from pycobre.comm.tcp.drop_log import DropLog
from pycobre.comm.tcp.handshake import CoordinatorSide, ready, refusal
from pycobre.comm.tcp.sockets import Connection, address_text, limit_retransmission, seals, tune
from pycobre.errors import InitializationFailed

if TYPE_CHECKING:
    import ssl

__all__ = ["Acceptor", "PendingConnection"]

log = logging.getLogger("pycobre.comm.tcp.backend")

MAX_PENDING = 64
_HANDSHAKE_S = 5.0
_FIRST_NOTICE_S = 5.0
_LISTED_RANKS = 10
_RETRY_S = 0.02
_BLOCKED_S = 1.0
_LONGEST_LOOK_S = 60.0
_LISTED_REFUSALS = 10
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


@dataclass
class PendingConnection:
    """A connection that has not proven anything yet."""

    sock: socket.socket
    address: str
    side: CoordinatorSide
    deadline: float
    encrypting: bool  # the TLS handshake is still going on


class Acceptor:
    """Accepts connections on `listener` for the run that `config` describes.

    `on_disconnect(rank)` is called in the acceptor's thread when a rank's connection ends during the run; while it
    returns False (a collective is going on, and will see for itself) it is called again shortly after.
    """

    def __init__(
        self,
        listener: socket.socket,
        config: TcpConfig,
        *,
        deadline: float,
        tls: ssl.SSLContext | None,
        on_disconnect: Callable[[int], bool],
    ) -> None:
        self._listener = listener
        self._config = config
        self._size = config.size
        self._timeout_s = config.timeout_s
        self._deadline = deadline
        self._tls = tls
        self._on_disconnect = on_disconnect
        self._pending: dict[int, PendingConnection] = {}
        self._changed = threading.Condition()
        self._members: dict[int, Connection] = {}
        self._ranks: dict[int, int] = {}  # descriptor → rank
        self._refusals: list[str] = []
        self._left: dict[int, str] = {}  # rank → address of who came and went before the start
        self._drops = DropLog()
        self._started = False
        self._disconnected: list[int] = []
        self._look_s = min(config.timeout_s / 4, _LONGEST_LOOK_S)
        self._look_at = time.monotonic() + self._look_s
        self._reopen_at: float | None = None
        self._stopping = False
        self._poller = select.poll()
        self._wake_read, self._wake_write = socket.socketpair()
        self._poller.register(self._wake_read, select.POLLIN)
        self._poller.register(listener, select.POLLIN)
        self._thread = threading.Thread(target=self._run, name="pycobre-tcp-acceptor", daemon=True)
        self._thread.start()

    def wait_for_all(self) -> dict[int, Connection]:
        """Every rank's connection, once all are there; tells them that the run starts.

        While it waits it logs for whom, at growing intervals. Raises `InitializationFailed` at the deadline,
        listing who came and who did not, and tells those who came.
        """
        interval = _FIRST_NOTICE_S
        notice_at = time.monotonic() + interval
        with self._changed:
            while len(self._members) < self._size - 1:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    text = self._missing_text()
                    self._stopping = True  # who leaves now was told to
                    for member in self._members.values():
                        _send(member.sock, refusal(text))
                    raise InitializationFailed("tcp", text)
                if notice_at <= time.monotonic():
                    missing = self._missing()
                    log.warning(
                        "tcp: waiting for %d of %d: %s (%.0f s left)",
                        len(missing),
                        self._size,
                        rank_list(missing),
                        left,
                    )
                    interval = min(2 * interval, _LONGEST_LOOK_S)
                    notice_at = time.monotonic() + interval
                self._changed.wait(max(0.0, min(left, notice_at - time.monotonic())))
            self._started = True
            members = dict(sorted(self._members.items()))
        for member in members.values():
            _send(member.sock, ready())
        return members

    def close(self) -> None:
        """Stop accepting and watching; closes everything but the connections handed out."""
        self._stopping = True
        self._wake_write.send(b"x")
        self._thread.join()
        for pending in list(self._pending.values()):
            self._drop(pending, "the run ended before its handshake did")
        self._drops.report()
        self.forget()

    def forget(self) -> None:
        """Close the sockets only; all there is to do in a forked child, where the thread does not exist."""
        for pending in self._pending.values():
            pending.sock.close()
        if not self._started:
            for member in self._members.values():
                member.sock.close()
        self._wake_read.close()
        self._wake_write.close()
        self._listener.close()

    def _run(self) -> None:
        while not self._stopping:
            for descriptor, _ in self._poller.poll(self._pause_ms()):
                if descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor in self._pending:
                    self._advance(self._pending[descriptor])
                elif descriptor in self._ranks:
                    self._remove(descriptor)
            self._tick()

    def _pause_ms(self) -> float:
        moments = [self._look_at, *(pending.deadline for pending in self._pending.values())]
        if self._reopen_at is not None:
            moments.append(self._reopen_at)
        if self._drops.due is not None:
            moments.append(self._drops.due)
        if self._disconnected:
            moments.append(time.monotonic() + _RETRY_S)
        return max(0.0, min(moments) - time.monotonic()) * 1000 + 1

    def _tick(self) -> None:
        now = time.monotonic()
        for pending in [pending for pending in self._pending.values() if pending.deadline <= now]:
            did = "did not finish the handshake" if pending.side.heard else "sent nothing"
            self._drop(pending, f"it {did} within {_HANDSHAKE_S:g} s")
        if self._reopen_at is not None and self._reopen_at <= now:
            self._reopen_at = None
            self._poller.register(self._listener, select.POLLIN)
        if self._drops.due is not None and self._drops.due <= now:
            self._drops.report()
        if self._look_at <= now:
            self._look_at = now + self._look_s
            for rank in self._ranks.values():
                limit_retransmission(self._members[rank].sock, self._timeout_s)
        self._disconnected = [rank for rank in self._disconnected if not self._on_disconnect(rank)]

    def _accept(self) -> None:
        try:
            sock, peer = self._listener.accept()
        except (BlockingIOError, ConnectionError, InterruptedError):
            return
        except OSError as error:  # out of descriptors or memory: let others finish first
            log.warning("tcp: cannot accept connections for %g s: %s", _BLOCKED_S, error)
            self._poller.unregister(self._listener)
            self._reopen_at = time.monotonic() + _BLOCKED_S
            return
        sock.setblocking(False)
        address = address_text(peer)
        if len(self._pending) >= MAX_PENDING:
            oldest = min(self._pending.values(), key=lambda pending: pending.deadline)
            self._drop(oldest, "too many connections wait for their handshake, and this one longest")
        try:
            tune(sock, self._timeout_s)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            sock.close()
            self._drops.dropped(address, str(error))
            return
        side = CoordinatorSide(self._size, self._config.token, seal=seals(self._config, str(peer[0])))
        pending = PendingConnection(
            sock, address, side, time.monotonic() + _HANDSHAKE_S, self._tls is not None
        )
        self._pending[sock.fileno()] = pending
        self._poller.register(sock, select.POLLIN)
        self._advance(pending)

    def _advance(self, pending: PendingConnection) -> None:
        """Take in what a pending sent, as far as it has come."""
        try:
            if pending.encrypting:
                self._encrypt(pending)
            while not pending.encrypting and pending.side.rank is None:
                data = pending.sock.recv(pending.side.wanted)
                if not data:
                    when = "during the handshake" if pending.side.heard else "without sending anything"
                    self._drop(pending, f"it closed the connection {when}")
                    return
                answer = pending.side.feed(data)
                if answer:
                    pending.sock.send(answer)
                if pending.side.refused is not None:
                    self._drop(pending, pending.side.refused)
                    return
        except OSError as error:
            if _would_block(error):
                return
            if pending.encrypting and getattr(error, "reason", "") == "WRONG_VERSION_NUMBER":
                _send_plain(
                    pending.sock, pending.side.refuse("rank 0 speaks TLS: set COBRE_TCP_TLS_CA on every rank")
                )
                self._drop(pending, "it does not speak TLS, and this run does")
            else:
                self._drop(pending, error.strerror or str(error))
            return
        if pending.side.rank is not None:
            self._admit(pending, pending.side.rank)

    def _encrypt(self, pending: PendingConnection) -> None:
        pending.sock.do_handshake()  # type: ignore[attr-defined]
        pending.encrypting = False

    def _admit(self, pending: PendingConnection, rank: int) -> None:
        with self._changed:
            if rank in self._members and not self._started and _has_ended(self._members[rank].sock):
                self._remove(self._members[rank].sock.fileno())  # its successor was quicker than this news
            if rank in self._members:
                reason = (
                    f"rank {rank} is here already, from {self._members[rank].address}. Check COBRE_TCP_RANK."
                )
                _send(pending.sock, pending.side.refuse(reason))
                self._drop(pending, reason)
                return
            left_ms = round((self._deadline - time.monotonic()) * 1000)
            if not _send(pending.sock, pending.side.welcome(left_ms)):
                self._drop(pending, "it closed the connection during the handshake")
                return
            descriptor = pending.sock.fileno()
            del self._pending[descriptor]
            self._poller.modify(pending.sock, _GONE)
            self._members[rank] = Connection(pending.sock, pending.address, pending.side.keys)
            self._ranks[descriptor] = rank
            self._left.pop(rank, None)
            self._changed.notify_all()
        log.info("tcp: rank %d joined from %s", rank, pending.address)

    def _remove(self, descriptor: int) -> None:
        """A rank's connection ended: before the start its place is free again, later it is news."""
        rank = self._ranks.pop(descriptor)
        self._poller.unregister(descriptor)
        with self._changed:
            if not self._started:
                member = self._members.pop(rank)
                member.sock.close()
                if not self._stopping:
                    self._left[rank] = member.address
                    log.warning("tcp: rank %d from %s left before the start", rank, member.address)
                return
        self._disconnected.append(rank)

    def _drop(self, pending: PendingConnection, reason: str) -> None:
        self._drops.dropped(pending.address, reason)
        descriptor = pending.sock.fileno()
        self._poller.unregister(descriptor)
        del self._pending[descriptor]
        pending.sock.close()
        with self._changed:
            if not self._started:
                self._refusals.append(f"{pending.address} ({reason})")
                del self._refusals[:-_LISTED_REFUSALS]

    def _missing(self) -> list[int]:
        return [rank for rank in range(1, self._size) if rank not in self._members]

    def _missing_text(self) -> str:
        missing = self._missing()
        came = ", ".join(
            f"rank {rank} from {member.address}" for rank, member in sorted(self._members.items())
        )
        text = (
            f"{len(missing)} of {self._size} ranks did not arrive in time: missing "
            f"{', '.join(map(str, missing))}; arrived: {came or 'nobody'}"
        )
        if self._left:
            left = ", ".join(f"rank {rank} from {address}" for rank, address in sorted(self._left.items()))
            text += f"; came and left before the start: {left}"
        if self._refusals:
            text += f"; refused: {'; '.join(self._refusals)}"
        return text + ". Start the missing ranks, or raise COBRE_TCP_CONNECT_TIMEOUT_MS."


def rank_list(ranks: list[int]) -> str:
    """`rank 2`, `ranks 2, 3`, or the first of many and how many more."""
    listed = ", ".join(map(str, ranks[:_LISTED_RANKS]))
    more = f" and {len(ranks) - _LISTED_RANKS} more" if len(ranks) > _LISTED_RANKS else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {listed}{more}"


def _send(sock: socket.socket, message: bytes) -> bool:
    """Send a few bytes, for which a fresh connection always has room; whether they went out."""
    try:
        return sock.send(message) == len(message)
    except OSError:  # whoever cannot be told is gone, and is noticed as such
        return False


def _send_plain(sock: socket.socket, message: bytes) -> None:
    """Answer in the clear on a connection that was to be encrypted."""
    with socket.socket(fileno=os.dup(sock.fileno())) as plain:
        _send(plain, message)


def _has_ended(sock: socket.socket) -> bool:
    poller = select.poll()
    poller.register(sock, _GONE)
    return bool(poller.poll(0))


def _would_block(error: OSError) -> bool:
    # Non-blocking TLS says the same in its own words; naming its classes would import ssl for everyone.
    return isinstance(error, BlockingIOError) or type(error).__name__ in (
        "SSLWantReadError",
        "SSLWantWriteError",
    )
