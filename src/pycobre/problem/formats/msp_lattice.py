"""The lattice of an MSPFormat file: nodes by stage, each with one realisation of the data.

    {"17": {"stage": 1, "state": {"inflow_0": 3.2, …}, "successors": {"23": 0.5, "24": 0.5}}, …}

The file does not say how a path begins: every node of stage 0 is equally likely. Where all nodes of a stage have the
same successors, and all of the stage before lead to them with the same probabilities, the stage does not know its
past: its nodes become the openings of one node of the policy graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.formats.json_values import Json, read_json
from pycobre.problem.policy_graph import Graph

__all__ = ["Lattice", "LatticeNode", "Outcome", "read_lattice"]

ROUNDED = 1e-6  # how far probabilities in a file may be from a sum of 1, by the digits that were written


@frozen(eq=False)
class Outcome:
    """One realisation of a node's data."""

    probability: float
    values: Mapping[str, float]


@frozen(eq=False)
class LatticeNode:
    """A node of the policy graph, with the outcomes it may see."""

    key: str
    stage: int
    outcomes: tuple[Outcome, ...]


@frozen(eq=False)
class Lattice:
    """The policy graph of a lattice; its nodes by key."""

    graph: Graph
    nodes: Mapping[str, LatticeNode]
    names: frozenset[str]  #: of all data that any node knows


@frozen(eq=False)
class _Entry:
    stage: int
    values: Mapping[str, float]
    successors: Mapping[str, float]


def read_lattice(path: Path) -> Lattice:
    """Read a `*.lattice.json` file; raises ProblemError that says where it is wrong."""
    root = read_json(path)
    entries = {key: _entry(value) for key, value in root.items()}
    stages = _by_stage(entries, root)
    for stage, keys in enumerate(stages):
        following = frozenset(stages[stage + 1]) if stage + 1 < len(stages) else frozenset()
        for key in keys:
            _check_successors(key, entries[key], following, root)
    return _policy_graph(stages, entries)


def _entry(value: Json) -> _Entry:
    successors = value.key("successors") if value.has("successors") else Json({}, value.file)
    return _Entry(
        stage=value.key("stage").count(),
        values={name: each.number() for name, each in value.key("state").items()},
        successors={name: each.number() for name, each in successors.items()},
    )


def _by_stage(entries: Mapping[str, _Entry], root: Json) -> list[list[str]]:
    if not entries:
        root.fail("at least one node")
    last = max(entry.stage for entry in entries.values())
    if last >= len(entries):
        root.fail(f"nodes in every stage from 0 to {last}")
    stages: list[list[str]] = [[] for _ in range(last + 1)]
    for key in sorted(entries, key=lambda key: (len(key), key) if key.isdecimal() else (math.inf, key)):
        stages[entries[key].stage].append(key)
    for stage, keys in enumerate(stages):
        if not keys:
            root.fail(f"nodes in every stage from 0 to {last}, none is missing: stage {stage} has none")
    return stages


def _check_successors(key: str, entry: _Entry, following: frozenset[str], root: Json) -> None:
    where = f"{root.file}: node {key!r} of stage {entry.stage}"
    unknown = sorted(set(entry.successors) - following)
    if unknown:
        raise ProblemError(f"{where}: successors: expected nodes of the next stage, got {unknown[0]!r}.")
    if not following:
        return
    wrong = [p for p in entry.successors.values() if not 0.0 <= p <= 1.0 + ROUNDED]
    total = math.fsum(entry.successors.values())
    if wrong or abs(total - 1.0) > ROUNDED:
        raise ProblemError(f"{where}: successors: expected probabilities with a sum of 1, got {total:.12g}.")


def _policy_graph(stages: list[list[str]], entries: Mapping[str, _Entry]) -> Lattice:
    graph = Graph()
    nodes: dict[str, LatticeNode] = {}
    before: list[tuple[str, Mapping[str, float]]] = []  # nodes of the graph and where they lead
    for stage, keys in enumerate(stages):
        arriving = _arriving(stage, keys, before)
        if arriving is not None and _all_equal([entries[key].successors for key in keys]):
            name = str(stage)
            if name in nodes:
                name = f"stage {stage}"
            members = [(name, entries[keys[0]].successors)]
            outcomes = tuple(
                Outcome(arriving[key], entries[key].values) for key in keys if arriving[key] > 0.0
            )
            nodes[name] = LatticeNode(name, stage, outcomes)
            graph.add_node(name, stage=stage + 1)
            for source, _ in before or [("root", {})]:
                graph.add_arc(source, name)
        else:
            members = [(key, entries[key].successors) for key in keys]
            for key in keys:
                nodes[key] = LatticeNode(key, stage, (Outcome(1.0, entries[key].values),))
                graph.add_node(key, stage=stage + 1)
                if not before:
                    graph.add_arc("root", key, 1.0 / len(keys))
                for source, leading in before:
                    if leading.get(key, 0.0) > 0.0:
                        graph.add_arc(source, key, leading[key] / math.fsum(leading.values()))
        before = members
    return Lattice(graph, nodes, frozenset(name for entry in entries.values() for name in entry.values))


def _arriving(
    stage: int, keys: list[str], before: list[tuple[str, Mapping[str, float]]]
) -> dict[str, float] | None:
    """With which probability a path comes to each node, where that is the same from everywhere."""
    if stage == 0:
        return dict.fromkeys(keys, 1.0 / len(keys))
    if not _all_equal([leading for _, leading in before]):
        return None
    leading = before[0][1]
    total = math.fsum(leading.values())
    return {key: leading.get(key, 0.0) / total for key in keys}


def _all_equal(distributions: list[Mapping[str, float]]) -> bool:
    return all(each == distributions[0] for each in distributions)
