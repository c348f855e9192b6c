"""Expressions mean what the same arithmetic on numbers would mean, in every opening."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycobre.errors import ProblemError
from pycobre.problem.expression import Amount, Constraint, Expression
from pycobre.problem.stage import Stage

SUPPORTS = ([1.0, -2.0], [0.5, 3.0, 4.0])


class World:
    """The same names as expressions and, for one opening and one point, as numbers."""

    def __init__(self) -> None:
        self.sp = Stage("n")
        self.variables = self.sp.variables("x y")
        self.noises = [self.sp.noise(support) for support in SUPPORTS]

    def evaluate(self, expression: Expression, point: dict[int, float]) -> np.ndarray:
        """Return the value in every opening, shaped like the product of the supports."""
        sizes = [len(support) for support in SUPPORTS]
        total = expression.constant.over(sizes).copy()
        for column, amount in expression.terms.items():
            total += amount.over(sizes) * point[column]
        return total.reshape(sizes)


LEAVES = ["x", "y", "v", "w", "3", "-0.5"]
Tree = Any
trees: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "/", "neg"]), inner, inner),
    max_leaves=8,
)
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "neg": lambda a, b: -a,
}


def grow(tree: Tree, leaves: dict[str, Any]) -> Any:
    if isinstance(tree, str):
        return leaves[tree]
    return OPERATIONS[tree[0]](grow(tree[1], leaves), grow(tree[2], leaves))


@given(trees)
def test_arithmetic_agrees_with_numbers(tree: Tree) -> None:
    world = World()
    x, y = world.variables
    v, w = world.noises
    try:
        built = grow(tree, {"x": x, "y": y, "v": v, "w": w, "3": 3, "-0.5": np.float64(-0.5)})
    except (ProblemError, ZeroDivisionError, RuntimeWarning):
        return  # not linear (see the tests below), or numbers divided by zero
    grid = np.meshgrid(*SUPPORTS, indexing="ij")
    numbers = {"x": 7.0, "y": -3.0, "v": grid[0], "w": grid[1], "3": 3.0, "-0.5": -0.5}
    expected = np.broadcast_to(grow(tree, numbers), (2, 3))
    if not isinstance(built, Expression):
        built = x * 0 + built
    np.testing.assert_allclose(world.evaluate(built, {0: 7.0, 1: -3.0}), expected, rtol=1e-12, atol=1e-12)


def test_products_of_variables_are_refused() -> None:
    x, y = World().variables
    with pytest.raises(ProblemError, match="product of two variables: expected a linear expression"):
        x * y
    with pytest.raises(ProblemError, match="division by a variable: expected a linear expression"):
        1.0 / y


def test_division_by_noise_that_may_be_zero_is_refused() -> None:
    sp = Stage("n")
    with pytest.raises(
        ProblemError, match="division by zero: expected a divisor that is not 0 in any opening"
    ):
        sp.variable("x") / sp.noise([1.0, 0.0])


def test_chained_comparisons_are_refused_with_the_way_out() -> None:
    x, _ = World().variables
    with pytest.raises(ProblemError, match=r"a constraint has no truth value.*Use `sp\.between\(a, x, b\)`"):
        bool(1.0 <= x <= 2.0)


def test_variables_of_two_nodes_do_not_mix() -> None:
    with pytest.raises(ProblemError, match="expected variables and noise of one node, got them of two"):
        World().variables[0] + World().variables[1]


def test_foreign_types_are_refused() -> None:
    with pytest.raises(ProblemError, match="expected a number, a variable or noise, got str"):
        World().variables[0] + "one"  # type: ignore[operator]
    with pytest.raises(ProblemError, match=r"got ndarray\. Combine arrays element by element"):
        np.ones(2) * World().variables[0]


def test_comparisons_of_any_side_give_constraints() -> None:
    x, _ = World().variables
    for constraint, relation in (
        (x <= 3, "<="),
        (x >= 3, ">="),
        (x >= 3, ">="),
        (x == 3, "=="),
        (np.float64(3.0) >= x, "<="),
    ):
        assert isinstance(constraint, Constraint)
        assert constraint.relation == relation
    assert repr(x) == "<expression of 1 variable>"


def test_numpy_sums_work() -> None:
    world = World()
    total = np.array([2.0, 3.0]) @ np.array(world.variables, dtype=object)
    assert world.evaluate(total, {0: 1.0, 1: 10.0})[0, 0] == 32.0
    assert +total is total


def test_an_amount_broadcasts_over_sources_in_order() -> None:
    amount = Amount((1,), np.array([10.0, 20.0]))
    assert amount.over([3, 2]).tolist() == [10.0, 20.0] * 3
    assert Amount((0,), np.array([1.0, 2.0, 3.0])).over([3, 2]).tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
