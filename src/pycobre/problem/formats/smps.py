"""SMPS: a core LP (MPS), which of its rows and columns belong to which period (time), and what is random (stoch).

A column that rows of later periods refer to is a state, handed on until the last of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.api import Problem
from pycobre.problem.build import build
from pycobre.problem.expression import Expression, Operand
from pycobre.problem.formats.mps import Core, read_core
from pycobre.problem.formats.sections import lines_of
from pycobre.problem.formats.smps_stoch import Place, Stoch, read_stoch
from pycobre.problem.formats.smps_tree import Tree, tree_of
from pycobre.problem.policy_graph import Graph
from pycobre.problem.stage import Stage

__all__ = ["CORE", "STOCH", "TIME", "read_smps"]

CORE, TIME, STOCH = (".cor", ".core"), (".tim", ".time"), (".sto", ".stoch", ".stc")


def read_smps(path: Path, *, relax: bool) -> Problem:
    """Read the three files of one stem, given any of them; the bounds are still to be found."""
    core = read_core(_sibling(path, CORE))
    if core.integers and not relax:
        raise ProblemError(
            f"{path}: column {next(iter(core.integers))!r}: expected continuous columns, got an integer one: integer "
            "decisions are not supported. Read it with relax=True to have them continuous."
        )
    periods = _read_time(_sibling(path, TIME), core)
    stoch = read_stoch(_sibling(path, STOCH), core)
    bound = {"upper_bound": 0.0} if core.maximise else {"lower_bound": 0.0}
    file = _Smps(core, periods, stoch, str(path))
    return build(file.graph(), file.fill, **bound, name=core.name, check=False)


def _sibling(path: Path, suffixes: tuple[str, ...]) -> Path:
    names = [path.with_suffix(ending) for suffix in suffixes for ending in (suffix, suffix.upper())]
    for name in names:
        if name.exists():
            return name
    raise ProblemError(
        f"{path}: expected {names[0].name} beside it, got none: SMPS has a core, a time and a stoch file of one name."
    )


@frozen(eq=False)
class _Periods:
    names: tuple[str, ...]
    of_row: Mapping[str, int]
    of_column: Mapping[str, int]

    def number(self, name: str, where: str) -> int:
        if name not in self.names:
            raise ProblemError(
                f"{where}: expected a period of the time file ({', '.join(self.names)}), got {name!r}."
            )
        return self.names.index(name)


def _read_time(path: Path, core: Core) -> _Periods:
    """Implicit (the first column and row of every period) or explicit (the period of each)."""
    firsts: list[tuple[str, str, str]] = []
    explicit: dict[str, dict[str, str]] = {"ROWS": {}, "COLUMNS": {}}
    for line in lines_of(path):
        kind = line.section[0]
        if line.heading:
            if kind not in ("TIME", "PERIODS", "ROWS", "COLUMNS"):
                line.fail("a section TIME, PERIODS, ROWS or COLUMNS")
        elif kind == "PERIODS" and len(line.words) == 3:
            firsts.append((line.words[0], line.words[1], line.words[2]))
        elif kind in explicit and len(line.words) == 2:
            explicit[kind][line.words[0]] = line.words[1]
        elif kind != "PERIODS":
            line.fail("a name and its period")
    if firsts:
        names = tuple(name for _, _, name in firsts)
        rows = _implicit([row for _, row, _ in firsts], [core.objective, *core.kinds], "row", path)
        columns = _implicit([column for column, _, _ in firsts], list(core.columns), "column", path)
    else:
        names = tuple(dict.fromkeys(explicit["COLUMNS"].values()))
        rows, columns = (
            {k: names.index(v) for k, v in explicit[what].items() if v in names} for what in explicit
        )
    missing = [name for name in core.kinds if name not in rows] + [
        name for name in core.columns if name not in columns
    ]
    if missing or not names:
        raise ProblemError(
            f"{path}: expected the period of every row and column, got none for {missing[:1]}."
        )
    return _Periods(names, rows, columns)


def _implicit(firsts: list[str], order: list[str], what: str, path: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    period = -1
    for name in order:
        while period + 1 < len(firsts) and firsts[period + 1] == name:
            period += 1
        found[name] = max(period, 0)
    if period + 1 < len(firsts):
        raise ProblemError(
            f"{path}: {what} {firsts[period + 1]!r}: expected the first {what} of a period in the order of the core, "
            "got one that is not there or comes earlier."
        )
    return found


class _Smps:
    def __init__(self, core: Core, periods: _Periods, stoch: Stoch, where: str) -> None:
        self._core, self._periods, self._where = core, periods, where
        count = len(periods.names)
        self._columns: list[list[str]] = [[] for _ in range(count)]
        for name in core.columns:
            self._columns[periods.of_column[name]].append(name)
        self._rows: list[dict[str, list[str]]] = [{} for _ in range(count)]
        for name in core.kinds:
            self._rows[periods.of_row[name]][name] = []
        self._blocks = {
            name: (self._period_of(block.values[0], block.period, name), block)
            for name, block in stoch.blocks.items()
        }
        self._tree: Tree | None = (
            tree_of(stoch.scenarios, periods.number, count, where) if stoch.scenarios else None
        )
        entries = dict.fromkeys(core.entries)
        for values in (
            *(values for block in stoch.blocks.values() for values in block.values),
            *(scenario.values for scenario in stoch.scenarios.values()),
        ):
            entries.update(dict.fromkeys((row, column) for kind, row, column in values if kind == "entry"))
        #: The last period whose rows refer to a column of an earlier one.
        self._last_use: dict[str, int] = {}
        for row, column in entries:
            if row == core.objective:
                continue
            at, own = periods.of_row[row], periods.of_column[column]
            if own > at:
                raise ProblemError(
                    f"{where}: row {row!r} of period {periods.names[at]!r}: expected columns of this period or "
                    f"earlier, got {column!r} of {periods.names[own]!r}."
                )
            self._rows[at][row].append(column)
            if own < at:
                self._last_use[column] = max(at, self._last_use.get(column, 0))

    def graph(self) -> Graph:
        """A node for each period, or for each node of the scenario tree."""
        if self._tree is not None:
            return self._tree.graph()
        graph = Graph()
        for stage, name in enumerate(self._periods.names):
            graph.add_node(name, stage=stage + 1)
            graph.add_arc(self._periods.names[stage - 1] if stage else "root", name)
        return graph

    def fill(self, sp: Stage, key: str) -> None:
        """Write the columns and rows of a period."""
        core = self._core
        period, data = self._data(sp, key)
        columns: dict[str, Expression] = {}
        for name in core.columns:
            if name in self._last_use:
                self._add_state(sp, name, period, data, columns)
            elif self._periods.of_column[name] == period:
                columns[name] = sp.variable(
                    name, lower=self._bound(name, 0, data), upper=self._bound(name, 1, data)
                )
        for row, members in self._rows[period].items():
            left: Operand = 0.0
            for name in dict.fromkeys(members):
                left = columns[name] * self._entry(row, name, data) + left
            if not isinstance(left, Expression) or not left.terms:
                continue  # a row without columns says nothing
            self._add_row(sp, row, left, data.get(("rhs", row, ""), core.rhs.get(row, 0.0)))
        cost: Operand = -core.rhs.get(core.objective, 0.0) if period == 0 else 0.0
        for name in self._columns[period]:
            cost = columns[name] * self._entry(core.objective, name, data) + cost
        (sp.maximise if core.maximise else sp.minimise)(cost)

    def _add_state(
        self, sp: Stage, name: str, period: int, data: Mapping[Place, Operand], columns: dict[str, Expression]
    ) -> None:
        own, last = self._periods.of_column[name], self._last_use[name]
        if period == own:
            limits = self._bound(name, 0, data), self._bound(name, 1, data)
        else:  # on its way, or no longer needed
            limits = (-math.inf, math.inf) if own < period < last else (0.0, 0.0)
        state = sp.state(name, initial=0.0, lower=limits[0], upper=limits[1])
        if own < period < last:
            sp.add(state.out == state.in_, f"{name}.carried")
        columns[name] = state.out if period == own else state.in_

    def _add_row(self, sp: Stage, row: str, left: Expression, rhs: Operand) -> None:
        kind, width = self._core.kinds[row], self._core.ranges.get(row)
        if width is None:
            sp.add(left == rhs if kind == "E" else left <= rhs if kind == "L" else left >= rhs, row)
        elif kind == "G" or (kind == "E" and width > 0.0):
            sp.between(rhs, left, rhs + abs(width), row)
        else:
            sp.between(rhs - abs(width), left, rhs, row)

    def _entry(self, row: str, column: str, data: Mapping[Place, Operand]) -> Operand:
        return data.get(("entry", row, column), self._core.entries.get((row, column), 0.0))

    def _bound(self, column: str, side: int, data: Mapping[Place, Operand]) -> Operand:
        return data.get(("upper" if side else "lower", "", column), self._core.bounds(column)[side])

    def _data(self, sp: Stage, key: str) -> tuple[int, dict[Place, Operand]]:
        """The node's period, and what stands in place of the core's numbers: noise, or numbers of a scenario."""
        if self._tree is not None:
            return self._tree.period(key), dict(self._tree.values(key))
        period = self._periods.names.index(key)
        found: dict[Place, Operand] = {}
        for name, (at, block) in self._blocks.items():
            if at == period:
                places = sorted({place for values in block.values for place in values})
                labels = [f"{name}: {' '.join(part for part in place if part)}" for place in places]
                table = [[values[place] for place in places] for values in block.values]
                noise = sp.joint_noise(table, block.probability, names=labels)
                found.update(zip(places, noise, strict=True))
        return period, found

    def _period_of(self, values: Mapping[Place, float], named: str, block: str) -> int:
        """The one period whose rows and columns a block changes."""
        periods = {
            self._periods.of_row[row]
            if row and row != self._core.objective
            else self._periods.of_column[column]
            for _, row, column in values
        }
        given = self._periods.number(named, f"{self._where}: block {block!r}") if named else None
        if len(periods) > 1 or (given is not None and periods and periods != {given}):
            raise ProblemError(
                f"{self._where}: block {block!r}: expected numbers of one period, got those of "
                f"{', '.join(self._periods.names[period] for period in sorted(periods))}."
            )
        return next(iter(periods)) if periods else given or 0
