"""Sockets as the tcp backend wants them: bound, connected and tuned, over IPv4 or IPv6."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass

from pycobre.comm.config import TcpConfig
from pycobre.comm.tcp.mac import SessionKeys
from pycobre.errors import InitializationFailed

__all__ = ["Connection", "address_text", "is_loopback", "limit_retransmission", "listen", "seals", "tune"]

_BACKLOG = 256
_RETRANSMITS_AT = 2  # in struct tcp_info of Linux: a byte that counts what was sent again and not answered


@dataclass(frozen=True)
class Connection:
    """A connection to another rank after the handshake; with `keys`, its frames are authenticated."""

    sock: socket.socket
    address: str
    keys: SessionKeys | None


def listen(config: TcpConfig) -> socket.socket:
    """The socket rank 0 listens on: inherited from a launcher, or bound to the configured address.

    Refused where anybody on the network could reach it and no token is set.
    """
    if config.listen_fd is not None:
        return _inherited(config)
    try:
        found = socket.getaddrinfo(
            config.bind_addr or None, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        text = f"bind address {config.bind_addr!r}: expected an address of this host, got {error}"
        raise InitializationFailed("tcp", f"{text}. Check COBRE_TCP_BIND_ADDR.") from error
    family, kind, protocol, _, address = found[0]
    _require_token(config, str(address[0]))
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        text = f"cannot listen on {address_text(address)}: {error.strerror or error}"
        advice = "Another process may have the port: choose another COBRE_TCP_PORT, or 0 for any free one."
        raise InitializationFailed("tcp", f"{text}. {advice}") from error
    listener.setblocking(False)
    return listener


def tune(sock: socket.socket, timeout_s: float) -> None:
    """Set what a connection between ranks needs.

    Keep-alive probes are answered by the peer's kernel, so they tell a host that is gone from a rank that
    computes for an hour with the interpreter locked; unanswered for `timeout_s`, they end the connection. On
    loopback, where no congestion exists, plain reno moves up to twice the bytes of pacing algorithms.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    seconds = {"TCP_KEEPIDLE": timeout_s / 4, "TCP_KEEPINTVL": timeout_s / 8, "TCP_KEEPCNT": 8}
    for name, value in seconds.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), min(max(1, round(value)), 32767))
    if hasattr(socket, "TCP_CONGESTION") and is_loopback(sock.getpeername()[0]):
        with suppress(OSError):  # not every system lets everyone choose
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def limit_retransmission(sock: socket.socket, timeout_s: float) -> None:
    """End a connection on which data remains unanswered for `timeout_s`; to be called now and then.

    While data is on its way the kernel sends it again instead of keep-alive probes, for a quarter of an hour. The
    limit is set only while it does: it would also end a connection whose peer answers but does not read, as
    when the whole job is stopped for a while in the middle of a transfer.
    """
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        return
    unanswered = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RETRANSMITS_AT + 1)[_RETRANSMITS_AT]
    milliseconds = min(round(timeout_s * 1000), 2**31 - 1) if unanswered else 0
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


def is_loopback(host: str) -> bool:
    """Whether a numeric address can be reached from this machine only."""
    address = ipaddress.ip_address(host)
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def seals(config: TcpConfig, host: str) -> bool:
    """Whether this end asks for authenticated frames on a connection to `host`.

    Always beyond loopback; TLS authenticates by itself, and without a token there is no key.
    """
    return config.token is not None and not config.uses_tls and (config.authenticate or not is_loopback(host))


def address_text(address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> str:
    """`host:port`, with brackets around an IPv6 host."""
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port!r}" if ":" in host else f"{host}:{port!r}"


def _inherited(config: TcpConfig) -> socket.socket:
    assert config.listen_fd is not None
    try:
        listener = socket.socket(fileno=config.listen_fd)
        accepting = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        text = f"COBRE_TCP_LISTEN_FD: expected a listening socket, got descriptor {config.listen_fd}"
        raise InitializationFailed("tcp", f"{text} ({error.strerror})") from error
    listener.setblocking(False)
    listener.set_inheritable(False)
    try:
        if not accepting:
            listener.listen(_BACKLOG)
        _require_token(config, listener.getsockname()[0])
    except (OSError, InitializationFailed):
        listener.close()
        raise
    return listener


def _require_token(config: TcpConfig, host: str) -> None:
    if config.token is None and not is_loopback(host):
        raise InitializationFailed(
            "tcp",
            f"listening on {host} without a token would let anyone on the network join the run. Set the "
            "same secret COBRE_TCP_TOKEN on every rank (for example the output of `python -c 'import "
            "secrets; print(secrets.token_hex(32))'`), or, if all ranks are on this machine, "
            "COBRE_TCP_BIND_ADDR=127.0.0.1.",
        )
