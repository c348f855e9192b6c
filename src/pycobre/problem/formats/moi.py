"""Functions and sets of MathOptFormat, as far as they are linear once the noise is known.

A function is read with the node's variables and noise in place of names, so that a product of a variable and a random
one becomes a random coefficient. What stays quadratic, and cones and integers, are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pycobre.errors import ProblemError
from pycobre.problem.expression import Expression, Operand
from pycobre.problem.formats.json_values import Json
from pycobre.problem.stage import Stage

__all__ = ["add_constraint", "expression_of", "interval_of", "variable_bounds"]

Columns = Mapping[str, Expression]

_INTEGER = ("Integer", "ZeroOne")
_LINES = {"Nonnegatives": (0.0, math.inf), "Nonpositives": (-math.inf, 0.0), "Zeros": (0.0, 0.0)}
_SCALAR = ("Variable", "SingleVariable", "ScalarAffineFunction", "ScalarQuadraticFunction")


def expression_of(function: Json, columns: Columns) -> Operand:
    """A scalar function."""
    kind = function.key("type").choice(_SCALAR)
    if kind in ("Variable", "SingleVariable"):
        return _column(function.key("name" if kind == "Variable" else "variable"), columns)
    if kind == "ScalarAffineFunction":
        return _affine(function.key("terms"), function.key("constant").number(), columns)
    total = _affine(function.key("affine_terms"), function.key("constant").number(), columns)
    for term in function.key("quadratic_terms").list():
        total = _product(term, columns) + total
    return total


def interval_of(given: Json, *, relax: bool) -> tuple[float, float] | None:
    """The least and the largest value of a scalar set; None where there is no limit."""
    kind = given.key("type").choice(("EqualTo", "LessThan", "GreaterThan", "Interval", *_INTEGER))
    if kind == "EqualTo":
        value = given.key("value").number()
        return value, value
    if kind == "LessThan":
        return -math.inf, given.key("upper").number()
    if kind == "GreaterThan":
        return given.key("lower").number(), math.inf
    if kind == "Interval":
        return given.key("lower").number(), given.key("upper").number()
    if not relax:
        raise ProblemError(
            f"{given.file}: {given.place}: expected continuous variables, got {kind}: integer decisions are not "
            "supported. Read it with relax=True to have them continuous."
        )
    return (0.0, 1.0) if kind == "ZeroOne" else None


def variable_bounds(constraints: Json, *, relax: bool) -> tuple[dict[str, tuple[float, float]], list[Json]]:
    """The bounds that constraints on single variables give, by variable, and the other constraints."""
    bounds: dict[str, tuple[float, float]] = {}
    others = []
    for constraint in constraints.list():
        function = constraint.key("function")
        kind = function.key("type").text()
        if kind not in ("Variable", "SingleVariable"):
            others.append(constraint)
            continue
        interval = interval_of(constraint.key("set"), relax=relax)
        if interval is not None:
            name = function.key("name" if kind == "Variable" else "variable").text()
            low, high = bounds.get(name, (-math.inf, math.inf))
            bounds[name] = max(low, interval[0]), min(high, interval[1])
    return bounds, others


def add_constraint(sp: Stage, constraint: Json, columns: Columns, *, relax: bool) -> None:
    """Add a constraint that is more than the bounds of a variable, as rows."""
    function = constraint.key("function")
    name = constraint.key("name").text() if constraint.has("name") else ""
    kind = function.key("type").text()
    if kind in ("VectorOfVariables", "VectorAffineFunction"):
        low, high = _line(constraint.key("set"))
        for position, row in enumerate(_components(function, columns)):
            _add(sp, row, low, high, f"{name}[{position + 1}]" if name else "", constraint)
        return
    interval = interval_of(constraint.key("set"), relax=relax)
    if interval is not None:
        _add(sp, expression_of(function, columns), *interval, name, constraint)


def _add(sp: Stage, row: Operand, low: float, high: float, name: str, where: Json) -> None:
    if not isinstance(row, Expression) or not row.terms:
        where.key("function").fail("at least one variable")
    if low == high:
        sp.add(row == low, name or None)
    elif math.isinf(low):
        sp.add(row <= high, name or None)
    elif math.isinf(high):
        sp.add(row >= low, name or None)
    else:
        sp.between(low, row, high, name or None)


def _line(given: Json) -> tuple[float, float]:
    return _LINES[given.key("type").choice(tuple(_LINES))]


def _components(function: Json, columns: Columns) -> list[Operand]:
    if function.key("type").text() == "VectorOfVariables":
        return [_column(name, columns) for name in function.key("variables").list()]
    rows: list[Operand] = [constant.number() for constant in function.key("constants").list()]
    for term in function.key("terms").list():
        position = term.key("output_index").count() - 1
        if not 0 <= position < len(rows):
            term.key("output_index").fail(f"a row from 1 to {len(rows)}")
        scalar = term.key("scalar_term")
        rows[position] = (
            _column(scalar.key("variable"), columns) * scalar.key("coefficient").number() + rows[position]
        )
    return rows


def _affine(terms: Json, constant: float, columns: Columns) -> Operand:
    total: Operand = constant
    for term in terms.list():
        total = _column(term.key("variable"), columns) * term.key("coefficient").number() + total
    return total


def _product(term: Json, columns: Columns) -> Expression:
    """`coefficient · a · b`; of a square it is half, as the format has it."""
    first, second = term.key("variable_1"), term.key("variable_2")
    left, right = _column(first, columns), _column(second, columns)
    if left.terms and right.terms:
        term.fail("a product with a random variable: the problem has to be linear once the noise is known")
    coefficient = term.key("coefficient").number()
    return left * right * (coefficient / 2.0 if first.text() == second.text() else coefficient)


def _column(name: Json, columns: Columns) -> Expression:
    found = columns.get(name.text())
    if found is None:
        name.fail("a variable of the subproblem")
    return found
