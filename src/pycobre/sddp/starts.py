"""Where the solves of a trajectory start: basis, binding cuts and outgoing state of its latest forward solve.

The outgoing state is the trial point at which lazy cuts are first looked up.

They belong to (trajectory, node) and travel with the trajectory: to another rank when the split changes, and
into checkpoints. A solve that starts here is a function of the trajectory's own past and of nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pycobre._util.arrays import F64, I64
from pycobre.solver.api import BasisBlock

__all__ = ["Starts"]


class Starts:
    """Starting points of `count` trajectories at every node.

    Trajectories that start alike share one entry: `_place` says which of the held ones is each trajectory's,
    None that there is one for each, in order.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._held: dict[int, tuple[BasisBlock, F64]] = {}
        self._place: dict[int, I64 | None] = {}

    @property
    def nodes(self) -> list[int]:
        return sorted(self._held)

    def get(self, node: int, rows: I64 | None) -> tuple[BasisBlock, F64]:
        """Starts of the trajectories at positions `rows`; None means all of them."""
        basis, trial_point = self._held[node]
        place = self._place[node]
        if place is None and rows is None:
            return basis, trial_point
        index = place if rows is None else rows if place is None else place[rows]
        assert index is not None
        return basis.take(index), trial_point[index]

    def put(
        self, node: int, rows: I64 | None, basis: BasisBlock, trial_point: F64, of: I64 | None = None
    ) -> None:
        """Remember where these trajectories' forward solves ended: the i-th at entry `of[i]`, or at entry i."""
        if rows is None:
            self._held[node], self._place[node] = (basis, trial_point), None
            return
        before, before_point = self._held[node]
        place = self._place[node]
        place = np.arange(self._count) if place is None else place.copy()
        others = np.ones(self._count, bool)
        others[rows] = False
        kept, renumbered = np.unique(place[others], return_inverse=True)
        place[others] = renumbered
        place[rows] = len(kept) + (np.arange(len(rows)) if of is None else of)
        joined = BasisBlock.join([before.take(kept), basis]) if len(kept) else basis
        self._held[node] = joined, np.concatenate([before_point[kept], trial_point])
        self._place[node] = place

    def export(self) -> Mapping[int, tuple[BasisBlock, F64]]:
        """All starts, node by node, one for every trajectory."""
        return {node: self.get(node, None) for node in self.nodes}

    @classmethod
    def same(cls, base: Mapping[int, tuple[BasisBlock, F64]], count: int) -> Starts:
        """`count` trajectories that all start alike: at every node from its one basis and outgoing state."""
        starts = cls(count)
        starts._held = dict(base)
        starts._place = dict.fromkeys(base, np.zeros(count, np.int64))
        return starts

    @classmethod
    def of(cls, whole: Mapping[int, tuple[BasisBlock, F64]], rows: I64) -> Starts:
        """The starts of the trajectories at positions `rows` of `whole`."""
        starts = cls(len(rows))
        starts._held = {node: (basis.take(rows), point[rows]) for node, (basis, point) in whole.items()}
        starts._place = dict.fromkeys(whole)
        return starts
