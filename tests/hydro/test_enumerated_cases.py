"""Cases that walk every path: exact bounds and gaps, weighted tables, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from random_case import random_case
from random_graph import EXTERNAL
from small_case import config, one_reservoir, stages

import pycobre
from pycobre.hydro.build import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import (
    BoundStalling,
    ClassScheme,
    Enumerated,
    GapRule,
    GrowingTrajectoriesConfig,
    IterationLimit,
    SampledScenarios,
    ScenarioSource,
)
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.model.graph import MOST_PATHS
from pycobre.problem import solve_extensive_form
from pycobre.sddp import enumeration


def enumerated(case: Case, *rules: Any, simulation: bool = True, **training: Any) -> Case:
    chosen = rules or (GapRule(relative_tolerance=1e-7),)
    trained = replace(
        case.config.training,
        selection=Enumerated(),
        stopping_rules=(IterationLimit(limit=80), *chosen),
        **training,
    )
    simulated = replace(case.config.simulation, enabled=simulation, selection=Enumerated())
    return replace(case, config=replace(case.config, training=trained, simulation=simulated))


def said(case: Case) -> list[str]:
    return [str(finding) for finding in check_case(case) if finding.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "features",
    [
        "tree lags",
        "tree random_load sources discount",
        "recombining blocks",
        "chronological cvar",
        "tree cvar",
    ],
)
def test_the_gap_closes_at_the_optimum(features: str) -> None:
    case = enumerated(random_case(41, *features.split(), openings=2))
    found = pycobre.train(case)
    metadata = found.metadata
    assert (metadata["termination_reason"], metadata["upper_bound_kind"]) == ("gap", "exact")
    lower, upper = found.final_lower_bound, found.final_upper_bound
    assert upper == pytest.approx(lower, rel=1e-7)
    if "cvar" not in features:
        assert lower == pytest.approx(solve_extensive_form(build_model(case).problem), rel=1e-7)


def test_simulated_paths_carry_their_probabilities() -> None:
    case = enumerated(random_case(43, "tree", "random_load"))
    trained = pycobre.train(case)
    simulated = pycobre.simulate(case, trained.policy)
    table = simulated.tables["scenarios"]
    probability, cost = (table[name].to_numpy() for name in ("probability", "cost"))
    assert simulated.scenarios == len(probability) == 4
    assert math.fsum(probability.tolist()) == pytest.approx(1.0, abs=1e-12)
    assert simulated.mean_cost == pytest.approx(float((probability * cost).sum()), rel=1e-12)
    assert simulated.mean_cost == pytest.approx(trained.final_lower_bound, rel=1e-6)
    nodes = simulated.tables["costs"]["node_id"].to_numpy().reshape(4, 3)
    assert nodes.tolist() == [[0, 1, 3], [0, 1, 4], [0, 2, 5], [0, 2, 6]]


def test_a_number_of_scenarios_samples_instead() -> None:
    case = enumerated(random_case(43, "tree"))
    policy = pycobre.train(case).policy
    simulated = pycobre.simulate(case, policy, scenarios=7)
    assert simulated.scenarios == 7
    assert "scenarios" not in simulated.tables


def test_energy_not_served_is_weighted_by_probability() -> None:
    case = enumerated(random_case(45, "tree", "random_load"))
    case = replace(case, thermals=case.thermals[:1])
    simulated = pycobre.simulate(case, pycobre.train(case).policy)
    probability = simulated.tables["scenarios"]["probability"].to_numpy()
    buses = simulated.tables["buses"]
    scenario = buses["scenario_id"].to_numpy()
    energy = buses["deficit_mw"].to_numpy() * buses["hours"].to_numpy()
    expected = float((energy * probability[scenario]).sum())
    assert expected > 0.0
    assert simulated.metadata["simulation"]["indicators"]["eens_mwh"] == pytest.approx(expected, rel=1e-6)


def with_source(case: Case, **schemes: ClassScheme) -> Case:
    training = replace(case.config.training, scenario_source=ScenarioSource(seed=1, **schemes))
    return replace(case, config=replace(case.config, training=training))


def test_what_cannot_be_enumerated_is_said() -> None:
    many = enumerated(one_reservoir(stages=stages(9, openings=4)))
    sampled = replace(config(), training=replace(config().training, stopping_rules=(GapRule(tolerance=1.0),)))
    wrong = {
        "training.selection: at most 10000 paths are enumerated, got 262 144 paths": many,
        "simulation.selection: at most 10000 paths are enumerated": many,
        "take the openings of the stages, or the scenarios that nodes name, got out_of_sample": with_source(
            enumerated(random_case(1)), inflow=ClassScheme(scheme="out_of_sample")
        ),
        "nodes name, got external. Declare policy_graph.nodes with their scenario_id": with_source(
            replace(random_case(1, "tree"), policy_graph=random_case(1).policy_graph), inflow=EXTERNAL
        ),
        "the rule gap needs an exact upper bound, got sampled paths": replace(random_case(1), config=sampled),
        "a gap has a tolerance or a relative_tolerance, got neither": enumerated(random_case(1), GapRule()),
        "a gap is not negative, got -1": enumerated(random_case(1), GapRule(tolerance=-1.0)),
        "the number of paths does not grow where all are enumerated": enumerated(
            random_case(1), growing_trajectories=GrowingTrajectoriesConfig()
        ),
    }
    for text, case in wrong.items():
        each = case
        if "got external" in text:
            training = replace(case.config.training, selection=Enumerated())
            each = replace(case, config=replace(case.config, training=training))
        assert any(text in finding for finding in said(each)), (text, said(each))
    assert enumeration.MOST_PATHS == MOST_PATHS


def test_training_and_simulation_choose_by_themselves() -> None:
    case = enumerated(random_case(47, "tree"), BoundStalling(iterations=3, tolerance=1e-9))
    simulation = replace(case.config.simulation, selection=SampledScenarios(num_scenarios=5))
    mixed = replace(case, config=replace(case.config, simulation=simulation))
    result = pycobre.train(mixed)
    assert pycobre.simulate(mixed, result.policy).scenarios == 5
