"""Every path through a graph, in a fixed order, and what a policy costs over all of them.

A path is a sequence of nodes with an opening each. Paths that begin alike share their beginning: they make the same
decisions there, which are solved once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pycobre._util.arrays import F64, I32, I64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.problem import ROOT, Problem
from pycobre.sddp.numbers import Spread, ordered_sum, weighted
from pycobre.sddp.plan import Plan
from pycobre.sddp.risk import RiskMeasure
from pycobre.sddp.sampling import Paths

__all__ = ["MOST_PATHS", "Enumeration", "NestedCost", "count_paths"]

MOST_PATHS = 10_000
"""More paths than these are not enumerated: every iteration would walk them all."""
STOPS = 1e-12  # a probability of stopping from here on is one


def count_paths(problem: Problem) -> int:
    """How many paths a graph without cycles has, those of probability zero left out.

    On error: OptionError for a cyclic graph, whose paths have no end.
    """
    shape = problem.shape
    if shape.cyclic:
        raise OptionError(
            f"enumerated: expected a graph without cycles, got problem {problem.name!r}, whose paths have no end. "
            "Sample forward passes instead."
        )
    below = [0] * len(problem.nodes)
    for i in reversed(shape.order.tolist()):
        openings = int(np.count_nonzero(problem.nodes[i].noise.probability > 0.0))
        following = shape.successors(i)[0].tolist()
        ends = int(not following or shape.stopping[i] > STOPS)
        below[i] = openings * (ends + sum(below[j] for j in following))
    return sum(below[j] for j in shape.successors(ROOT)[0].tolist())


class _Vertex(NamedTuple):
    """A beginning of paths: the last node and opening of it, and the vertex before (−1: none)."""

    depth: int
    node: int
    opening: int
    parent: int
    probability: float


class Outcomes(NamedTuple):
    """The vertices of one node at one depth, each by its first path, and what can follow them."""

    node: int
    own: I64  #: [vertices]
    following: I64  #: [vertices, outcomes]: first paths of what follows; −1 where a path ends


@frozen(eq=False)
class Enumeration:
    """All paths of a problem: children in the order of the graph, openings in that of the node, ends last."""

    paths: Paths
    probability: F64  #: [paths]
    leader: I32  #: [paths, depth]: the first path with the same beginning; the path itself beyond its end
    outcomes: tuple[tuple[Outcomes, ...], ...] = field(default=())  #: by depth

    def __len__(self) -> int:
        return len(self.probability)

    @classmethod
    def of(cls, problem: Problem) -> Enumeration:
        """Enumerate the paths of a problem; OptionError where there are more than `MOST_PATHS`."""
        count = count_paths(problem)
        if count > MOST_PATHS:
            raise OptionError(
                f"enumerated: expected at most {MOST_PATHS} paths, got {count} in problem {problem.name!r}. "
                "Sample forward passes instead, or let fewer stages branch."
            )
        vertices, children, ends = _tree(problem)
        depth = 1 + max(vertex.depth for vertex in vertices)
        nodes, openings = np.zeros((count, depth), np.int32), np.zeros((count, depth), np.int32)
        leader = np.repeat(np.arange(count, dtype=np.int32)[:, None], depth, axis=1)
        lengths, probability = np.zeros(count, np.int32), np.zeros(count)
        first = [-1] * len(vertices)
        for path, (last, chance) in enumerate(ends):
            lengths[path], probability[path] = vertices[last].depth + 1, chance
            at = last
            while at >= 0:
                vertex = vertices[at]
                first[at] = path if first[at] < 0 else first[at]
                nodes[path, vertex.depth], openings[path, vertex.depth] = vertex.node, vertex.opening
                leader[path, vertex.depth] = first[at]
                at = vertex.parent
        by_place: dict[tuple[int, int], list[int]] = {}
        for number, vertex in enumerate(vertices):
            by_place.setdefault((vertex.depth, vertex.node), []).append(number)
        outcomes: list[list[Outcomes]] = [[] for _ in range(depth)]
        for (level, node), members in sorted(by_place.items()):
            following = [[-1 if child < 0 else first[child] for child in children[each]] for each in members]
            width = len(following[0])
            outcomes[level].append(
                Outcomes(
                    node,
                    np.array([first[each] for each in members], np.int64),
                    np.array(following, np.int64).reshape(len(members), width),
                )
            )
        return cls(
            Paths(nodes, openings, lengths), probability, leader, tuple(tuple(level) for level in outcomes)
        )

    @cached_property
    def vertices(self) -> dict[int, int]:
        """How many beginnings of paths end at each node: so many cuts it gets in an iteration."""
        found: dict[int, int] = {}
        for level in self.outcomes:
            for each in level:
                found[each.node] = found.get(each.node, 0) + len(each.own)
        return found


def _tree(problem: Problem) -> tuple[list[_Vertex], list[list[int]], list[tuple[int, float]]]:
    """The vertices, what follows each (−1: an end), and the ends of all paths with their probabilities, in order."""
    shape = problem.shape
    vertices: list[_Vertex] = []
    children: list[list[int]] = []
    ends: list[tuple[int, float]] = []
    # The work is taken from the end of the list, so that it is put there in reverse; an end has a node of −1.
    work: list[tuple[int, int, int, float]] = []

    def put(parent: int, node: int, weight: float) -> None:
        following, chances = shape.successors(node)
        stopping = float(shape.stopping[node]) if node != ROOT else 0.0
        steps: list[tuple[int, int, int, float]] = []
        for j, p in zip(following.tolist(), chances.tolist(), strict=True):
            noise = problem.nodes[j].noise.probability
            steps += [
                (parent, j, int(k), weight * p * float(noise[k]))
                for k in np.flatnonzero(noise > 0.0).tolist()
            ]
        if not steps or stopping > STOPS:
            steps.append((parent, -1, 0, weight * (stopping if steps else 1.0)))
        work.extend(reversed(steps))

    put(-1, ROOT, 1.0)
    while work:
        parent, node, opening, weight = work.pop()
        if node < 0:
            ends.append((parent, weight))
            if len(shape.successors(vertices[parent].node)[0]):
                children[parent].append(-1)
            continue
        number = len(vertices)
        depth = 0 if parent < 0 else vertices[parent].depth + 1
        vertices.append(_Vertex(depth, node, opening, parent, weight))
        children.append([])
        if parent >= 0:
            children[parent].append(number)
        put(number, node, weight)
    return vertices, children, ends


class NestedCost:
    """What the present decisions cost over all paths, weighed from the last depth to the first as the bound is.

    It is the exact cost of the policy, risk included: no smaller than the optimum, equal to it in the end.
    """

    def __init__(self, plan: Plan, enumeration: Enumeration, measures: Mapping[int, RiskMeasure]) -> None:
        self._plan, self._every, self._measures = plan, enumeration, measures

    def spread(self, stage_cost: F64, total: F64) -> Spread:
        """The cost and the deviation between paths, from undiscounted costs [paths, depth] and totals [paths].

        There is no interval: nothing is estimated.
        """
        value = stage_cost.copy()
        for depth in reversed(range(stage_cost.shape[1])):
            for node, own, following in self._every.outcomes[depth]:
                number = self._plan.family_of[node]
                if number < 0:
                    continue
                family = self._plan.families[number]
                costs = np.where(following < 0, 0.0, value[following, min(depth + 1, value.shape[1] - 1)])
                weight, offset = self._measures[node].weights(family.probability[node], costs)
                ahead = ordered_sum(weight * costs) + offset
                value[own, depth] += self._plan.nodes[node].discount * ahead
        first = np.concatenate([each.own for each in self._every.outcomes[0]])
        costs = value[np.sort(first), 0][None]
        weight, offset = self._measures[ROOT].weights(self._plan.root.probability[ROOT], costs)
        exact = float(ordered_sum(weight * costs)[0] + offset[0])
        return Spread(exact, weighted(total, self._every.probability).std, 0.0)
