"""How a worker joins: connect, retry until the coordinator is there, prove, wait for the others."""

from __future__ import annotations

import random
import socket
import time

from pycobre.comm.config import TcpConfig
from pycobre.comm.tcp.handshake import Stage, WorkerSide
from pycobre.comm.tcp.sockets import Connection, address_text, is_loopback, seals, tune
from pycobre.errors import InitializationFailed

__all__ = ["join"]

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5
_ATTEMPT_S = 5.0
# An attempt just before the deadline still gets time for an answer: its reason goes into the error.
_LAST_ATTEMPT_S = 0.25
# The coordinator gives up on missing ranks first and says which they are; this much later we do.
_GRACE_S = 2.0


def join(config: TcpConfig) -> Connection:
    """A connection to the coordinator, both sides proven, all ranks present.

    Ranks may start in any order: whatever may pass (nobody listens yet, the name is not known yet, the host
    is still booting) is tried again with growing pauses until the connect timeout. What will not pass, such
    as a wrong token, ends it at once.
    """
    deadline = time.monotonic() + config.connect_timeout_ms / 1000
    pause_s = _FIRST_PAUSE_S
    attempts = 0
    reason = ""
    while True:
        for family, address in _resolve(config):
            attempts += 1
            outcome = _attempt(config, family, address, deadline)
            if isinstance(outcome, Connection):
                return outcome
            reason = f"{address_text(address)}: {outcome}"
        reason = reason or f"the name {config.coordinator!r} is not known here"
        left = deadline - time.monotonic()
        if left <= 0:
            raise InitializationFailed(
                "tcp",
                f"rank {config.rank} could not join rank 0 at {config.coordinator}:{config.port} within "
                f"{config.connect_timeout_ms} ms ({attempts} attempts; the last, {reason}). Check that rank "
                "0 runs, that COBRE_TCP_COORDINATOR and COBRE_TCP_PORT are its address, and that no firewall "
                "is in between; or raise COBRE_TCP_CONNECT_TIMEOUT_MS.",
            )
        # Many workers that lost the same race should not all come back at the same moment.
        time.sleep(min(left, pause_s * random.uniform(0.75, 1.25)))
        pause_s = min(pause_s * 1.6, _LONGEST_PAUSE_S)


def _resolve(config: TcpConfig) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    try:
        found = socket.getaddrinfo(config.coordinator, config.port, type=socket.SOCK_STREAM)
    except OSError:  # in a cluster that is starting, names may become known later
        return []
    return [(family, address) for family, _, _, _, address in found]  # type: ignore[misc]


def _attempt(
    config: TcpConfig, family: socket.AddressFamily, address: tuple[str, int], deadline: float
) -> Connection | str:
    """The finished connection, or why this attempt failed although another may not."""
    if config.token is None and not is_loopback(address[0]):
        raise InitializationFailed(
            "tcp",
            f"joining {address_text(address)} without a token would trust whoever answers there. Set the "
            "same secret COBRE_TCP_TOKEN on every rank.",
        )
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(_time_left(deadline))
        sock.connect(address)
        tune(sock, config.timeout_s)
        sock = _secured(config, sock)
        side = WorkerSide(
            config.rank, config.size, config.token, address_text(address), seal=seals(config, address[0])
        )
        _handshake(side, sock, deadline)
        if side.refused is None:
            return Connection(sock, address_text(address), side.keys)
    except (OSError, EOFError) as error:
        sock.close()
        if _is_final(config, error):
            raise InitializationFailed("tcp", f"TLS with {address_text(address)} failed: {error}") from error
        return _why(config, error)
    except BaseException:
        sock.close()
        raise
    sock.close()
    raise InitializationFailed("tcp", side.refused)


def _handshake(side: WorkerSide, sock: socket.socket, deadline: float) -> None:
    """Run the handshake to its end: all ranks are there, or `side.refused` says why this one is refused."""
    sock.settimeout(_time_left(deadline))
    sock.sendall(side.hello)
    while side.stage is not Stage.READY:
        data = sock.recv(side.wanted)
        if not data:
            raise EOFError
        stage = side.stage
        answer = side.feed(data)
        if side.refused is not None:
            return
        if answer:
            sock.sendall(answer)
        if side.stage is Stage.WELCOME and stage is not Stage.WELCOME:
            sock.settimeout(side.left_ms / 1000 + _GRACE_S)


def _secured(config: TcpConfig, sock: socket.socket) -> socket.socket:
    if not config.uses_tls:
        return sock
    from pycobre.comm.tcp.tls import client_context

    return client_context(config).wrap_socket(sock, server_hostname=config.coordinator)


def _is_final(config: TcpConfig, error: OSError | EOFError) -> bool:
    """Whether trying again is useless: a certificate that is not accepted stays so."""
    if not config.uses_tls:
        return False
    import ssl

    return isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)


def _time_left(deadline: float) -> float:
    return min(max(deadline - time.monotonic(), _LAST_ATTEMPT_S), _ATTEMPT_S)


def _why(config: TcpConfig, error: OSError | EOFError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    ended = isinstance(error, EOFError | ConnectionResetError) or type(error).__name__ == "SSLEOFError"
    if config.uses_tls and ended:
        return "the connection was closed during the handshake; is COBRE_TCP_TLS_CERT set on rank 0 too?"
    if isinstance(error, EOFError):
        return "the connection was closed during the handshake"
    return error.strerror or str(error)
