"""A screen that shows files, and is read again and again while it is in front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

if TYPE_CHECKING:
    from pycobre.app.tui.app import WatchApp

__all__ = ["ReadingScreen"]


class ReadingScreen(Screen[None]):
    """`read_files` runs in a thread and touches no widget; `show_files` shows what it found."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-tall")]  # noqa: RUF012

    @property
    def watching(self) -> WatchApp:
        from pycobre.app.tui.app import WatchApp

        assert isinstance(self.app, WatchApp)
        return self.app

    def read_files(self) -> object:
        raise NotImplementedError

    def show_files(self, found: object) -> None:
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        self.watching.read_soon()
