"""Cases whose stages hold several nodes: what is refused, and what the nodes of a graph see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_case import random_case
from random_graph import EXTERNAL, transition, tree, with_graph

import pycobre
from pycobre.comm import LocalBackend
from pycobre.hydro.build import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import FileOpenings, ScenarioSource
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.model.horizon import GraphNode, Transition
from pycobre.problem import solve_extensive_form
from pycobre.sddp import IterationLimit, Record, TrainOptions, simulate, train

NODES = [GraphNode(id=i, stage_id=s) for i, s in ((0, 0), (1, 1), (2, 1), (3, 2))]
ARCS = [transition(0, 1, 0.25), transition(0, 2, 0.75), transition(1, 3, 1.0), transition(2, 3, 1.0)]


def said(case: Case) -> list[str]:
    return [str(finding) for finding in check_case(case) if finding.severity is Severity.ERROR]


def put(arcs: list[Transition], at: int, **more: Any) -> list[Transition]:
    return [replace(arc, **more) if i == at else arc for i, arc in enumerate(arcs)]


MALFORMED: dict[str, tuple[list[GraphNode], list[Transition], str]] = {
    "cycle": (
        NODES,
        [*put(ARCS, 2, probability=0.5), transition(1, 0, 0.5)],
        "transition 1 → 0: a transition leads to a node of the next stage, got from stage 1 to stage 0. A path "
        "that comes back makes a cycle",
    ),
    "skip": (
        NODES,
        [*ARCS, transition(0, 3, 0.1)],
        "transition 0 → 3: a transition leads to a node of the next",
    ),
    "orphan": (
        [*NODES, GraphNode(id=9, stage_id=2)],
        ARCS,
        "node 9: a path from the first stage leads to every node, got none",
    ),
    "sum": (
        NODES,
        put(ARCS, 1, probability=0.7),
        "node 0: the probabilities that leave a node sum to 1, got 0.95",
    ),
    "negative": (NODES, put(ARCS, 1, probability=-0.5), "a probability is from 0 to 1, got -0.5"),
    "stage": ([*NODES, GraphNode(id=9, stage_id=7)], ARCS, "node 9: stage_id is the id of a stage, got 7"),
    "no node": (NODES[:3], ARCS[:2], "stage 2: every stage has a node, got none"),
    "two roots": (
        [*NODES, GraphNode(id=9, stage_id=0)],
        [*ARCS, transition(9, 1, 1.0)],
        "stage 0: the first stage has one node, where every path begins, got nodes 0, 9",
    ),
    "end": (NODES, ARCS[:3], "node 2: a path ends at the last stage, got nothing follows at stage 1"),
    "unknown": (NODES, put(ARCS, 2, target_id=8), "transition 1 → 8: target_id is the id of a node, got 8"),
    "twice": ([*NODES, NODES[3]], ARCS, "node 3: every id is used once, got 2 times"),
    "arc twice": (
        NODES,
        [*put(ARCS, 0, probability=0.125), transition(0, 1, 0.125)],
        "transition 0 → 1: a transition is there once, got 2 times",
    ),
    "rate": (
        NODES,
        put(ARCS, 0, annual_discount_rate_override=0.2),
        "between nodes a transition has no discount rate of its own, got 0.2. Put annual_discount_rate_override on",
    ),
    "scenario": (
        [replace(NODES[0], scenario_id=0), *NODES[1:]],
        ARCS,
        "node 0: scenario_id is of external scenarios, and the training has none, got 0",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_graph_is_refused_with_its_reason(name: str) -> None:
    nodes, arcs, text = MALFORMED[name]
    assert any(text in each for each in said(with_graph(random_case(1), nodes, arcs))), name


def test_a_sound_graph_is_not_refused() -> None:
    assert said(with_graph(random_case(1), NODES, ARCS)) == []
    assert said(random_case(1, "tree", "lags", "sources", "random_load")) == []


def pinned(**more: Any) -> Case:
    return random_case(1, "tree", "random_load", **more)


def with_source(case: Case, source: ScenarioSource) -> Case:
    training = replace(case.config.training, scenario_source=source)
    return replace(case, config=replace(case.config, training=training))


def renamed(case: Case, scenario: int | None) -> Case:
    nodes = case.policy_graph.nodes
    return with_graph(
        case, [replace(nodes[0], scenario_id=scenario), *nodes[1:]], list(case.policy_graph.transitions)
    )


def test_scenarios_of_nodes_are_checked() -> None:
    case = pinned()
    file = replace(case.config.training.scenario_source or ScenarioSource(), openings=FileOpenings())
    simulated = replace(case.config.simulation, scenario_source=ScenarioSource())
    lags = random_case(1, "tree", "lags")
    joined = put(list(lags.policy_graph.transitions), 4, target_id=4)
    wrong = {
        "node 0: scenario_id is an external scenario of inflow at stage 0, got 5": renamed(case, 5),
        "node 0: where scenarios are external, every node names its scenario_id, got none, and inflow is": renamed(
            case, None
        ),
        "all that is random is external, got load is in_sample. Set training.scenario_source.load to": with_source(
            case, ScenarioSource(seed=1, inflow=EXTERNAL)
        ),
        "a graph with nodes has no openings from a file": with_source(case, file),
        "a simulation has the scenarios of the training": replace(
            case, config=replace(case.config, simulation=simulated)
        ),
        "stage 0: a stage whose nodes name scenarios has no num_openings, got 2": replace(
            case, stages=tuple(replace(stage, num_openings=2) for stage in case.stages)
        ),
        "one path leads to a node that names its scenario, got 2 transitions": with_graph(
            lags, list(lags.policy_graph.nodes), joined
        ),
    }
    for text, each in wrong.items():
        assert any(text in finding for finding in said(each)), (text, said(each))


def test_nodes_without_branches_are_the_chain_of_stages() -> None:
    chain = random_case(4, "blocks", "lags", "discount", "cvar")
    nodes = [GraphNode(id=10 - s, stage_id=s) for s in range(3)]
    named = with_graph(chain, nodes, [transition(10, 9, 1.0), transition(9, 8, 1.0)])
    ours, theirs = pycobre.train(named), pycobre.train(chain)
    assert ours.convergence_history.equals(theirs.convergence_history)
    assert ours.policy.node_names == ("node 10, stage 0", "node 9, stage 1", "node 8, stage 2")


@pytest.mark.parametrize(
    "features", ["tree", "tree lags random_load sources", "recombining lags blocks", "tree travel"]
)
def test_the_bound_is_the_extensive_forms_value(features: str) -> None:
    problem = build_model(random_case(31, *features.split(), "discount", openings=2)).problem
    options = TrainOptions(forward_passes=4, stopping=IterationLimit(30))
    found = train(problem, LocalBackend(), options)
    assert found.lower_bound == pytest.approx(solve_extensive_form(problem), rel=1e-7)


def test_inflows_of_a_node_are_those_of_its_scenario() -> None:
    """Also where they would depend on earlier ones: the path to the node says what those were."""
    case = random_case(33, "tree", "lags", "chronological", "blocks", stages=4)
    model = build_model(case)
    policy = train(model.problem, LocalBackend(), TrainOptions(stopping=IterationLimit(2))).policy
    found = simulate(model.problem, policy, 12, LocalBackend(), record=Record(columns="all"))
    table = case.external_inflows
    given = {
        key: value
        for *key_, value in zip(
            table.stage_id.tolist(),
            table.scenario_id.tolist(),
            table.hydro_id.tolist(),
            table.value_m3s.tolist(),
            strict=True,
        )
        for key in [tuple(key_)]
    }
    for place, name in enumerate(found.column_names):
        if not name.startswith("inflow["):
            continue
        hydro = next(
            h.id for h, label in zip(case.hydros, model.index.hydro_names, strict=True) if label in name
        )
        for scenario in range(12):
            for t, node in enumerate(found.node[scenario].tolist()):
                expected = given[t, model.graph.nodes[node].scenario_id, hydro]
                assert found.column[scenario, t, place] == pytest.approx(expected, rel=1e-12)


def test_tables_metadata_and_rules_name_the_nodes() -> None:
    case = random_case(35, "recombining", "sources", "blocks")
    result = pycobre.train(case)
    tables = pycobre.simulate(case, result.policy, scenarios=20).tables
    for name in ("costs", "buses", "hydros", "thermals", "non_controllables"):
        stage, node = tables[name]["stage_id"].to_numpy(), tables[name]["node_id"].to_numpy()
        assert set(zip(stage.tolist(), node.tolist(), strict=True)) == {
            (0, 0),
            (1, 1),
            (1, 2),
            (2, 3),
            (2, 4),
        }
    sources = (
        tables["non_controllables"].to_pydict() if hasattr(tables["non_controllables"], "to_pydict") else None
    )
    assert sources is None or min(sources["curtailed_mw"]) > -1e-6
    assert result.policy.evaluate("node 2, stage 1", [5.0] * len(result.policy.state_names)).value >= 0.0


def test_the_tree_of_a_small_case_is_the_problem_written_by_hand() -> None:
    """Every node of the tree has the LP of its stage, one opening, and the probability of its branch."""
    case = tree(random_case(1, openings=1), 7)
    problem = build_model(case).problem
    assert [len(node.noise.probability) for node in problem.nodes] == [1] * 7
    assert [node.stage for node in problem.nodes] == [1, 2, 2, 3, 3, 3, 3]
    leaving = {arc.source_id: arc.probability for arc in reversed(case.policy_graph.transitions)}
    for source in (0, 1, 2):
        targets, probability = problem.shape.successors(source)
        assert targets.tolist() == [2 * source + 1, 2 * source + 2]
        assert probability == pytest.approx([leaving[source], 1.0 - leaving[source]])
    assert np.array_equal(problem.nodes[3].template.cost, problem.nodes[6].template.cost)
