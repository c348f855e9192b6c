"""What lies beyond the last nodes: fixed linear functions that no training adds to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sddp_runs import with_boundary

from pycobre.comm import LocalBackend
from pycobre.errors import ProblemError
from pycobre.problem import Boundary, Problem, solve_extensive_form
from pycobre.sddp import (
    AnyOf,
    DecisionRule,
    Gap,
    IterationLimit,
    Level1,
    TrainOptions,
    simulate,
    train,
)
from pycobre.testing import problems

PROBLEM = with_boundary(problems.reservoir(4))
LONG = TrainOptions(stopping=AnyOf(IterationLimit(100), Gap(1e-9)), enumerated=True)


def test_the_bound_and_the_exact_cost_include_it() -> None:
    found = train(PROBLEM, LocalBackend(), LONG)
    optimum = solve_extensive_form(PROBLEM)
    assert found.reason == "gap"
    assert found.bound == pytest.approx(optimum, rel=1e-8)
    assert found.simulated == pytest.approx(optimum, rel=1e-8)
    without = solve_extensive_form(problems.reservoir(4))
    assert abs(optimum - without) > 1e-3, "the boundary matters in this problem"


def test_simulated_costs_end_with_it() -> None:
    policy = train(PROBLEM, LocalBackend(), LONG).policy
    found = simulate(PROBLEM, policy, 5, LocalBackend())
    beyond = found.discount[:, -1] * PROBLEM.nodes[-1].discount * found.cost_to_go[:, -1]
    stages = (found.discount * found.stage_cost).sum(axis=1)
    assert found.total_cost == pytest.approx(stages + beyond, rel=1e-12)
    boundary = PROBLEM.nodes[-1].boundary
    assert boundary is not None
    values = (boundary.intercept + found.state[:, -1] @ boundary.slope.T).max(axis=1)
    assert found.cost_to_go[:, -1] == pytest.approx(np.maximum(0.0, values), abs=1e-7)


def test_a_policy_holds_it_and_no_training_changes_it() -> None:
    options = TrainOptions(3, IterationLimit(6), selection=Level1(every=2))
    policy = train(PROBLEM, LocalBackend(), options).policy
    cuts, boundary = policy.cuts[-1], PROBLEM.nodes[-1].boundary
    assert boundary is not None
    assert np.array_equal(cuts.intercept, boundary.intercept)
    assert np.array_equal(cuts.slope, boundary.slope)
    assert cuts.active.all()
    value = policy.evaluate(PROBLEM.nodes[-1].name, [2.0]).value
    assert value == pytest.approx(max(0.0, float((boundary.intercept + 2.0 * boundary.slope[:, 0]).max())))
    with DecisionRule(PROBLEM, policy) as rule:
        decided = rule.decide(PROBLEM.nodes[-1].name, [20.0], opening=0)
    beyond = policy.evaluate(PROBLEM.nodes[-1].name, decided.state).value
    assert decided.cost_to_go == pytest.approx(beyond, abs=1e-9)
    warm = train(PROBLEM, LocalBackend(), options, warm_start=policy)
    assert len(warm.policy.cuts[-1]) == len(boundary)


def test_bytes_of_a_problem_hold_it() -> None:
    again = Problem.from_bytes(PROBLEM.to_bytes())
    assert again.fingerprint == PROBLEM.fingerprint != problems.reservoir(4).fingerprint
    assert solve_extensive_form(again) == solve_extensive_form(PROBLEM)


def test_what_does_not_fit_is_refused() -> None:
    *nodes, last = PROBLEM.nodes
    two = Boundary(np.zeros(1), np.zeros((1, 2)))
    endless = Boundary(np.array([np.inf]), np.zeros((1, 1)))
    for changed, text in (
        (replace(last, boundary=two), "expected boundary slopes of 1 functions and 1 states, got 1 and 2"),
        (replace(last, boundary=endless), "expected finite boundary functions, got NaN or infinity"),
        (replace(last, theta_lower=None), "expected a lower bound on the cost to go, got None"),
    ):
        with pytest.raises(ProblemError, match=text):
            replace(PROBLEM, nodes=(*nodes, changed))
    inner = replace(nodes[0], boundary=last.boundary)
    with pytest.raises(ProblemError, match="expected a boundary where no arc leaves only, got one"):
        replace(PROBLEM, nodes=(inner, *nodes[1:], last))
