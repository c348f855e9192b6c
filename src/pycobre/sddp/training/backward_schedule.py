"""The steps of the backward pass: which trajectories make cuts for which nodes, depth by depth, rank by rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import I32, I64
from pycobre.sddp.plan import Family, Plan
from pycobre.sddp.split import Split

__all__ = ["BackwardSchedule", "Group", "Step"]


class Group(NamedTuple):
    """Own trajectories at nodes of one family: one set of solves, then a cut for every member."""

    family: Family
    rows: I64 | None  #: positions among own trajectories; None: all of them
    places: tuple[I64 | slice, ...]  #: per member: where its cuts stand among this rank's records


class Step(NamedTuple):
    """The cuts of one depth: what this rank makes, how many each rank makes, and who receives them."""

    groups: tuple[Group, ...]
    counts: tuple[int, ...]  #: records of each rank
    receivers: dict[int, tuple[I64 | slice, I32]]  #: node → (gathered records, their trajectories)


class BackwardSchedule:
    """Who makes cuts for whom: the nodes that all trajectories, of all ranks, visit in one iteration.

    A record is the cut that one trajectory makes for one node; records are in the order of trajectories, then
    of the nodes of a family.
    """

    def __init__(
        self,
        plan: Plan,
        split: Split,
        rank: int,
        nodes: I32,
        lengths: I32,
        makes: NDArray[np.bool_] | None = None,
    ) -> None:
        self._plan = plan
        self._split = split
        self._rank = rank
        self._nodes = nodes  # [trajectories, depth]
        self._lengths = lengths
        self._makes = makes  # [trajectories, depth]: whose cuts are made; None: everybody's
        self._steps: dict[int, Step] = {}

    @property
    def depth(self) -> int:
        return int(self._lengths.max(initial=0))

    def step(self, depth: int) -> Step:
        """The cuts of one depth; cached, because paths on a linear graph never change."""
        if depth not in self._steps:
            self._steps[depth] = self._step(depth)
        return self._steps[depth]

    def _step(self, depth: int) -> Step:
        plan = self._plan
        family = np.array(plan.family_of, np.int64)[self._nodes[:, depth]]
        family[self._lengths <= depth] = -1
        if self._makes is not None:
            family[~self._makes[:, depth]] = -1
        sizes = np.array([len(each.members) for each in plan.families] + [0], np.int64)[family]
        begins = np.cumsum(sizes) - sizes
        counts = tuple(
            int(sizes[block.start : block.stop].sum())
            for block in map(self._split.block, range(self._split.ranks))
        )
        receivers: dict[int, tuple[I64 | slice, I32]] = {}
        groups = []
        own = self._split.block(self._rank)
        for number in np.unique(family[family >= 0]).tolist():
            members = plan.families[number].members
            who = np.flatnonzero(family == number)
            for place, member in enumerate(members):
                receivers[member] = (_all_or(begins[who] + place, int(sizes.sum())), who.astype(np.int32))
            mine = who[(who >= own.start) & (who < own.stop)]
            if len(mine):
                first, count = begins[own.start], counts[self._rank]
                places = tuple(_all_or(begins[mine] - first + place, count) for place in range(len(members)))
                rows = None if len(mine) == len(own) else mine - own.start
                groups.append(Group(plan.families[number], rows, places))
        return Step(tuple(groups), counts, dict(sorted(receivers.items())))


def _all_or(places: I64, count: int) -> I64 | slice:
    """A slice where the places are simply everything, which is cheaper to index by."""
    return slice(None) if len(places) == count else places
