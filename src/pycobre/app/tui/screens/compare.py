"""Two to four runs side by side: bounds over iterations and over time, figures, settings that differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical
from textual.widgets import Footer

from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.drawing.plot import Curve, Picture
from pycobre.app.tui.reading.listing import names_of
from pycobre.app.tui.reading.settings import differing
from pycobre.app.tui.reading.watched import RunView, WatchedRun
from pycobre.app.tui.screens.base import ReadingScreen
from pycobre.app.tui.widgets.facts import facts_of
from pycobre.app.tui.widgets.plots import SCALES, Look, Plot
from pycobre.app.tui.widgets.rows import Rows, ScrolledRows, cut

__all__ = ["CompareScreen"]

LETTERS = "ABCD"
RUN_ROLES = ("bound", "mean", "third", "fourth")
ZOOMS = (None, 1000, 200, 50, 10)


class Names(Rows):
    """Which letter is which run."""

    DEFAULT_CSS = "Names { height: 1; background: $panel; }"

    names: Sequence[str] = ()

    def show(self, names: Sequence[str]) -> None:
        self.names = names
        self.changed()

    def make(self, width: int, height: int) -> Sequence[Row]:
        row: Row = [(" compare  ", "title")]
        for place, name in enumerate(self.names):
            row += [(f"{LETTERS[place]} ", RUN_ROLES[place]), (f"{name}   ", "text")]
        return [cut(row, width)]


class Differences(ScrolledRows):
    """Figures of all runs, and the settings that are not the same."""

    views: Sequence[RunView] = ()

    def show(self, views: Sequence[RunView]) -> None:
        self.views = views
        self.changed()

    def make(self, width: int) -> Sequence[Row]:
        if not self.views:
            return []
        rows: list[Row] = [[("Figures", "title")], self._heads(width)]
        facts = [[("state", view.line.said), *_described(view), *facts_of(view)] for view in self.views]
        names = [name for name, _ in facts[0]]
        rows += [self._row(name, [dict(each).get(name, "–") for each in facts], width) for name in names]
        rows += [[], [("Settings that differ", "title")]]
        found = differing([view.study for view in self.views])
        if found:
            rows += [self._row(path, values, width) for path, values in found]
        elif any(not view.study for view in self.views):
            rows.append([("not known: a run has not written its settings", "quiet")])
        else:
            rows.append([("none: all settings are the same", "quiet")])
        rows += [[(f"{view.problem}", "bad")] for view in self.views if view.problem]
        return rows

    def _widths(self, width: int) -> tuple[int, int]:
        name = max(14, min(44, width // 3))
        return name, max(6, (width - name) // len(self.views))

    def _heads(self, width: int) -> Row:
        name, each = self._widths(width)
        heads = [(f"{LETTERS[place]:>{each}}", RUN_ROLES[place]) for place in range(len(self.views))]
        return [(" " * name, ""), *heads]

    def _row(self, name: str, values: Sequence[str], width: int) -> Row:
        left, each = self._widths(width)
        label = name if len(name) < left else f"…{name[-(left - 2) :]}"
        cells = [value if len(value) < each else f"{value[: each - 2]}…" for value in values]
        return [(f"{label:<{left}}", "quiet"), *((f"{cell:>{each}}", "text") for cell in cells)]


def _described(view: RunView) -> list[tuple[str, str]]:
    line = view.line
    return [
        ("iterations", "–" if line.iteration is None else f"{line.iteration:,}"),
        ("on", f"{line.backend} × {line.ranks}" if line.ranks else "–"),
        ("policy", str(view.metadata.get("policy_digest", "–"))[:12]),
    ]


class CompareScreen(ReadingScreen):
    """The runs are read again and again here too: they may still go on."""

    BINDINGS = [  # noqa: RUF012
        Binding("b", "axis", "Iterations/time"),
        Binding("z", "zoom", "Zoom"),
        Binding("y", "scale", "Scale"),
        Binding("escape,backspace", "back", "Back", key_display="esc"),
    ]
    DEFAULT_CSS = """
    CompareScreen #halves { layout: vertical; height: 1fr; padding: 0 1; }
    CompareScreen #plots { height: 1fr; }
    CompareScreen #plots Plot { display: none; }
    CompareScreen #plots Plot.-chosen { display: block; }
    CompareScreen Differences { height: 1fr; }
    CompareScreen.-wide #halves { layout: horizontal; }
    CompareScreen.-wide #plots { width: 1fr; height: 100%; }
    CompareScreen.-wide.-tall #plots Plot { display: block; margin-bottom: 1; }
    CompareScreen.-wide Differences { width: 64; margin-left: 2; height: 100%; }
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._directories = list(directories)
        self._watched: list[WatchedRun] = []
        self._views: list[RunView] = []
        self._look = Look()
        self._over_time = False

    def compose(self) -> ComposeResult:
        yield Names(id="names")
        with Container(id="halves"):
            with Vertical(id="plots"):
                yield Plot(id="over-iterations")
                yield Plot(id="over-time")
            yield Differences(id="differences")
        yield Footer(compact=True, show_command_palette=False)

    def read_files(self) -> object:
        if not self._watched:
            self._watched = [WatchedRun(each, self.watching.clock) for each in self._directories]
        return [watched.read() for watched in self._watched]

    def show_files(self, found: object) -> None:
        assert isinstance(found, list)
        self._views = found
        self.query_one(Names).show(list(names_of(self._directories, self.watching.roots).values()))
        self.query_one(Differences).show(found)
        self._draw()

    def _draw(self) -> None:
        for name, over_time in (("#over-iterations", False), ("#over-time", True)):
            plot = self.query_one(name, Plot)
            plot.set_class(over_time == self._over_time, "-chosen")
            plot.show(_picture(self._views, self._look, over_time=over_time))

    def action_axis(self) -> None:
        self._over_time = not self._over_time
        self._draw()

    def action_zoom(self) -> None:
        self._look = Look(ZOOMS[(ZOOMS.index(self._look.last) + 1) % len(ZOOMS)], self._look.scale)
        self._draw()
        last = self._look.last
        self.notify("All iterations" if last is None else f"The last {last:,} iterations", timeout=2)

    def action_scale(self) -> None:
        scale = SCALES[(SCALES.index(self._look.scale) + 1) % len(SCALES)]
        self._look = Look(self._look.last, scale)
        self._draw()
        self.notify(f"Scale: {scale}", timeout=2)

    def action_back(self) -> None:
        self.watching.back()


def _picture(views: Sequence[RunView], look: Look, *, over_time: bool) -> Picture:
    """The bound of each run as a line with its letter at the end, the means of its passes as dots."""
    curves = []
    for place, view in enumerate(views):
        points = view.history.points(look.last)
        x = [point.total_s if over_time else float(point.iteration) for point in points]
        letter, role = LETTERS[place], RUN_ROLES[place]
        curves.append(Curve("", role, x, [point.upper for point in points], dots=True))
        curves.append(Curve(letter, role, x, [point.lower for point in points], mark=letter))
    return Picture(
        title=f"Bounds over {'time' if over_time else 'iterations'}",
        curves=curves,
        x_unit="seconds" if over_time else "iteration",
        scale="log" if look.scale == "log" else "linear",
        robust=look.scale == "auto",
        empty="no iteration has ended yet",
    )
