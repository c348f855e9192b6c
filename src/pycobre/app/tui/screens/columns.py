"""The table of runs: columns for the room there is, cells, order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text

from pycobre._util.frozen import frozen
from pycobre.app.tui.drawing.ticks import short
from pycobre.app.tui.reading.listing import RunLine
from pycobre.app.tui.widgets.facts import STATE_ROLES
from pycobre.app.wording import age, amount, duration, percent

__all__ = ["COLUMNS", "Column", "cell", "columns_for", "name_width", "ordered"]


@frozen()
class Column:
    """A column: its width, its text and role, and by what it is sorted. `need` is the least width of a terminal."""

    key: str
    title: str
    width: int
    text: Callable[[RunLine], str]
    sort: Callable[[RunLine], Any]
    need: int = 0
    right: bool = True
    role: Callable[[RunLine], str] = lambda line: "text"


def _iteration(line: RunLine) -> str:
    if line.iteration is None:
        return "–"
    return f"{line.iteration}/{line.limit}" if line.limit else str(line.iteration)


def _state(line: RunLine) -> str:
    return "unreadable" if line.problem else "silent" if line.silent else line.said


def _state_role(line: RunLine) -> str:
    return "bad" if line.silent or line.problem else STATE_ROLES.get(line.state, "quiet")


def _money(value: float) -> str:
    return "–" if value != value else amount(value)


def _last(value: float) -> float:
    """What is not known comes last."""
    return value if value == value else float("inf")


COLUMNS = (
    Column(
        "name",
        "Run",
        0,
        lambda line: line.name,
        lambda line: line.name,
        right=False,
        role=lambda line: "title",
    ),
    Column("state", "State", 11, _state, _state, right=False, role=_state_role),
    Column("iteration", "Iteration", 9, _iteration, lambda line: -(line.iteration or 0)),
    Column("bound", "Bound", 8, lambda line: short(line.lower), lambda line: _last(line.lower)),
    Column("lower", "Bound", 15, lambda line: _money(line.lower), lambda line: _last(line.lower), 110),
    Column(
        "upper", "Mean of passes", 15, lambda line: _money(line.upper), lambda line: _last(line.upper), 110
    ),
    Column(
        "gap",
        "Gap",
        8,
        lambda line: percent(line.gap) if line.gap == line.gap else "–",
        lambda line: _last(line.gap),
    ),
    Column(
        "left",
        "Left",
        9,
        lambda line: duration(line.eta_s) if line.eta_s == line.eta_s else "",
        lambda line: _last(line.eta_s),
    ),
    Column("event", "Event", 6, lambda line: age(line.event_age_s), lambda line: _last(line.event_age_s)),
    Column(
        "on",
        "On",
        9,
        lambda line: f"{line.backend} × {line.ranks}" if line.ranks else line.backend,
        lambda line: (line.backend, line.ranks or 0),
        100,
        right=False,
    ),
    Column("case", "Case", 18, lambda line: line.case, lambda line: line.case, 120, right=False),
)


def columns_for(width: int) -> list[Column]:
    """Those there is room for; wide terminals show bounds in full."""
    found = [column for column in COLUMNS if width >= column.need]
    return [column for column in found if column.key != "bound" or width < 110]


def name_width(width: int) -> int:
    """What the other columns leave, each with a space on both sides."""
    others = [column for column in columns_for(width) if column.key != "name"]
    return max(12, width - sum(column.width + 2 for column in others) - 6)


def ordered(lines: list[RunLine], key: str, reverse: bool, wanted: str) -> list[RunLine]:
    """Those that contain every wanted word in name, case, state, id or backend, in an order that does not jump."""
    words = wanted.lower().split()

    def said(line: RunLine) -> str:
        return f"{line.name} {line.case} {_state(line)} {line.state} {line.run} {line.backend}".lower()

    kept = [line for line in lines if all(word in said(line) for word in words)]
    column = next(column for column in COLUMNS if column.key == key)
    kept.sort(key=lambda line: line.name)
    kept.sort(key=column.sort, reverse=reverse)
    return kept


def cell(column: Column, line: RunLine, width: int, colour: Callable[[str], Any]) -> Text:
    """One cell; a name that is too long keeps its end, which tells more."""
    said = column.text(line)
    if len(said) > width:
        said = f"…{said[-(width - 1) :]}" if column.key == "name" else f"{said[: width - 1]}…"
    return Text(
        said, style=colour(column.role(line)), justify="right" if column.right else "left", no_wrap=True
    )
