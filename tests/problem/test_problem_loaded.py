"""Nodes from highspy models and from arrays are the same problems as those written with expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import highspy
import numpy as np
import pytest

from pycobre.errors import ProblemError
from pycobre.problem import Graph, LoadedLp, Stage, build, load_lp, solve_extensive_form, to_highs
from pycobre.solver.api import LpTemplate

HYDRO_THERMAL = 25000.0 / 3.0


def test_highspy_variables_with_noise_as_a_fixed_column() -> None:
    def stage(sp: Stage, t: Any) -> None:
        h = highspy.Highs()
        h.silent()
        before = h.addVariable(name="before")
        after = h.addVariable(0.0, 200.0, name="after")
        thermal, turbined, spill, inflow = (
            h.addVariable(name=n) for n in ("thermal", "turb", "spill", "inflow")
        )
        h.addConstr(after == before - turbined - spill + inflow)
        h.addConstr(turbined + thermal == 150.0, name="demand")
        h.changeColCost(thermal.index, 50.0 * t)
        lp = load_lp(sp, h, states={"volume": (before, after)}, initial={"volume": 200.0})
        lp.fix(inflow, sp.noise([0.0, 50.0, 100.0]))

    problem = build(Graph.linear(3), stage, lower_bound=0.0)
    assert problem.nodes[0].template.row_names == ("_r0", "demand")
    assert solve_extensive_form(problem) == pytest.approx(HYDRO_THERMAL, rel=1e-9)


def arrays(t: int) -> LpTemplate:
    """Columns before, after, thermal, turbined, spill; a balance and a demand of 150."""
    inf = np.inf
    return LpTemplate(
        cost=[0.0, 0.0, 50.0 * t, 0.0, 0.0],
        col_lower=[-inf, 0.0, 0.0, 0.0, 0.0],
        col_upper=[inf, 200.0, inf, inf, inf],
        row_lower=[0.0, 150.0],
        row_upper=[0.0, 150.0],
        starts=[0, 1, 2, 3, 5, 6],
        rows=[0, 0, 1, 0, 1, 0],
        values=[-1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        col_names=("before", "after", "thermal", "turbined", "spill"),
        row_names=("balance", "demand"),
    )


def test_arrays_with_noise_in_a_right_hand_side() -> None:
    def stage(sp: Stage, t: Any) -> None:
        lp = load_lp(sp, arrays(t), states={"volume": ("before", 1)}, initial={"volume": 200.0})
        lp.set_rhs("balance", sp.noise([0.0, 50.0, 100.0]))

    problem = build(Graph.linear(3), stage, lower_bound=0.0)
    assert solve_extensive_form(problem) == pytest.approx(HYDRO_THERMAL, rel=1e-9)


def test_a_state_may_be_carried_in_one_column() -> None:
    def stage(sp: Stage, t: Any) -> None:
        lp = LpTemplate([1.0], [0.0], [9.0], [], [], [0, 0], [], [])
        load_lp(sp, lp, states={"x": (0, 0)}, initial={"x": 3.0})

    assert solve_extensive_form(build(Graph.linear(2), stage, lower_bound=0.0)) == pytest.approx(6.0)


def test_a_model_brings_its_sense_its_constant_and_a_row_wise_matrix() -> None:
    h = highspy.Highs()
    h.silent()
    x, y = h.addVariable(0.0, 2.0, name="x"), h.addVariable(name="y")
    h.addConstr(x + y <= 3.0)
    h.addConstr(y <= 2.5, name="top")
    h.setMaximize()
    h.changeColCost(x.index, 1.0)
    h.changeColCost(y.index, 2.0)
    h.changeObjectiveOffset(10.0)
    problem = build(Graph.linear(1), lambda sp, t: load_lp(sp, h, states={}) and None)
    assert problem.as_seen(1.0) == -1.0
    assert solve_extensive_form(problem) == pytest.approx(15.5)


def test_every_place_can_be_set() -> None:
    def by_hand(w: float) -> float:
        # max (1 + w) u + 3 v   with u ≤ 2w, v ≥ −w, w u + v ≤ 4, −1 ≤ v ≤ 1 + w
        h = highspy.Highs()
        h.silent()
        u, v = h.addVariable(0.0, 2.0 * w), h.addVariable(-w, highspy.kHighsInf)
        h.addConstr(w * u + v <= 4.0)
        h.addConstr(-1.0 <= v <= 1.0 + w)
        h.maximize((1.0 + w) * u + 3.0 * v)
        return float(h.getObjectiveValue())

    def stage(sp: Stage, t: Any) -> None:
        lp = LpTemplate(
            [0.0, -3.0], [0.0, 0.0], [9.0, np.inf], [-np.inf, 0.0], [0.0, 1.0], [0, 0, 2], [0, 1], [1.0, 1.0]
        )  # fmt: skip
        w = sp.noise([0.5, 1.5], [0.25, 0.75])
        loaded = load_lp(sp, lp, states={})
        loaded.set_cost(0, -1.0 - w)
        loaded.set_upper(0, 2.0 * w)
        loaded.set_lower(1, -w)
        loaded.set_coefficient(0, 0, w)
        loaded.set_rhs(0, 4.0)
        loaded.set_row_bounds("row 1", -1.0, 1.0 + w)
        sp.add(loaded.column(1) <= 100.0)

    value = solve_extensive_form(build(Graph.linear(1), stage))
    assert value == pytest.approx(-0.25 * by_hand(0.5) - 0.75 * by_hand(1.5), rel=1e-9)


def test_what_goes_to_highspy_comes_back() -> None:
    lp = arrays(2)
    again = build(
        Graph.linear(1), lambda sp, t: load_lp(sp, to_highs(lp), states={}) and None, check=False
    ).nodes[0].template  # fmt: skip
    for name in ("cost", "col_lower", "col_upper", "row_lower", "row_upper", "starts", "rows", "values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(lp, name))
    assert again.col_names == lp.col_names


def ranged() -> LpTemplate:
    return LpTemplate([0.0], [0.0], [9.0], [1.0, -np.inf], [2.0, np.inf], [0, 2], [0, 1], [1.0, 1.0])


MISTAKES: list[tuple[Callable[[Stage, LoadedLp], object], str]] = [
    (lambda sp, lp: lp.set_rhs("nowhere", 1.0), "row 'nowhere': expected one of the LP's rows: row 0, row 1"),
    (lambda sp, lp: lp.set_cost(7, 1.0), "column 7: expected a position from 0 to 0"),
    (
        lambda sp, lp: lp.set_rhs(0, 1.0),
        "row 'row 0': expected one right-hand side, got the range 1.0 to 2.0",
    ),
    (lambda sp, lp: lp.set_rhs(1, 1.0), "row 'row 1': expected a right-hand side, got a free row"),
    (
        lambda sp, lp: lp.set_cost(0, lp.column(0)),
        "cost of column 'column 0': expected a number or noise, got a variable",
    ),
    (lambda sp, lp: load_lp(sp, ranged(), states={}), "LP: expected to be the first thing in the node"),
]


@pytest.mark.parametrize(("mistake", "text"), MISTAKES, ids=[text[:30] for _, text in MISTAKES])
def test_mistakes_are_explained(mistake: Callable[[Stage, LoadedLp], object], text: str) -> None:
    def stage(sp: Stage, t: Any) -> None:
        mistake(sp, load_lp(sp, ranged(), states={}))

    with pytest.raises(ProblemError) as caught:
        build(Graph.linear(1), stage)
    assert text in caught.value.findings[0]


def test_integer_columns_are_refused() -> None:
    h = highspy.Highs()
    h.addIntegral()
    with pytest.raises(ProblemError, match="expected continuous columns, got integer ones"):
        load_lp(Stage("n"), h, states={})
