"""`events.jsonl`: the events of a run, one JSON object per line, appended as they come.

There is one writer, rank 0, and every line is written by one call and flushed, so a reader that takes whole lines
never sees half of one. Each line has `schema`, `at` (UTC, seconds since 1970), `run`, `kind` and the event's fields.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pycobre.app.results.layout import EVENTS
from pycobre.errors import OutputError
from pycobre.events import KINDS, Event

__all__ = ["SCHEMA", "EventLog", "event_schema", "finite", "read_events", "to_json"]

SCHEMA = 1
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))  # made once: it costs as much as a line


class EventLog:
    """The file, open for appending."""

    def __init__(self, directory: Path, run: str) -> None:
        self._run = run
        self._path = directory / EVENTS
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o644)
        self._end_last_line()

    def write(self, event: Event) -> None:
        """Append one event."""
        head = {"schema": SCHEMA, "at": round(time.time(), 6), "run": self._run}
        data = to_json({**head, **event.to_dict()}) + b"\n"
        try:
            written = os.write(self._descriptor, data)
        except OSError as cause:
            raise OutputError(f"{self._path}: cannot write: {cause.strerror}. Free some space.") from cause
        if written != len(data):
            raise OutputError(f"{self._path}: cannot write: the disk is full. Free some space.")

    def close(self) -> None:
        os.close(self._descriptor)

    def _end_last_line(self) -> None:
        """A process that was killed, or a full disk, may have left a line without its end."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")


def to_json(document: dict[str, Any]) -> bytes:
    """One line of JSON, with null in place of numbers that JSON does not have."""
    try:
        return _ENCODER.encode(document).encode()
    except ValueError:  # rare, so that looking at every number first would cost more
        return _ENCODER.encode(finite(document)).encode()


def finite(value: Any) -> Any:
    """`value` with null in place of numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def read_events(directory: str | os.PathLike[str], start: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """The whole lines from byte `start` on, each with the byte at which the next begins."""
    try:
        with (Path(directory) / EVENTS).open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                start += len(line)
                try:
                    document = json.loads(line)
                except ValueError:  # what a killed writer left of its last line
                    continue
                if isinstance(document, dict):
                    yield document, start
    except FileNotFoundError:
        return


def event_schema() -> dict[str, Any]:
    """The JSON Schema of one line of `events.jsonl`."""
    from pycobre.app.results.status import properties

    head = {
        "schema": {"const": SCHEMA},
        "at": {"type": "number"},
        "run": {"type": "string"},
    }
    kinds: list[dict[str, Any]] = []
    for kind, cls in sorted(KINDS.items()):
        if cls.on_request:  # they change the status, and are written nowhere
            continue
        fields = properties(cls)
        kinds.append(
            {
                "properties": {**head, "kind": {"const": kind}, **fields},
                "required": [*head, "kind", *fields],
                "additionalProperties": False,
            }
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "one line of events.jsonl of a pycobre run",
        "type": "object",
        "oneOf": kinds,
    }
