"""MSPFormat: `X.problem.json` says what is decided, `X.lattice.json` beside it which data may be seen.

    variables     {"name", "stage", "obj", "lb", "ub", "type"}
    constraints   {"name", "type": "EQ" | "LEQ" | "GEQ", "lhs": [{"name", "stage", "coefficient"}, …], "rhs"}

A number is `[3.0]`, `["inf"]`, the name of a datum of the lattice, or a sequence of `{"ADD": …}` and `{"MUL": …}`
from left to right. A row belongs to the latest stage in it; variables of earlier stages in it are states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.api import Problem
from pycobre.problem.build import build
from pycobre.problem.expression import Expression, Operand
from pycobre.problem.formats.json_values import Json, read_json
from pycobre.problem.formats.msp_lattice import Lattice, LatticeNode, read_lattice
from pycobre.problem.stage import Stage, StateVariable

__all__ = ["lattice_of", "read_msp"]

PROBLEM, LATTICE = ".problem.json", ".lattice.json"
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


def lattice_of(path: Path) -> Path:
    """The lattice beside a problem file, compressed or not."""
    stem = path.name.removesuffix(".gz").removesuffix(PROBLEM)
    plain = path.with_name(stem + LATTICE)
    packed = path.with_name(stem + LATTICE + ".gz")
    if plain.exists() or packed.exists():
        return plain if plain.exists() else packed
    raise ProblemError(
        f"{path}: expected {plain.name} beside it, got none. MSPFormat has two files; give the other by lattice=."
    )


def read_msp(path: Path, lattice: Path | None, *, relax: bool) -> Problem:
    """Read a problem in MSPFormat; the bounds on what follows a node are still to be found."""
    found = read_lattice(lattice or lattice_of(path))
    file = _File(read_json(path), found, relax)
    name = file.root.key("name").text() if file.root.has("name") else path.name.removesuffix(PROBLEM)
    bound = {"upper_bound": 0.0} if file.maximise else {"lower_bound": 0.0}
    return build(found.graph, file.fill, **bound, name=name, check=False)


@frozen(eq=False)
class _Variable:
    name: str
    stage: int
    cost: Json
    lower: Json
    upper: Json


@frozen(eq=False)
class _Term:
    name: str
    lag: int
    coefficient: Json


@frozen(eq=False)
class _Row:
    stage: int
    kind: str
    terms: tuple[_Term, ...]
    rhs: Json
    name: str


class _File:
    """What a problem file holds, by stage, and how a node of the lattice is filled with it."""

    def __init__(self, root: Json, lattice: Lattice, relax: bool) -> None:
        self.root, self._lattice = root, lattice
        self.maximise = root.key("maximize").flag()
        stages = 1 + max(node.stage for node in lattice.nodes.values())
        self._variables: list[dict[str, _Variable]] = [{} for _ in range(stages)]
        self._rows: list[list[_Row]] = [[] for _ in range(stages)]
        for value in root.key("variables").list():
            self._take_variable(value, relax)
        for value in root.key("constraints").list():
            row = self._row(value)
            self._rows[row.stage].append(row)
        #: How many stages back each variable is still needed: it is a state, and handed on from lag to lag.
        self._lags: dict[str, int] = {}
        for rows in self._rows:
            for row in rows:
                for term in row.terms:
                    if term.lag:
                        self._lags[term.name] = max(term.lag, self._lags.get(term.name, 0))
        self._used = [self._names_used(stage) for stage in range(stages)]

    def fill(self, sp: Stage, key: str) -> None:
        """Write the variables and rows of a node."""
        node = self._lattice.nodes[key]
        data = self._data(sp, node)
        states = {
            name: self._states(sp, node.stage, name, lags, data) for name, lags in sorted(self._lags.items())
        }
        columns: dict[str, Expression] = {}
        for name, variable in self._variables[node.stage].items():
            if name in states:
                columns[name] = states[name][0].out
            else:
                lower, upper = (_amount(bound, data) for bound in (variable.lower, variable.upper))
                columns[name] = sp.variable(name, lower=lower, upper=upper)
        cost: Operand = 0.0
        for name, variable in self._variables[node.stage].items():
            cost = columns[name] * _amount(variable.cost, data) + cost
        (sp.maximise if self.maximise else sp.minimise)(cost)
        named = {"", *(row.name for row in sp.rows)}
        for row in self._rows[node.stage]:
            left: Operand = 0.0
            for term in row.terms:
                column = columns[term.name] if term.lag == 0 else states[term.name][term.lag - 1].in_
                left = column * _amount(term.coefficient, data) + left
            right = _amount(row.rhs, data)
            assert isinstance(left, Expression)  # a row has terms
            made = (
                left == right if row.kind == "EQ" else left <= right if row.kind == "LEQ" else left >= right
            )
            sp.add(made, row.name if row.name not in named else None)
            named.add(row.name)

    def _states(
        self, sp: Stage, stage: int, name: str, lags: int, data: Mapping[str, Operand]
    ) -> list[StateVariable]:
        """The state of a variable and, behind it, those that remember its earlier values."""
        variable = self._variables[stage].get(name)
        # Where a variable does not exist, nothing refers to it: it hands on zero.
        lower, upper = (
            (_amount(variable.lower, data), _amount(variable.upper, data)) if variable else (0.0, 0.0)
        )
        found = [sp.state(name, initial=0.0, lower=lower, upper=upper)]
        for lag in range(1, lags):
            state = sp.state(f"{name}[-{lag}]", initial=0.0, lower=-math.inf, upper=math.inf)
            sp.add(state.out == found[-1].in_, f"{name}[-{lag}]")
            found.append(state)
        return found

    def _data(self, sp: Stage, node: LatticeNode) -> Mapping[str, Operand]:
        """The node's data that its rows and variables use: numbers, or noise where there are several outcomes."""
        names = sorted(self._used[node.stage])
        if len(node.outcomes) == 1 or not names:
            values = node.outcomes[0].values
            return {name: values.get(name, 0.0) for name in names}
        rows = [{name: outcome.values.get(name, 0.0) for name in names} for outcome in node.outcomes]
        noise = sp.joint_noise(rows, [outcome.probability for outcome in node.outcomes])
        return {name: noise[name] for name in names}

    def _take_variable(self, value: Json, relax: bool) -> None:
        name, stage = value.key("name").text(), self._stage(value)
        kind = value.key("type").choice(("CONTINUOUS", "BINARY", "INTEGER"))
        if kind != "CONTINUOUS" and not relax:
            raise ProblemError(
                f"{value.file}: {value.place}: variable {name!r}: expected CONTINUOUS, got {kind}: integer decisions "
                "are not supported. Read it with relax=True to have them continuous."
            )
        if name in self._variables[stage]:
            value.fail(f"one variable {name!r} in stage {stage}")
        self._variables[stage][name] = _Variable(
            name, stage, value.key("obj"), value.key("lb"), value.key("ub")
        )

    def _row(self, value: Json) -> _Row:
        given = [
            (term, term.key("name").text(), self._stage(term), term.key("coefficient"))
            for term in value.key("lhs").list()
        ]
        if not given:
            value.key("lhs").fail("at least one variable")
        stage = max(at for _, _, at, _ in given)
        for term, name, at, _ in given:
            if name not in self._variables[at]:
                term.fail(f"a variable of stage {at}")
        terms = tuple(_Term(name, stage - at, coefficient) for _, name, at, coefficient in given)
        label = value.key("name").text() if value.has("name") else ""
        return _Row(stage, value.key("type").choice(("EQ", "LEQ", "GEQ")), terms, value.key("rhs"), label)

    def _stage(self, value: Json) -> int:
        stage = value.key("stage").count()
        if stage >= len(self._variables):
            value.key("stage").fail(f"a stage of the lattice, 0 to {len(self._variables) - 1}")
        return stage

    def _names_used(self, stage: int) -> set[str]:
        found: set[str] = set()
        for variable in self._variables[stage].values():
            for value in (variable.cost, variable.lower, variable.upper):
                found.update(self._names_in(value))
        for row in self._rows[stage]:
            for value in (row.rhs, *(term.coefficient for term in row.terms)):
                found.update(self._names_in(value))
        return found

    def _names_in(self, value: Json) -> Iterable[str]:
        for name in _names(value):
            if name not in self._lattice.names:
                value.fail(f"data of the lattice, which has no {name!r}")
            yield name


def _names(value: Json) -> Iterable[str]:
    if isinstance(value.value, str) and value.value not in _INFINITE:
        yield value.value
    elif isinstance(value.value, list):
        for each in value.list():
            yield from _names(each)
    elif isinstance(value.value, dict):
        for _, each in value.items():
            yield from _names(each)


def _amount(value: Json, data: Mapping[str, Operand]) -> Operand:
    """What a number of the file is at a node: a number, or noise."""
    if isinstance(value.value, str):
        return _INFINITE[value.value] if value.value in _INFINITE else data[value.value]
    if not isinstance(value.value, list):
        return value.number()
    parts = value.list()
    if len(parts) == 1 and not isinstance(parts[0].value, dict):
        return _amount(parts[0], data)
    if not parts:
        value.fail("a number, a name, or ADD and MUL")
    result: Operand | None = None
    for part in parts:
        steps = list(part.items())
        if len(steps) != 1 or steps[0][0] not in ("ADD", "MUL"):
            part.fail("one of {'ADD': …} and {'MUL': …}")
        operation, operand = steps[0][0], _amount(steps[0][1], data)
        if operation == "ADD":
            result = operand if result is None else result + operand
        else:
            result = operand if result is None else result * operand
    assert result is not None
    return result
