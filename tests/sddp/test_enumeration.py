"""Every path of a graph: how many there are, what they cost together, and the exact gap."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError
from pycobre.problem import solve_extensive_form
from pycobre.sddp import (
    AnyOf,
    CVaR,
    Enumeration,
    FixedSet,
    Gap,
    GrowingTrajectories,
    IterationLimit,
    TrainOptions,
    count_paths,
    estimate,
    expectation_and_cvar,
    simulate,
    train,
)
from pycobre.sddp.enumeration import MOST_PATHS
from pycobre.testing import problems
from pycobre.testing.random_problems import Recipe, random_problem

SMALL = {
    "chain": random_problem(Recipe(stages=3, states=2, openings=3), 3),
    "first stage": random_problem(Recipe(stages=3, states=2, openings=2, first_stage_noise=True), 4),
    "markov": random_problem(Recipe(graph="markov", stages=3, states=2, openings=2), 5),
    "tree": random_problem(Recipe(graph="tree", stages=3, states=2, openings=2), 6),
    "maximise": random_problem(Recipe(graph="tree", stages=3, states=2, openings=2, maximise=True), 7),
}


@pytest.mark.parametrize("name", SMALL)
def test_paths_are_all_there_are(name: str) -> None:
    problem = SMALL[name]
    every = Enumeration.of(problem)
    paths = every.paths
    assert len(every) == count_paths(problem) == len(paths)
    assert math.fsum(every.probability.tolist()) == pytest.approx(1.0, abs=1e-12)
    seen = set()
    for s in range(len(every)):
        length = int(paths.lengths[s])
        nodes, openings = paths.nodes[s, :length].tolist(), paths.openings[s, :length].tolist()
        seen.add((tuple(nodes), tuple(openings)))
        chance, before = 1.0, -1
        for node, opening in zip(nodes, openings, strict=True):
            targets, p = problem.shape.successors(before)
            chance *= float(p[targets.tolist().index(node)]) * problem.nodes[node].noise.probability[opening]
            before = node
        following = len(problem.shape.successors(before)[0])
        chance *= float(problem.shape.stopping[before]) if following else 1.0
        assert every.probability[s] == pytest.approx(chance, rel=1e-12)
        for depth in range(length):
            first = int(every.leader[s, depth])
            assert paths.nodes[first, : depth + 1].tolist() == nodes[: depth + 1]
            assert paths.openings[first, : depth + 1].tolist() == openings[: depth + 1]
            assert first == s or first < s
    assert len(seen) == len(every)


@pytest.mark.parametrize("name", SMALL)
def test_bound_and_exact_cost_meet_at_the_extensive_form(name: str) -> None:
    problem = SMALL[name]
    options = TrainOptions(stopping=AnyOf(IterationLimit(100), Gap(1e-9)), enumerated=True)
    found = train(problem, LocalBackend(), options)
    assert (found.reason, found.converged) == ("gap", True)
    optimum = solve_extensive_form(problem)
    assert found.bound == pytest.approx(optimum, rel=1e-7, abs=1e-7)
    assert found.simulated == pytest.approx(optimum, rel=1e-7, abs=1e-7)
    sign = problem.sense.sign
    costs = sign * np.array(found.history.arrays()["upper_bound"])
    assert (sign * costs >= sign * optimum - 1e-7 * max(1.0, abs(optimum))).all()
    assert set(found.history.upper_bound_half_width) == {0.0}


@pytest.mark.parametrize("name", SMALL)
def test_the_exact_cost_is_the_weighted_mean_of_all_simulated_paths(name: str) -> None:
    """The last iteration's cost is that of the policy before it, whose cuts are the first ones of the last."""
    problem = SMALL[name]
    every = Enumeration.of(problem)
    before = train(problem, LocalBackend(), TrainOptions(stopping=IterationLimit(2), enumerated=True))
    after = train(problem, LocalBackend(), TrainOptions(stopping=IterationLimit(3), enumerated=True))
    walked = simulate(problem, before.policy, len(every), LocalBackend(), sampler=FixedSet(every.paths))
    mean = math.fsum((every.probability * walked.total_cost).tolist())
    assert after.simulated == pytest.approx(mean, rel=1e-9, abs=1e-9)


def test_risk_is_weighed_path_by_path_as_in_the_bound() -> None:
    problem = SMALL["markov"]
    options = TrainOptions(
        stopping=AnyOf(IterationLimit(200), Gap(1e-9)),
        risk=expectation_and_cvar(0.5, 0.3),
        root_risk=CVaR(0.5),
        enumerated=True,
    )
    found = train(problem, LocalBackend(), options)
    assert found.reason == "gap"
    averse = found.bound
    neutral = train(
        problem, LocalBackend(), replace(options, risk=expectation_and_cvar(0.0, 1.0), root_risk=CVaR(1.0))
    )
    assert averse > neutral.bound
    upper = np.array(found.history.upper_bound)
    assert (upper >= averse - 1e-6 * abs(averse)).all()


def test_shared_beginnings_are_solved_once() -> None:
    """A trunk of two stages and a fan: as many LPs as the tree has nodes, not as many as its paths have."""
    problem = SMALL["chain"]
    every = Enumeration.of(problem)
    sizes = [int(np.count_nonzero(node.noise.probability > 0.0)) for node in problem.nodes]
    vertices = sum(math.prod(sizes[: t + 1]) for t in range(3))
    found = train(problem, LocalBackend(), TrainOptions(stopping=IterationLimit(1), enumerated=True))
    inner = math.prod(sizes[:1]) * sizes[1] + math.prod(sizes[:2]) * sizes[2]
    assert found.history.lp_solves[0] <= vertices + inner + sizes[0] + len(sizes)
    assert sum(len(cuts) for cuts in found.policy.cuts) == vertices - len(every)
    assert estimate(problem, TrainOptions(enumerated=True)).rank_bytes > 0


def test_a_gap_in_currency_or_relative() -> None:
    problem = SMALL["tree"]
    loose = TrainOptions(stopping=AnyOf(IterationLimit(50), Gap(None, 1e12)), enumerated=True)
    assert train(problem, LocalBackend(), loose).iterations == 1


def test_what_cannot_be_enumerated_is_refused() -> None:
    with pytest.raises(OptionError, match="expected a graph without cycles, got problem"):
        train(problems.reservoir_for_ever(), LocalBackend(), TrainOptions(enumerated=True))
    many = problems.reservoir(40)
    with pytest.raises(OptionError, match=f"expected at most {MOST_PATHS} paths, got [0-9]+ in problem"):
        train(many, LocalBackend(), TrainOptions(enumerated=True))
    with pytest.raises(OptionError, match="expected no growing trajectories and no persistence"):
        TrainOptions(enumerated=True, trajectories=GrowingTrajectories())
