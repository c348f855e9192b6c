"""Policy graphs for random cases: scenario trees of external scenarios, and graphs whose paths meet again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pycobre.hydro.model import scenarios as sce
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import ClassScheme, ScenarioSource
from pycobre.hydro.model.horizon import GraphNode, Transition

EXTERNAL = ClassScheme(scheme="external")


def recombining(case: Case, seed: int) -> Case:
    """Two nodes at every stage but the first, each reached from both before it; openings are the stage's."""
    draw = np.random.default_rng(seed)
    nodes, arcs, before = [GraphNode(id=0, stage_id=0)], [], [0]
    for stage in case.stages[1:]:
        here = [2 * stage.id - 1, 2 * stage.id]
        nodes += [GraphNode(id=i, stage_id=stage.id, label=f"state {i}") for i in here]
        for source in before:
            share = float(draw.uniform(0.2, 0.8))
            arcs += [transition(source, here[0], share), transition(source, here[1], 1.0 - share)]
        before = here
    return with_graph(case, nodes, arcs)


def tree(case: Case, seed: int) -> Case:
    """Two branches from every node of a scenario tree; all that is random is external, a scenario by node."""
    draw = np.random.default_rng(seed)
    nodes, arcs, before = [GraphNode(id=0, stage_id=0, scenario_id=0)], [], [0]
    for stage in case.stages[1:]:
        here = []
        for place, source in enumerate(before):
            share = float(draw.uniform(0.2, 0.8))
            for turn, probability in enumerate((share, 1.0 - share)):
                node = GraphNode(id=len(nodes), stage_id=stage.id, scenario_id=2 * place + turn)
                nodes.append(node)
                here.append(node.id)
                arcs.append(transition(source, node.id, probability))
        before = here
    # One scenario more than nodes need at the first stage: Cobre takes a library of one for a constant.
    counts = [max(2, 2**t) for t in range(len(case.stages))]
    case = with_graph(case, nodes, arcs)
    pairs = np.array([(t, s) for t, n in enumerate(counts) for s in range(n)])
    keys = {"stage_id": pairs[:, 0], "scenario_id": pairs[:, 1]}
    plants = [hydro.id for hydro in case.hydros]
    random = bool((case.load_stats.std_mw > 0.0).any())
    buses = sorted(set(case.load_stats.bus_id.tolist())) if random else []
    sources = sorted(set(case.source_stats.ncs_id.tolist()))
    chosen = ScenarioSource(
        seed=1, inflow=EXTERNAL, load=EXTERNAL if buses else None, ncs=EXTERNAL if sources else None
    )
    training = replace(case.config.training, scenario_source=chosen)

    def rows(ids: list[int], low: float, high: float, key: str, value: str) -> dict[str, np.ndarray]:
        many = {name: np.repeat(column, len(ids)) for name, column in keys.items()}
        count = len(many["stage_id"])
        return many | {key: np.tile(ids, len(pairs)), value: draw.uniform(low, high, count)}

    return replace(
        case,
        config=replace(case.config, training=training),
        stages=tuple(replace(each, num_openings=None) for each in case.stages),
        external_inflows=sce.ExternalInflows(**rows(plants, 4.0, 30.0, "hydro_id", "value_m3s")),
        external_loads=sce.ExternalLoads(**rows(buses, 30.0, 70.0, "bus_id", "value_mw"))
        if buses
        else case.external_loads,
        external_sources=sce.ExternalSources(**rows(sources, 0.2, 0.9, "ncs_id", "availability_factor"))
        if sources
        else case.external_sources,
    )


def with_graph(case: Case, nodes: list[GraphNode], arcs: list[Transition]) -> Case:
    return replace(case, policy_graph=replace(case.policy_graph, nodes=tuple(nodes), transitions=tuple(arcs)))


def transition(source: int, target: int, probability: float) -> Transition:
    return Transition(source_id=source, target_id=target, probability=probability)
