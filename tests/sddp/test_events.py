"""The event stream: its order, its numbers, and its trip through JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import pytest
from sddp_runs import Keep

from pycobre.comm import LocalBackend
from pycobre.events import Event, TrainingFinished, event_from_dict
from pycobre.problem import Graph, build
from pycobre.sddp import AnyOf, BoundStalling, IterationLimit, Level1, TrainOptions, simulate, train
from pycobre.solver import SolverOptions
from pycobre.solver.reference import chains
from pycobre.testing import problems


def stream(problem, options, **more) -> tuple[list[Event], object]:
    events: list[Event] = []
    outcome = train(problem, LocalBackend(), options, on_event=events.append, **more)
    return events, outcome


def test_events_come_in_the_order_of_the_steps():
    options = TrainOptions(3, IterationLimit(2), selection=Level1(every=2))
    events, outcome = stream(problems.hydro_thermal(), options, checkpoint=Keep(every=2))
    step = ["forward_finished", "stage_finished", "stage_finished"]
    assert [event.kind for event in events] == [
        "training_started",
        *step,
        "iteration_finished",
        *step,
        "selection_finished",
        "iteration_finished",
        "checkpoint_written",
        "training_finished",
    ]
    assert all(first.time_s <= second.time_s for first, second in pairwise(events))
    stages = [event for event in events if event.kind == "stage_finished"]
    assert [(event.depth, event.nodes, event.cuts) for event in stages[:2]] == [
        (1, ("2",), 3),
        (0, ("1",), 3),
    ]
    last = [event for event in events if event.kind == "iteration_finished"][-1]
    assert (last.lower_bound, last.upper_bound) == (outcome.lower_bound, outcome.upper_bound)
    assert last.lp_solves == 3 * 3 + 3 * 2 * 3 + 3  # M·T + M·Σ openings + openings of the first stage
    done = events[-1]
    assert isinstance(done, TrainingFinished)
    assert done.policy_digest == outcome.policy.digest
    assert done.cuts == 12
    timing = done.timing[0]
    assert timing.lp_solves == 2 * last.lp_solves
    assert 0 < timing.solve_s <= timing.total_s


def test_numbers_that_will_hurt_are_said_before_the_first_iteration():
    def stage(sp, t):
        volume = sp.state("volume", initial=2e9, upper=3e12)
        thermal, released = sp.variables("thermal released")
        sp.add(volume.out == volume.in_ - released, "balance")
        sp.add(released + thermal == 1e9, "demand")
        sp.minimise(thermal)

    problem = build(Graph.linear(3), stage, lower_bound=0)
    events, outcome = stream(problem, TrainOptions(1, IterationLimit(1)))
    expected = "node '1' and 2 more: column bounds reach 3e+12 (volume.out): measure in larger units."
    assert outcome.warnings == (expected,)
    assert [event.kind for event in events[:3]] == ["training_started", "warning", "forward_finished"]
    assert (events[1].message, events[1].iteration) == (expected, 0)


def test_retries_of_the_solver_are_counted_and_said():
    hard = SolverOptions(iteration_limit=1, tableau_entries=0, kernel_rows=0)
    options = TrainOptions(2, IterationLimit(3), solver=hard)
    _, outcome = stream(problems.hydro_thermal(), options)
    (warning,) = outcome.warnings
    found = re.fullmatch(r"some LPs did not end optimal at once: (\d+) retries were needed .*", warning)
    assert found is not None
    assert 0 < int(found[1]) <= 5 * sum(outcome.history.lp_solves)
    _, easy = stream(problems.hydro_thermal(), replace(options, solver=SolverOptions()))
    assert easy.warnings == ()


def test_answers_that_fail_the_certificate_are_counted_and_said(monkeypatch):
    number, honest = count(), chains.certified
    failing = {20, 21, 22, 23}  # one LP fails at every attempt, the next one once

    def certified(*given):
        return next(number) not in failing and honest(*given)

    monkeypatch.setattr(chains, "certified", certified)
    options = TrainOptions(
        2, IterationLimit(3), solver=SolverOptions(native=False, tableau_entries=0, kernel_rows=0)
    )
    _, outcome = stream(problems.hydro_thermal(), options)
    assert [warning.split(":")[0] for warning in outcome.warnings] == [
        "HiGHS called 4 answers optimal that failed the certificate (feasibility and objective against the LP's "
        "own numbers); they were solved again from scratch.",
        "1 LPs failed the certificate at the last attempt too and were taken as they are",
    ]
    assert outcome.timing.rejected_answers.sum() == 4
    assert 0 < outcome.lower_bound <= 25000 / 3 + 1e-6


def test_amounts_are_as_the_author_sees_them():
    rules = AnyOf(IterationLimit(30), BoundStalling(3, 1e-9))
    events, outcome = stream(problems.farmer(), TrainOptions(4, rules))
    bounds = [event.lower_bound for event in events if event.kind == "iteration_finished"]
    assert np.all(np.diff(bounds) <= 1e-12 * np.abs(bounds[0]))  # falls, up to rounding
    assert bounds[-1] == outcome.lower_bound == pytest.approx(108390.0)
    assert (outcome.reason, outcome.converged) == ("bound_stalling", True)


def test_every_event_survives_json():
    events, outcome = stream(
        problems.wrong_bound(10.0), TrainOptions(2, IterationLimit(2)), checkpoint=Keep()
    )
    simulate(problems.wrong_bound(), outcome.policy, 5, LocalBackend(), on_event=events.append)
    kinds = {event.kind for event in events}
    assert {"warning", "simulation_started", "simulation_progress", "simulation_finished"} <= kinds
    for event in events:
        assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    with pytest.raises(KeyError):
        event_from_dict({"kind": "nonsense"})
    with pytest.raises(TypeError):
        event_from_dict({"kind": "warning", "message": "x", "colour": "red"})
