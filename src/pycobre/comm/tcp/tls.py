"""TLS for the tcp backend, by the standard `ssl` module. Imported only where it is configured.

Rank 0 shows the certificate COBRE_TCP_TLS_CERT (key COBRE_TCP_TLS_KEY); a worker checks it, and the name or
address it connects to, against COBRE_TCP_TLS_CA. With a CA set on rank 0 too, workers must show a certificate
of that CA themselves.
"""

from __future__ import annotations

import ssl
from collections import deque

from pycobre.comm.config import TcpConfig
from pycobre.comm.tcp.stream import Stream
from pycobre.errors import InitializationFailed, MissingConfiguration

__all__ = ["TlsStream", "client_context", "server_context"]


def server_context(config: TcpConfig) -> ssl.SSLContext:
    """What rank 0 presents and demands."""
    if config.tls_cert is None or config.tls_key is None:
        raise MissingConfiguration("tcp", ("COBRE_TCP_TLS_CERT", "COBRE_TCP_TLS_KEY"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, config)
    if config.tls_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(config: TcpConfig) -> ssl.SSLContext:
    """What a worker presents and demands."""
    if config.tls_ca is None:
        raise MissingConfiguration("tcp", ("COBRE_TCP_TLS_CA",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, config)
    return context


class TlsStream(Stream):
    """A stream over an encrypted socket."""

    def _receive(self, view: memoryview) -> int:
        try:
            return super()._receive(view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except ssl.SSLEOFError:
            raise EOFError from None

    def _send(self, parts: deque[memoryview]) -> int:
        # An encrypted socket takes one buffer at a time; a small frame should still be one record.
        whole = sum(map(len, parts)) <= 16384
        try:
            return self.sock.send(b"".join(parts) if whole else parts[0])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0


def _load(context: ssl.SSLContext, config: TcpConfig) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if config.tls_cert is not None:
            context.load_cert_chain(config.tls_cert, config.tls_key)
        if config.tls_ca is not None:
            context.load_verify_locations(config.tls_ca)
    except OSError as error:  # ssl.SSLError is one
        files = ", ".join(filter(None, (config.tls_cert, config.tls_key, config.tls_ca)))
        text = f"TLS files {files}: expected PEM certificates and a matching key, got {error}"
        raise InitializationFailed("tcp", f"{text}. Check COBRE_TCP_TLS_CERT, _KEY and _CA.") from error
