"""Which paths an iteration walks, and what they say of the cost: sampled ones, or every path of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from pycobre.sddp.enumeration import Enumeration, NestedCost
from pycobre.sddp.error_agreement import CheckedCollectives
from pycobre.sddp.forward import Leaders, Trajectories, check_paths
from pycobre.sddp.numbers import Spread, spread
from pycobre.sddp.plan import Plan
from pycobre.sddp.risk import RiskMeasure
from pycobre.sddp.sampling import Paths, Sampler
from pycobre.sddp.training.backward_schedule import BackwardSchedule
from pycobre.sddp.training.division import Division

__all__ = ["EnumeratedWalks", "SampledWalks", "Walks"]


class Walks(Protocol):
    """The paths of one rank's trajectories, and the conclusions from those of all ranks."""

    def paths(self, iteration: int, block: range) -> Paths: ...

    def leaders(self, block: range) -> Leaders | None:
        """Whom the trajectories of the block follow; None: nothing is shared."""
        ...

    def conclude(
        self, collectives: CheckedCollectives, division: Division, trajectories: Trajectories
    ) -> tuple[Spread, BackwardSchedule]:
        """The cost of the trajectories of all ranks, and who makes cuts (collective)."""
        ...


class SampledWalks:
    """Paths that a sampler gives; their mean estimates the cost."""

    def __init__(self, plan: Plan, sampler: Sampler) -> None:
        self._plan, self._sampler = plan, sampler

    def paths(self, iteration: int, block: range) -> Paths:
        paths = self._sampler.sample(iteration, block.start, len(block))
        check_paths(self._plan, paths, len(block))
        return paths

    def leaders(self, block: range) -> Leaders | None:
        return None

    def conclude(
        self, collectives: CheckedCollectives, division: Division, trajectories: Trajectories
    ) -> tuple[Spread, BackwardSchedule]:
        paths = trajectories.paths
        canonical = self._plan.visits_linear_graph(paths)
        columns = (trajectories.cost, paths.lengths, np.full(len(paths), canonical))
        own = np.stack([column.astype(np.float64) for column in columns], axis=1)
        gathered = collectives.gather(own, division.split.counts)
        lengths, linear = gathered[:, 1].astype(np.int32), bool(gathered[:, 2].all())
        schedule = division.schedule(collectives, paths, lengths, linear=linear)
        return spread(gathered[:, 0]), schedule


class EnumeratedWalks:
    """Every path in every iteration, shared beginnings once; their cost is exact."""

    def __init__(self, plan: Plan, enumeration: Enumeration, measures: Mapping[int, RiskMeasure]) -> None:
        self._plan, self._every = plan, enumeration
        self._cost = NestedCost(plan, enumeration, measures)
        self._schedule: tuple[Division, BackwardSchedule] | None = None

    def paths(self, iteration: int, block: range) -> Paths:
        return self._every.paths.take(np.arange(block.start, block.stop))

    def leaders(self, block: range) -> Leaders | None:
        # A leader of another rank is solved here once more: its first follower in this block leads.
        leader = self._every.leader[block.start : block.stop]
        own = np.empty_like(leader)
        for depth in range(leader.shape[1]):
            _, first, place = np.unique(leader[:, depth], return_index=True, return_inverse=True)
            own[:, depth] = first[place]
        return Leaders(own, leader == np.arange(block.start, block.stop)[:, None])

    def conclude(
        self, collectives: CheckedCollectives, division: Division, trajectories: Trajectories
    ) -> tuple[Spread, BackwardSchedule]:
        depth = self._every.leader.shape[1]
        own = np.zeros((len(trajectories.cost), 1 + depth))
        own[:, 0] = trajectories.cost
        own[:, 1 : 1 + trajectories.stage_cost.shape[1]] = trajectories.stage_cost
        gathered = collectives.gather(own, division.split.counts)
        return self._cost.spread(gathered[:, 1:], gathered[:, 0]), self._steps(
            division, collectives.comm.rank
        )

    def _steps(self, division: Division, rank: int) -> BackwardSchedule:
        if self._schedule is None or self._schedule[0] is not division:
            paths, leader = self._every.paths, self._every.leader
            makes = leader == np.arange(len(leader))[:, None]
            schedule = BackwardSchedule(
                self._plan, division.split, rank, paths.nodes, paths.lengths, makes=makes
            )
            self._schedule = division, schedule
        return self._schedule[1]
