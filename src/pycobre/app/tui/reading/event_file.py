"""`events.jsonl` of any size: its end is read whole, the rest as a sample, then what is appended.

A run of weeks has written hundreds of megabytes. Of those a plot shows a few hundred points, so as many lines are
read at places spread evenly over the file. What happens once (a warning, a request) is looked for in the whole file,
a part of it at every reading. Memory is bounded whatever the file holds: a line that is too long is passed over.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pycobre.app.results.layout import EVENTS
from pycobre.app.tui.reading.points import History, Point, point_of, strictly_rising

__all__ = ["EventFile"]

END_BYTES = 1 << 20
SAMPLES = 1200
LINE_BYTES = 1 << 16
SCAN_BYTES = 32 << 20  #: of the part before the end, at every reading
KEPT = 400  #: things that happened
_RARE = re.compile(rb'"kind":"(?!iteration_finished")')


class EventFile:
    """The events of one directory. `read` takes in what is new; it raises `OSError` where the file cannot be read."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / EVENTS
        self._forget()

    def _forget(self) -> None:
        self._identity: tuple[int, int] | None = None
        self._next = 0  #: byte after the last line that was read
        self._scanned = self._scan_end = 0
        self._early: deque[bytes] = deque(maxlen=KEPT)
        self._late: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.history = History()
        self.lines = 0  #: lines that were looked at
        self.strange = 0  #: those that are no events
        self.modified: float | None = None

    @property
    def rare(self) -> list[dict[str, Any]]:
        """The newest events other than iterations, oldest first."""
        early = [event for line in self._early if (event := _event(line)) is not None]
        return [*early, *self._late][-KEPT:]

    @property
    def unread_share(self) -> float:
        """How much of the file has not yet been searched for such events."""
        return 1 - self._scanned / self._scan_end if self._scan_end else 0.0

    def read(self) -> None:
        """Take in what was appended since the last call; begin anew where the file is another one."""
        try:
            with self._path.open("rb", buffering=0) as file:
                state = os.fstat(file.fileno())
                identity = (state.st_dev, state.st_ino)
                if identity != self._identity or state.st_size < self._next:
                    self._forget()
                    self._identity = identity
                self.modified = state.st_mtime
                descriptor = file.fileno()
                if state.st_size - self._next > 2 * END_BYTES:
                    self._sample(descriptor, state.st_size - END_BYTES)
                for line in self._lines(descriptor, state.st_size):
                    self._take(line)
                self._scan(descriptor)
        except FileNotFoundError:
            self._forget()

    def _lines(self, descriptor: int, size: int) -> Iterator[bytes]:
        """The whole lines from `_next` on."""
        left = b""
        position = self._next
        while position < size:
            data = os.pread(descriptor, min(END_BYTES, size - position), position)
            if not data:
                return
            position += len(data)
            lines = (left + data).split(b"\n")
            left = lines.pop()
            for line in lines:
                self._next += len(line) + 1
                yield line
            if len(left) > END_BYTES:  # no event is that long
                self._next += len(left)
                self.strange += 1
                left = b""

    def _take(self, line: bytes) -> None:
        self.lines += 1
        event = _event(line)
        if event is None:
            self.strange += bool(line.strip())
            return
        point = point_of(event)
        if point is not None:
            self.history.add(point)
        elif event["kind"] != "iteration_finished":
            self._late.append(event)

    def _sample(self, descriptor: int, end: int) -> None:
        """Points at places spread evenly over what lies before byte `end`; reading goes on at a line after it."""
        begin = self._next
        points: list[Point] = list(self.history.points())
        for number in range(SAMPLES):
            place = begin + (end - begin) * number // SAMPLES
            point = _first_point(descriptor, place)
            if point is not None:
                points.append(point)
        self.history = History()
        self.history.begin_with(strictly_rising(points))
        data = os.pread(descriptor, LINE_BYTES, end)
        self._next = end + data.find(b"\n") + 1
        if self._scanned == self._scan_end:
            self._scanned = begin
        self._scan_end = self._next

    def _scan(self, descriptor: int) -> None:
        """Look for rare events in the part that was sampled."""
        until = min(self._scan_end, self._scanned + SCAN_BYTES)
        while self._scanned < until:
            data = os.pread(descriptor, min(END_BYTES, self._scan_end - self._scanned), self._scanned)
            whole = data.rfind(b"\n") + 1
            if not whole:
                self._scanned += max(1, len(data))
                continue
            for match in _RARE.finditer(data, 0, whole):
                begin = data.rfind(b"\n", 0, match.start()) + 1
                self._early.append(data[begin : data.find(b"\n", begin)][:LINE_BYTES])
            self._scanned += whole


def _first_point(descriptor: int, place: int) -> Point | None:
    """The first iteration that begins after byte `place`, where one does soon."""
    lines = os.pread(descriptor, 4096, place).split(b"\n")
    for line in lines[0 if place == 0 else 1 : -1]:
        event = _event(line)
        point = None if event is None else point_of(event)
        if point is not None:
            return point
    return None


def _event(line: bytes) -> dict[str, Any] | None:
    if len(line) > LINE_BYTES:
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("kind"), str) else None
