"""One run, read again and again: status, events, sessions, settings, system.

What cannot be read becomes a sentence, and what was read before stays: a directory may vanish, a file may be torn or
foreign, a process may die while somebody looks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.app.results.files import read_json
from pycobre.app.results.layout import METADATA, STUDY
from pycobre.app.results.record import RunRecord, read_record
from pycobre.app.results.schemas import CONVERGENCE
from pycobre.app.results.status import RunStatus, read_status
from pycobre.app.tui.reading.event_file import EventFile
from pycobre.app.tui.reading.listing import RunLine, line_of
from pycobre.app.tui.reading.messages import Message, messages_of
from pycobre.app.tui.reading.numbers import NAN
from pycobre.app.tui.reading.points import History, Point
from pycobre.errors import OutputError

__all__ = ["RunView", "WatchedRun"]

Clock = Callable[[], float]


@frozen()
class RunView:
    """A run as it was when it was read last."""

    directory: Path
    line: RunLine
    status: RunStatus | None
    history: History
    messages: tuple[Message, ...]
    study: dict[str, Any]  #: settings and system
    metadata: dict[str, Any]  #: of a finished run
    now: float
    unread_share: float = 0.0  #: of the events, not yet searched for messages
    problem: str | None = None  #: why what is shown may be old or incomplete

    @property
    def running(self) -> bool:
        return self.status is not None and self.status.state == "running"


class WatchedRun:
    """The reader of one directory; each `read` gives a view."""

    def __init__(self, directory: str | os.PathLike[str], clock: Clock = time.time) -> None:
        self.directory = Path(directory)
        self._clock = clock
        self._events = EventFile(self.directory)
        self._status: RunStatus | None = None
        self._record: RunRecord | None = None
        self._files: dict[str, tuple[float, dict[str, Any]]] = {}
        self._table: History | None = None
        self._seen = False

    def read(self) -> RunView:
        """Read what is new. What goes wrong is said in the view, never raised."""
        faults: list[str] = []
        if not self.directory.is_dir():
            gone = (
                "the directory has vanished; this is what was seen last"
                if self._seen
                else "no such directory"
            )
            faults.append(f"{self.directory}: {gone}")
        else:
            self._read_files(faults)
            self._seen = True
        line = line_of(self.directory, self._status, self._record, self._events.modified, self._clock())
        return RunView(
            directory=self.directory,
            line=line,
            status=self._status,
            history=self._history(faults),
            messages=tuple(messages_of(self._record, self._status, self._events.rare)),
            study=self._files.get(STUDY, (0.0, {}))[1],
            metadata=self._files.get(METADATA, (0.0, {}))[1],
            now=self._clock(),
            unread_share=self._events.unread_share,
            problem=faults[0] if faults else None,
        )

    def _read_files(self, faults: list[str]) -> None:
        try:
            self._status = read_status(self.directory) or self._status
            self._record = read_record(self.directory) or self._record
        except (OutputError, OSError) as error:
            faults.append(str(error))
        try:
            self._events.read()
        except OSError as error:
            faults.append(f"{self.directory}/events.jsonl: cannot be read: {error.strerror}")
        if self._events.strange and self._events.strange == self._events.lines:
            faults.append(f"{self.directory}/events.jsonl: none of its lines is an event of pycobre")
        for name in (STUDY, METADATA):
            self._read_if_changed(name, faults)
        if self._status is None and self._record is None and not faults:
            faults.append(f"{self.directory}: no run has written a status here")

    def _read_if_changed(self, name: str, faults: list[str]) -> None:
        path = self.directory / name
        try:
            modified = path.stat().st_mtime
            if self._files.get(name, (NAN,))[0] != modified:
                self._files[name] = (modified, read_json(path))
        except FileNotFoundError:
            self._files.pop(name, None)
        except (OutputError, OSError) as error:
            faults.append(str(error))

    def _history(self, faults: list[str]) -> History:
        """From the events; of a run without them, from its table of convergence."""
        if self._events.history.latest is not None or METADATA not in self._files:
            return self._events.history
        if self._table is None:
            self._table = History()
            if (self.directory / CONVERGENCE.path).is_file():
                try:
                    self._table.begin_with(_points_of_table(self.directory))
                except OutputError as error:
                    faults.append(str(error))
        return self._table


def _points_of_table(directory: Path) -> list[Point]:
    from pycobre.app.results.files import read_table

    table = read_table(directory, CONVERGENCE)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    names = (
        "iteration",
        "lower_bound",
        "upper_bound",
        "upper_bound_half_width",
        "gap",
        "lp_solves",
        "cuts_active",
    )
    rows = zip(*(columns[name] for name in names), strict=True)
    return [
        Point(iteration, NAN, NAN, lower, upper, half, gap, NAN, lps, cuts)
        for iteration, lower, upper, half, gap, lps, cuts in rows
    ]
