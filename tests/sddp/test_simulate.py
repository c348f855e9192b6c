"""Simulation: tables that add up, as the author sees them, and the right scenarios."""

from __future__ import annotations

import numpy as np
import pytest
from sddp_runs import few_scenarios

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError
from pycobre.sddp import (
    FixedSet,
    IterationLimit,
    OutOfSample,
    Paths,
    Record,
    SimulatedGap,
    SimulateOptions,
    TrainOptions,
    simulate,
    train,
)
from pycobre.testing import problems, run_ranks


@pytest.fixture(scope="module")
def hydro():
    problem = problems.hydro_thermal()
    return problem, train(problem, LocalBackend(), TrainOptions(5, IterationLimit(10))).policy


def every_path(problem, openings):
    names = [node.name for node in problem.nodes]
    choices = np.array(np.meshgrid(*[range(openings)] * len(names), indexing="ij")).reshape(len(names), -1).T
    return Paths.of(
        problem, [[(name, int(k)) for name, k in zip(names, path, strict=True)] for path in choices]
    )


def test_all_paths_of_a_converged_policy_cost_the_bound(hydro):
    problem, policy = hydro
    paths = every_path(problem, 3)
    result = simulate(problem, policy, 27, LocalBackend(), sampler=FixedSet(paths))
    assert result.cost.mean == pytest.approx(25000 / 3, rel=1e-9)


def test_tables_satisfy_the_problem(hydro):
    problem, policy = hydro
    names = problem.nodes[0].template.col_names
    record = Record(columns="all", rows=["balance", "demand"], reduced_costs=["spill"])
    result = simulate(problem, policy, 20, LocalBackend(), record=record)
    assert result.column_names == tuple(names)
    volume, thermal = result.states("volume"), result.values("thermal")
    inflow = np.array([0.0, 50.0, 100.0])[result.opening]
    before = np.concatenate([np.full((20, 1), 200.0), volume[:, :-1]], axis=1)
    assert before - result.values("turbined") - result.values("spill") + inflow == pytest.approx(volume)
    assert result.values("turbined") + thermal == pytest.approx(np.full((20, 3), 150.0))
    assert result.stage_cost == pytest.approx(thermal * np.array([50.0, 100.0, 150.0]))
    assert result.total_cost == pytest.approx(result.stage_cost.sum(axis=1))
    assert np.all(result.discount == 1.0)
    assert np.all(result.duals("demand") >= -1e-9)
    assert np.all(result.reduced_costs("spill") >= -1e-9)
    for s in range(20):
        assert result.cost_to_go[s, 0] == pytest.approx(policy.evaluate(1, volume[s, :1]).value)
    with pytest.raises(KeyError, match="no column 'nothing' was recorded"):
        result.values("nothing")


def test_maximised_rewards_and_duals_are_positive():
    problem = problems.farmer()
    policy = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(20))).policy
    result = simulate(problem, policy, 30, LocalBackend(), record=Record(rows="all"))
    assert result.stage_cost[:, 0] == pytest.approx(np.full(30, -108900.0))
    assert np.all(result.stage_cost[:, 1] > 0)
    assert result.cost_to_go[0, 0] > 0
    acreage = result.row_names.index("area") if "area" in result.row_names else 0
    assert np.all(result.row_dual[:, 0, acreage] > 0)


def test_batches_change_nothing_and_blocks_can_stay_apart(hydro):
    problem, policy = hydro
    whole = simulate(problem, policy, 23, LocalBackend(), SimulateOptions(batch=4))
    assert whole.total_cost.tobytes() == simulate(problem, policy, 23, LocalBackend()).total_cost.tobytes()


def test_all_cuts_in_every_lp_are_as_good_as_lazy_ones(hydro):
    """Decisions may be other ones where several are optimal; the first LP's value and the mean cost may not."""
    problem, policy = hydro
    paths = every_path(problem, 3)
    lazy, whole = (
        simulate(problem, policy, 27, LocalBackend(), SimulateOptions(lazy=each), sampler=FixedSet(paths))
        for each in (True, False)
    )
    assert (whole.stage_cost + whole.cost_to_go)[:, 0] == pytest.approx(
        (lazy.stage_cost + lazy.cost_to_go)[:, 0]
    )
    assert whole.cost.mean == pytest.approx(lazy.cost.mean, rel=1e-9)


def test_paths_of_different_lengths_are_padded():
    problem = problems.reservoir_for_ever()
    policy = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(20))).policy
    result = simulate(problem, policy, 40, LocalBackend(), record=Record(columns="all"))
    assert len(set(result.length.tolist())) > 3
    inside = np.arange(result.node.shape[1]) < result.length[:, None]
    assert np.all((result.node == -1) == ~inside)
    assert np.all(np.isnan(result.stage_cost) == ~inside)
    assert np.all(np.isnan(result.column[:, :, 0]) == ~inside)
    assert result.total_cost == pytest.approx(np.nansum(result.stage_cost, axis=1))


def test_discount_weighs_the_total_only():
    from pycobre.testing.random_problems import Recipe, random_problem

    problem = random_problem(Recipe(stages=3, discount=0.75), 3)
    policy = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(10))).policy
    result = simulate(problem, policy, 10, LocalBackend())
    assert result.discount == pytest.approx(np.repeat([[1.0, 0.75, 0.5625]], 10, axis=0))
    assert result.total_cost == pytest.approx((result.discount * result.stage_cost).sum(axis=1))


def test_noise_from_outside_the_support(hydro):
    problem, policy = hydro
    flood = OutOfSample(
        problem, 1, lambda node, iteration, scenarios, depth: np.full((len(scenarios), 1), 150.0)
    )
    result = simulate(problem, policy, 4, LocalBackend(), sampler=flood)
    assert result.cost.mean == pytest.approx(0.0, abs=1e-6)
    assert np.all(result.opening == -1)


def test_training_stops_when_the_simulation_agrees():
    problem = problems.hydro_thermal()
    rule = SimulatedGap(60, every=2)
    outcome = train(problem, LocalBackend(), TrainOptions(4, rule))
    assert (outcome.reason, outcome.converged) == ("simulation", True)
    assert outcome.iterations % 2 == 0
    assert outcome.iterations < 20


def test_unknown_names_are_refused(hydro):
    problem, policy = hydro
    with pytest.raises(
        OptionError, match=r"there is no column 'termal' in any node\. Did you mean 'thermal'"
    ):
        simulate(problem, policy, 1, LocalBackend(), record=Record(columns=["termal"]))
    with pytest.raises(OptionError, match="scenarios: expected at least 1, got 0"):
        simulate(problem, policy, 0, LocalBackend())
    with pytest.raises(OptionError, match="batch: expected at least 1, got 0"):
        SimulateOptions(batch=0)


def test_ranks_without_scenarios():
    (mean,) = {mean for _, _, mean in run_ranks("threads", 3, few_scenarios, "markov", True)}
    apart = run_ranks("threads", 3, few_scenarios, "markov", False)
    assert apart == [(0, 1, mean), (1, 1, mean), (2, 0, mean)]
