"""The extensive form is the problem: against a recursion over the tree that solves nothing but single LPs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from pycobre.errors import ProblemError, SolverError
from pycobre.problem import (
    ROOT,
    Graph,
    Noise,
    Problem,
    Stage,
    build,
    extensive_form,
    patched,
    solve_extensive_form,
    solve_lp,
    tree_size,
)
from pycobre.solver.api import LpTemplate, PatchPlan, RhsCorrections, Target
from pycobre.testing.problems import detour, regimes
from pycobre.testing.random_problems import problems


def policy_cost(problem: Problem, primal: dict[str, float]) -> float:
    """Follow the decisions of the extensive form down every path, check each LP, and add up the costs."""

    def follow(path: str, before: int, state: np.ndarray) -> float:
        total = 0.0
        for j, p in zip(*problem.shape.successors(before), strict=True):
            node = problem.nodes[j]
            for k in np.flatnonzero(node.noise.probability > 0.0):
                lp = patched(node.template, node.noise.plan, node.noise.values[k])
                here = f"{path}{node.name}.{k}/"
                y = np.array([primal[here + lp.col_name(c)] for c in range(lp.num_cols)])
                np.testing.assert_allclose(y[node.state_in], state, atol=1e-7)
                inner = np.setdiff1d(np.arange(lp.num_cols), node.state_in)
                assert (y[inner] >= lp.col_lower[inner] - 1e-7).all()
                assert (y[inner] <= lp.col_upper[inner] + 1e-7).all()
                activity = np.zeros(lp.num_rows)
                np.add.at(activity, lp.rows, lp.values * np.repeat(y, np.diff(lp.starts)))
                assert (activity >= lp.row_lower - 1e-7).all()
                assert (activity <= lp.row_upper + 1e-7).all()
                cost = lp.offset + lp.cost @ y
                cost += node.discount * follow(here, int(j), y[node.state_out])
                total += float(p) * float(node.noise.probability[k]) * float(cost)
        return total

    return follow("", ROOT, problem.initial)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_optimum_is_a_policy_with_that_cost(problem: Problem) -> None:
    lp = extensive_form(problem)
    assert len(set(lp.col_names)) == lp.num_cols
    assert len(set(lp.row_names)) == lp.num_rows
    solution = solve_lp(lp)
    assert solution.status == "optimal"
    cost = policy_cost(problem, dict(zip(lp.col_names, solution.primal.tolist(), strict=True)))
    assert cost == pytest.approx(solution.objective, rel=1e-7, abs=1e-7)


def test_unreachable_nodes_and_impossible_openings_are_left_out() -> None:
    assert tree_size(regimes()) == sum((2 * 2) ** t for t in (1, 2, 3))
    assert not any("99" in name or ":2" in name for name in extensive_form(regimes()).col_names)

    def stage(sp: Stage, t: object) -> None:
        sp.minimise(sp.noise([1.0, 99.0], [1.0, 0.0]) * sp.variable("u", lower=1.0))

    problem = build(Graph.linear(2), stage, lower_bound=0.0)
    assert tree_size(problem) == 2
    assert solve_extensive_form(problem) == 2.0


def test_names_tell_the_path() -> None:
    assert extensive_form(detour()).row_names == (
        "a.0/carry",
        "a.0/b.0/carry",
        "a.0/c.0/carry",
        "a.0/b.0/c.0/carry",
        "a.0/b.0/link x",
        "a.0/c.0/link x",
        "a.0/b.0/c.0/link x",
    )


def test_floors_are_refused() -> None:
    problem = detour()
    floors = RhsCorrections([0.0], [0], [0, 0], [], [], [], [], [])
    lifted = replace(problem, nodes=(replace(problem.nodes[0], rhs_corrections=floors), *problem.nodes[1:]))
    with pytest.raises(ProblemError, match="node 'a': expected an LP, got right-hand-side corrections"):
        extensive_form(lifted)


def test_an_infeasible_tree_says_so() -> None:
    def stage(sp: Stage, t: object) -> None:
        x = sp.state("x", initial=1.0)
        sp.add(x.out == x.in_ - 1.0)

    problem = build(Graph.linear(2), stage, lower_bound=0.0)
    with pytest.raises(SolverError, match="expected an optimum, got infeasible") as caught:
        solve_extensive_form(problem)
    assert caught.value.status == "infeasible"


def test_patching_reaches_every_place_and_makes_missing_entries() -> None:
    lp = LpTemplate(
        [1.0, 2.0], [0.0, 0.0], [9.0, 9.0], [1.0, -np.inf], [1.0, 5.0], [0, 1, 2], [0, 1], [1.0, 1.0]
    )
    kinds = [
        (Target.RHS, 0, -1),
        (Target.ROW_UPPER, 1, -1),
        (Target.ROW_LOWER, 1, -1),
        (Target.COL_LOWER, -1, 0),
        (Target.COL_UPPER, -1, 0),
        (Target.COST, -1, 1),
        (Target.OFFSET, -1, -1),
        (Target.COEFFICIENT, 0, 0),
        (Target.COEFFICIENT, 0, 1),
        (Target.COEFFICIENT, 1, 0),
    ]
    plan = PatchPlan(*(np.array(column) for column in zip(*kinds, strict=True)))
    new = patched(lp, plan, np.array([3.0, 6.0, -6.0, 1.0, 2.0, 7.0, 8.0, 0.5, 0.25, 0.75]))
    assert new.row_lower.tolist() == [3.0, -6.0]
    assert new.row_upper.tolist() == [3.0, 6.0]
    assert (new.col_lower[0], new.col_upper[0], new.cost[1], new.offset) == (1.0, 2.0, 7.0, 8.0)
    assert new.starts.tolist() == [0, 2, 4]
    assert list(zip(new.rows.tolist(), new.values.tolist(), strict=True)) == [
        (0, 0.5),
        (1, 0.75),
        (1, 1.0),
        (0, 0.25),
    ]
    assert patched(lp, PatchPlan.empty(), np.empty(0)) is lp
    assert Noise.none().openings == 1
