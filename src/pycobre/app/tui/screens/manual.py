"""The keys, and what the pictures mean."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.widgets.rows import ScrolledRows

__all__ = ["HelpScreen"]

TEXT: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Everywhere",
        (
            ("?", "this page; Escape leaves it"),
            ("t", "dark or light"),
            ("F5", "read the files now; they are read every second anyway"),
            ("q, Ctrl-C", "leave. A run that is watched goes on"),
            ("mouse", "click on keys below, pages, rows, heads of columns; the wheel scrolls"),
        ),
    ),
    (
        "List of runs",
        (
            ("Enter", "open the run"),
            ("Space, v", "mark up to four runs; compare those that are marked"),
            ("s, r", "sort by the next column; turn the order round"),
            ("/", "show runs that contain all words; Escape shows all"),
        ),
    ),
    (
        "A run",
        (
            ("1 … 6", "overview, ranks, messages, settings, system, results"),
            ("z", "zoom: all iterations, the last 1,000, 200, 50, 10"),
            ("y", "scale: auto, linear, logarithmic"),
            ("m", "the next small picture: gap, seconds, LPs per second, cuts"),
            ("c", "checkpoint when the iteration ends"),
            ("x", "stop when the iteration ends, with a checkpoint"),
            ("i", "another iteration limit"),
            ("o", "open the report; of a finished run, write it first"),
            ("Esc", "back to the list"),
        ),
    ),
    (
        "Results",
        (
            ("n, p", "next and previous page of plots"),
            ("f", "one large plot, or many small ones"),
            ("/", "plants and buses whose name contains a text"),
        ),
    ),
    ("Comparison", (("b", "over iterations or over time"), ("z, y", "zoom and scale"))),
    (
        "What is shown",
        (
            ("━ •  ░", "bound, mean of the forward passes of an iteration, its 95 % interval"),
            ("↑", "the first iterations lie beyond the scale: they would hide the later ones (y shows all)"),
            ("silent", "the run goes on, and has written nothing for a minute and ten usual iterations"),
            ("lost", "the process is gone and has not said why; --resume continues the run"),
            ("k M G T", "thousands, millions, 10⁹, 10¹²"),
        ),
    ),
)


class Manual(ScrolledRows):
    """The text, in two columns."""

    def make(self, width: int) -> list[Row]:
        import textwrap

        rows: list[Row] = []
        for head, lines in TEXT:
            rows.append([(head, "title")])
            for keys, meaning in lines:
                wrapped = textwrap.wrap(meaning, max(20, width - 14)) or [""]
                rows.append([(f"  {keys:<11} ", "bound"), (wrapped[0], "text")])
                rows += [[(" " * 14, ""), (line, "text")] for line in wrapped[1:]]
            rows.append([])
        return rows


class HelpScreen(ModalScreen[None]):
    """In front of whatever is there."""

    BINDINGS = [Binding("escape,question_mark,q,enter", "app.pop_screen", "Back")]  # noqa: RUF012
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen Manual {
        width: 84; max-width: 96%; height: 90%; padding: 0 1; border: round $primary; background: $surface;
    }
    """

    def compose(self) -> ComposeResult:
        yield Manual(id="manual")

    def on_mount(self) -> None:
        self.query_one(Manual).focus()
