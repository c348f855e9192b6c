"""What a person asks of a run: each request is asked for first, and recorded by the run that does it."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

from textual.binding import Binding
from textual.screen import Screen

from pycobre.app.results.control import send_request
from pycobre.app.tui.reading.watched import RunView
from pycobre.app.tui.screens.dialogs import AskNumber, Question
from pycobre.errors import CobreError

__all__ = ["REQUESTS", "ask_checkpoint", "ask_limit", "ask_stop", "open_report"]

REQUESTS = (
    Binding("c", "checkpoint", "Checkpoint"),
    Binding("x", "stop", "Stop"),
    Binding("i", "limit", "Limit"),
    Binding("o", "report", "Report"),
)
_ASKED = "Asked. The run does it when its iteration ends; it then stands under Messages."


def ask_checkpoint(screen: Screen[None], view: RunView) -> None:
    _confirm(screen, view, "Write a checkpoint when this iteration ends?", "checkpoint")


def ask_stop(screen: Screen[None], view: RunView) -> None:
    text = "Stop when this iteration ends? The run writes a checkpoint first, and --resume continues it."
    _confirm(screen, view, text, "stop")


def ask_limit(screen: Screen[None], view: RunView) -> None:
    """The new limit lies above what is done."""
    if not _may_ask(screen, view):
        return
    done, limit = view.line.iteration or 0, view.line.limit
    text = f"Iteration limit ({done:,} are done, the limit is {limit or 'not set'}):"

    def answered(value: int | None) -> None:
        if value is not None:
            _send(screen, view.directory, "iteration_limit", value)

    screen.app.push_screen(AskNumber(text, limit or 2 * max(done, 1), done), answered)


def _confirm(screen: Screen[None], view: RunView, text: str, action: str) -> None:
    if not _may_ask(screen, view):
        return

    def answered(answer: str | None) -> None:
        if answer == "y":
            _send(screen, view.directory, action, None)

    screen.app.push_screen(Question(text), answered)


def _may_ask(screen: Screen[None], view: RunView) -> bool:
    if view.running:
        return True
    screen.notify(f"The run is {view.line.state}: there is nobody to ask.", severity="warning", markup=False)
    return False


def _send(screen: Screen[None], directory: Path, action: str, value: int | None) -> None:
    try:
        send_request(directory, action, value)
    except CobreError as error:
        screen.notify(str(error), title="Not asked", severity="error", markup=False)
    else:
        screen.notify(_ASKED, markup=False)


def open_report(screen: Screen[None], view: RunView) -> None:
    """Open the report in a browser of this machine, or say where it is; write it first where there is none."""
    page = view.directory / "report.html"
    if page.is_file():
        _show(screen, page)
        return
    if view.line.state not in ("finished", "interrupted"):
        said = f"The run is {view.line.state}: a report is written of finished runs."
        screen.notify(said, severity="warning", markup=False)
        return

    def answered(answer: str | None) -> None:
        if answer == "y":
            screen.run_worker(_written(screen, view.directory), group="report", exclusive=True)

    screen.app.push_screen(Question("There is no report yet. Write one into the result directory?"), answered)


async def _written(screen: Screen[None], directory: Path) -> None:
    def write() -> Path:
        from pycobre.app.plot import write_report

        return write_report(directory, png=False)

    try:
        page = await asyncio.to_thread(write)
    except (CobreError, OSError) as error:
        screen.notify(str(error), title="No report", severity="error", markup=False)
    else:
        _show(screen, page)


def _show(screen: Screen[None], page: Path, browse: Callable[[str], bool] = webbrowser.open) -> None:
    """Over ssh there is no browser, or one of text that would draw over this screen: then the path is said."""
    here = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    opened = bool(here) and browse(page.absolute().as_uri())
    screen.notify(f"{'Opened' if opened else 'The report is'} {page}", markup=False)
