"""Rank 0's door: lets the ranks in, turns strangers away, and notices when somebody leaves.

One thread for all of it, from before the first worker arrives until the communicator is closed. It does not
read from a worker that was let in: it asks the kernel to be woken when that connection ends, and now and then
whether data on it goes unanswered, so it cannot disturb a collective, and costs next to nothing while nobody
comes or goes. Strangers cost a bounded number of connections, each for a bounded time; when all places are
taken the one that has been waiting longest goes, so a worker, which needs milliseconds, always gets through.
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
from pycobre.comm.tcp.handshake import CoordinatorSide, ready, refusal
from pycobre.comm.tcp.sockets import Connection, address_text, limit_retransmission, seals, tune
from pycobre.errors import InitializationFailed

if TYPE_CHECKING:
    import ssl

__all__ = ["Door"]

log = logging.getLogger("pycobre.comm.tcp.backend")

_PLACES = 64
_HANDSHAKE_S = 5.0
_RETRY_S = 0.02
_BLOCKED_S = 1.0
_LONGEST_LOOK_S = 60.0
_LISTED_REFUSALS = 10
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


@dataclass
class _Guest:
    """A connection that has not proven anything yet."""

    sock: socket.socket
    address: str
    side: CoordinatorSide
    deadline: float
    encrypting: bool  # the TLS handshake is still going on


class Door:
    """Accepts connections on `listener` for the run that `config` describes.

    `on_hangup(rank)` is called in the door's thread when a rank's connection ends during the run; while it
    returns False (a collective is going on, and will see for itself) it is called again shortly after.
    """

    def __init__(
        self,
        listener: socket.socket,
        config: TcpConfig,
        *,
        deadline: float,
        tls: ssl.SSLContext | None,
        on_hangup: Callable[[int], bool],
    ) -> None:
        self._listener = listener
        self._config = config
        self._size = config.size
        self._timeout_s = config.timeout_s
        self._deadline = deadline
        self._tls = tls
        self._on_hangup = on_hangup
        self._guests: dict[int, _Guest] = {}
        self._changed = threading.Condition()
        self._members: dict[int, Connection] = {}
        self._ranks: dict[int, int] = {}  # descriptor → rank
        self._refusals: list[str] = []
        self._started = False
        self._hung: list[int] = []
        self._look_s = min(config.timeout_s / 4, _LONGEST_LOOK_S)
        self._look_at = time.monotonic() + self._look_s
        self._reopen_at: float | None = None
        self._stopping = False
        self._poller = select.poll()
        self._wake_read, self._wake_write = socket.socketpair()
        self._poller.register(self._wake_read, select.POLLIN)
        self._poller.register(listener, select.POLLIN)
        self._thread = threading.Thread(target=self._run, name="pycobre-tcp-door", daemon=True)
        self._thread.start()

    def wait_for_all(self) -> dict[int, Connection]:
        """Every rank's connection, once all are there; tells them that the run starts.

        Raises `InitializationFailed` at the deadline, listing who came and who did not, and tells those who
        came.
        """
        with self._changed:
            while len(self._members) < self._size - 1:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    text = self._missing_text()
                    self._stopping = True  # who leaves now was told to
                    for member in self._members.values():
                        _send(member.sock, refusal(text))
                    raise InitializationFailed("tcp", text)
                self._changed.wait(left)
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
        for guest in list(self._guests.values()):
            self._drop(guest, "the run ended before its handshake did")
        self.forget()

    def forget(self) -> None:
        """Close the sockets only; all there is to do in a forked child, where the thread does not exist."""
        for guest in self._guests.values():
            guest.sock.close()
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
                elif descriptor in self._guests:
                    self._advance(self._guests[descriptor])
                elif descriptor in self._ranks:
                    self._lose(descriptor)
            self._tick()

    def _pause_ms(self) -> float:
        moments = [self._look_at, *(guest.deadline for guest in self._guests.values())]
        if self._reopen_at is not None:
            moments.append(self._reopen_at)
        if self._hung:
            moments.append(time.monotonic() + _RETRY_S)
        return max(0.0, min(moments) - time.monotonic()) * 1000 + 1

    def _tick(self) -> None:
        now = time.monotonic()
        for guest in [guest for guest in self._guests.values() if guest.deadline <= now]:
            said = "did not finish the handshake" if guest.side.heard else "said nothing"
            self._drop(guest, f"it {said} within {_HANDSHAKE_S:g} s")
        if self._reopen_at is not None and self._reopen_at <= now:
            self._reopen_at = None
            self._poller.register(self._listener, select.POLLIN)
        if self._look_at <= now:
            self._look_at = now + self._look_s
            for rank in self._ranks.values():
                limit_retransmission(self._members[rank].sock, self._timeout_s)
        self._hung = [rank for rank in self._hung if not self._on_hangup(rank)]

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
        if len(self._guests) >= _PLACES:
            oldest = min(self._guests.values(), key=lambda guest: guest.deadline)
            self._drop(oldest, "too many connections wait for their handshake, and this one longest")
        try:
            tune(sock, self._timeout_s)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            sock.close()
            log.warning("tcp: dropped a connection from %s: %s", address, error)
            return
        side = CoordinatorSide(self._size, self._config.token, seal=seals(self._config, str(peer[0])))
        guest = _Guest(sock, address, side, time.monotonic() + _HANDSHAKE_S, self._tls is not None)
        self._guests[sock.fileno()] = guest
        self._poller.register(sock, select.POLLIN)
        self._advance(guest)

    def _advance(self, guest: _Guest) -> None:
        """Take in what a guest sent, as far as it has come."""
        try:
            if guest.encrypting:
                self._encrypt(guest)
            while not guest.encrypting and guest.side.rank is None:
                data = guest.sock.recv(guest.side.wanted)
                if not data:
                    said = "in the middle of the handshake" if guest.side.heard else "without a word"
                    self._drop(guest, f"it hung up {said}")
                    return
                answer = guest.side.feed(data)
                if answer:
                    guest.sock.send(answer)
                if guest.side.refused is not None:
                    self._drop(guest, guest.side.refused)
                    return
        except OSError as error:
            if _would_block(error):
                return
            if guest.encrypting and getattr(error, "reason", "") == "WRONG_VERSION_NUMBER":
                _send_plain(
                    guest.sock, guest.side.refuse("rank 0 speaks TLS: set COBRE_TCP_TLS_CA on every rank")
                )
                self._drop(guest, "it does not speak TLS, and this run does")
            else:
                self._drop(guest, error.strerror or str(error))
            return
        if guest.side.rank is not None:
            self._admit(guest, guest.side.rank)

    def _encrypt(self, guest: _Guest) -> None:
        guest.sock.do_handshake()  # type: ignore[attr-defined]
        guest.encrypting = False

    def _admit(self, guest: _Guest, rank: int) -> None:
        with self._changed:
            if rank in self._members and not self._started and _has_ended(self._members[rank].sock):
                self._lose(self._members[rank].sock.fileno())  # its successor was quicker than this news
            if rank in self._members:
                reason = (
                    f"rank {rank} is here already, from {self._members[rank].address}. Check COBRE_TCP_RANK."
                )
                _send(guest.sock, guest.side.refuse(reason))
                self._drop(guest, reason)
                return
            left_ms = round((self._deadline - time.monotonic()) * 1000)
            if not _send(guest.sock, guest.side.welcome(left_ms)):
                self._drop(guest, "it hung up in the middle of the handshake")
                return
            descriptor = guest.sock.fileno()
            del self._guests[descriptor]
            self._poller.modify(guest.sock, _GONE)
            self._members[rank] = Connection(guest.sock, guest.address, guest.side.keys)
            self._ranks[descriptor] = rank
            self._changed.notify_all()
        log.info("tcp: rank %d joined from %s", rank, guest.address)

    def _lose(self, descriptor: int) -> None:
        """A rank's connection ended: before the start its place is free again, later it is news."""
        rank = self._ranks.pop(descriptor)
        self._poller.unregister(descriptor)
        with self._changed:
            if not self._started:
                member = self._members.pop(rank)
                member.sock.close()
                if not self._stopping:
                    log.warning("tcp: rank %d from %s left before the start", rank, member.address)
                return
        self._hung.append(rank)

    def _drop(self, guest: _Guest, reason: str) -> None:
        log.warning("tcp: dropped a connection from %s: %s", guest.address, reason)
        descriptor = guest.sock.fileno()
        self._poller.unregister(descriptor)
        del self._guests[descriptor]
        guest.sock.close()
        with self._changed:
            if not self._started:
                self._refusals.append(f"{guest.address} ({reason})")
                del self._refusals[:-_LISTED_REFUSALS]

    def _missing_text(self) -> str:
        missing = [rank for rank in range(1, self._size) if rank not in self._members]
        came = ", ".join(
            f"rank {rank} from {member.address}" for rank, member in sorted(self._members.items())
        )
        text = (
            f"{len(missing)} of {self._size} ranks did not arrive in time: missing "
            f"{', '.join(map(str, missing))}; arrived: {came or 'nobody'}"
        )
        if self._refusals:
            text += f"; turned away: {'; '.join(self._refusals)}"
        return text + ". Start the missing ranks, or raise COBRE_TCP_CONNECT_TIMEOUT_MS."


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
