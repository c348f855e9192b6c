"""The app: a stack of screens, of which the front one is read again and again.

Reading happens in a thread, every second, and down to every five seconds where reading and drawing take more than a
hundredth of a core: who watches a run on its own machine should not slow it down.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from textual.app import App
from textual.binding import Binding

from pycobre.app.tui.launched import LaunchedRun
from pycobre.app.tui.screens.base import ReadingScreen
from pycobre.app.tui.screens.compare import CompareScreen
from pycobre.app.tui.screens.dialogs import Question
from pycobre.app.tui.screens.manual import HelpScreen
from pycobre.app.tui.screens.run import RunScreen
from pycobre.app.tui.screens.runs import RunsScreen
from pycobre.app.tui.screens.starting import StartingScreen
from pycobre.app.tui.widgets.theme import DARK, LIGHT
from pycobre.errors import CobreError

__all__ = ["WatchApp", "be_modest"]

LEAST_S, MOST_S = 1.0, 5.0
SHARE = 100.0  #: seconds between readings for each second of processor time that the last one took


class WatchApp(App[int]):
    """`pycobre watch` and, with a run that was started from here, `pycobre run --tui`."""

    TITLE = "pycobre watch"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [  # noqa: RUF012
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("t", "theme", "Theme", show=False),
        Binding("f5", "read", "Read now", show=False),
        Binding("q,ctrl+q", "ask_to_quit", "Quit", key_display="q"),
        Binding("ctrl+c", "ask_to_quit", show=False, priority=True),
    ]
    CSS = """
    Screen { background: $background; }
    Toast { max-width: 70; }
    Tabs { height: 2; }
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        open_run: Path | None = None,
        launched: LaunchedRun | None = None,
        clock: Callable[[], float] = time.time,
        by_itself: bool = True,
        light: bool = False,
    ) -> None:
        super().__init__()
        self.clock = clock
        self.roots = list(roots)
        self._open = open_run
        self._launched = launched
        self._by_itself = by_itself
        self._soon = asyncio.Event()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = LIGHT.name if light else DARK.name

    def on_mount(self) -> None:
        self.push_screen(RunsScreen(self.roots))
        if self._launched is not None:
            self.push_screen(StartingScreen(self._launched))
        elif self._open is not None:
            self.push_screen(RunScreen(self._open))
        if self._by_itself:
            self.run_worker(self._read_on(), group="reading", exclusive=True)

    async def _read_on(self) -> None:
        last = time.process_time()
        while True:
            self._soon.clear()
            await self.read_now()
            begin, last = last, time.process_time()  # with the drawing that followed the reading before
            pause = max(LEAST_S, min(MOST_S, SHARE * (last - begin)))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), pause)

    async def read_now(self) -> None:
        """Read the files of the screen in front; a dialog in front of it does not stop that."""
        screen = next((each for each in reversed(self.screen_stack) if isinstance(each, ReadingScreen)), None)
        if screen is None:
            return
        found = await asyncio.to_thread(screen.read_files)
        if screen.is_attached and screen in self.screen_stack:
            screen.show_files(found)

    def read_soon(self) -> None:
        """Do not wait for the next second."""
        self._soon.set()

    def open_run(self, directory: Path) -> None:
        self.push_screen(RunScreen(directory))

    def replace_by_run(self, directory: Path) -> None:
        self.switch_screen(RunScreen(directory))

    def compare(self, directories: Sequence[Path]) -> None:
        self.push_screen(CompareScreen(directories))

    def back(self) -> None:
        self.pop_screen()

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_theme(self) -> None:
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    async def action_read(self) -> None:
        await self.read_now()

    def action_ask_to_quit(self) -> None:
        """A run that was started from here can be left alone, or stopped; one that is only watched is left alone."""
        launched = self._launched
        if launched is None:
            self.exit(0)
            return
        code = launched.exit_code()
        if code is not None:
            self.exit(code)
            return
        if isinstance(self.screen, Question):
            return

        def answered(answer: str | None) -> None:
            if answer == "l":
                self.exit(0)
            elif answer == "s":
                self.run_worker(self._stopped(launched), group="stopping", exclusive=True)

        answers = (("l", "Leave it running"), ("s", "Stop it"), ("w", "Go on watching"))
        self.push_screen(Question(f"The run goes on in {launched.directory}.", answers), answered)

    async def _stopped(self, launched: LaunchedRun) -> None:
        try:
            launched.ask_to_stop()
        except CobreError as error:
            self.notify(str(error), title="Not stopped", severity="error", markup=False)
            return
        self.notify("Stopping when the iteration ends, with a checkpoint …", timeout=60, markup=False)
        self.exit(await asyncio.to_thread(launched.wait))


def be_modest() -> None:
    """Give way to a run on the same cores."""
    with suppress(OSError):
        os.nice(5)
