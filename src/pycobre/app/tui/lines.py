"""Lines of text where there is no terminal: a table of the runs, then a line whenever one of them has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from pycobre.app.tui.reading.listing import RunLine, find_runs, read_lines
from pycobre.app.tui.reading.messages import Message
from pycobre.app.tui.reading.watched import WatchedRun
from pycobre.app.wording import age, amount, counted, duration, percent

__all__ = ["table", "watch_lines"]

EVERY_S = 2.0
HEADS = ("run", "state", "iteration", "lower bound", "upper bound", "gap", "left", "last event", "on")


def watch_lines(
    roots: Sequence[Path],
    stream: IO[str],
    *,
    once: bool = False,
    clock: Callable[[], float] = time.time,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Print the table of runs below `roots`; then, unless `once`, follow those that run until all have ended."""
    found = find_runs(roots)
    lines = read_lines(found, roots, clock())
    where = ", ".join(str(root) for root in roots)
    stream.write(table(lines) if lines else f"{where}: no run here or below\n")
    if not found.complete:
        stream.write(f"{where}: too many directories, not all were searched\n")
    stream.flush()
    running = [line for line in lines if line.state == "running"]
    if once or not running:
        return
    followed = [_Followed(line, alone=len(running) == 1, clock=clock) for line in running]
    while True:
        for each in followed:
            for text in each.news():
                stream.write(f"{text}\n")
        stream.flush()
        if all(each.ended for each in followed):
            return
        wait(EVERY_S)


class _Followed:
    """One run: what has not been printed yet."""

    def __init__(self, line: RunLine, *, alone: bool, clock: Callable[[], float]) -> None:
        self._name = "" if alone else f"{line.name}: "
        self._watched = WatchedRun(line.directory, clock)
        self._told: set[Message] = set(self._watched.read().messages)
        self._last = ""
        self.ended = False

    def news(self) -> list[str]:
        """A line for what is new, and each new message."""
        if self.ended:
            return []
        view = self._watched.read()
        new = [message for message in view.messages if message not in self._told]
        self._told.update(new)
        found = [f"{self._name}{message.kind}: {message.text}" for message in new]
        line = view.line
        said = f"{self._name}{_said(line)}"
        if view.problem is not None:
            said = f"{self._name}{view.problem}"
        if said != self._last:
            found.insert(0, said)
            self._last = said
        self.ended = line.state != "running" or not view.directory.is_dir()
        if self.ended:
            found.append(f"{self._name}{line.state}")
        return found


def _said(line: RunLine) -> str:
    where = f" of {line.limit}" if line.limit else ""
    parts = [f"{line.phase}, iteration {line.iteration}{where}"]
    if line.lower == line.lower:
        bound, mean = ("upper bound", "mean") if line.sense == "maximise" else ("lower bound", "upper bound")
        parts.append(f"{bound} {amount(line.lower)}")
        parts.append(f"{mean} {_amount(line.upper)}")
    if line.gap == line.gap:
        parts.append(f"gap {percent(line.gap)}")
    if line.eta_s == line.eta_s:
        parts.append(f"{duration(line.eta_s)} left")
    if line.silent:
        parts.append("silent")
    return "  ".join(parts)


def table(lines: Sequence[RunLine]) -> str:
    """One line per run under heads; what cannot be read follows as sentences."""
    rows = [HEADS, *(_row(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    left = {0, 1, len(HEADS) - 1}
    text = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    text += [line.problem for line in lines if line.problem]
    return "\n".join(text) + "\n"


def _row(line: RunLine) -> tuple[str, ...]:
    iteration = (
        ""
        if line.iteration is None
        else f"{line.iteration}/{line.limit}"
        if line.limit
        else str(line.iteration)
    )
    return (
        line.name,
        "unreadable" if line.problem else "silent" if line.silent else line.said,
        iteration,
        _amount(line.lower),
        _amount(line.upper),
        percent(line.gap) if line.gap == line.gap else "",
        duration(line.eta_s) if line.eta_s == line.eta_s else "",
        f"{age(line.event_age_s)} ago" if line.event_age_s == line.event_age_s else "",
        f"{line.backend}, {counted(line.ranks, 'rank')}" if line.ranks else line.backend,
    )


def _amount(value: float) -> str:
    return "" if value != value else amount(value)
