"""Dynamic load balancing of the backward pass within a machine: self-scheduling over a shared counter.

A trajectory belongs to one rank, which walks it forward and sends its cuts to all ranks. What its backward
solves start from, its states and bases, is published in memory that the machine's ranks share. At every depth a
rank takes the next trajectory from a counter and stores the record of its cut in the shared memory, where the
owner reads it. A record is a function of the trajectory and of the cuts, not of the rank that computes it: the
bits are those of a static division, but no rank waits for one that had harder LPs or a busier core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pycobre._util.arrays import F64, I64
from pycobre.comm import Communicator, SharedMemoryProvider
from pycobre.comm.collectives import gather_rows
from pycobre.sddp.cuts import CutRecords
from pycobre.sddp.plan import Plan
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.solver import BasisBlock

__all__ = ["SharedWorkQueue", "local_ranks"]

Shape = tuple[tuple[int, ...], DTypeLike]

_LINE_BYTES = 64  # every array begins on a cache line of its own


def local_ranks(comm: Communicator, provider: SharedMemoryProvider, *, ready: bool) -> range:
    """The ranks that share memory with this one, where all are `ready` and consecutive (collective).

    Else this rank alone: the trajectories of a queue have to be consecutive as well.
    """
    alone = range(comm.rank, comm.rank + 1)
    with provider.split_local() as node:
        reported = gather_rows(node, np.array([[comm.rank, ready]], np.int64), (1,) * node.size)
    ranks = range(int(reported[:, 0].min()), int(reported[:, 0].max()) + 1)
    return ranks if len(ranks) == len(reported) and reported[:, 1].all() else alone


class SharedWorkQueue:
    """Trajectories of one machine on a linear graph, each taken by a free rank. Making one is collective."""

    def __init__(
        self, provider: SharedMemoryProvider, plan: Plan, split: Split, rank: int, ranks: range, width: int
    ) -> None:
        assert plan.linear_order is not None
        self._nodes = plan.linear_order.tolist()
        self._slope_size = plan.states
        self.trajectories = range(split.firsts[ranks.start], split.block(ranks[-1]).stop)
        block = split.block(rank)
        self._own = slice(block.start - self.trajectories.start, block.stop - self.trajectories.start)
        self._leads = provider.is_leader
        shapes = _shapes(plan, len(self.trajectories), width)
        self._region = provider.create_shared_region(_end(shapes), np.uint8)
        arrays = _carve(self._region.as_mut_array(), shapes)
        self._counters, self._records, self._states, self._sizes, self._slots, *statuses = arrays
        self._columns, self._rows = statuses[::2], statuses[1::2]
        self._known = np.ones(len(self.trajectories), np.uint8)
        self._places = np.arange(self._slots.shape[2])
        self._turn = 0

    def publish(self, starts: Starts, states: Sequence[F64]) -> None:
        """Publish states and bases of this rank's trajectories; visible to all after the next `fence`."""
        for depth, state in enumerate(states):
            self._states[depth, self._own] = state
            basis, _ = starts.get(self._nodes[depth], None)
            self._columns[depth][self._own] = basis.col_status
            self._rows[depth][self._own] = basis.row_status
            sizes = np.diff(basis.cut_starts)
            self._sizes[depth, self._own] = sizes
            self._slots[depth, self._own][self._places < sizes[:, None]] = basis.cut_slots

    def reset_counter(self) -> I64:
        """The work counter of the next step, at 0: how many trajectories have been taken.

        There are two, used in turn. All ranks have passed a fence since the last step, so its counter can be
        reset, and all pass another one before it is needed again.
        """
        last, self._turn = self._turn, 1 - self._turn
        if self._leads:
            self._counters[last] = 0
        return self._counters[self._turn, :1]

    def states(self, depth: int) -> F64:
        """[trajectories, states]: outgoing states of the machine's trajectories at `depth`."""
        states: F64 = self._states[depth]
        return states

    def bases(self, depth: int) -> BasisBlock:
        """Where their forward solves at `depth` ended."""
        sizes = self._sizes[depth]
        starts = np.zeros(len(sizes) + 1, np.int32)
        sizes.cumsum(out=starts[1:])
        slots = self._slots[depth][self._places < sizes[:, None]]
        return BasisBlock(self._known, self._columns[depth], self._rows[depth], starts, slots)

    def put(self, taken: NDArray[np.bool_], records: CutRecords) -> None:
        """Store the records of the trajectories that this rank took."""
        self._records[taken] = records.rows

    def own_records(self) -> CutRecords:
        """The records of this rank's trajectories, whichever rank made them; complete after a `fence`."""
        return CutRecords(self._records[self._own].copy(), self._slope_size)

    def fence(self) -> None:
        """Make everything that the machine's ranks wrote visible to all of them (collective among them)."""
        self._region.fence()

    def close(self) -> None:
        self._region.close()


def _shapes(plan: Plan, count: int, width: int) -> list[Shape]:
    """Counters, records, states, numbers of binding cuts and their slots; per depth statuses of columns and rows."""
    assert plan.linear_order is not None
    depth, n = len(plan.linear_order), plan.states
    shapes: list[Shape] = [
        ((2, _LINE_BYTES // 8), np.int64),
        ((count, width), np.float64),
        ((depth, count, n), np.float64),
        ((depth, count), np.int32),
        # Rows that bind are linearly independent, and cuts are rows over the states and θ.
        ((depth, count, n + 1), np.int32),
    ]
    for node in plan.linear_order.tolist():
        lp = plan.nodes[node].model.template
        shapes += [((count, lp.num_cols), np.int8), ((count, lp.num_rows), np.int8)]
    return shapes


def _size(shape: Shape) -> int:
    return math.prod(shape[0]) * np.dtype(shape[1]).itemsize


def _padded(size: int) -> int:
    return -(-size // _LINE_BYTES) * _LINE_BYTES


def _end(shapes: Sequence[Shape]) -> int:
    return sum(_padded(_size(shape)) for shape in shapes)


def _carve(memory: NDArray[np.uint8], shapes: Sequence[Shape]) -> list[NDArray[Any]]:
    """Arrays of these shapes, one after the other in `memory`."""
    arrays, at = [], 0
    for shape in shapes:
        arrays.append(memory[at : at + _size(shape)].view(shape[1]).reshape(shape[0]))
        at += _padded(_size(shape))
    return arrays
