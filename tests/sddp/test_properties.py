"""Random problems: the bound meets the extensive form, never falls, and every cut is valid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from risk_tree import RiskTree
from sddp_runs import PATIENT

from pycobre.comm import LocalBackend
from pycobre.problem import Arcs, Problem, State, extensive_form
from pycobre.sddp import (
    ConvexCombination,
    CVaR,
    Entropic,
    Expectation,
    IterationLimit,
    Level1,
    TrainingOutcome,
    TrainOptions,
    WorstCase,
    expectation_and_cvar,
    train,
)
from pycobre.solver import LpModel, SolveCall, SolverOptions, create_engine
from pycobre.testing import run_ranks
from pycobre.testing.random_problems import PLACES, Recipe, problems, random_problem

QUICK = settings(PATIENT, max_examples=20)
ONE_NODE_TREES = ("linear", "markov", "tree")


def optimum(problem: Problem) -> float:
    """The minimised value of the whole tree as one LP."""
    with create_engine(SolverOptions(native=False)) as engine:
        block = engine.solve(SolveCall(LpModel(extensive_form(problem)), np.zeros((1, 0)), np.zeros((1, 0))))
    return float(block.objective[0, 0])


def trained(problem: Problem, iterations: int = 12, **options) -> TrainingOutcome:
    return train(
        problem, LocalBackend(), TrainOptions(6, IterationLimit(iterations), persistence=0.3, **options)
    )


def converged(problem: Problem, value: float, **options) -> TrainingOutcome:
    """Train longer and longer until the bound is there, or give up far away; one of a thousand needs 640."""
    for iterations in (10, 40, 160, 640, 2560):
        outcome = trained(problem, iterations, **options)
        if outcome.history.lower_bound[-1] >= value - 1e-8 * max(1.0, abs(value)):
            break
    return outcome


@pytest.mark.parametrize(
    ("stages", "openings", "noise", "seed"),
    [(3, 3, PLACES, 500001), (1, 2, ("coefficient", "constant"), 3333998977)],
    ids=["beside others", "alone in its column"],
)
def test_coefficients_whose_mean_is_nothing_but_rounding(stages, openings, noise, seed):
    """What was left of the mean once counted as the coefficient's size in scaling, and no LP could be solved."""
    recipe = Recipe(stages=stages, openings=openings, noise=frozenset(noise), first_stage_noise=True)
    problem = random_problem(recipe, seed)
    means = [
        float(column.copy() @ node.noise.probability)
        for node in problem.nodes
        for column in node.noise.values.T
    ]
    assert any(0 < abs(mean) < 1e-15 for mean in means)
    value = optimum(problem)
    outcome = converged(problem, value)
    assert outcome.history.lower_bound[-1] == pytest.approx(value, rel=1e-8)
    assert outcome.warnings == ()


@QUICK
@given(problems(graphs=ONE_NODE_TREES), st.sampled_from(["lazy", "all cuts", "level 1"]))
def test_the_bound_meets_the_extensive_form_from_below(problem, how):
    options = {"lazy": {}, "all cuts": {"lazy": False}, "level 1": {"selection": Level1(every=3)}}[how]
    value = optimum(problem)
    outcome = converged(problem, value, **options)
    bounds = np.array(outcome.history.lower_bound)
    scale = max(1.0, abs(value))
    assert np.all(bounds <= value + 1e-7 * scale)
    assert bounds[-1] == pytest.approx(value, abs=1e-7 * scale)
    if how != "level 1":
        assert np.all(np.diff(bounds) >= -1e-8 * scale)


def from_node(problem: Problem, node: int, state: np.ndarray) -> Problem | None:
    """The problem that begins after `node` has handed on `state`, or None when nothing follows."""
    targets, probability = problem.shape.successors(node)
    if not len(targets):
        return None
    arcs = [
        (-1, int(j), float(p) / float(probability.sum())) for j, p in zip(targets, probability, strict=True)
    ]
    for i, j, p in zip(problem.arcs.source, problem.arcs.target, problem.arcs.probability, strict=True):
        if i != -1:
            arcs.append((int(i), int(j), float(p)))
    states = tuple(State(s.name, float(x)) for s, x in zip(problem.states, state, strict=True))
    keep = _following(problem, targets.tolist())
    number = {old: new for new, old in enumerate(keep)}
    kept = [(number.get(i, -1), number[j], p) for i, j, p in arcs if j in number and (i == -1 or i in number)]
    return Problem(states, tuple(problem.nodes[i] for i in keep), Arcs.of(kept), problem.sense)


def _following(problem: Problem, first: list[int]) -> list[int]:
    seen: list[int] = []
    waiting = list(first)
    while waiting:
        node = waiting.pop(0)
        if node not in seen:
            seen.append(node)
            waiting += problem.shape.successors(node)[0].tolist()
    return sorted(seen)


@QUICK
@given(problems(graphs=ONE_NODE_TREES), st.integers(0, 2**31))
def test_no_cut_is_above_the_true_cost_to_go(problem, seed):
    rng = np.random.default_rng(seed)
    policy = trained(problem, 4).policy
    for node in np.flatnonzero(problem.shape.reachable).tolist():
        cuts = policy.cuts[node]
        if not len(cuts):
            continue
        state = rng.integers(-12, 13, len(problem.states)) / 4
        lower = problem.nodes[node].template.col_lower[problem.nodes[node].state_out]
        upper = problem.nodes[node].template.col_upper[problem.nodes[node].state_out]
        state = np.clip(state, lower, upper)
        after = from_node(problem, node, state)
        assert after is not None
        going_on = float(problem.shape.successors(node)[1].sum())
        value = going_on * optimum(after)
        assert float(np.max(cuts.intercept + cuts.slope @ state)) <= value + 1e-7 * max(1.0, abs(value))


@QUICK
@given(
    problems(graphs=("linear", "markov")),
    st.sampled_from([CVaR(0.5), WorstCase(), expectation_and_cvar(0.3, 0.25), Entropic(0.1)]),
)
def test_lazy_and_all_cuts_agree_under_risk_too(problem, measure):
    lazy = trained(problem, 15, risk=measure, root_risk=measure)
    everything = trained(problem, 15, risk=measure, root_risk=measure, lazy=False)
    scale = max(1.0, abs(lazy.lower_bound))
    assert lazy.lower_bound == pytest.approx(everything.lower_bound, abs=2e-6 * scale)
    neutral = trained(problem, 15)
    assert lazy.history.lower_bound[-1] >= neutral.history.lower_bound[-1] - 2e-6 * scale


@QUICK
@given(
    problems(graphs=ONE_NODE_TREES),
    st.sampled_from([CVaR(0.5), WorstCase(), ConvexCombination(((0.4, WorstCase()), (0.6, CVaR(0.25))))]),
    st.sampled_from([Expectation(), WorstCase(), expectation_and_cvar(0.3, 0.25)]),
)
def test_the_bound_meets_the_nested_risk_of_the_tree(problem, measure, root):
    """The measure at some nodes only where there are several, another one at the root."""
    names = [node.name for node in problem.nodes]
    risk = dict.fromkeys(names[::2], measure)
    value = RiskTree(problem, risk).value(root)
    outcome = converged(problem, value, risk=risk, root_risk=root)
    scale = max(1.0, abs(value))
    assert np.all(np.array(outcome.history.lower_bound) <= value + 1e-7 * scale)
    assert outcome.history.lower_bound[-1] == pytest.approx(value, abs=1e-7 * scale)


@settings(PATIENT, max_examples=8)
@given(problems(graphs=(*ONE_NODE_TREES, "ring")), st.integers(2, 6), st.integers(1, 5))
def test_reassigning_trajectories_changes_nothing(problem, ranks, passes):
    options = TrainOptions(passes, IterationLimit(2), max_depth=5)
    alone = train(problem, LocalBackend(), options).policy.digest
    found = run_ranks("threads", ranks, digest_of_training, problem.to_bytes(), passes)
    assert found == [alone] * ranks


def digest_of_training(comm, data: bytes, passes: int) -> str:
    options = TrainOptions(passes, IterationLimit(2), max_depth=5)
    return train(Problem.from_bytes(data), comm, options).policy.digest
