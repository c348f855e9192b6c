"""A progress bar in a notebook: one line of HTML under the cell, replaced a few times per second."""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import Any

from pycobre.app.progress import Progress
from pycobre.app.run import Callback
from pycobre.app.wording import amount, duration
from pycobre.events import Event, IterationFinished, SimulationProgress, SimulationStarted, TrainingStarted

__all__ = ["NotebookBar", "bar_for", "in_notebook"]

EVERY_S = 0.2
_SHOWN = frozenset({TrainingStarted, IterationFinished, SimulationStarted, SimulationProgress})


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows more than text."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def bar_for(progress: bool) -> NotebookBar | None:
    """A bar where one was asked for and can be seen."""
    return NotebookBar() if progress and in_notebook() else None


class NotebookBar:
    """A listener and a context around the run that it shows; an error or an interrupt stays visible at its end."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._handle: Any = None
        self._drawn_at = -EVERY_S

    def __enter__(self) -> NotebookBar:
        return self

    def __call__(self, event: Event) -> None:
        self._progress.feed(event)
        if type(event) in _SHOWN and time.monotonic() - self._drawn_at >= EVERY_S:
            self._draw("")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw("done" if kind is None else f"ended by {kind.__name__}")

    def listener(self, callback: Callback | None) -> Callback:
        """The bar, and the caller's own listener after it."""
        if callback is None:
            return self

        def both(event: Event) -> object:
            self(event)
            return callback(event)

        return both

    def _draw(self, end: str) -> None:
        import IPython.display

        display: Any = IPython.display.display

        text = " · ".join([*self._words(), *([end] if end else [])])
        done, total = self._share()
        most = f' max="{total}" value="{done}"' if total else ""
        html = f'<progress{most} style="width:20em"></progress> <code>{escape(text)}</code>'
        data = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
        self._drawn_at = time.monotonic()

    def _share(self) -> tuple[int, int | None]:
        """What is done, of how much; None where nobody knows."""
        shown = self._progress
        if shown.scenarios:
            return sum(shown.simulated.values()), shown.scenarios
        return shown.iteration, shown.limit

    def _words(self) -> list[str]:
        shown = self._progress
        if shown.scenarios:
            done, total = self._share()
            return [f"scenario {done} of {total}", duration(shown.elapsed_s)]
        of = "" if shown.limit is None else f" of {shown.limit}"
        words = [f"iteration {shown.iteration}{of}"]
        if shown.latest is not None:
            words.append(f"{shown.latest.bound_name} {amount(shown.latest.lower_bound)}")
            words.append(f"simulated {amount(shown.latest.upper_bound)}")
        words.append(duration(shown.elapsed_s))
        if shown.remaining_s:
            words.append(f"about {duration(shown.remaining_s)} left")
        return words
