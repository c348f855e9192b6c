"""The policy graph of a case: the chain of its stages, or the nodes that it declares, with their arcs."""

from __future__ import annotations

from collections.abc import Sequence

from pycobre._util.frozen import frozen
from pycobre.hydro.model.horizon import GraphNode, PolicyGraph, Stage

__all__ = ["MOST_PATHS", "START", "CaseGraph", "graph_of"]

MOST_PATHS = 10_000  #: of an enumeration

START = -1  #: in place of a node: where every path begins


@frozen(eq=False)
class CaseGraph:
    """Nodes in the order of stages, then of ids. Without nodes of its own a case has one for every stage."""

    nodes: tuple[GraphNode, ...]
    stage_of: tuple[int, ...]  #: position of each node's stage
    arcs: tuple[tuple[int, int, float], ...]  #: (source, target, probability), positions of nodes
    declared: bool  #: whether the case has nodes of its own
    cyclic: bool = False  #: whether the first stage follows the last, for ever

    @property
    def names(self) -> tuple[str, ...]:
        """What the nodes are called in policies, events and messages."""
        if not self.declared:
            return tuple(f"stage {node.stage_id}" for node in self.nodes)
        return tuple(f"node {node.id}, stage {node.stage_id}" for node in self.nodes)

    @property
    def pinned(self) -> bool:
        """Whether nodes name the external scenario that they see."""
        return any(node.scenario_id is not None for node in self.nodes)

    def count_paths(self, openings: Sequence[int]) -> int:
        """How many paths there are, with so many openings in each stage; nodes that name a scenario have one."""
        following: list[list[int]] = [[] for _ in self.nodes]
        for source, target, probability in self.arcs:
            if probability > 0.0 and source != START:
                following[source].append(target)
        below = [0] * len(self.nodes)
        for i in reversed(range(len(self.nodes))):
            own = 1 if self.nodes[i].scenario_id is not None else openings[self.stage_of[i]]
            below[i] = own * (sum(below[j] for j in following[i]) if following[i] else 1)
        return below[0] if below else 0

    def predecessors(self) -> list[list[int]]:
        """The nodes that lead to each node; `START` leads to the first."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for source, target, probability in self.arcs:
            if probability > 0.0:
                found[target].append(source)
        return found


def graph_of(policy_graph: PolicyGraph, stages: tuple[Stage, ...]) -> CaseGraph:
    """The graph of a case whose graph has been checked; what leaves a node is normalised to sum to one."""
    if not policy_graph.nodes:
        chain = tuple(GraphNode(id=stage.id, stage_id=stage.id) for stage in stages)
        arcs = tuple((t - 1 if t else START, t, 1.0) for t in range(len(stages)))
        cyclic = policy_graph.type == "cyclic"
        if cyclic:
            arcs = (*arcs, (len(stages) - 1, 0, 1.0))
        return CaseGraph(chain, tuple(range(len(stages))), arcs, declared=False, cyclic=cyclic)
    position = {stage.id: t for t, stage in enumerate(stages)}
    nodes = tuple(sorted(policy_graph.nodes, key=lambda node: (position[node.stage_id], node.id)))
    place = {node.id: i for i, node in enumerate(nodes)}
    total: dict[int, float] = {}
    for arc in policy_graph.transitions:
        total[arc.source_id] = total.get(arc.source_id, 0.0) + arc.probability
    arcs = (
        (START, 0, 1.0),
        *(
            (place[arc.source_id], place[arc.target_id], arc.probability / total[arc.source_id])
            for arc in policy_graph.transitions
        ),
    )
    return CaseGraph(nodes, tuple(position[node.stage_id] for node in nodes), arcs, declared=True)
