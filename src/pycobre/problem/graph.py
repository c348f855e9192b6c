"""What can be known of a policy graph alone: successors, order, cycles, reachability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen

__all__ = ["ROOT", "Shape"]

Scalar = TypeVar("Scalar", bound=np.generic)

ROOT = -1
"""The pseudo-node every path starts from; it decides nothing and has no LP."""


@frozen(eq=False)
class Shape:
    """The graph behind a problem's arcs.

    order:      every node once, a node before its successors (inside a cycle: in the order of discovery);
                walk it backwards to have a cost-to-go before it is used
    component:  number of the strongly connected component of each node; along `order` it never decreases
    reachable:  nodes that a path of positive probability leads to
    connected:  nodes that any path leads to, arcs of probability zero included
    stopping:   probability of stopping after each node
    cyclic:     whether a path of positive probability comes back to where it was
    horizon:    nodes on the longest path from the root, None for a cyclic graph
    """

    order: NDArray[np.int32]
    component: NDArray[np.int32]
    reachable: NDArray[np.bool_]
    connected: NDArray[np.bool_]
    stopping: NDArray[np.float64]
    cyclic: bool
    horizon: int | None
    _starts: NDArray[np.int64]
    _targets: NDArray[np.int32]
    _probability: NDArray[np.float64]

    def successors(self, node: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return what may follow `node` (ROOT for the start), in index order, and with which probability.

        Arcs of probability zero are left out.
        """
        span = slice(self._starts[node + 1], self._starts[node + 2])
        return self._targets[span], self._probability[span]

    @classmethod
    def of(
        cls,
        count: int,
        source: NDArray[np.int32],
        target: NDArray[np.int32],
        probability: NDArray[np.float64],
    ) -> Shape:
        """Analyse `count` nodes and their arcs (indices already known to be in range)."""
        by_source = np.lexsort((target, source))
        possible = by_source[probability[by_source] > 0.0]
        starts = np.searchsorted(source[possible], np.arange(ROOT, count + 1))
        followers = _lists(count, source[possible], target[possible])
        component, order = _components(followers[1:])
        cyclic = len(set(component)) < count or any(i in followers[i + 1] for i in range(count))
        leaving = np.zeros(count)
        np.add.at(leaving, source[source != ROOT], probability[source != ROOT])
        return cls(
            order=_locked(np.array(order, dtype=np.int32)),
            component=_locked(np.array(component, dtype=np.int32)),
            reachable=_locked(_reached(count, followers)),
            connected=_locked(_reached(count, _lists(count, source, target))),
            stopping=_locked(np.maximum(0.0, 1.0 - leaving)),
            cyclic=cyclic,
            horizon=None if cyclic else _horizon(order, followers),
            _starts=_locked(starts),
            _targets=_locked(target[possible]),
            _probability=_locked(probability[possible]),
        )


def _locked(array: NDArray[Scalar]) -> NDArray[Scalar]:
    array.flags.writeable = False
    return array


def _lists(count: int, source: NDArray[np.int32], target: NDArray[np.int32]) -> list[list[int]]:
    """Return what follows each node in arc order; position i + 1 is node i, position 0 the root."""
    followers: list[list[int]] = [[] for _ in range(count + 1)]
    for i, j in zip(source.tolist(), target.tolist(), strict=True):
        followers[i + 1].append(j)
    return followers


def _reached(count: int, followers: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """Mark what can be reached from the root; `followers[i + 1]` follow node i."""
    seen = np.zeros(count, dtype=np.bool_)
    waiting = list(followers[0])
    while waiting:
        node = waiting.pop()
        if not seen[node]:
            seen[node] = True
            waiting.extend(followers[node + 1])
    return seen


def _components(followers: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Tarjan's strongly connected components without recursion.

    Returns the component of each node, numbered so that arcs never lead to a lower number, and the nodes
    sorted by (component, discovery).
    """
    count = len(followers)
    found = [-1] * count
    low = [0] * count
    component = [-1] * count
    stack: list[int] = []
    clock = finished = 0
    for first in range(count):
        if found[first] >= 0:
            continue
        work = [(first, 0)]
        while work:
            node, step = work.pop()
            if step == 0:
                found[node] = low[node] = clock
                clock += 1
                stack.append(node)
            else:
                low[node] = min(low[node], low[followers[node][step - 1]])
            for position in range(step, len(followers[node])):
                other = followers[node][position]
                if found[other] < 0:
                    work.append((node, position + 1))
                    work.append((other, 0))
                    break
                if component[other] < 0:
                    low[node] = min(low[node], found[other])
            else:
                if low[node] == found[node]:
                    while component[node] < 0:
                        component[stack.pop()] = finished
                    finished += 1
    # Tarjan finishes the last component first: turn the numbers round.
    component = [finished - 1 - number for number in component]
    order = sorted(range(count), key=lambda node: (component[node], found[node]))
    return component, order


def _horizon(order: Sequence[int], followers: Sequence[Sequence[int]]) -> int:
    depth = [0] * len(order)
    for node in followers[0]:
        depth[node] = 1
    for node in order:
        for other in followers[node + 1] if depth[node] else ():
            depth[other] = max(depth[other], depth[node] + 1)
    return max(depth, default=0)
