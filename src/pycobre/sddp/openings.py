"""Opening data once per machine: each node's openings in the order of its chains, in one shared region."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre.comm import SharedMemoryProvider, SharedRegion
from pycobre.sddp.plan import Plan

__all__ = ["Openings"]


class Openings:
    """Read-only tables [openings, places], node by node. Making one is collective."""

    def __init__(self, provider: SharedMemoryProvider, plan: Plan) -> None:
        shapes = [(node.chain_length, node.support.shape[1]) for node in plan.nodes]
        sizes = [rows * places for rows, places in shapes]
        edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._region: SharedRegion = provider.create_shared_region(int(edges[-1]), np.float64)
        if provider.is_leader:
            whole = self._region.as_mut_array()
            for node, begin, end in zip(plan.nodes, edges[:-1], edges[1:], strict=True):
                whole[begin:end] = node.support[node.order].reshape(-1)
        self._region.fence()
        whole = self._region.as_array()
        self.ordered: tuple[F64, ...] = tuple(
            whole[begin:end].reshape(shape)
            for shape, begin, end in zip(shapes, edges[:-1], edges[1:], strict=True)
        )
        self.position = tuple(np.argsort(node.order, kind="stable") for node in plan.nodes)
        """Per node: of each opening that can happen, in the problem's order, the position in a chain."""

    def close(self) -> None:
        self._region.close()
