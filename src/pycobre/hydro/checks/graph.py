"""Policy graphs: nodes on stages, transitions one stage ahead, one first node, no loose ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import isfinite

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, duplicate_ids, error
from pycobre.hydro.model.config import Config, FileOpenings
from pycobre.hydro.model.findings import Finding, Layer
from pycobre.hydro.model.horizon import GraphNode, PolicyGraph, Stage, Transition
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    ExternalInflows,
    ExternalLoads,
    ExternalSources,
    LoadStats,
    SourceStats,
)
from pycobre.hydro.model.system import Hydro
from pycobre.hydro.model.table import Table

TOLERANCE = 1e-6  # of a sum of probabilities; within it they are normalised
CLASSES = ("inflow", "load", "ncs")


def _wrong(rule: str, entity: str = "", **more: object) -> Finding:
    return error(
        Layer.REFERENCES, "policy_graph", "policy_graph", rule, entity=entity, where="policy_graph", **more
    )


@check
def chain(policy_graph: PolicyGraph, stages: tuple[Stage, ...]) -> Findings:
    """Without nodes, transitions are between stages and lead to the next one."""
    if policy_graph.nodes:
        return
    back = (stages[-1].id, stages[0].id) if stages and policy_graph.type == "cyclic" else None
    for arc in policy_graph.transitions:
        onwards = arc.target_id == arc.source_id + 1 or (arc.source_id, arc.target_id) == back
        if not onwards or arc.probability != 1.0:
            yield _wrong(
                "without nodes, a transition leads to the next stage with probability 1",
                f"transition {arc.source_id} → {arc.target_id}",
                value=f"probability {arc.probability:g}",
                suggestion="Declare policy_graph.nodes for a graph that branches.",
            )


@check
def declared(policy_graph: PolicyGraph, stages: tuple[Stage, ...]) -> Findings:
    """Every node on a stage, every stage with a node, every transition between nodes."""
    if not policy_graph.nodes:
        return
    yield from duplicate_ids("policy_graph", "node", (node.id for node in policy_graph.nodes))
    known = {stage.id for stage in stages}
    for node in policy_graph.nodes:
        if node.stage_id not in known:
            yield _wrong("stage_id is the id of a stage", f"node {node.id}", value=node.stage_id)
    for stage in stages:
        at = [node.id for node in policy_graph.nodes if node.stage_id == stage.id]
        if not at:
            yield _wrong("every stage has a node", f"stage {stage.id}", value="none")
        elif stage is stages[0] and len(at) > 1:
            yield _wrong(
                "the first stage has one node, where every path begins",
                f"stage {stage.id}",
                value=f"nodes {', '.join(map(str, at))}",
                suggestion="Begin with a stage that they have in common.",
            )


@check
def transitions(policy_graph: PolicyGraph, stages: tuple[Stage, ...]) -> Findings:
    """One stage ahead, probabilities that sum to one, every node on a path from the first stage to the last."""
    nodes = {node.id: node for node in policy_graph.nodes}
    known = {stage.id for stage in stages}
    if not nodes or not all(node.stage_id in known for node in nodes.values()):
        return
    sound = True
    for finding in _arcs(policy_graph, nodes):
        sound = False
        yield finding
    if sound:
        yield from _sums(policy_graph)
        yield from _loose_ends(policy_graph, stages, nodes)


def _arcs(policy_graph: PolicyGraph, nodes: dict[int, GraphNode]) -> Findings:
    for arc in policy_graph.transitions:
        entity = _name(arc)
        ends = [("source_id", arc.source_id), ("target_id", arc.target_id)]
        unknown = [(field, end) for field, end in ends if end not in nodes]
        for field, end in unknown:
            yield _wrong(f"{field} is the id of a node", entity, value=end)
        if unknown:
            continue
        here, there = nodes[arc.source_id].stage_id, nodes[arc.target_id].stage_id
        if there != here + 1:
            back = "A path that comes back makes a cycle, which has no end." if there <= here else ""
            yield _wrong(
                "a transition leads to a node of the next stage",
                entity,
                value=f"from stage {here} to stage {there}",
                suggestion=back,
            )
        if not (isfinite(arc.probability) and 0.0 <= arc.probability <= 1.0):
            yield _wrong("a probability is from 0 to 1", entity, value=arc.probability)
        if arc.annual_discount_rate_override is not None:
            yield _wrong(
                "between nodes a transition has no discount rate of its own",
                entity,
                value=arc.annual_discount_rate_override,
                suggestion="Put annual_discount_rate_override on the stage.",
            )
    pairs = Counter((arc.source_id, arc.target_id) for arc in policy_graph.transitions)
    for (source, target), times in pairs.items():
        if times > 1:
            yield _wrong(
                "a transition is there once", f"transition {source} → {target}", value=f"{times} times"
            )


def _sums(policy_graph: PolicyGraph) -> Findings:
    leaving: dict[int, float] = defaultdict(float)
    for arc in policy_graph.transitions:
        leaving[arc.source_id] += arc.probability
    for source, total in leaving.items():
        if abs(total - 1.0) > TOLERANCE:
            yield _wrong(
                "the probabilities that leave a node sum to 1", f"node {source}", value=f"{total:.9g}"
            )


def _loose_ends(
    policy_graph: PolicyGraph, stages: tuple[Stage, ...], nodes: dict[int, GraphNode]
) -> Findings:
    """Nodes that no path reaches, and paths that end before the last stage."""
    following: dict[int, list[int]] = defaultdict(list)
    for arc in policy_graph.transitions:
        following[arc.source_id].append(arc.target_id)
    waiting = [node.id for node in nodes.values() if node.stage_id == stages[0].id]
    reached = set(waiting)
    while waiting:
        for target in following[waiting.pop()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    for node in nodes.values():
        if node.id not in reached:
            yield _wrong("a path from the first stage leads to every node", f"node {node.id}", value="none")
        elif not following[node.id] and node.stage_id != stages[-1].id:
            value = f"nothing follows at stage {node.stage_id}"
            yield _wrong("a path ends at the last stage", f"node {node.id}", value=value)


@check
def scenarios_of_nodes(
    policy_graph: PolicyGraph,
    stages: tuple[Stage, ...],
    config: Config,
    hydros: tuple[Hydro, ...],
    load_stats: LoadStats,
    source_stats: SourceStats,
    external_inflows: ExternalInflows,
    external_loads: ExternalLoads,
    external_sources: ExternalSources,
    ar_coefficients: ArCoefficients,
) -> Findings:
    """With external scenarios every node names its own, and nothing else is random."""
    if not policy_graph.nodes:
        return
    source = config.training.scenario_source
    schemes = {name: getattr(getattr(source, name, None), "scheme", "in_sample") for name in CLASSES}
    tables: dict[str, tuple[Table, bool]] = {
        "inflow": (external_inflows, bool(hydros)),
        "load": (external_loads, bool((load_stats.std_mw > 0.0).any())),
        "ncs": (external_sources, bool(len(source_stats))),
    }
    external = [name for name, (_, random) in tables.items() if random and schemes[name] == "external"]
    drawn = [name for name, (_, random) in tables.items() if random and schemes[name] != "external"]
    if source is not None and isinstance(source.openings, FileOpenings):
        yield _wrong(
            "a graph with nodes has no openings from a file", value="training.scenario_source.openings"
        )
    for node in policy_graph.nodes:
        entity = f"node {node.id}"
        if node.scenario_id is None:
            if external:
                rule = "where scenarios are external, every node names its scenario_id"
                yield _wrong(rule, entity, value=f"none, and {external[0]} is external")
            continue
        if not external:
            rule = "scenario_id is of external scenarios, and the training has none"
            yield _wrong(rule, entity, value=node.scenario_id)
            continue
        for name in external:
            table = tables[name][0]
            there = getattr(table, "stage_id") == node.stage_id  # noqa: B009 (tables are of several types)
            numbers = np.unique(getattr(table, "scenario_id")[there]).tolist()  # noqa: B009
            if node.scenario_id not in numbers:
                rule = f"scenario_id is an external scenario of {name} at stage {node.stage_id}"
                yield _wrong(rule, entity, value=node.scenario_id)
    pinned = any(node.scenario_id is not None for node in policy_graph.nodes)
    if pinned and external and drawn:
        yield _wrong(
            "where nodes name scenarios, all that is random is external",
            value=f"{drawn[0]} is {schemes[drawn[0]]}",
            suggestion=f'Set training.scenario_source.{drawn[0]} to {{"scheme": "external"}}.',
        )
    other = config.simulation.scenario_source
    if pinned and other is not None and other != source:
        rule = "where nodes name scenarios, a simulation has the scenarios of the training"
        yield _wrong(rule, value="simulation.scenario_source")
    ways = Counter(arc.target_id for arc in policy_graph.transitions if arc.probability > 0.0)
    if pinned and len(ar_coefficients):
        for target, count in sorted(ways.items()):
            if count > 1:
                rule = (
                    "where inflows depend on earlier ones, one path leads to a node that names its scenario"
                )
                yield _wrong(rule, f"node {target}", value=f"{count} transitions")


@check
def openings_of_stages(policy_graph: PolicyGraph, stages: tuple[Stage, ...]) -> Findings:
    """Stages say how many openings they have, unless their nodes name scenarios, of which there is one each."""
    pinned = {node.stage_id for node in policy_graph.nodes if node.scenario_id is not None}
    for stage in stages:
        rule = "num_openings is at least 1"
        wrong = stage.num_openings is None or stage.num_openings < 1
        if stage.id in pinned:
            rule = "a stage whose nodes name scenarios has no num_openings"
            wrong = stage.num_openings is not None
        if wrong:
            value, entity = stage.num_openings, f"stage {stage.id}"
            yield error(Layer.COVERAGE, "num_openings", "stages", rule, entity=entity, value=value)


def _name(arc: Transition) -> str:
    return f"transition {arc.source_id} → {arc.target_id}"
