"""The scenario tree of an SMPS problem: scenarios share their nodes with the parent up to where they branch off."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.formats.smps_stoch import Place, Scenario
from pycobre.problem.policy_graph import Graph

__all__ = ["Tree", "tree_of"]

TOLERANCE = 1e-6


@frozen(eq=False)
class _TreeNode:
    period: int
    scenario: str
    probability: float  #: of all scenarios through it


@frozen(eq=False)
class Tree:
    """Nodes by key, in the order of periods."""

    nodes: Mapping[str, _TreeNode]
    parents: Mapping[str, str]
    _scenarios: Mapping[str, Scenario]

    def graph(self) -> Graph:
        """The tree as a policy graph."""
        graph = Graph()
        roots = math.fsum(node.probability for key, node in self.nodes.items() if self.parents[key] == "root")
        for key, node in self.nodes.items():
            graph.add_node(key, stage=node.period + 1)
            parent = self.parents[key]
            before = roots if parent == "root" else self.nodes[parent].probability
            graph.add_arc(parent, key, node.probability / before)
        return graph

    def period(self, key: str) -> int:
        """The period of a node."""
        return self.nodes[key].period

    def values(self, key: str) -> Mapping[Place, float]:
        """The numbers that a node's scenario has in place of the core's: its own before its parents'."""
        chain: list[Scenario] = []
        name: str | None = self.nodes[key].scenario
        while name is not None:
            chain.append(self._scenarios[name])
            name = chain[-1].parent
        found: dict[Place, float] = {}
        for scenario in reversed(chain):
            found.update(scenario.values)
        return found


def tree_of(
    scenarios: Mapping[str, Scenario], number: Callable[[str, str], int], periods: int, where: str
) -> Tree:
    """Merge the scenarios; `number` gives the position of a period by its name."""
    total = math.fsum(scenario.probability for scenario in scenarios.values())
    if abs(total - 1.0) > TOLERANCE or any(scenario.probability <= 0.0 for scenario in scenarios.values()):
        raise ProblemError(
            f"{where}: scenarios: expected positive probabilities with a sum of 1, got {total:.12g}."
        )
    paths: dict[str, list[str]] = {}
    for name, scenario in scenarios.items():
        branch = number(scenario.period, f"{where}: scenario {name!r}") if scenario.parent is not None else 0
        shared = paths[scenario.parent][:branch] if scenario.parent is not None else []
        paths[name] = shared + [f"{name}:{period + 1}" for period in range(branch, periods)]
    weight: dict[str, float] = {}
    for name, path in paths.items():
        for key in path:
            weight[key] = weight.get(key, 0.0) + scenarios[name].probability
    nodes: dict[str, _TreeNode] = {}
    parents: dict[str, str] = {}
    for period in range(periods):
        for path in paths.values():
            key = path[period]
            if key not in nodes:
                nodes[key] = _TreeNode(period, key.rpartition(":")[0], weight[key])
                parents[key] = path[period - 1] if period else "root"
    return Tree(nodes, parents, scenarios)
