"""The stoch file of an SMPS problem: which numbers of the core are random, and how.

    INDEP DISCRETE       every entry by itself
    BLOCKS DISCRETE      entries that change together; a realisation lists what differs from the block's first
    SCENARIOS DISCRETE   paths that branch off from one another; a scenario lists what differs from its parent

`REPLACE` (the default), `ADD` and `MULTIPLY` say what a number does to the core's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pycobre.errors import ProblemError
from pycobre.problem.formats.mps import Core
from pycobre.problem.formats.sections import Line, lines_of

__all__ = ["Block", "Place", "Scenario", "Stoch", "read_stoch"]

Place = tuple[str, str, str]
"""("rhs", row, ""), ("entry", row, column), ("lower", "", column) or ("upper", "", column)."""

_BOUND_PLACES = {"UP": ("upper",), "LO": ("lower",), "FX": ("lower", "upper")}
_KINDS = ("INDEP", "BLOCKS", "SCENARIOS")


@dataclass
class Block:
    """Places that change together: one realisation after the other, each with all places."""

    period: str
    probability: list[float] = field(default_factory=list)
    values: list[dict[Place, float]] = field(default_factory=list)


@dataclass
class Scenario:
    """A path that leaves its parent's in a period."""

    name: str
    parent: str | None
    period: str
    probability: float
    values: dict[Place, float] = field(default_factory=dict)


@dataclass
class Stoch:
    """What is random: blocks, or a tree of scenarios."""

    blocks: dict[str, Block] = field(default_factory=dict)
    scenarios: dict[str, Scenario] = field(default_factory=dict)


def read_stoch(path: Path, core: Core) -> Stoch:
    """Read the file; numbers are made what replaces those of the core."""
    found = Stoch()
    values: dict[Place, float] | None = None
    for line in lines_of(path):
        kind = line.section[0]
        if line.heading:
            _check_section(line)
            values = None
        elif kind == "INDEP":
            _independent(found, core, line)
        elif line.words[0] in ("BL", "SC"):
            values = _block(found, line) if kind == "BLOCKS" else _scenario(found, line)
        elif values is None:
            line.fail("a line that begins with BL or SC before the numbers")
        else:
            for place, value in _places(core, line, len(line.words)):
                values[place] = _changed(core, line, place, value)
    if found.blocks and found.scenarios:
        raise ProblemError(f"{path}: expected SCENARIOS or other sections, got both.")
    for block in found.blocks.values():
        first = block.values[0]
        block.values[1:] = [{**first, **later} for later in block.values[1:]]
    return found


def _check_section(line: Line) -> None:
    kind, *rest = line.section
    if kind == "STOCH":
        return
    if kind not in _KINDS:
        line.fail(f"a section STOCH, {', '.join(_KINDS)} or ENDATA")
    if "DISCRETE" not in rest:
        line.fail(
            f"{kind} DISCRETE: other distributions have no finite number of openings. Sample them first"
        )


def _mode(line: Line) -> str:
    return next((word for word in line.section[1:] if word in ("REPLACE", "ADD", "MULTIPLY")), "REPLACE")


def _changed(core: Core, line: Line, place: Place, value: float) -> float:
    mode = _mode(line)
    if mode == "REPLACE":
        return value
    kind, row, column = place
    if kind == "rhs":
        before = core.rhs.get(row, 0.0)
    elif kind == "entry":
        before = core.entries.get((row, column), 0.0)
    else:
        before = core.bounds(column)[kind == "upper"]
    return before + value if mode == "ADD" else before * value


def _independent(found: Stoch, core: Core, line: Line) -> None:
    """`column row value [period] probability`, or with a type of bound before them."""
    words = len(line.words)
    places = list(_places(core, line, 4 if line.words[0] in _BOUND_PLACES else 3))
    probability = line.number_at(words - 1)
    key = " ".join(f"{row} {column}".strip() for _, row, column in (places[0][0],)) + places[0][0][0]
    has_period = words == (6 if line.words[0] in _BOUND_PLACES else 5)
    block = found.blocks.setdefault(key, Block(line.words[words - 2] if has_period else ""))
    block.probability.append(probability)
    block.values.append({place: _changed(core, line, place, value) for place, value in places})


def _block(found: Stoch, line: Line) -> dict[Place, float]:
    if len(line.words) != 4:
        line.fail("BL, the block's name, its period and a probability")
    block = found.blocks.setdefault(line.words[1], Block(line.words[2]))
    block.probability.append(line.number_at(3))
    block.values.append({})
    return block.values[-1]


def _scenario(found: Stoch, line: Line) -> dict[Place, float]:
    if len(line.words) != 5:
        line.fail(
            "SC, the scenario's name, its parent (ROOT), a probability and the period where it branches off"
        )
    _, name, parent, _, period = line.words
    root = parent.strip("'\"").upper() == "ROOT"
    if name in found.scenarios or (not root and parent not in found.scenarios):
        line.fail("a new scenario, and a parent before it")
    made = Scenario(name, None if root else parent, period, line.number_at(3))
    found.scenarios[name] = made
    return made.values


def _places(core: Core, line: Line, words: int) -> list[tuple[Place, float]]:
    """The places of a line of numbers, up to `words` words, and their values."""
    if line.words[0] in _BOUND_PLACES and len(line.words) >= 4 and line.words[2] in core.columns:
        value = line.number_at(3)
        return [((kind, "", line.words[2]), value) for kind in _BOUND_PLACES[line.words[0]]]
    found: list[tuple[Place, float]] = []
    for at in range(1, min(words, len(line.words)) - 1, 2):
        column, row = line.words[0], line.words[at]
        if row not in core.kinds and row != core.objective:
            line.fail(f"a row of the core, not {row!r}")
        if column in core.columns:
            found.append((("entry", row, column), line.number_at(at + 1)))
        elif row == core.objective:
            line.fail("a column of the core in the objective")
        else:
            found.append((("rhs", row, ""), line.number_at(at + 1)))
    if not found:
        line.fail("a column or RHS, a row and a number")
    return found
