"""The backward pass: from the states that the trajectories left behind, new cuts, depth by depth.

At a state x that node i handed on, all openings of all children are solved. With outcomes k, probabilities p
of node i, optimal values Q_k(x) and gradients π_k, and the weights w and the constant o of the risk measure,

    value = Σ_k w_k Q_k(x) + o        slope = Σ_k w_k π_k        intercept = value − slope·x

is a cut of node i, valid everywhere. The same solves give every node with the same children its own cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycobre.sddp.dealing import Table
from pycobre.sddp.numbers import ordered_dot, ordered_sum
from pycobre.sddp.openings import Openings
from pycobre.sddp.plan import Family, Plan
from pycobre.sddp.risk import RiskMeasure
from pycobre.sddp.solving import Solving, Who
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.solver import Block

__all__ = ["Group", "Itinerary", "Step", "cuts_of_step", "deal_step"]

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


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


class Itinerary:
    """Who makes cuts for whom: the nodes that all trajectories, of all ranks, visit in one iteration.

    A record is the cut that one trajectory makes for one node; records are in the order of trajectories, then
    of the nodes of a family.
    """

    def __init__(self, plan: Plan, split: Split, rank: int, nodes: I32, lengths: I32) -> None:
        self._plan = plan
        self._split = split
        self._rank = rank
        self._nodes = nodes  # [trajectories, depth]
        self._lengths = lengths
        self._steps: dict[int, Step] = {}

    @property
    def depth(self) -> int:
        return int(self._lengths.max(initial=0))

    def step(self, depth: int) -> Step:
        """The cuts of one depth; kept, so that a graph whose paths never change asks once."""
        if depth not in self._steps:
            self._steps[depth] = self._step(depth)
        return self._steps[depth]

    def _step(self, depth: int) -> Step:
        plan = self._plan
        family = np.array(plan.family_of, np.int64)[self._nodes[:, depth]]
        family[self._lengths <= depth] = -1
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


def cuts_of_step(
    plan: Plan,
    solving: Solving,
    openings: Openings,
    starts: Starts,
    measures: Mapping[int, RiskMeasure],
    step: Step,
    count: int,
    state: F64,
    who: Who,
    *,
    with_states: bool,
) -> F64:
    """This rank's `count` records (intercept, slope[, state]) from the `state` its trajectories left behind."""
    n = plan.states
    records = np.zeros((count, 1 + n + (n if with_states else 0)))
    for family, rows, places in step.groups:
        x = state if rows is None else state[rows]
        blocks = []
        for child in family.children:
            start, seed = starts.get(child, rows)
            blocks.append(solving.every_opening(child, x, start, seed, who._replace(rows=rows)))
        for member, place in zip(family.members, places, strict=True):
            intercept, slope = combine(family, member, measures[member], blocks, openings, x)
            records[place, 0] = intercept
            records[place, 1 : 1 + n] = slope
            if with_states:
                records[place, 1 + n :] = x
    return records


def deal_step(
    plan: Plan,
    solving: Solving,
    openings: Openings,
    table: Table,
    measures: Mapping[int, RiskMeasure],
    depth: int,
    iteration: int,
    *,
    with_states: bool,
) -> None:
    """Take the table's trajectories one by one until none is left, and leave the records of their cuts there."""
    assert plan.chain is not None
    node = int(plan.chain[depth])
    family = plan.families[plan.family_of[node]]
    block = solving.every_opening(
        family.children[0],
        table.states(depth),
        table.bases(depth + 1),
        table.states(depth + 1),
        Who(iteration, table.trajectories.start, None),
        dealt=table.begin_step(),
    )
    assert block.taken is not None
    taken = block.taken.view(np.bool_)
    x = table.states(depth)[taken]
    mine = replace(block, objective=block.objective[taken], gradient=block.gradient[taken])
    intercept, slope = combine(family, node, measures[node], [mine], openings, x)
    parts = [intercept[:, None], slope, x] if with_states else [intercept[:, None], slope]
    table.put(taken, np.concatenate(parts, axis=1))


def combine(
    family: Family, member: int, measure: RiskMeasure, blocks: list[Block], openings: Openings, x: F64
) -> tuple[F64, F64]:
    """Intercepts and slopes of one family member's cuts at the states `x`."""
    probability = family.probability[member]
    positions = [openings.position[child] for child in family.children]
    parts = [block.objective.take(at, axis=1) for block, at in zip(blocks, positions, strict=True)]
    if len(probability) > family.outcomes:
        parts.append(np.zeros((len(x), 1)))
    costs = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    weight, offset = measure.weights(probability, costs)
    slope = np.zeros(x.shape)
    for block, begin, at in zip(blocks, family.firsts, positions, strict=True):
        terms = block.gradient.take(at, axis=1)
        terms *= weight[:, begin : begin + len(at), None]
        slope += np.add.accumulate(terms, axis=1)[:, -1]
    value = ordered_sum(weight * costs) + offset
    return value - ordered_dot(slope, x), slope
