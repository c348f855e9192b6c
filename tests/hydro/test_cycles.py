"""Horizons that repeat for ever: the loop has the value of a horizon so long that its end does not matter."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from random_case import random_case

import pycobre
from pycobre.comm import LocalBackend
from pycobre.hydro.build import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import ClassScheme, Enumerated, PolicyBoundary, ScenarioSource
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.model.horizon import GraphNode, PolicyGraph, Transition
from pycobre.problem import ROOT, Arcs, Problem
from pycobre.sddp import IterationLimit, TrainOptions, train

RATE = 9.0  # a year: a cost is worth a tenth a round later


def cyclic(*features: str, **more: Any) -> Case:
    case = random_case(61, *features, stages=12, openings=2, plants=2, iterations=25, **more)
    return replace(case, policy_graph=PolicyGraph(type="cyclic", annual_discount_rate=RATE))


def unrolled(problem: Problem, rounds: int) -> Problem:
    """The same nodes one round after the other, and then nothing."""
    nodes = tuple(
        replace(node, name=f"{node.name}, round {r}") for r in range(rounds) for node in problem.nodes
    )
    arcs = Arcs.of([(ROOT if t == 0 else t - 1, t, 1.0) for t in range(len(nodes))])
    return replace(problem, nodes=nodes, arcs=arcs)


@pytest.mark.parametrize("features", [(), ("lags", "blocks"), ("sources",)])
def test_the_loop_is_a_horizon_without_an_end(features: tuple[str, ...]) -> None:
    problem = build_model(cyclic(*features)).problem
    assert problem.shape.cyclic
    options = TrainOptions(forward_passes=4, stopping=IterationLimit(25), interior=None)
    loop = train(problem, LocalBackend(), replace(options, max_depth=48)).lower_bound
    long = train(unrolled(problem, 6), LocalBackend(), options)
    assert loop == pytest.approx(long.lower_bound, rel=2e-4)
    once = train(unrolled(problem, 1), LocalBackend(), options).lower_bound
    assert abs(loop - once) > 1e-2 * abs(once), "an end matters in this study"


def test_it_trains_and_simulates_a_round() -> None:
    case = cyclic("blocks", passes=2)
    result = pycobre.train(case)
    simulated = pycobre.simulate(case, result.policy, scenarios=3)
    costs = simulated.tables["costs"]
    assert costs["stage_id"].to_numpy().tolist() == list(range(12)) * 3
    assert (costs["future_cost"].to_numpy() > 0.0).all()
    assert "gap" not in simulated.metadata["simulation"]


def said(case: Case) -> str:
    return " ".join(str(each) for each in check_case(case) if each.severity is Severity.ERROR)


def test_what_does_not_repeat_is_refused() -> None:
    case = cyclic()
    config, graph = case.config, case.policy_graph
    assert said(case) == ""
    back = Transition(source_id=11, target_id=0, probability=1.0)
    assert said(replace(case, policy_graph=replace(graph, transitions=(back,)))) == ""
    fresh = replace(
        config.training, scenario_source=ScenarioSource(seed=1, inflow=ClassScheme(scheme="out_of_sample"))
    )
    months = (*case.stages[:-1], replace(case.stages[-1], end_date=date(2025, 1, 5)))
    wrong = {
        "in a cycle the discount rate is above 0": replace(
            case, policy_graph=replace(graph, annual_discount_rate=0.0)
        ),
        "a cyclic horizon has no nodes of its own, got 1 nodes": replace(
            case, policy_graph=replace(graph, nodes=(GraphNode(id=0, stage_id=0),))
        ),
        "a cycle lasts whole years, got 2024-01-01 to 2025-01-05": replace(case, stages=months),
        "a cycle have no end and are not enumerated": replace(
            case, config=replace(config, training=replace(config.training, selection=Enumerated()))
        ),
        "a cycle has in-sample scenarios, got training: inflow is out_of_sample": replace(
            case, config=replace(config, training=fresh)
        ),
        "nothing lies beyond a cycle": replace(
            case, config=replace(config, policy=replace(config.policy, boundary=PolicyBoundary(path="x")))
        ),
        "in a cycle plants neither enter nor leave service": cyclic("entry"),
        "in a cycle reservoirs do not fill and water arrives at once, got filling": cyclic("filling"),
        "water arrives at once, got travel_time_hours": cyclic("travel"),
        "in a cycle generation is not decided ahead": cyclic("anticipated"),
    }
    for text, each in wrong.items():
        assert text in said(each), text
