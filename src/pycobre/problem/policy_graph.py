"""Writing down a policy graph: linear, Markovian, cyclic, or arc by arc."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.graph import ROOT
from pycobre.problem.validate_node import PROBABILITY_TOLERANCE

__all__ = ["Graph", "GraphNode"]


@frozen()
class GraphNode:
    """One node: the key its author uses, the name it gets in files, and which stage it belongs to."""

    key: Hashable
    name: str
    stage: int
    discount: float


class Graph:
    """Nodes by key, and the arcs between them; `"root"` is where every path starts.

    Arcs that leave a node with less than probability 1 in all let the path stop there with the rest.
    """

    def __init__(self) -> None:
        self._nodes: dict[Hashable, GraphNode] = {}
        self._arcs: list[tuple[Hashable, Hashable, float, float]] = []

    @classmethod
    def linear(cls, stages: int, *, discount: float = 1.0) -> Graph:
        """One node for each stage, with the keys 1, 2, …, `stages`."""
        graph = cls()
        for t in range(1, stages + 1):
            graph.add_node(t, stage=t, discount=discount)
            graph.add_arc("root" if t == 1 else t - 1, t)
        return graph

    @classmethod
    def markov(cls, transitions: Sequence[ArrayLike], *, discount: float = 1.0) -> Graph:
        """One node (t, i) for each stage t = 1, 2, … and Markov state i = 0, 1, ….

        `transitions[t - 1][i, j]` is the probability of going from state i of stage t − 1 to state j of stage
        t; the first has one row. Rows sum to 1; zeros are kept: a state may be unreachable on purpose.
        """
        graph = cls()
        before: list[Hashable] = ["root"]
        for t, given in enumerate(transitions, start=1):
            matrix = np.atleast_2d(np.asarray(given, dtype=np.float64))
            if matrix.ndim != 2 or len(matrix) != len(before):
                shape = " × ".join(str(extent) for extent in matrix.shape)
                raise ProblemError(
                    f"transition matrix of stage {t}: expected {len(before)} row"
                    f"{'' if len(before) == 1 else 's'}, one for each state of the stage before, got {shape}."
                )
            for i, row in enumerate(matrix):
                if not np.isfinite(row).all() or (row < 0.0).any():
                    raise ProblemError(
                        f"transition matrix of stage {t}, row {i}: expected probabilities, "
                        f"got {row.tolist()}."
                    )
                if abs(row.sum() - 1.0) > PROBABILITY_TOLERANCE:
                    raise ProblemError(
                        f"transition matrix of stage {t}, row {i}: expected a sum of 1, got {row.sum():.12g}."
                    )
            now: list[Hashable] = [(t, j) for j in range(matrix.shape[1])]
            for j, key in enumerate(now):
                graph.add_node(key, name=f"{t}:{j}", stage=t, discount=discount)
                for i, source in enumerate(before):
                    graph.add_arc(source, key, float(matrix[i, j]))
            before = now
        return graph

    @classmethod
    def cyclic(cls, stages: int = 1, *, probability: float = 1.0, discount: float = 1.0) -> Graph:
        """`stages` nodes in a ring, with the keys 1, …, `stages`, that starts at the first.

        `probability` is that of going on from the last to the first; it or `discount` must be below 1.
        """
        graph = cls.linear(stages, discount=discount)
        graph.add_arc(stages, 1, probability)
        return graph

    def add_node(
        self, key: Hashable, *, name: str | None = None, stage: int | None = None, discount: float = 1.0
    ) -> None:
        """Add a node; `discount` multiplies the cost of everything after it."""
        if key == "root" or key in self._nodes:
            raise ProblemError(f"node {key!r}: expected a key of its own, got it twice. Rename one.")
        label = str(key) if name is None else name
        number = len(self._nodes) + 1 if stage is None else stage
        self._nodes[key] = GraphNode(key, label, number, discount)

    def add_arc(
        self, source: Hashable, target: Hashable, probability: float = 1.0, *, discount: float = 1.0
    ) -> None:
        """Add an arc; `discount` multiplies the cost of what follows along it, on top of the node's own.

        Arcs of one node with different discounts d are kept as the largest, D, and probabilities p · d / D:
        the expected cost is the same, and the path stops with what is missing.
        """
        unknown = [key for key in (source, target) if key not in self._nodes]
        if (unknown and unknown != ["root"]) or target == "root":
            raise ProblemError(
                f"arc {source!r} → {target!r}: expected known nodes, got {unknown[-1]!r}. Add it first."
            )
        if not 0.0 < discount <= 1.0 or (source == "root" and discount != 1.0):
            limit = (
                "1, because nothing is paid before it" if source == "root" else "more than 0 and at most 1"
            )
            raise ProblemError(
                f"arc {source!r} → {target!r}: expected a discount of {limit}, got {discount}."
            )
        self._arcs.append((source, target, float(probability), float(discount)))

    def nodes(self) -> list[GraphNode]:
        """Return the nodes in order of addition, each with its whole discount."""
        largest = self._largest_discounts()
        return [
            replace(node, discount=node.discount * largest.get(node.key, 1.0))
            for node in self._nodes.values()
        ]

    def arcs(self) -> list[tuple[int, int, float]]:
        """Return (source, target, probability) with positions of nodes, ROOT for the root."""
        position: dict[Hashable, int] = {key: index for index, key in enumerate(self._nodes)}
        position["root"] = ROOT
        largest = self._largest_discounts()
        return [
            (position[source], position[target], probability * (discount / largest[source]))
            for source, target, probability, discount in self._arcs
        ]

    def _largest_discounts(self) -> dict[Hashable, float]:
        largest: dict[Hashable, float] = {}
        for source, _, _, discount in self._arcs:
            largest[source] = max(discount, largest.get(source, 0.0))
        return largest
