"""Lines and bands over an axis, with labels and a legend, as rows of text.

Lines are told apart without colour too: a legend shows how each is drawn, and bands are made of every second dot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pycobre._util.frozen import frozen
from pycobre.app.tui.drawing.canvas import Canvas, Row
from pycobre.app.tui.drawing.ticks import labels, linear_ticks, logarithmic_ticks

__all__ = ["Area", "Curve", "Picture", "draw"]

AXIS, TITLE, QUIET = "axis", "title", "quiet"


@frozen()
class Curve:
    """A line, or dots, through points; NaN leaves a gap."""

    name: str
    role: str
    x: Sequence[float]
    y: Sequence[float]
    dots: bool = False
    mark: str = ""  #: a letter at its end


@frozen()
class Area:
    """What lies between two lines."""

    name: str
    role: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@frozen(kw_only=True)
class Picture:
    """What to draw. `scale` is auto, linear or log; auto is logarithmic where values span more than two decades."""

    title: str
    curves: Sequence[Curve] = ()
    areas: Sequence[Area] = ()
    x_labels: Sequence[str] = ()  #: of the whole numbers from 0, where they are not numbers themselves
    x_unit: str = ""
    scale: str = "linear"
    percent: bool = False
    zero: bool = False  #: the axis begins at zero where all values are above it
    robust: bool = False  #: the first points may lie beyond the scale, where they would hide the later ones
    legend: bool = True
    empty: str = "nothing to show yet"


class _Frame(NamedTuple):
    low: float
    high: float
    log: bool
    x_low: float
    x_high: float
    beyond: bool

    def y(self, value: float, dots: int) -> float:
        """The dot of a value, from the top; NaN where it has none."""
        if self.log:
            if not value > 0:
                return math.nan
            value = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            value = (value - self.low) / (self.high - self.low)
        return (1 - value) * (dots - 1)

    def x(self, value: float, dots: int) -> int:
        return round((value - self.x_low) / (self.x_high - self.x_low) * (dots - 1))


def draw(picture: Picture, width: int, height: int) -> list[Row]:
    """Exactly `height` rows of `width` letters; a sentence where there is nothing to show, or no room."""
    frame = _frame(picture)
    rows: list[Row]
    if frame is None or width < 16 or height < 4:
        rows = _words(picture, width, height)
    else:
        head = _head(picture, width, frame)
        rows = [*head, *_body(picture, width, height - len(head), frame)]
    return [_fitted(row, width) for row in rows[:height]]


def _body(picture: Picture, width: int, height: int, frame: _Frame) -> list[Row]:
    rows = height - 1  # one for the labels below
    most = max(2, min(6, rows // 2))
    ticks = logarithmic_ticks(frame.low, frame.high, most) if frame.log else []
    ticks = ticks if len(ticks) > 1 else linear_ticks(frame.low, frame.high, most)
    said = labels(ticks, picture.percent)
    gutter = max((len(each) for each in said), default=0) + 1
    canvas = Canvas(width - gutter - 1, rows)
    _fill(canvas, picture, frame)
    at: dict[int, str] = {}
    for tick, label in zip(ticks, said, strict=True):
        place = frame.y(tick, canvas.dots_y)
        if math.isfinite(place):
            at.setdefault(round(place) // 4, label)
    found: list[Row] = []
    for number, row in enumerate(canvas.rows()):
        mark = at.get(number, "")
        edge = f"{mark:>{gutter}}" + ("┤" if mark else "│")
        found.append([(edge, AXIS), *row])
    found.append(_below(picture, frame, gutter, canvas))
    return found


def _fill(canvas: Canvas, picture: Picture, frame: _Frame) -> None:
    dots = canvas.dots_y
    for area in picture.areas:
        before: tuple[int, float, float] | None = None
        for x, low, high in zip(area.x, area.low, area.high, strict=True):
            if not frame.x_low <= x <= frame.x_high or math.isnan(low) or math.isnan(high):
                continue
            lowest = frame.low if frame.log and low <= 0 else low
            now = (frame.x(x, canvas.dots_x), frame.y(high, dots), frame.y(lowest, dots))
            if before is None:
                before = now
            count = max(1, now[0] - before[0])
            for step in range(count + 1):
                share = step / count
                top, bottom = (before[i] + (now[i] - before[i]) * share for i in (1, 2))
                if top <= bottom:
                    canvas.area(before[0] + step, top, bottom, area.role)
            before = now
    for curve in picture.curves:
        last: tuple[int, float] | None = None
        for x, value in zip(curve.x, curve.y, strict=True):
            y = frame.y(value, dots) if frame.x_low <= x <= frame.x_high else math.nan
            if math.isnan(y):
                last = None
                continue
            place = frame.x(x, canvas.dots_x)
            if curve.dots or last is None:
                canvas.dot(place, round(y) if math.isfinite(y) else -1, curve.role)
            else:
                canvas.line(last[0], last[1], place, y, curve.role)
            last = (place, y)
        if curve.mark and last is not None:
            canvas.letter(last[0], last[1], curve.mark, curve.role)


def _below(picture: Picture, frame: _Frame, gutter: int, canvas: Canvas) -> Row:
    """The labels of the horizontal axis, as many as have room."""
    width = canvas.width
    if picture.x_labels:
        first, last = math.ceil(frame.x_low), math.floor(frame.x_high)
        longest = 3 * max((len(each) for each in picture.x_labels), default=1) // 2 + 2
        every = max(1, -(-(last - first + 1) * longest // max(1, width)))
        places = list(range(first, last + 1, every))
        said = [picture.x_labels[place] if place < len(picture.x_labels) else "" for place in places]
    else:
        places_ = linear_ticks(frame.x_low, frame.x_high, max(2, width // 12))
        whole = frame.x_high - frame.x_low >= 4
        places_ = [each for each in places_ if not whole or each == round(each)]
        said, places = labels(places_), places_  # type: ignore[assignment]
    line = [" "] * (gutter + 1 + width)
    end = -1
    unit = picture.x_unit
    room = len(line) - (len(unit) + 2 if unit else 0)
    for place, label in zip(places, said, strict=True):
        begin = gutter + 1 + frame.x(place, canvas.dots_x) // 2 - len(label) // 2
        begin = max(gutter, min(begin, len(line) - len(label)))
        if begin > end and begin + len(label) <= room:
            line[begin : begin + len(label)] = label
            end = begin + len(label)
    if unit:
        line[len(line) - len(unit) :] = unit
    return [("".join(line), AXIS)]


def _head(picture: Picture, width: int, frame: _Frame) -> list[Row]:
    """The title, what the marks mean, and what is special about the scale."""
    note = " (log)" if frame.log else " ↑" if frame.beyond else ""
    row: Row = [(f"{picture.title}{note}", TITLE)]
    if picture.legend:
        drawn: list[Area | Curve] = [*picture.curves, *picture.areas]
        for each in drawn:
            if not each.name:
                continue
            mark = "░" if isinstance(each, Area) else "•" if each.dots else "━"
            row += [("  ", ""), (f"{mark} ", each.role), (each.name, QUIET)]
    return _wrapped(row, width)


def _wrapped(row: Row, width: int) -> list[Row]:
    """At most two rows; a piece of the legend is never torn from its mark."""
    found: list[Row] = [[]]
    used = 0
    groups: list[Row] = []
    for text, role in row:
        if text == "  " or not groups or text.startswith("  "):
            groups.append([])
        groups[-1].append((text, role))
    for group in groups:
        size = sum(len(text) for text, _ in group)
        if used and used + size > width:
            if len(found) == 2:
                break
            found.append([])
            used = 0
            group = [(group[0][0].lstrip(), group[0][1]), *group[1:]]
        found[-1] += group
        used += size
    return found


def _frame(picture: Picture) -> _Frame | None:
    """The limits of both axes; None where nothing is finite."""
    xs = [x for curve in picture.curves for x, y in zip(curve.x, curve.y, strict=True) if math.isfinite(y)]
    values = [y for curve in picture.curves for y in curve.y if math.isfinite(y)]
    values += [
        y for area in picture.areas for line in (area.low, area.high) for y in line if math.isfinite(y)
    ]
    xs = [x for x in xs if math.isfinite(x)]
    if not xs or not values:
        return None
    x_low, x_high = min(xs), max(xs)
    x_high = x_high if x_high > x_low else x_low + 1
    positive = [value for value in values if value > 0]
    log = picture.scale == "log" and bool(positive)
    if picture.scale == "auto" and positive:
        log = len(positive) >= 0.9 * len(values) and max(positive) > 100 * min(positive)
    if log:
        low, high = min(positive), max(positive)
        return _Frame(low / 1.1, high * 1.1 if high > low else low * 2, True, x_low, x_high, False)
    low, high, beyond = min(values), max(values), False
    if picture.robust:
        late = _late_values(picture)
        if late and high - low > 2.5 * (max(late) - min(late)) > 0:
            low, high, beyond = min(late), max(late), True
    if picture.zero:
        low, high = min(0.0, low), max(0.0, high)
    if high <= low:
        room = 0.5 * abs(low) or 0.5
        return _Frame(low - room, high + room, False, x_low, x_high, False)
    room = 0.04 * (high - low)
    return _Frame(low if low == 0.0 else low - room, high + room, False, x_low, x_high, beyond)


def _late_values(picture: Picture) -> list[float]:
    """All but the first quarter of the values, where there are enough."""
    lines = [curve.y for curve in picture.curves]
    lines += [line for area in picture.areas for line in (area.low, area.high)]
    return [y for line in lines if len(line) >= 8 for y in line[len(line) // 4 :] if math.isfinite(y)]


def _words(picture: Picture, width: int, height: int) -> list[Row]:
    """The title, and in the middle the sentence about what is missing."""
    rows: list[Row] = [[] for _ in range(max(1, height))]
    rows[0] = [(picture.title, TITLE)]
    if height >= 3:
        rows[height // 2] = [(picture.empty.center(width), QUIET)]
    return rows


def _fitted(row: Row, width: int) -> Row:
    """Exactly `width` letters."""
    found: Row = []
    left = width
    for text, role in row:
        if left <= 0:
            break
        found.append((text[:left], role))
        left -= len(text)
    return [*found, (" " * left, "")] if left > 0 else found
