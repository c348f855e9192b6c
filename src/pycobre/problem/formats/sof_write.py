"""A problem as StochOptFormat 1.0: every node with a subproblem, every place of its noise a random variable.

A discount of what follows is written as a smaller probability of going on, which costs the same on average.
"""

from __future__ import annotations

import json
import math
from typing import Any

from pycobre.problem.api import ROOT, Node, Problem, Sense
from pycobre.problem.formats.plain import column_names, of_template, row_names
from pycobre.solver.api import Target

__all__ = ["sof_document"]

_PROBLEM_OF_MOF = {"major": 1, "minor": 2}
Term = dict[str, Any]


def sof_document(problem: Problem) -> bytes:
    """The file's bytes."""
    nodes: dict[str, Any] = {}
    for index, node in enumerate(problem.nodes):
        entry: dict[str, Any] = {"subproblem": node.name}
        following = _successors(problem, index)
        if following:
            entry["successors"] = following
        if len(node.noise.plan):
            entry["realizations"] = [
                {"probability": p, "support": {f"w[{k}]": value for k, value in enumerate(row)}}
                for p, row in zip(node.noise.probability.tolist(), node.noise.values.tolist(), strict=True)
            ]
        nodes[node.name] = entry
    document = {
        "version": {"major": 1, "minor": 0},
        "name": problem.name,
        "root": {
            "state_variables": {state.name: state.initial for state in problem.states},
            "successors": _successors(problem, ROOT),
        },
        "nodes": nodes,
        "subproblems": {node.name: _Subproblem(problem, node).document() for node in problem.nodes},
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode()


def _successors(problem: Problem, index: int) -> dict[str, float]:
    discount = 1.0 if index == ROOT else problem.nodes[index].discount
    targets, probability = problem.shape.successors(index)
    return {
        problem.nodes[j].name: p * discount
        for j, p in zip(targets.tolist(), probability.tolist(), strict=True)
    }


class _Subproblem:
    """One node: columns become variables, bounds and rows constraints, places of the noise random variables."""

    def __init__(self, problem: Problem, node: Node) -> None:
        self._problem, self._node = problem, node
        width = len(node.noise.plan)
        self._random = [f"w[{k}]" for k in range(width)]
        self._names = column_names(node, set(self._random))
        self._lp = of_template(node.template, problem.sense.sign)
        plan = node.noise.plan
        self._places = {
            (Target(kind), row, col): k
            for k, (kind, row, col) in enumerate(
                zip(plan.kind.tolist(), plan.row.tolist(), plan.col.tolist(), strict=True)
            )
        }
        self._constraints: list[dict[str, Any]] = []

    def document(self) -> dict[str, Any]:
        """The subproblem with its states and random variables."""
        states, extra = self._states()
        incoming = set(self._node.state_in.tolist()) - set(self._node.state_out.tolist())
        for column in range(len(self._names)):
            if column not in incoming:  # what comes in is given, whatever its bounds
                self._bound(column)
        for row, name in enumerate(row_names(self._node)):
            self._row(row, name)
        found: dict[str, Any] = {"state_variables": states}
        if self._random:
            found["random_variables"] = self._random
        found["subproblem"] = {
            "version": _PROBLEM_OF_MOF,
            "variables": [{"name": name} for name in (*self._names, *extra, *self._random)],
            "objective": {
                "sense": "max" if self._problem.sense is Sense.MAXIMISE else "min",
                "function": self._objective(),
            },
            "constraints": self._constraints,
        }
        return found

    def _states(self) -> tuple[dict[str, dict[str, str]], list[str]]:
        """The columns of every state; one that is merely carried on gets a second variable, equal to the first."""
        states, extra = {}, []
        pairs = zip(self._node.state_in.tolist(), self._node.state_out.tolist(), strict=True)
        for state, (incoming, outgoing) in zip(self._problem.states, pairs, strict=True):
            out = self._names[outgoing]
            if incoming == outgoing:
                out = f"{out} (out)"
                extra.append(out)
                self._add([_term(out, 1.0), _term(self._names[incoming], -1.0)], [], 0.0, 0.0, "")
            states[state.name] = {"in": self._names[incoming], "out": out}
        return states, extra

    def _bound(self, column: int) -> None:
        sides = (
            (self._lp.lower[column], math.inf, Target.COL_LOWER),
            (-math.inf, self._lp.upper[column], Target.COL_UPPER),
        )
        for low, high, target in sides:
            place = self._places.get((target, -1, column))
            if place is not None:
                terms = [_term(self._names[column], 1.0), _term(self._random[place], -1.0)]
                below = target is Target.COL_UPPER
                self._add(terms, [], -math.inf if below else 0.0, 0.0 if below else math.inf, "")
            elif math.isfinite(low) or math.isfinite(high):
                self._constraints.append(
                    {"function": {"type": "Variable", "name": self._names[column]}, "set": _set(low, high)}
                )

    def _row(self, row: int, name: str) -> None:
        low, entries, high = self._lp.rows[row]
        affine, products = [], []
        for column, value in entries.items():
            place = self._places.get((Target.COEFFICIENT, row, column))
            if place is None:
                affine.append(_term(self._names[column], value))
            else:
                products.append(_product(self._random[place], self._names[column], 1.0))
        shared = self._places.get((Target.RHS, row, -1))
        lower, upper = (
            self._places.get((side, row, -1), shared) for side in (Target.ROW_LOWER, Target.ROW_UPPER)
        )
        if lower is None and upper is None:
            self._add(affine, products, low, high, name)
            return
        equal = shared is not None and math.isfinite(low) and math.isfinite(high)
        if equal:
            self._add([*affine, _term(self._random[shared or 0], -1.0)], products, 0.0, 0.0, name)
            return
        if math.isfinite(low) or (lower is not None and lower != shared):
            terms, at = (
                ([*affine, _term(self._random[lower], -1.0)], 0.0) if lower is not None else (affine, low)
            )
            self._add(terms, products, at, math.inf, name)
        if math.isfinite(high) or (upper is not None and upper != shared):
            terms, at = (
                ([*affine, _term(self._random[upper], -1.0)], 0.0) if upper is not None else (affine, high)
            )
            self._add(terms, products, -math.inf, at, f"{name} (upper)" if math.isfinite(low) else name)

    def _objective(self) -> dict[str, Any]:
        sign = float(self._problem.sense.sign)
        affine, products = [], []
        for column, value in enumerate(self._lp.cost):
            place = self._places.get((Target.COST, -1, column))
            if place is not None:
                products.append(_product(self._random[place], self._names[column], sign))
            elif value:
                affine.append(_term(self._names[column], value))
        place = self._places.get((Target.OFFSET, -1, -1))
        if place is not None:
            affine.append(_term(self._random[place], sign))
        return _function(affine, products, self._lp.offset if place is None else 0.0)

    def _add(self, affine: list[Term], products: list[Term], low: float, high: float, name: str) -> None:
        if math.isinf(low) and math.isinf(high):
            return
        constraint: dict[str, Any] = {"function": _function(affine, products, 0.0), "set": _set(low, high)}
        self._constraints.append({"name": name, **constraint} if name else constraint)


def _term(variable: str, coefficient: float) -> Term:
    return {"variable": variable, "coefficient": coefficient}


def _product(first: str, second: str, coefficient: float) -> Term:
    return {"variable_1": first, "variable_2": second, "coefficient": coefficient}


def _function(affine: list[Term], products: list[Term], constant: float) -> dict[str, Any]:
    if not products:
        return {"type": "ScalarAffineFunction", "terms": affine, "constant": constant}
    return {
        "type": "ScalarQuadraticFunction",
        "affine_terms": affine,
        "quadratic_terms": products,
        "constant": constant,
    }


def _set(low: float, high: float) -> dict[str, Any]:
    if low == high:
        return {"type": "EqualTo", "value": low}
    if math.isinf(low):
        return {"type": "LessThan", "upper": high}
    if math.isinf(high):
        return {"type": "GreaterThan", "lower": low}
    return {"type": "Interval", "lower": low, "upper": high}
