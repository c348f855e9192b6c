"""Showing a run to people: a live table on a terminal, plain lines elsewhere, JSON lines for programs.

Nothing here can slow or break training: events only update numbers or go into a queue, and a thread draws or
writes them. A reader that goes away (a closed pipe) ends the showing and not the run.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from contextlib import suppress
from typing import IO, Any, Protocol

from pycobre.app.progress import Progress, row
from pycobre.app.streams import discard, print_error
from pycobre.app.wording import amount, counted, duration
from pycobre.events import Event, IterationFinished, SimulationFinished, TrainingStarted, WarningRaised

__all__ = ["JsonLines", "LineScreen", "LiveScreen", "Screen", "Silent", "screen_for"]

HEADINGS = ("iteration", "lower bound", "upper bound", "gap", "cuts", "LP/s", "time")
#: Where costs are maximised, what cuts bound from above and trajectories from below.
HEADINGS_MAXIMISED = ("iteration", "upper bound", "lower bound", *HEADINGS[3:])
EVERY_S = 2.0
STOPPING = "Stopping after this iteration, with a checkpoint. Press Ctrl-C again to abort."


class Screen(Protocol):
    """Something that shows a run; a context manager around it."""

    def __call__(self, event: Event) -> None: ...
    def stopping(self) -> None:
        """Somebody asked the run to stop; called from a signal's handler, so between any two steps of anything."""

    def __enter__(self) -> Screen: ...
    def __exit__(self, *error: object) -> None: ...


class _Plain:
    """Says on standard error that the run is about to stop: the other stream may be a file or a program's."""

    def stopping(self) -> None:
        with suppress(OSError):  # nobody has to read it
            os.write(2, f"{STOPPING}\n".encode())  # sys.stderr may be in the middle of a line of its own


class Silent(_Plain):
    """Shows nothing."""

    def __call__(self, event: Event) -> None:
        return

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        return


class LiveScreen:
    """A table of the last iterations and a progress bar, redrawn a few times per second."""

    def __init__(self, stream: IO[str], headings: tuple[str, ...] = HEADINGS) -> None:
        from rich.console import Console
        from rich.live import Live

        self._headings = headings
        self._progress = Progress()
        self._console = Console(file=stream, highlight=False)
        self._live = Live(
            console=self._console, get_renderable=self._draw, refresh_per_second=8, redirect_stderr=False
        )

    def __call__(self, event: Event) -> None:
        self._progress.feed(event)

    def stopping(self) -> None:
        self._progress.stopping = True

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()
        for warning in self._progress.warnings:
            self._console.print(f"[yellow]warning[/yellow] {warning}", soft_wrap=True)

    def _draw(self) -> Any:
        from rich import box
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        known = self._progress
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
        for place, name in enumerate(self._headings):
            table.add_column(name, justify="right", no_wrap=True, style="bold" if place == 1 else "")
        for event in known.rows:
            table.add_row(*row(event))
        if known.scenarios:
            done, total, what = sum(known.simulated.values()), known.scenarios, "simulating"
            note = f"{done}/{total} scenarios"
        else:
            done, total, what = known.iteration, known.limit or 0, "training"
            left = known.remaining_s
            note = f"{done}/{total}" if total else f"{done} iterations"
            note += f" · {duration(left)} left" if left is not None and done < total else ""
        bar = Table.grid(padding=(0, 1))
        bar.add_row(Text(what), ProgressBar(total=total or None, completed=done, width=36), Text(note))
        earlier = known.first_iteration - 1
        notes = [f"resumed after iteration {earlier}"] if earlier else []
        notes += [STOPPING] if known.stopping else []
        return Group("", table, "", bar, *(Text(text, style="yellow") for text in notes))


class LineScreen(_Plain):
    """Plain lines, at most one every two seconds, aligned so that they read as a table in a log."""

    WIDTHS = (9, 16, 16, 11, 8, 9, 10)

    def __init__(self, stream: IO[str], headings: tuple[str, ...] = HEADINGS) -> None:
        self._headings = headings
        self._writer = _Writer(stream)
        self._last = -EVERY_S
        self._pending: IterationFinished | None = None
        self._headed = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, WarningRaised):
            self._writer.put(f"warning: {event.message}")
        elif event.worker_id != 0:
            return
        elif isinstance(event, TrainingStarted) and event.first_iteration > 1:
            self._writer.put(f"resumed after iteration {event.first_iteration - 1}")
        elif isinstance(event, SimulationFinished):
            self._flush()
            self._writer.put(
                f"simulated {counted(event.scenarios, 'scenario')}: mean cost {amount(event.mean)}"
            )
        elif isinstance(event, IterationFinished):
            self._pending = event
            if time.monotonic() - self._last >= EVERY_S:
                self._flush()

    def __enter__(self) -> LineScreen:
        self._writer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._pending is None:
            return
        if not self._headed:
            self._writer.put(_aligned(self._headings, self.WIDTHS))
            self._headed = True
        self._writer.put(_aligned(row(self._pending), self.WIDTHS))
        self._pending, self._last = None, time.monotonic()


class JsonLines(_Plain):
    """Every event as one line of JSON."""

    def __init__(self, stream: IO[str]) -> None:
        self._writer = _Writer(stream)

    def __call__(self, event: Event) -> None:
        self._writer.put(json.dumps(event.to_dict()))

    def __enter__(self) -> JsonLines:
        self._writer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()


class _Writer:
    """Lines into a stream from a thread of its own."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="pycobre-screen", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, line: str) -> None:
        self._queue.put(line)

    def close(self) -> None:
        """Write what is left, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        try:
            while (line := self._queue.get()) is not None:
                self._stream.write(line + "\n")
                if self._queue.empty():
                    self._stream.flush()
            self._stream.flush()
        except BrokenPipeError:
            discard(self._stream)
            print_error("pycobre: stdout closed (broken pipe); the run continues.")


def _aligned(cells: tuple[str, ...], widths: tuple[int, ...]) -> str:
    return "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def screen_for(form: str, quiet: bool, stream: IO[str], *, maximise: bool = False) -> Screen:
    """The screen for an output format: human, json or jsonl."""
    if form == "jsonl":
        return JsonLines(stream)
    if quiet or form == "json":
        return Silent()
    headings = HEADINGS_MAXIMISED if maximise else HEADINGS
    return LiveScreen(stream, headings) if stream.isatty() else LineScreen(stream, headings)
