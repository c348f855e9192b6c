"""Every problem with a known value converges to it."""

from __future__ import annotations

import math

import pytest
from sddp_runs import NAMED, known_bounds

from pycobre.comm import LocalBackend
from pycobre.problem import Graph, Stage, build, solve_extensive_form
from pycobre.sddp import (
    Cuts,
    CVaR,
    Entropic,
    Expectation,
    IterationLimit,
    TrainOptions,
    WorstCase,
    expectation_and_cvar,
    simulate,
    train,
)
from pycobre.sddp.forward import pilot
from pycobre.sddp.openings import Openings
from pycobre.sddp.plan import Plan
from pycobre.sddp.starts import Starts
from pycobre.sddp.subproblems import SubproblemSolver
from pycobre.sddp.timing import Ledger
from pycobre.sddp.training.bound import RootWork
from pycobre.solver import create_engine
from pycobre.testing import problems, run_ranks

ITERATIONS = {"reservoir 20": 8, "farmer": 20, "one stock": 15, "reservoir for ever": 24, "constant loop": 20}
# What the optimum of twenty stages hangs on happens once in millions of evenly drawn paths.
PERSISTENCE = {"reservoir 20": 0.85}
QUICK = [name for name in NAMED if name != "reservoir 20"]


@pytest.mark.parametrize("name", NAMED)
def test_bound_reaches_the_published_value(name):
    known = NAMED[name]
    options = TrainOptions(
        10,
        IterationLimit(ITERATIONS.get(name, 12)),
        persistence=PERSISTENCE.get(name, 0.0),
        max_depth=12 if known.cyclic else None,
    )
    outcome = train(known.make(), LocalBackend(), options)
    if known.cyclic:
        assert outcome.lower_bound == pytest.approx(known.value, abs=1e-6)
    else:
        assert outcome.lower_bound == pytest.approx(known.value, rel=1e-9)
    assert outcome.warnings == ()


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        (expectation_and_cvar(0.5, 0.5), 10625.0),
        (CVaR(0.5), 40000 / 3),
        (WorstCase(), 15000.0),
        (Expectation(), 25000 / 3),
    ],
    ids=str,
)
def test_nested_risk_of_hydro_thermal(measure, value):
    options = TrainOptions(10, IterationLimit(15), risk=measure)
    assert train(problems.hydro_thermal(), LocalBackend(), options).lower_bound == pytest.approx(
        value, rel=1e-9
    )


def test_entropic_risk_of_two_stages_by_hand():
    """One unit short costs 10 and is bought ahead for 4 or not: log E exp(γ cost)/γ decides, and both are known."""
    gamma, chance = 0.2, 0.25

    def stage(sp: Stage, t):
        x = sp.state("x", initial=0.0, upper=1.0)
        short = sp.variable("short")
        if t == 1:
            sp.minimise(4.0 * x.out)
        else:
            sp.add(short + x.in_ >= sp.noise([0.0, 1.0], [1.0 - chance, chance]), "need")
            sp.minimise(10.0 * short)

    def entropic(cost):
        return 4.0 * (1.0 - cost / 10.0) + math.log(1.0 - chance + chance * math.exp(gamma * cost)) / gamma

    problem = build(Graph.linear(2), stage, lower_bound=0.0)
    options = TrainOptions(4, IterationLimit(40), risk=Entropic(gamma))
    # The derivative is zero where chance · e^(γc) / (1 − chance + chance · e^(γc)) = 0.4.
    best = entropic(math.log(0.4 * (1.0 - chance) / (0.6 * chance)) / gamma)
    assert train(problem, LocalBackend(), options).lower_bound == pytest.approx(best, rel=1e-9)
    assert best < min(entropic(0.0), entropic(10.0))


def test_risk_at_the_root():
    problem = problems.air_conditioners((100.0, 300.0))
    options = TrainOptions(10, IterationLimit(15), root_risk=WorstCase())
    assert train(problem, LocalBackend(), options).lower_bound == pytest.approx(107500.0, rel=1e-9)


def test_loop_before_training_knows_one_stage_only():
    """Without cuts the looping reservoir costs what one visit costs: 55/6."""
    problem = problems.reservoir_for_ever()
    plan = Plan.of(problem)
    openings = Openings(LocalBackend(), plan)
    with create_engine() as engine:
        subproblems = SubproblemSolver(engine, plan, openings, {0: Cuts.none(1)}, Ledger(), lazy=True)
        starts = Starts.same(pilot(plan, subproblems, iteration=1), 1)
        work = RootWork(plan, openings, 1)
        objectives = work.solve(subproblems, starts, range(1), 1)
    assert work.bound(Expectation(), objectives) == pytest.approx(55 / 6, rel=1e-12)


def test_a_bound_on_theta_that_is_too_high_is_detected():
    outcome = train(problems.wrong_bound(10.0), LocalBackend(), TrainOptions(2, IterationLimit(4)))
    assert outcome.lower_bound == pytest.approx(11.0, rel=1e-9)
    (warning,) = outcome.warnings
    assert "the bound from below is 11, and simulated paths give 5.5, which is less" in warning
    assert "theta_lower" in warning


def test_a_bound_far_above_noisy_costs_is_detected_within_few_iterations():
    def stage(sp: Stage, t):
        x = sp.state("x", initial=0.0, upper=9.0)
        made = sp.variable("made")
        sp.add(x.out == x.in_ + made - sp.noise([1.0, 2.0, 6.0]), "balance")
        sp.minimise(t * made)

    def warnings(bound, iterations):
        problem = build(Graph.linear(3), stage, lower_bound=bound)
        return train(problem, LocalBackend(), TrainOptions(10, IterationLimit(iterations))).warnings

    assert "theta_lower" in warnings(200.0, 6)[0]
    assert warnings(200.0, 4) == ()  # twenty trajectories are too few to say so
    assert warnings(0.0, 6) == ()


def test_an_opening_that_cannot_happen_is_not_solved():
    """No decision could follow it, but its probability is zero, here and at the start."""

    def stage(sp: Stage, t):
        x = sp.state("x", initial=1.0, upper=5.0)
        made = sp.variable("made", upper=10.0)
        sp.add(x.out == x.in_ + made - sp.noise([1.0, 100.0, 2.0, 3.0], [0.5, 0.0, 0.25, 0.25]), "balance")
        sp.minimise(t * made)

    problem = build(Graph.linear(3), stage, lower_bound=0.0)
    for measure in (Expectation(), WorstCase()):
        options = TrainOptions(6, IterationLimit(10), risk=measure, root_risk=measure)
        outcome = train(problem, LocalBackend(), options)
        if isinstance(measure, Expectation):
            assert outcome.lower_bound == pytest.approx(solve_extensive_form(problem), rel=1e-9)
        else:
            assert outcome.lower_bound == pytest.approx(
                7.0 * 1.0 + 1.0 * 2.0
            )  # 7 are all that stage 1 can keep
    paths = simulate(problem, outcome.policy, 50, LocalBackend())
    assert set(paths.opening.reshape(-1).tolist()) <= {0, 2, 3}


@pytest.fixture(scope="module")
def alone():
    return known_bounds(LocalBackend(), QUICK, 3)


@pytest.mark.parametrize(("backend", "ranks"), [("shm", 2), ("tcp", 3)])
def test_processes_find_the_same_policies(backend, ranks, alone):
    for found in run_ranks(backend, ranks, known_bounds, QUICK, 3, timeout=200):
        assert found == alone


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "ranks"), [("shm", 2), ("shm", 3), ("tcp", 2), ("tcp", 3)])
def test_processes_converge_to_the_published_values(backend, ranks):
    for found in run_ranks(backend, ranks, known_bounds, QUICK, 30, timeout=200):
        for name, (bound, _) in found.items():
            tolerance = {"abs": 1e-6} if NAMED[name].cyclic else {"rel": 1e-9}
            assert bound == pytest.approx(NAMED[name].value, **tolerance), name
