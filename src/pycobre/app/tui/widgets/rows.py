"""A widget that shows rows of text in roles; a scrolling one for more rows than there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.widgets.theme import COLOURS

__all__ = ["Rows", "ScrolledRows", "cut", "role_style"]


def role_style(widget: Widget, role: str) -> Style:
    """The style of a role in the theme that is on."""
    colours = COLOURS["dark" if widget.app.current_theme.dark else "light"]
    colour = colours.get(role)
    return Style(color=colour, bold=role == "title") if colour else Style()


def _strip(widget: Widget, row: Row, width: int) -> Strip:
    base = widget.rich_style
    segments = [Segment(text, base + role_style(widget, role)) for text, role in row if text]
    return Strip(segments).adjust_cell_length(width, base)


def cut(row: Row, width: int) -> Row:
    """The row in at most `width` letters, with a sign where something was cut off."""
    if sum(len(text) for text, _ in row) <= width:
        return row
    found: Row = []
    left = width - 1
    for text, role in row:
        found.append((text[:left], role))
        left -= len(text)
        if left <= 0:
            break
    return [*found, ("…", "quiet")]


class Rows(Widget):
    """Rows that are made for the size that there is, when something has changed."""

    DEFAULT_CSS = "Rows { height: 1fr; width: 1fr; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._made: list[Row] | None = None
        self._made_for = Size(0, 0)

    def make(self, width: int, height: int) -> Sequence[Row]:
        """The rows to show."""
        raise NotImplementedError

    def changed(self) -> None:
        """Make the rows anew."""
        self._made = None
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._made = None

    def render_line(self, y: int) -> Strip:
        if self._made is None or self._made_for != self.size:
            self._made = list(self.make(self.size.width, self.size.height))
            self._made_for = self.size
        row = self._made[y] if y < len(self._made) else []
        return _strip(self, row, self.size.width)

    @property
    def plain_text(self) -> str:
        """What is shown, without colours."""
        rows = self.make(self.size.width, self.size.height)
        return "\n".join("".join(text for text, _ in row).rstrip() for row in rows)


class ScrolledRows(ScrollView):
    """Any number of rows, of which those in view are drawn."""

    DEFAULT_CSS = """
    ScrolledRows { height: 1fr; width: 1fr; scrollbar-gutter: stable; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows: list[Row] = []
        self._made_for = -1

    def make(self, width: int) -> Sequence[Row]:
        """All rows, for a width."""
        raise NotImplementedError

    def changed(self) -> None:
        """Make the rows anew. Who has scrolled to the end stays there."""
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._rows = list(self.make(width))
        self._made_for = width
        self.virtual_size = Size(width, len(self._rows))
        if at_end and self.follows:
            self.scroll_end(animate=False)
        self.refresh()

    follows = False  #: whether new rows at the end are scrolled to

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._made_for:
            self.changed()

    def render_line(self, y: int) -> Strip:
        place = y + self.scroll_offset.y
        row = self._rows[place] if place < len(self._rows) else []
        return _strip(self, row, self.size.width)
