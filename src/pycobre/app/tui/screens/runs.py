"""The runs below a directory: sort, filter, mark, open; of the one under the cursor a picture where there is room."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import DataTable, Footer, Input, Static

from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.reading.listing import Found, RunLine, find_runs, read_lines
from pycobre.app.tui.reading.watched import RunView, WatchedRun
from pycobre.app.tui.screens.base import ReadingScreen
from pycobre.app.tui.screens.columns import COLUMNS, Column, cell, columns_for, name_width, ordered
from pycobre.app.tui.widgets.facts import Facts, Headline
from pycobre.app.tui.widgets.plots import Look, Plot, bounds_picture
from pycobre.app.tui.widgets.rows import Rows, cut, role_style
from pycobre.app.wording import counted

__all__ = ["RunsScreen"]

LOOK_EVERY = 5  #: readings between two searches for new directories
MOST_COMPARED = 4


class Title(Rows):
    """Where is looked, how many runs there are, and in which order."""

    DEFAULT_CSS = "Title { height: 1; background: $panel; }"

    row: Row

    def make(self, width: int, height: int) -> list[Row]:
        return [cut(getattr(self, "row", []), width)]


class Table(DataTable[object]):
    """Says on the last line what Enter does."""

    BINDINGS = [Binding("enter", "select_cursor", "Open")]  # noqa: RUF012


class RunsScreen(ReadingScreen):
    """One line per run."""

    BINDINGS = [  # noqa: RUF012
        Binding("space", "mark", "Mark"),
        Binding("v", "compare", "Compare"),
        Binding("s", "sort", "Sort"),
        Binding("r", "reverse", "Reverse", show=False),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "no_filter", "All", show=False),
    ]
    DEFAULT_CSS = """
    RunsScreen Table { height: 1fr; background: $background; scrollbar-size-vertical: 1; }
    RunsScreen #filter { display: none; height: 1; border: none; background: $surface; }
    RunsScreen #filter.-asked { display: block; }
    RunsScreen #empty { display: none; padding: 1 2; color: $text-muted; }
    RunsScreen #preview { display: none; height: 60%; max-height: 26; border-top: solid $panel; }
    RunsScreen.-tall #preview.-filled { display: block; }
    RunsScreen #preview Facts { margin: 1 1; }
    """

    def __init__(self, roots: list[Path]) -> None:
        super().__init__()
        self._roots = roots
        self._found: Found | None = None
        self._readings = 0
        self._lines: list[RunLine] = []
        self._columns: list[Column] = []
        self._marked: list[Path] = []
        self._name_width = 0
        self._key, self._reverse, self._wanted = "name", False, ""
        self._watched: WatchedRun | None = None
        self._under_cursor: Path | None = None

    def compose(self) -> ComposeResult:
        yield Title(id="title")
        yield Table(cursor_type="row", zebra_stripes=True, id="table")
        yield Static("", id="empty", markup=False)
        yield Input(
            placeholder="words that a run's name, case, state or backend contains", id="filter", compact=True
        )
        with Vertical(id="preview"):
            yield Headline(id="preview-headline")
            yield Facts(id="preview-facts")
            yield Plot(id="preview-plot")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#table").focus()

    @property
    def table(self) -> Table:
        return self.query_one("#table", Table)

    def read_files(self) -> object:
        if self._found is None or self._readings % LOOK_EVERY == 0:
            self._found = find_runs(self._roots)
        self._readings += 1
        lines = read_lines(self._found, self._roots, self.watching.clock())
        here, view = self._under_cursor, None
        if here is not None and self.has_class("-tall"):
            if self._watched is None or self._watched.directory != here:
                self._watched = WatchedRun(here, self.watching.clock)
            view = self._watched.read()
        return lines, view

    def show_files(self, found: object) -> None:
        assert isinstance(found, tuple)
        self._lines, view = found
        self._fill()
        preview = self.query_one("#preview")
        preview.set_class(isinstance(view, RunView), "-filled")
        if isinstance(view, RunView):
            self.query_one("#preview-headline", Headline).show(view)
            self.query_one("#preview-facts", Facts).show(view)
            picture = bounds_picture(view.history.points(), Look(), view.line.sense)
            self.query_one("#preview-plot", Plot).show(picture)

    def on_resize(self) -> None:
        self._fill()

    def _fill(self) -> None:
        table, width = self.table, self.size.width
        if not width:
            return
        shown = ordered(self._lines, self._key, self._reverse, self._wanted)
        columns, name = columns_for(width), name_width(width)
        if columns != self._columns or self._name_width != name:
            self._columns, self._name_width = columns, name
            table.clear(columns=True)
            table.add_column(" ", width=1, key="mark")
            for column in columns:
                table.add_column(column.title, width=column.width or name, key=column.key)
        keys = [str(line.directory) for line in shown]
        if keys != [str(row.key.value) for row in table.ordered_rows]:
            self._rebuild(shown, keys)
        else:
            places = ["mark", *(each.key for each in columns)]
            for line, key in zip(shown, keys, strict=True):
                for place, made in zip(places, self._cells(line), strict=True):
                    if table.get_cell(key, place) != made:
                        table.update_cell(key, place, made)
        self._say(len(shown))

    def _rebuild(self, shown: list[RunLine], keys: list[str]) -> None:
        table = self.table
        here = str(self._under_cursor) if self._under_cursor is not None else None
        table.clear()
        for line, key in zip(shown, keys, strict=True):
            table.add_row(*self._cells(line), key=key)
        if here in keys:
            table.move_cursor(row=keys.index(here), animate=False)
        if not keys:
            self._under_cursor = None

    def _cells(self, line: RunLine) -> list[object]:
        def colour(role: str) -> object:
            return role_style(self, role)

        mark = "◆" if line.directory in self._marked else " "
        return [
            mark,
            *(cell(column, line, column.width or self._name_width, colour) for column in self._columns),
        ]

    def _say(self, shown: int) -> None:
        title = self.query_one("#title", Title)
        column = next(column for column in COLUMNS if column.key == self._key)
        running = sum(line.state == "running" for line in self._lines)
        said = f"{counted(len(self._lines), 'run')}, {running} running"
        said += f", {shown} shown" if shown != len(self._lines) else ""
        cut_off = (
            ""
            if self._found is None or self._found.complete
            else "  (too many directories: not all were searched)   "
        )
        order = f"by {column.title.lower()} {'↓' if self._reverse else '↑'}"
        where = ", ".join(str(root) for root in self._roots)
        title.row = [
            (" pycobre watch  ", "title"),
            (f"{said}   {order}   ", "quiet"),
            (cut_off, "warn"),
            (where, "text"),
        ]
        title.changed()
        empty = self.query_one("#empty", Static)
        empty.display = not shown
        self.table.display = bool(shown)
        if not self._lines:
            empty.update(
                f"No run below {where}.\n\nA run writes run.json and status.json into its result directory:\n"
                "    pycobre run CASE --output DIR\nThis list fills by itself."
            )
        elif not shown:
            empty.update(f"No run contains {self._wanted!r}. Escape shows all.")

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        key = event.row_key.value if event.row_key is not None else None
        if key is not None and Path(key) != self._under_cursor:
            self._under_cursor = Path(key)
            if self.has_class("-tall"):
                self.watching.read_soon()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.row_key.value is not None:
            self.watching.open_run(Path(event.row_key.value))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        key = str(event.column_key.value)
        if key != "mark":
            self._reverse = not self._reverse if key == self._key else False
            self._key = key
            self._fill()

    def action_mark(self) -> None:
        here = self._under_cursor
        if here is None:
            return
        if here in self._marked:
            self._marked.remove(here)
        else:
            self._marked = [*self._marked, here][-MOST_COMPARED:]
        self._fill()

    def action_compare(self) -> None:
        chosen = [path for path in self._marked if path in {line.directory for line in self._lines}]
        if len(chosen) < 2 and self._under_cursor is not None and self._under_cursor not in chosen:
            chosen.append(self._under_cursor)
        if len(chosen) < 2:
            said = f"Mark two to {MOST_COMPARED} runs with Space, then compare them."
            self.notify(said, severity="warning")
            return
        self.watching.compare(chosen)

    def action_sort(self) -> None:
        keys = [column.key for column in self._columns]
        self._key = keys[(keys.index(self._key) + 1) % len(keys)] if self._key in keys else keys[0]
        self._reverse = False
        self._fill()

    def action_reverse(self) -> None:
        self._reverse = not self._reverse
        self._fill()

    def action_filter(self) -> None:
        asked = self.query_one("#filter", Input)
        asked.add_class("-asked")
        asked.focus()

    def action_no_filter(self) -> None:
        asked = self.query_one("#filter", Input)
        asked.value = ""
        self._leave_filter(asked)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._wanted = event.value
        self._fill()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._leave_filter(event.input)

    def _leave_filter(self, asked: Input) -> None:
        asked.set_class(bool(asked.value), "-asked")
        self.table.focus()
