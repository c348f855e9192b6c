"""The results of a finished run: a quantity, and its quantile bands by plant, bus or source as small plots."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from pycobre.app.tui.reading.operation import Bands, Quantity, quantities, read_bands
from pycobre.app.tui.reading.watched import RunView
from pycobre.app.tui.widgets.grid import BandGrid
from pycobre.errors import CobreError

__all__ = ["OperationPane"]


class OperationPane(Horizontal):
    """Read when it is opened, not before: tables may be large."""

    BINDINGS = [  # noqa: RUF012
        Binding("n", "turn(1)", "Next"),
        Binding("p", "turn(-1)", "Previous"),
        Binding("f", "single", "One/many"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "no_filter", "All", show=False),
    ]
    DEFAULT_CSS = """
    OperationPane OptionList { width: 24; height: 1fr; border: none; background: $surface; }
    OperationPane #names { display: none; height: 1; border: none; background: $surface; }
    OperationPane #names.-asked { display: block; }
    OperationPane BandGrid { margin-left: 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._directory: Path | None = None
        self._state = ""
        self._quantities: list[Quantity] = []

    def compose(self) -> ComposeResult:
        yield OptionList(id="quantities", compact=True)
        with Vertical():
            yield BandGrid(id="bands")
            yield Input(placeholder="a part of the name", id="names", compact=True)

    @property
    def grid(self) -> BandGrid:
        return self.query_one("#bands", BandGrid)

    def show(self, view: RunView) -> None:
        """Look for tables when the run has come to another state."""
        if (self._directory, self._state) == (view.directory, view.line.state):
            return
        self._directory, self._state = view.directory, view.line.state
        choice = self.query_one("#quantities", OptionList)
        choice.clear_options()
        if view.running:
            self.grid.show(None, "the tables are written when the run ends")
            return
        try:
            self._quantities = quantities(view.directory)
        except CobreError as error:
            self._quantities = []
            self.grid.show(None, str(error))
            return
        if not self._quantities:
            self.grid.show(None, "the run has simulated nothing")
            return
        choice.add_options([Option(each.title, id=str(place)) for place, each in enumerate(self._quantities)])
        choice.highlighted = 0

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id is not None:
            quantity = self._quantities[int(event.option_id)]
            self.run_worker(self._read(quantity), group="bands", exclusive=True)

    async def _read(self, quantity: Quantity) -> None:
        directory = self._directory
        assert directory is not None
        self.grid.show(None, f"reading {quantity.title.lower()} …")
        try:
            bands: Bands = await asyncio.to_thread(read_bands, directory, quantity)
        except (CobreError, OSError, KeyError, ValueError) as error:
            # KeyError and ValueError: a table of another version, without the column or with another type in it
            self.grid.show(None, f"{quantity.title}: cannot be shown: {error}")
        else:
            self.grid.show(bands)

    def action_turn(self, pages: int) -> None:
        self.grid.turn(pages)

    def action_single(self) -> None:
        self.grid.single = not self.grid.single
        self.grid.turn(0)

    def action_filter(self) -> None:
        asked = self.query_one("#names", Input)
        asked.add_class("-asked")
        asked.focus()

    def action_no_filter(self) -> None:
        asked = self.query_one("#names", Input)
        if asked.has_focus or asked.value:
            asked.value = ""
            asked.remove_class("-asked")
            self.query_one("#quantities").focus()
        else:
            self.app.pop_screen()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.grid.wanted, self.grid.first = event.value, 0
        self.grid.changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.set_class(bool(event.value), "-asked")
        self.query_one("#quantities").focus()
