"""Bounds are named by sense, and a bound that is none is called an estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pycobre.comm import LocalBackend
from pycobre.events import IterationFinished, TrainingFinished, event_from_dict
from pycobre.problem import Problem
from pycobre.sddp import IterationLimit, TrainOptions, train
from pycobre.solver import RhsCorrections
from pycobre.testing import problems

OPTIONS = TrainOptions(3, IterationLimit(4))


def test_a_minimised_problem_has_a_lower_bound():
    outcome = train(problems.reservoir(3), LocalBackend(), OPTIONS)
    assert outcome.bound_name == "lower bound"
    assert outcome.bound == outcome.lower_bound == outcome.history.final_lower_bound
    assert outcome.simulated == outcome.upper_bound == outcome.history.final_upper_bound
    assert f": lower bound {outcome.bound:.10g}, simulated {outcome.simulated:.10g}, " in repr(outcome)
    assert f"  lower bound  {outcome.bound:.10g}" in outcome.policy.summary().splitlines()
    assert outcome.estimate is None


def test_a_maximised_problem_has_an_upper_bound():
    events = []
    problem = problems.hydro_reward()
    outcome = train(problem, LocalBackend(), OPTIONS, on_event=lambda event: events.append(event) and None)
    assert outcome.bound_name == "upper bound"
    assert outcome.bound == -outcome.history.final_lower_bound
    assert f": upper bound {outcome.bound:.10g}, simulated " in repr(outcome)
    assert f"  upper bound  {outcome.bound:.10g}" in outcome.policy.summary().splitlines()
    told = [event for event in events if isinstance(event, IterationFinished | TrainingFinished)]
    assert len(told) == 5
    for event in told:
        assert (event.sense, event.bound_name) == ("maximise", "upper bound")
        assert event_from_dict(event.to_dict()) == event
    assert told[-1].lower_bound == outcome.bound


def truncating(inputs: int) -> Problem:
    """`reservoir` whose last stage corrects a right-hand side, by the incoming state or not."""
    problem = problems.reservoir(3)
    last = problem.nodes[-1]
    none, one = np.zeros(0, np.int32), np.zeros(1, np.int32)
    corrections = RhsCorrections(
        limit=[-1e6],
        row=one,
        starts=[0, inputs],
        input=one if inputs else none,
        coef=np.ones(inputs),
        effect_floor=one,
        effect_row=one,
        effect_multiplier=[1.0],
    )
    return replace(problem, nodes=(*problem.nodes[:-1], replace(last, rhs_corrections=corrections)))


def test_a_truncated_right_hand_side_makes_the_bound_an_estimate():
    events = []
    outcome = train(
        truncating(1), LocalBackend(), OPTIONS, on_event=lambda event: events.append(event) and None
    )
    assert outcome.estimate == (
        "node '3' truncates a right-hand side that depends on the incoming state (an inflow with lags): its cuts "
        "are not valid for all states"
    )
    assert outcome.bound_name == "estimate of the lower bound"
    assert events[-1].estimate == outcome.estimate


def test_without_the_incoming_state_it_is_a_bound():
    assert train(truncating(0), LocalBackend(), OPTIONS).estimate is None
