"""The division of an iteration's trajectories over the ranks, and all that depends on their number."""

from __future__ import annotations

from typing import cast

import numpy as np

from pycobre._util.arrays import I32
from pycobre.comm import Communicator, SharedMemoryProvider
from pycobre.sddp.error_agreement import CheckedCollectives
from pycobre.sddp.prepared import PreparedProblem
from pycobre.sddp.sampling import Paths
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.sddp.training.backward_schedule import BackwardSchedule
from pycobre.sddp.training.bound import RootWork
from pycobre.sddp.training.load_balancing import SharedWorkQueue
from pycobre.sddp.training.snapshot import gather_starts

__all__ = ["Division"]


class Division:
    """`count` trajectories over the ranks of a communicator. Making one is collective; close it.

    `local` are the ranks that balance their backward solves among them (see `local_ranks`), `width` the numbers in
    the record of a cut.
    """

    def __init__(
        self, prepared: PreparedProblem, comm: Communicator, count: int, local: range, width: int
    ) -> None:
        self._plan, self._comm = prepared.plan, comm
        self.split = Split(count, comm.size)
        self.block = self.split.block(comm.rank)
        self.root = RootWork(prepared.plan, prepared.openings, count)
        self._linear: BackwardSchedule | None = None
        self._queue: SharedWorkQueue | None = None
        if len(local) > 1 and self._plan.linear_order is not None:
            provider = cast(SharedMemoryProvider, comm)
            self._queue = SharedWorkQueue(provider, self._plan, self.split, comm.rank, local, width)

    @property
    def count(self) -> int:
        return self.split.total

    def close(self) -> None:
        if self._queue is not None:
            self._queue.close()

    def starts_from(self, before: Division, starts: Starts) -> Starts:
        """The starts of this division's trajectories, after those of another (collective).

        New trajectories start where the ones before them started, in turn.
        """
        whole = gather_starts(self._comm, before.split, starts)
        return Starts.of(whole, np.arange(self.block.start, self.block.stop) % before.count)

    def schedule(
        self, collectives: CheckedCollectives, paths: Paths, lengths: I32, *, linear: bool
    ) -> BackwardSchedule:
        """The nodes of all trajectories; where all walk a linear graph every rank knows them without a gather."""
        if linear and self._plan.linear_order is not None:
            if self._linear is None:
                nodes = np.repeat(self._plan.linear_order[None], len(lengths), axis=0)
                self._linear = BackwardSchedule(self._plan, self.split, self._comm.rank, nodes, lengths)
            return self._linear
        own = np.zeros((len(self.block), int(lengths.max())))
        own[:, : paths.depth] = paths.nodes[:, : paths.depth]
        nodes = collectives.gather(own, self.split.counts).astype(np.int32)
        return BackwardSchedule(self._plan, self.split, self._comm.rank, nodes, lengths)

    def queue_for(self, schedule: BackwardSchedule) -> SharedWorkQueue | None:
        """The work queue, where all trajectories walk a linear graph and ranks share memory."""
        return self._queue if schedule is self._linear else None
