"""`control.jsonl`: what other processes ask of a run, one JSON object per line, appended by them.

The run looks at it at the end of every iteration, on rank 0, and what it does then all ranks do alike. Each request
that was applied is an event, so a run that was steered can be repeated. Who may write into the directory may ask.

    {"action": "checkpoint"}                        write a checkpoint now
    {"action": "stop"}                              stop, as a first Ctrl-C does
    {"action": "iteration_limit", "value": 200}     replace the iteration limit
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.app.results.layout import CONTROL
from pycobre.errors import OptionError, OutputError

__all__ = ["ACTIONS", "ControlFile", "ControlRequest", "send_request"]

ACTIONS = ("checkpoint", "stop", "iteration_limit")
_MAX_BYTES = 1 << 20


@frozen()
class ControlRequest:
    """One thing that is asked of a run."""

    action: str
    value: int | None = None


def send_request(directory: str | os.PathLike[str], action: str, value: int | None = None) -> None:
    """Ask the run that writes into `directory`; it answers at the end of its iteration."""
    request = _checked({"action": action, "value": value})
    if request is None:
        raise OptionError(
            f"request to a run: expected checkpoint, stop or iteration_limit with a number above 0, got "
            f"{action!r} with {value!r}."
        )
    data = json.dumps({"action": action} if value is None else {"action": action, "value": value}) + "\n"
    path = Path(directory) / CONTROL
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o664)
        try:
            os.write(descriptor, data.encode())
        finally:
            os.close(descriptor)
    except OSError as cause:
        raise OutputError(f"{path}: cannot write: {cause.strerror}. Check the directory.") from cause


class ControlFile:
    """The requests of this session, read by rank 0; a file that an earlier session left is removed."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / CONTROL
        self._path.unlink(missing_ok=True)
        self._read = 0

    def poll(self) -> tuple[list[ControlRequest], list[str]]:
        """What was asked since the last call, and a sentence about each line that asks for nothing known."""
        try:
            if os.stat(self._path).st_size <= self._read:
                return [], []
            with self._path.open("rb") as file:
                file.seek(self._read)
                data = file.read(_MAX_BYTES)
        except FileNotFoundError:
            return [], []
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) == _MAX_BYTES:
            whole = data  # a line that long is none of ours
        self._read += len(whole)
        requests, faults = [], []
        for line in whole.splitlines():
            request = _parsed(line)
            if request is None:
                faults.append(
                    f"{self._path}: expected one of {', '.join(ACTIONS)}, got {line[:80]!r}. It is ignored."
                )
            else:
                requests.append(request)
        return requests, faults


def _parsed(line: bytes) -> ControlRequest | None:
    try:
        return _checked(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _checked(document: Any) -> ControlRequest | None:
    """The request, or None where it is none: nothing that somebody wrote into a file is believed unchecked."""
    if not isinstance(document, dict) or document.get("action") not in ACTIONS:
        return None
    action, value = document["action"], document.get("value")
    if action != "iteration_limit":
        return ControlRequest(action) if value is None else None
    if type(value) is not int or not 0 < value < 2**31:
        return None
    return ControlRequest(action, value)
