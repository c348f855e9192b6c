"""Small plots of quantile bands, as many as there is room for, a page of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.drawing.plot import Area, Curve, Picture, draw
from pycobre.app.tui.reading.operation import Band, Bands
from pycobre.app.tui.widgets.rows import Rows, cut

__all__ = ["BandGrid", "band_picture"]

LEAST_WIDTH, LEAST_HEIGHT, TALLEST = 28, 8, 18


def band_picture(band: Band, bands: Bands, *, legend: bool) -> Picture:
    """The median as a line, 25–75 % and 5–95 % as areas."""
    x = [float(each) for each in range(len(bands.stages))]
    q05, q25, q50, q75, q95 = (row.tolist() for row in band.values)
    unit = f" ({bands.quantity.unit})" if bands.quantity.unit else ""
    return Picture(
        title=f"{band.name}{unit}",
        curves=(Curve("median", "bound", x, q50),),
        areas=(Area("5–95 %", "outer", x, q05, q95), Area("25–75 %", "band", x, q25, q75)),
        x_labels=bands.stages,
        zero=True,
        legend=legend,
    )


class BandGrid(Rows):
    """A page of small plots, or one large one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.bands: Bands | None = None
        self.note = ""
        self.first = 0
        self.single = False
        self.wanted = ""

    def show(self, bands: Bands | None, note: str = "") -> None:
        self.bands, self.note, self.first = bands, note, 0
        self.changed()

    @property
    def chosen(self) -> list[Band]:
        """Those whose name contains what was asked for."""
        if self.bands is None:
            return []
        return [band for band in self.bands.bands if self.wanted.lower() in band.name.lower()]

    def _shape(self, width: int, height: int) -> tuple[int, int]:
        """Columns and rows of plots."""
        count = len(self.chosen)
        if self.single or count <= 1:
            return 1, 1
        columns = max(1, min(5, width // LEAST_WIDTH, count))
        rows = max(1, min(height // LEAST_HEIGHT, -(-count // columns)))
        return columns, rows

    @property
    def page(self) -> int:
        columns, rows = self._shape(self.size.width, self.size.height - 1)
        return columns * rows

    def turn(self, pages: int) -> None:
        """Go on by so many pages; the ends are ends."""
        last = max(0, (len(self.chosen) - 1) // self.page * self.page)
        self.first = max(0, min(last, self.first + pages * self.page))
        self.changed()

    def make(self, width: int, height: int) -> Sequence[Row]:
        if self.bands is None:
            return self._words(self.note, width, height)
        chosen = self.chosen
        if not chosen:
            said = f"no name contains {self.wanted!r}" if self.wanted else "the table has no rows"
            return self._words(said, width, height)
        columns, rows = self._shape(width, height - 1)
        size = (width - columns + 1) // columns
        tall = (height - 1) // rows if columns * rows == 1 else min(TALLEST, (height - 1) // rows)
        shown = chosen[self.first : self.first + columns * rows]
        found: list[Row] = [self._title(len(chosen), len(shown), width)]
        single = columns * rows == 1
        for first in range(0, len(shown), columns):
            drawn = [
                draw(band_picture(band, self.bands, legend=single), size, tall)
                for band in shown[first : first + columns]
            ]
            for place in range(tall):
                row: Row = []
                for each in drawn:
                    row += [*each[place], (" ", "")]
                found.append(row)
        return found

    def _title(self, count: int, shown: int, width: int) -> Row:
        assert self.bands is not None
        places = f"{self.first + 1}–{self.first + shown} of {count}" if count > 1 else ""
        key: Row = [("━ ", "bound"), ("median ", "quiet"), ("░ ", "band"), ("25–75 % ", "quiet")]
        key += [("░ ", "outer"), ("5–95 %", "quiet")]
        note = f"  {self.bands.note}" if self.bands.note else ""
        row = [(f"{self.bands.quantity.title}  ", "title"), (f"{places}  ", "text"), *key, (note, "warn")]
        return cut(row, width)

    def _words(self, said: str, width: int, height: int) -> list[Row]:
        rows: list[Row] = [[] for _ in range(max(1, height))]
        rows[len(rows) // 2] = [(said.center(width), "quiet")]
        return rows
