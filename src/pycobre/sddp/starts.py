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
    """Starting points of `count` trajectories at every node."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._basis: dict[int, BasisBlock] = {}
        self._trial_point: dict[int, F64] = {}

    @property
    def nodes(self) -> list[int]:
        return sorted(self._basis)

    def get(self, node: int, rows: I64 | None) -> tuple[BasisBlock, F64]:
        """Starts of the trajectories at positions `rows`; None means all of them."""
        if rows is None:
            return self._basis[node], self._trial_point[node]
        return self._basis[node].take(rows), self._trial_point[node][rows]

    def put(self, node: int, rows: I64 | None, basis: BasisBlock, trial_point: F64) -> None:
        """Remember where the forward solves of these trajectories ended."""
        if rows is None:
            self._basis[node], self._trial_point[node] = basis, trial_point
            return
        # Old ones first, new ones behind them; then each trajectory takes its own.
        pick = np.arange(self._count)
        pick[rows] = self._count + np.arange(len(rows))
        self._basis[node] = BasisBlock.join([self._basis[node], basis]).take(pick)
        updated = self._trial_point[node].copy()
        updated[rows] = trial_point
        self._trial_point[node] = updated

    def export(self) -> Mapping[int, tuple[BasisBlock, F64]]:
        """All starts, node by node."""
        return {node: (self._basis[node], self._trial_point[node]) for node in self.nodes}

    @classmethod
    def same(cls, base: Mapping[int, tuple[BasisBlock, F64]], count: int) -> Starts:
        """`count` trajectories that all start alike: at every node from its one basis and outgoing state."""
        return cls.of(base, np.zeros(count, np.int64))

    @classmethod
    def of(cls, whole: Mapping[int, tuple[BasisBlock, F64]], rows: I64) -> Starts:
        """The starts of the trajectories at positions `rows` of `whole`."""
        starts = cls(len(rows))
        for node, (basis, trial_point) in whole.items():
            starts._basis[node] = basis.take(rows)
            starts._trial_point[node] = trial_point[rows]
        return starts
