"""A run that is being started from here: until it has written its first status, or has ended with an error."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Footer, Static

from pycobre.app.tui.launched import LaunchedRun
from pycobre.app.tui.screens.base import ReadingScreen

__all__ = ["StartingScreen"]


class StartingScreen(ReadingScreen):
    """Says what the run says on its standard streams."""

    BINDINGS = [Binding("escape", "app.ask_to_quit", "Quit", key_display="esc")]  # noqa: RUF012
    DEFAULT_CSS = "StartingScreen Static { padding: 1 2; height: 1fr; }"

    def __init__(self, launched: LaunchedRun) -> None:
        super().__init__()
        self._launched = launched

    def compose(self) -> ComposeResult:
        yield Static("The run is starting …", id="said", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def read_files(self) -> object:
        code = self._launched.exit_code()
        return self._launched.has_status(), code, self._launched.words()

    def show_files(self, found: object) -> None:
        assert isinstance(found, tuple)
        has_status, code, words = found
        if has_status:
            self.watching.replace_by_run(self._launched.directory)
        elif code is not None:
            said = f"The run ended with exit code {code} before it began.\n\n{words}\n\nPress q to leave."
            self.query_one("#said", Static).update(said)
        else:
            self.query_one("#said", Static).update(f"The run is starting: the case is read …\n\n{words}")
