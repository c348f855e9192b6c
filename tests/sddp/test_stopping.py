"""Stopping rules: each by its definition, and their combinations."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.errors import OptionError
from pycobre.sddp import AllOf, AnyOf, BoundStalling, Gap, IterationLimit, Progress, SimulatedGap, TimeLimit


def progress(lower, upper=None, elapsed=0.0, simulated=None) -> Progress:
    lower = np.array(lower, float)
    upper = lower + 1 if upper is None else np.array(upper, float)
    return Progress(lower, upper, np.zeros(len(lower)), elapsed, simulated)


def test_iteration_limit_counts_all_iterations():
    assert IterationLimit(3).check(progress([1, 2])) is None
    assert IterationLimit(3).check(progress([1, 2, 3])) == ("iteration_limit", False)
    assert IterationLimit(3).iteration_limit == 3


def test_time_limit():
    assert TimeLimit(5.0).check(progress([1], elapsed=4.9)) is None
    assert TimeLimit(5.0).check(progress([1], elapsed=5.0)) == ("time_limit", False)


def test_stalling_compares_the_window_with_its_first_value():
    rule = BoundStalling(3, 0.1)
    assert rule.check(progress([5, 5])) is None
    assert rule.check(progress([0, 5, 5, 5])) == ("bound_stalling", True)
    assert rule.check(progress([4, 5, 5])) is None
    # relative to max(1, |LB|): a step of 9 in 100 stalls, one of 0.2 near zero does not
    assert rule.check(progress([91, 100, 100])) is not None
    assert rule.check(progress([0.0, 0.1, 0.2])) is None


def test_gap():
    assert Gap(0.1).check(progress([10], [11])) == ("gap", True)
    assert Gap(0.1).check(progress([10], [11.1])) is None
    assert Gap(0.1).check(progress([-0.5], [-0.45])) is not None


def test_simulated_gap_asks_for_scenarios_only_when_it_will_look():
    rule = SimulatedGap(4, every=2, z=2.0)
    assert [rule.simulations(i) for i in (1, 2, 3, 4)] == [0, 4, 0, 4]
    costs = np.array([8.0, 12.0, 8.0, 12.0])  # mean 10, half width 2·2.309/2 = 2.309
    assert rule.check(progress([1, 7.6], simulated=costs)) is None
    assert rule.check(progress([1, 7.7], simulated=costs)) == ("simulation", True)
    assert rule.check(progress([1, 2, 9.9], simulated=costs)) is None
    assert rule.check(progress([1, 9.9])) is None


def test_combinations():
    limit, stall = IterationLimit(3), BoundStalling(2, 0.1)
    assert AnyOf(limit, stall).check(progress([5, 5])) == ("bound_stalling", True)
    assert AllOf(limit, stall).check(progress([5, 5])) is None
    assert AllOf(limit, stall).check(progress([5, 5, 5])) == ("iteration_limit and bound_stalling", True)
    assert AnyOf(limit, IterationLimit(2)).iteration_limit == 2
    assert AllOf(limit, stall).iteration_limit is None
    assert AnyOf(limit, SimulatedGap(7, every=1)).simulations(1) == 7


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: IterationLimit(0), "IterationLimit limit: expected a number above 0, got 0"),
        (lambda: TimeLimit(-1), "TimeLimit seconds: expected a number above 0, got -1"),
        (lambda: BoundStalling(1, 0.1), "BoundStalling iterations: expected at least 2, got 1"),
        (lambda: Gap(-0.1), "Gap tolerance: expected a number from 0 on"),
        (lambda: Gap(None, -1.0), "Gap absolute: expected a number from 0 on"),
        (lambda: Gap(), "Gap: expected a tolerance, an absolute one, or both, got none"),
        (lambda: SimulatedGap(1), "SimulatedGap scenarios: expected at least 2, got 1"),
        (lambda: AnyOf(), "AnyOf: expected at least one stopping rule, got none"),
        (lambda: AllOf(), "AllOf: expected at least one stopping rule, got none"),
    ],
)
def test_nonsense_is_refused(make, text):
    with pytest.raises(OptionError, match=text):
        make()
