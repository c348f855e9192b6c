"""Servers to ask, and looking at the processes and files that they touch."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

SHORT = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 3}]}
LONG = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 1_000_000}]}
MARK = "PYCOBRE_TEST_MARK"


def command(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "pycobre", "mcp", "--root", str(root), *options]


def over_stdio(root: Path, *options: str, **environment: str) -> Client:
    """A client of a server of its own."""
    program, *arguments = command(root, *options)
    kept = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    return Client(
        StdioServerParameters(command=program, args=arguments, env=kept | environment),
        read_timeout_seconds=240,
    )


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers; it must not be an error."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.structured_content
    assert isinstance(found.structured_content, dict)
    return found.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The document of the error that a tool answers with."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error, found.structured_content
    assert isinstance(found.structured_content, dict)
    error: dict[str, Any] = found.structured_content["error"]
    assert error["kind"]
    assert error["message"]
    assert error["remedy"]
    assert isinstance(error["fields"], dict)
    assert "Traceback" not in str(error)
    return error


def marked(mark: str) -> dict[int, str]:
    """Processes whose environment holds the mark: pid and command."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    if state != "Z":
                        found[int(entry.name)] = (entry / "cmdline").read_bytes().decode().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
    return found


def eventually(holds: Callable[[], object], what: Callable[[], object], seconds: float = 120.0) -> None:
    """Look until something holds that another process brings about; fail after a generous time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)  # other processes tell nobody


def content(root: Path) -> dict[str, str]:
    """Every file below a directory with the hash of what is in it."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
