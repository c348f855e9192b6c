"""Cuts at interior points: the same optimum, valid bounds all along, the same bits on every path."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sddp_runs import PATIENT

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError, PolicyError
from pycobre.problem import Graph, build, solve_extensive_form
from pycobre.sddp import CVaR, InteriorPoints, IterationLimit, Level1, TrainOptions, simulate, train
from pycobre.sddp.codec import decode_options, encode_options
from pycobre.sddp.interior import middles
from pycobre.sddp.plan import Plan
from pycobre.sddp.training import checkpoint
from pycobre.sddp.training.outcome import Receipt
from pycobre.solver import SolverOptions
from pycobre.testing import problems, run_ranks
from pycobre.testing.random_problems import Recipe, random_problem

DEFAULT = InteriorPoints()
SQRT = InteriorPoints(0.5, "sqrt", graded=False)
HARMONIC = InteriorPoints(0.9, "harmonic")
SHORT = InteriorPoints(1.0, last=3)


def test_weights_fall_to_zero():
    assert [DEFAULT.weight(k) for k in (1, 2, 6, 7, 5000)] == [0.5, 0.25, 0.015625, 0.0, 0.0]
    assert [SQRT.weight(k) for k in (1, 4, 100)] == [0.5, 0.25, 0.05]
    assert [HARMONIC.weight(k) for k in (1, 2, 90)] == [0.9, 0.45, 0.01]
    assert [SHORT.weight(k) for k in (1, 2, 3, 4)] == [1.0, 0.5, 0.25, 0.0]


def test_trajectories_of_an_iteration_are_graded():
    every = np.arange(5)
    assert DEFAULT.weights(1, every, 5).tolist() == [0.0, 0.125, 0.25, 0.375, 0.5]
    assert DEFAULT.weights(2, every[3:], 5).tolist() == [0.1875, 0.25]
    assert DEFAULT.weights(7, every, 5).tolist() == [0.0] * 5
    assert SQRT.weights(4, every, 5).tolist() == [0.25] * 5


def test_a_single_trajectory_is_inside_every_other_time():
    alone = np.arange(1)
    assert [float(DEFAULT.weights(k, alone, 1)[0]) for k in range(1, 6)] == [0.5, 0.0, 0.125, 0.0, 0.03125]
    assert [float(SQRT.weights(k, alone, 1)[0]) for k in (1, 4)] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"initial": 0.0},
            "interior initial: expected a weight above 0 and up to 1, got 0.0. "
            "Use None instead of InteriorPoints for cuts at the trial points.",
        ),
        (
            {"initial": math.nan},
            "interior initial: expected a weight above 0 and up to 1, got nan. "
            "Use None instead of InteriorPoints for cuts at the trial points.",
        ),
        ({"last": 0}, "interior last: expected an iteration from 1 on, or None, got 0."),
        ({"decay": "linear"}, "interior decay: expected 'geometric', 'harmonic' or 'sqrt', got 'linear'."),
        ({"graded": 1}, "interior graded: expected True or False, got 1."),
        (
            {"least_states": 0},
            "interior least_states: expected a whole number from 1 on, got 0.",
        ),
    ],
)
def test_schedules_are_checked(arguments, text):
    with pytest.raises(OptionError) as caught:
        InteriorPoints(**arguments)
    assert str(caught.value) == text


def test_options_are_checked_and_travel():
    with pytest.raises(OptionError, match=r"^interior: expected InteriorPoints or None, got float\."):
        TrainOptions(interior=0.5)
    options = TrainOptions(interior=HARMONIC)
    assert decode_options(encode_options(options)) == options
    assert (
        options.key()["interior"] == "InteriorPoints(initial=0.9, decay='harmonic', last=None, graded=True, "
        "least_states=1)"
    )
    assert TrainOptions().interior == InteriorPoints(least_states=10)
    assert TrainOptions(interior=None).key()["interior"] == "None"


def stock_and_memory(stages=3, ceiling=None):
    """A stock with bounds, and a memory of the last inflow, without any; the last stage may limit what comes in."""

    def stage(sp, t):
        stock = sp.state("stock", initial=4.0, lower=2.0, upper=10.0)
        memory = sp.state("memory", initial=1.0)
        used, bought = sp.variables("used bought")
        inflow = sp.noise([0.0, 2.0], name="inflow")
        sp.add(memory.out == 0.5 * memory.in_ + inflow, "memory")
        sp.add(stock.out == stock.in_ - used + 0.5 * memory.in_ + inflow, "balance")
        sp.add(used + bought >= 3.0, "demand")
        if t == stages and ceiling is not None:
            sp.add(stock.in_ <= ceiling, "limit")
        if t == stages - 1 and ceiling is not None:
            sp.add(stock.out <= ceiling, "keep")
        sp.minimise(bought)

    return build(Graph.linear(stages), stage, lower_bound=0.0, name="stock and memory")


def test_only_bounded_states_are_moved():
    first, second = middles(Plan.of(stock_and_memory()))
    assert first[0] == second[0] == 6.0
    assert np.isnan([first[1], second[1]]).all()
    interior = TrainOptions(2, IterationLimit(20), interior=SQRT, selection=Level1())
    keep = Keep()
    outcome = train(stock_and_memory(), LocalBackend(), interior, checkpoint=keep)
    assert outcome.lower_bound == pytest.approx(solve_extensive_form(stock_and_memory()), rel=1e-9)
    # The points at which cuts were made: the memory is what the inflows made it.
    points = checkpoint.unpack_checkpoint(keep.data, "here").points[0]
    assert set(points[:, 1].tolist()) <= {0.5, 2.5}


def stocks(count):
    """So many stocks that serve one demand."""

    def stage(sp, t):
        (bought,) = sp.variables("bought")
        served = bought
        for number in range(count):
            stock = sp.state(f"stock {number}", initial=3.0, lower=0.0, upper=4.0 + number)
            used, spilled = sp.variables(f"used{number} spilled{number}")
            inflow = sp.noise([0.0, 1.0 + number], name=f"inflow {number}")
            sp.add(stock.out == stock.in_ - used - spilled + inflow, f"balance {number}")
            served = served + used
        sp.add(served >= 2.0 * count, "demand")
        sp.minimise((2.0 + t) * bought)

    return build(Graph.linear(3), stage, lower_bound=0.0, name="stocks")


def test_by_default_points_move_where_ten_states_have_bounds():
    for count, moved in ((9, False), (10, True)):
        problem = stocks(count)
        digests = {
            name: train(problem, LocalBackend(), TrainOptions(2, IterationLimit(2), **given)).policy.digest
            for name, given in (
                ("default", {}),
                ("plain", {"interior": None}),
                ("all", {"interior": DEFAULT}),
            )
        }
        assert digests["default"] == digests["all" if moved else "plain"]
        assert digests["all"] != digests["plain"]


def only_feasible_where_trajectories_go(comm, native=None, threads=1):
    """The last stage cannot take what the middle of the stock's bounds is, and no trajectory hands that on."""
    problem = stock_and_memory(ceiling=3.0)
    options = TrainOptions(
        4, IterationLimit(12), interior=SQRT, threads=threads, solver=SolverOptions(native=native)
    )
    outcome = train(problem, comm, options)
    return outcome.policy.digest, outcome.history.lp_solves, outcome.history.lower_bound


def test_where_nothing_is_feasible_inside_cuts_are_made_at_the_trial_points():
    expected = only_feasible_where_trajectories_go(LocalBackend())
    optimum = solve_extensive_form(stock_and_memory(ceiling=3.0))
    assert expected[2][-1] == pytest.approx(optimum, rel=1e-9)
    # What was solved in vain is not counted, because how much that is differs by rank.
    assert expected[1] == [4 * 3 + 4 * 2 * 2 + 2] * 12
    assert only_feasible_where_trajectories_go(LocalBackend(), False) == expected
    assert only_feasible_where_trajectories_go(LocalBackend(), None, 3) == expected
    for backend in ("threads", "shm"):
        found = run_ranks(backend, 2, only_feasible_where_trajectories_go, timeout=120)
        assert found == [expected] * 2
    assert run_ranks("threads", 3, only_feasible_where_trajectories_go, False, timeout=120) == [expected] * 3


@given(st.integers(0, 10**6), st.sampled_from([DEFAULT, SQRT, HARMONIC, SHORT]))
@settings(PATIENT, max_examples=25)
def test_every_bound_is_one(seed, interior):
    problem = random_problem(Recipe(stages=3, states=2, controls=2, openings=3), seed)
    optimum = solve_extensive_form(problem) * problem.sense.sign
    options = TrainOptions(4, IterationLimit(15), interior=interior)
    bounds = np.array(train(problem, LocalBackend(), options).history.lower_bound)
    assert (bounds <= optimum + 1e-6 * max(1.0, abs(optimum))).all()
    assert (np.diff(bounds) >= -1e-7 * max(1.0, abs(optimum))).all()


@pytest.mark.parametrize("interior", [DEFAULT, SQRT, HARMONIC, SHORT])
def test_known_optima_are_reached(interior):
    for problem, optimum in ((problems.reservoir(4), 275 / 6), (problems.reservoir_for_ever(), 715 / 6)):
        options = TrainOptions(4, IterationLimit(80), interior=interior)
        assert train(problem, LocalBackend(), options).lower_bound == pytest.approx(optimum, rel=1e-6)


CONFIGURATIONS = {
    "linear": (lambda: problems.reservoir(5), {}),
    "selection": (lambda: problems.reservoir(4), {"selection": Level1(every=2)}),
    "risk": (problems.production, {"risk": CVaR(0.4)}),
    "cyclic": (problems.reservoir_for_ever, {}),
    "markovian": (problems.valley, {}),
}


def bits(comm, name, native, threads, interior=SQRT):
    make, more = CONFIGURATIONS[name]
    problem = make()
    options = TrainOptions(
        5,
        IterationLimit(6),
        interior=interior,
        threads=threads,
        solver=SolverOptions(native=native),
        **more,
    )
    outcome = train(problem, comm, options)
    costs = simulate(problem, outcome.policy, 6, comm).total_cost
    return outcome.policy.digest, costs.tobytes()


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("interior", [DEFAULT, SQRT], ids=["graded", "alike"])
def test_the_same_bits_on_every_path(name, interior):
    """Native and reference solver, threads, one rank, static division and shared work queue."""
    expected = bits(LocalBackend(), name, None, 1, interior)
    assert bits(LocalBackend(), name, False, 1, interior) == expected
    assert bits(LocalBackend(), name, None, 3, interior) == expected
    assert run_ranks("threads", 2, bits, name, None, 1, interior, timeout=120) == [expected] * 2
    assert run_ranks("threads", 3, bits, name, False, 1, interior, timeout=120) == [expected] * 3
    assert run_ranks("shm", 2, bits, name, None, 1, interior, timeout=120) == [expected] * 2


def test_the_cuts_are_made_at_the_interior_points():
    """At the first iteration's points the last but one node's cost-to-go is exact: nothing follows its child."""
    problem = problems.reservoir(2)
    plain = train(problem, LocalBackend(), TrainOptions(1, IterationLimit(1), interior=None))
    moved = train(problem, LocalBackend(), TrainOptions(1, IterationLimit(1), interior=SQRT))
    assert plain.policy.digest != moved.policy.digest
    state = simulate(problem, plain.policy, 1, LocalBackend()).state
    assert np.isfinite(state).all()
    for index in range(len(problem.nodes) - 1):
        assert len(moved.policy.cuts[index]) == len(plain.policy.cuts[index])


class Keep:
    def due(self, iteration, *, last):
        return iteration == 3

    def write(self, state):
        self.data = checkpoint.pack_checkpoint(state)
        return Receipt("memory", len(self.data))


@pytest.mark.parametrize("interior", [DEFAULT, SQRT])
def test_resumed_training_goes_on_with_the_same_weights(interior):
    problem, keep = problems.reservoir(4), Keep()
    options = TrainOptions(3, IterationLimit(7), interior=interior)
    whole = train(problem, LocalBackend(), options, checkpoint=keep)
    state = checkpoint.unpack_checkpoint(keep.data, "here")
    assert train(problem, LocalBackend(), options, state=state).policy.digest == whole.policy.digest
    with pytest.raises(PolicyError, match=r"interior was InteriorPoints\(initial=0.5, .*\), is None"):
        train(problem, LocalBackend(), replace(options, interior=None), state=state)
