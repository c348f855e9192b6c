"""A problem as MSPFormat: the LPs of a stage share their rows; what differs between openings is data of the lattice.

Stage 0 holds the initial states and decides nothing; the problem's own stages follow it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.api import ROOT, Node, Problem
from pycobre.problem.formats.plain import PlainLp, column_names, plain_lp, row_names

__all__ = ["msp_documents"]

TOLERANCE = 1e-9


@frozen(eq=False)
class _Vertex:
    """One node of the problem in one opening: one node of the lattice."""

    key: str
    node: int
    lp: PlainLp
    probability: float  #: of the opening
    data: dict[str, float]


def msp_documents(problem: Problem) -> tuple[bytes, bytes]:
    """The bytes of the problem file and of the lattice file."""
    stages = _stages(problem)
    writer = _Writer(problem)
    vertices: list[list[_Vertex]] = []
    count = 1
    for stage, members in enumerate(stages, start=1):
        found = []
        for i in members:
            noise = problem.nodes[i].noise
            for opening, probability in enumerate(noise.probability.tolist()):
                if probability > 0.0:
                    lp = plain_lp(problem, problem.nodes[i], opening)
                    found.append(_Vertex(str(count), i, lp, probability, {}))
                    count += 1
        writer.write_stage(stage, problem.nodes[members[0]], found)
        vertices.append(found)
    lattice: dict[str, Any] = {
        "0": {"stage": 0, "state": {}, "successors": _leading(problem, ROOT, vertices[0])}
    }
    for stage, found in enumerate(vertices, start=1):
        following = vertices[stage] if stage < len(vertices) else []
        for vertex in found:
            successors = _leading(problem, vertex.node, following) if following else {}
            lattice[vertex.key] = {"stage": stage, "state": vertex.data, "successors": successors}
    return _bytes(writer.document()), _bytes(lattice)


def _bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode()


def _stages(problem: Problem) -> list[list[int]]:
    """The nodes by their distance from the root, which has to be one on every path."""
    stages, current = [], list(problem.shape.successors(ROOT)[0].tolist())
    seen: set[int] = set()
    while current:
        if seen & set(current):
            raise _unsaid(problem, "every path to take as many stages to a node, and no cycles")
        seen |= set(current)
        stages.append(current)
        ends = [i for i in current if not problem.shape.successors(i)[0].size]
        going_on = [i for i in current if i not in ends]
        if ends and going_on:
            raise _unsaid(problem, "paths that end in the same stage")
        for i in going_on:
            if abs(math.fsum(problem.shape.successors(i)[1].tolist()) - 1.0) > TOLERANCE:
                raise _unsaid(problem, "paths that go on with probability 1")
            if problem.nodes[i].discount != 1.0:
                raise _unsaid(problem, "no discounts")
        current = list(dict.fromkeys(j for i in current for j in problem.shape.successors(i)[0].tolist()))
    return stages


def _leading(problem: Problem, source: int, following: list[_Vertex]) -> dict[str, float]:
    targets, probability = problem.shape.successors(source)
    to = dict(zip(targets.tolist(), probability.tolist(), strict=True))
    return {vertex.key: to[vertex.node] * vertex.probability for vertex in following if vertex.node in to}


class _Writer:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._states = [state.name for state in problem.states]
        self._constraints: list[dict[str, Any]] = []
        self._variables = [_variable(s.name, 0, 0.0, s.initial, s.initial) for s in problem.states]

    def document(self) -> dict[str, Any]:
        """The problem file."""
        return {
            "version": "MSMLP 1.0",
            "name": self._problem.name,
            "maximize": self._problem.sense.sign < 0,
            "variables": self._variables,
            "constraints": self._constraints,
        }

    def write_stage(self, stage: int, node: Node, vertices: list[_Vertex]) -> None:
        """Write the variables and rows of a stage, and into the vertices what differs between them."""
        self._check(stage, node, vertices)
        incoming, outgoing = node.state_in.tolist(), node.state_out.tolist()
        names = column_names(node, set(self._states))
        place: dict[int, tuple[str, int]] = {j: (name, stage) for j, name in enumerate(names)}
        place |= {j: (self._states[s], stage) for s, j in enumerate(outgoing)}
        place |= {j: (self._states[s], stage - 1) for s, j in enumerate(incoming) if j not in outgoing}
        for column, (name, at) in place.items():
            cost = _number(vertices, f"cost {name}", lambda lp, j=column: lp.cost[j])  # type: ignore[misc]
            if at == stage:
                lower = _number(vertices, f"lower {name}", lambda lp, j=column: lp.lower[j])  # type: ignore[misc]
                upper = _number(vertices, f"upper {name}", lambda lp, j=column: lp.upper[j])  # type: ignore[misc]
                self._variables.append(
                    {**_variable(name, stage, 0.0, 0.0, 0.0), "obj": cost, "lb": lower, "ub": upper}
                )
            elif cost != [0.0]:  # of what came in: of a variable here that equals it
                copy = f"{name} (in)"
                self._variables.append({**_variable(copy, stage, 0.0, -math.inf, math.inf), "obj": cost})
                self._equal((copy, stage), (name, at))
        for s, (here, there) in enumerate(zip(incoming, outgoing, strict=True)):
            if here == there:
                self._equal((self._states[s], stage), (self._states[s], stage - 1))
        offset = _number(vertices, "offset", lambda lp: lp.offset)
        if offset != [0.0]:
            self._variables.append({**_variable("constant", stage, 0.0, 1.0, 1.0), "obj": offset})
        for row, name in enumerate(row_names(node)):
            self._row(row, name, place, vertices)

    def _row(self, row: int, name: str, place: dict[int, tuple[str, int]], vertices: list[_Vertex]) -> None:
        columns = sorted({column for vertex in vertices for column in vertex.lp.rows[row][1]})
        left = []
        for column in columns:
            variable, at = place[column]
            coefficient = _number(
                vertices,
                f"{name} {variable}",
                lambda lp, j=column: lp.rows[row][1].get(j, 0.0),  # type: ignore[misc]
            )
            left.append({"name": variable, "stage": at, "coefficient": coefficient})
        sides = [(vertex.lp.rows[row][0], vertex.lp.rows[row][2]) for vertex in vertices]
        if all(low == high for low, high in sides):
            right = _number(vertices, f"{name} rhs", lambda lp: lp.rows[row][0])
            self._constraints.append({"name": name, "type": "EQ", "lhs": left, "rhs": right})
            return
        self._side(f"{name} (from)", "GEQ", left, vertices, lambda lp: lp.rows[row][0])
        self._side(f"{name} (to)", "LEQ", left, vertices, lambda lp: lp.rows[row][2])

    def _side(
        self, name: str, kind: str, left: list[Any], vertices: list[_Vertex], side: Callable[[PlainLp], float]
    ) -> None:
        finite = [math.isfinite(side(vertex.lp)) for vertex in vertices]
        if any(finite):
            if not all(finite):
                raise _unsaid(self._problem, f"the row {name!r} to have a side in every opening, or in none")
            right = _number(vertices, f"{name} side", side)
            self._constraints.append({"name": name, "type": kind, "lhs": left, "rhs": right})

    def _equal(self, first: tuple[str, int], second: tuple[str, int]) -> None:
        left = [
            {"name": name, "stage": stage, "coefficient": [sign]}
            for (name, stage), sign in ((first, 1.0), (second, -1.0))
        ]
        self._constraints.append({"name": "", "type": "EQ", "lhs": left, "rhs": [0.0]})

    def _check(self, stage: int, node: Node, vertices: list[_Vertex]) -> None:
        for vertex in vertices:
            other = self._problem.nodes[vertex.node]
            same = (
                other.template.num_rows == node.template.num_rows
                and other.template.num_cols == node.template.num_cols
                and other.state_in.tolist() == node.state_in.tolist()
                and other.state_out.tolist() == node.state_out.tolist()
            )
            if not same:
                raise _unsaid(self._problem, f"the same rows and columns at all nodes of stage {stage}")


def _number(vertices: list[_Vertex], name: str, value: Callable[[PlainLp], float]) -> list[Any]:
    """A number of the file: itself where all vertices agree, else a datum that each of them knows."""
    values = [value(vertex.lp) + 0.0 for vertex in vertices]
    if all(each == values[0] for each in values):
        return [_finite(values[0])]
    for vertex, each in zip(vertices, values, strict=True):
        if not math.isfinite(each):
            raise ProblemError(f"{name}: expected finite data in MSPFormat, got {each}.")
        vertex.data[name] = each
    return [name]


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"


def _variable(name: str, stage: int, cost: float, lower: float, upper: float) -> dict[str, Any]:
    return {
        "name": name,
        "stage": stage,
        "obj": [cost],
        "lb": [_finite(lower)],
        "ub": [_finite(upper)],
        "type": "CONTINUOUS",
    }


def _unsaid(problem: Problem, expected: str) -> ProblemError:
    return ProblemError(
        f"problem {problem.name!r}: MSPFormat: expected {expected}, got another graph or noise. "
        "Write X.sof.json instead."
    )
