"""Serving: over standard input and output, or over HTTP with the checks that this needs."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings

from pycobre.app.mcp.limits import Limits
from pycobre.app.mcp.prompts import add_prompts
from pycobre.app.mcp.resources import add_resources
from pycobre.app.mcp.server import Office, StudyServer
from pycobre.app.mcp.tools import add_tools
from pycobre.errors import OptionError

__all__ = ["make_server", "serve_http", "serve_stdio", "token_from"]

PATH = "/mcp"
SHORTEST_TOKEN = 16
MOST_SESSIONS = 32
GRACE_S = 2
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def make_server(root: str, *, writing: bool, limits: Limits, lease: bool) -> StudyServer:
    """A server with all of its tools, resources and prompts."""
    server = StudyServer(Office(root, writing=writing, limits=limits, lease=lease))
    add_tools(server)
    add_resources(server)
    add_prompts(server)
    return server


def serve_stdio(root: str, *, writing: bool, limits: Limits) -> None:
    """Serve one client until standard input ends."""

    async def serve() -> None:
        server = make_server(root, writing=writing, limits=limits, lease=False)
        async with server.office.open():
            await server.run_stdio_async()

    asyncio.run(serve())


def serve_http(
    root: str,
    address: str,
    *,
    writing: bool,
    limits: Limits,
    token: str | None,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
) -> None:
    """Serve clients over HTTP until a signal ends it. Beyond loopback a token is required."""
    host, port = _address(address)
    local = _is_loopback(host)
    if token is None and not local:
        raise OptionError(
            f"--http {address}: expected a token beyond loopback, got none. Give --token-file, or set "
            "PYCOBRE_MCP_TOKEN."
        )
    if not local and not hosts and _is_any(host):
        raise OptionError(
            f"--http {address}: expected the names that clients use, got none. Give --allow-host NAME:PORT."
        )
    bound = _bound(host, port)
    shown = f"[{host}]" if ":" in host else host
    port = int(bound.getsockname()[1])
    near = (
        [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")] if local else [f"{shown}:{port}"]
    )
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*near, *hosts],
        allowed_origins=[*(f"http://{name}" for name in near), *origins],
    )
    asyncio.run(_http(root, bound, f"http://{shown}:{port}{PATH}", security, writing, limits, token))


async def _http(
    root: str,
    bound: socket.socket,
    url: str,
    security: TransportSecuritySettings,
    writing: bool,
    limits: Limits,
    token: str | None,
) -> None:
    import uvicorn

    server = make_server(root, writing=writing, limits=limits, lease=True)
    app: Any = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_sessions=MOST_SESSIONS
    )
    if token is not None:
        app = _with_token(app, token)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, timeout_graceful_shutdown=GRACE_S, server_header=False
    )
    async with server.office.open():
        print(f"listening on {url}", file=sys.stderr, flush=True)
        await uvicorn.Server(config).serve(sockets=[bound])


def token_from(path: str | None, environment: str | None) -> str | None:
    """The bearer token, from a file that only its owner can read or from the environment."""
    if path is None:
        token = environment
    else:
        file = Path(path)
        try:
            mode = file.stat().st_mode
            token = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as cause:
            raise OptionError(
                f"--token-file {path}: expected a file with a token, got none. Write one."
            ) from cause
        if mode & 0o077:
            raise OptionError(
                f"--token-file {path}: expected a file that only its owner can read, got another. chmod 600 it."
            )
    if token is None or not token:
        if path is not None:
            raise OptionError(f"--token-file {path}: expected a token, got an empty file. Write one.")
        return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or any(each.isspace() for each in token):
        raise OptionError(
            f"token: expected at least {SHORTEST_TOKEN} characters without spaces, got another. "
            "python -c 'import secrets; print(secrets.token_urlsafe())' makes one."
        )
    return token


def _with_token(app: App, token: str) -> App:
    """Refuse every request without the token, before anything else looks at it."""
    wanted = f"Bearer {token}".encode()

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
            if len(given) != 1 or not hmac.compare_digest(given[0], wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send(
                    {"type": "http.response.body", "body": b"expected the bearer token of this server\n"}
                )
                return
        elif scope["type"] != "lifespan":
            return
        await app(scope, receive, send)

    return checked


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit() or int(port) > 65535:
        raise OptionError(
            f"--http {text}: expected HOST:PORT, got another. 127.0.0.1:8765 stays on this machine."
        )
    return host, int(port)


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as cause:
        raise OptionError(
            f"--http {host}:{port}: cannot listen there: {cause.strerror}. Choose another port, or 0 for a free one."
        ) from cause


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
