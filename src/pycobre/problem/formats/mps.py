"""The core of an SMPS problem: one LP in MPS form, free or fixed, names without spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from pycobre.errors import ProblemError
from pycobre.problem.formats.sections import Line, lines_of

__all__ = ["Core", "read_core"]

_TYPES = {"N", "L", "G", "E"}
_VALUELESS = {"FR", "MI", "PL", "BV"}
_BOUNDS = {"UP", "LO", "FX", "LI", "UI"} | _VALUELESS


@dataclass
class Core:
    """Rows and columns in the order of the file; entries by (row, column)."""

    name: str = "problem"
    maximise: bool = False
    objective: str = ""
    kinds: dict[str, str] = field(default_factory=dict)  # of the rows
    columns: dict[str, None] = field(default_factory=dict)
    entries: dict[tuple[str, str], float] = field(default_factory=dict)  # of the objective too
    rhs: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, float] = field(default_factory=dict)
    lower: dict[str, float] = field(default_factory=dict)
    upper: dict[str, float] = field(default_factory=dict)
    integers: dict[str, None] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)  # further free rows

    def bounds(self, column: str) -> tuple[float, float]:
        """The least and the largest value of a column."""
        return self.lower.get(column, 0.0), self.upper.get(column, math.inf)


def read_core(path: Path) -> Core:
    """Read the file; raises ProblemError with the line that is wrong."""
    core = Core(name=path.name.split(".")[0])
    integers = False
    for line in lines_of(path):
        section = line.section[0]
        if line.heading:
            if section == "NAME" and len(line.words) > 1:
                core.name = line.words[1]
            elif section == "OBJSENSE" and len(line.section) > 1:
                core.maximise = line.section[1].startswith("MAX")
            elif section not in _SECTIONS and section != "NAME":
                line.fail(f"a section of an MPS file: {', '.join(_SECTIONS)}")
        elif section == "OBJSENSE":
            core.maximise = line.words[0].upper().startswith("MAX")
        elif section == "ROWS":
            _row(core, line)
        elif section == "COLUMNS":
            if len(line.words) >= 3 and line.words[1].strip("'\"") == "MARKER":
                integers = line.words[2].strip("'\"") == "INTORG"
                continue
            _column(core, line, integers)
        elif section == "RHS":
            _side(core, line, core.rhs)
        elif section == "RANGES":
            _side(core, line, core.ranges)
        elif section == "BOUNDS":
            _bound(core, line)
    if not core.objective:
        raise ProblemError(f"{path}: expected an objective, a row of type N, got none.")
    if not core.columns:
        raise ProblemError(f"{path}: expected columns, got none.")
    return core


_SECTIONS = ("OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS")


def _row(core: Core, line: Line) -> None:
    kind = line.words[0].upper()
    if len(line.words) != 2 or kind not in _TYPES:
        line.fail("the type of a row (N, L, G or E) and its name")
    name = line.words[1]
    if name in core.kinds or name in core.ignored or name == core.objective:
        line.fail(f"a name of its own for the row, not {name!r} again")
    if kind != "N":
        core.kinds[name] = kind
    elif core.objective:
        core.ignored.add(name)
    else:
        core.objective = name


def _column(core: Core, line: Line, integer: bool) -> None:
    if len(line.words) not in (3, 5):
        line.fail("a column, a row and a number, or two of the latter")
    name = line.words[0]
    core.columns[name] = None
    if integer:
        core.integers[name] = None
    for at in range(1, len(line.words), 2):
        row = line.words[at]
        if row in core.ignored:
            continue
        if row not in core.kinds and row != core.objective:
            line.fail(f"a row of the file, not {row!r}")
        if (row, name) in core.entries:
            line.fail(f"one entry of column {name!r} in row {row!r}")
        core.entries[row, name] = line.number_at(at + 1)


def _side(core: Core, line: Line, values: dict[str, float]) -> None:
    first = len(line.words) % 2  # the name of the set may be missing
    if len(line.words) < 2:
        line.fail("a row and a number")
    for at in range(first, len(line.words), 2):
        row = line.words[at]
        if row in core.ignored:
            continue
        if row not in core.kinds and row != core.objective:
            line.fail(f"a row of the file, not {row!r}")
        values[row] = line.number_at(at + 1)


def _bound(core: Core, line: Line) -> None:
    kind = line.words[0].upper()
    if kind not in _BOUNDS:
        line.fail(f"a type of bound: {', '.join(sorted(_BOUNDS))}")
    least = 2 if kind in _VALUELESS else 3
    position = 1 if len(line.words) == least and line.words[1] in core.columns else 2
    if len(line.words) <= position or line.words[position] not in core.columns:
        line.fail("a bound of a column of the file")
    name = line.words[position]
    value = 0.0 if kind in _VALUELESS else line.number_at(position + 1)
    if kind in ("BV", "LI", "UI"):
        core.integers[name] = None
    if kind in ("LO", "LI", "FX"):
        core.lower[name] = value
    if kind in ("UP", "UI", "FX"):
        core.upper[name] = value
        if value < 0.0 and name not in core.lower:
            core.lower[name] = -math.inf  # as MPS readers have it
    if kind in ("FR", "MI"):
        core.lower[name] = -math.inf
    if kind in ("FR", "PL"):
        core.upper[name] = math.inf
    if kind == "BV":
        core.lower[name], core.upper[name] = 0.0, 1.0
