"""The backward pass: from the states that the trajectories left behind, new cuts, depth by depth.

At a state x that node i handed on, all openings of all children are solved. With outcomes k, probabilities p
of node i, optimal values Q_k(x) and gradients π_k, and the weights w and the constant o of the risk measure,

    value = Σ_k w_k Q_k(x) + o        slope = Σ_k w_k π_k        intercept = value − slope·x

is a cut of node i, valid everywhere. The same solves give every node with the same children its own cut. With
`InteriorPoints` x is a point between the state handed on and the middle of its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pycobre._util.arrays import F64
from pycobre.sddp.cuts import CutRecords
from pycobre.sddp.interior import InteriorPoints, middles
from pycobre.sddp.numbers import ordered_dot, ordered_sum
from pycobre.sddp.openings import Openings
from pycobre.sddp.plan import Family, Plan
from pycobre.sddp.risk import RiskMeasure
from pycobre.sddp.starts import Starts
from pycobre.sddp.subproblems import SolveContext, SubproblemSolver
from pycobre.sddp.training.backward_schedule import Step
from pycobre.sddp.training.load_balancing import SharedWorkQueue
from pycobre.solver import Block

__all__ = ["CutGenerator"]


class CutGenerator:
    """Makes records of cuts, with the state they were made at where a selection needs it."""

    def __init__(
        self,
        plan: Plan,
        subproblems: SubproblemSolver,
        openings: Openings,
        measures: Mapping[int, RiskMeasure],
        *,
        with_states: bool,
        interior: InteriorPoints | None = None,
    ) -> None:
        self._plan, self._subproblems, self._openings, self._measures = plan, subproblems, openings, measures
        self._with_states = with_states
        self._middles = () if interior is None else middles(plan, interior.least_states)
        self._interior = interior if any(np.isfinite(each).any() for each in self._middles) else None
        self.width = CutRecords.width(plan.states, with_state=with_states)

    def none(self, count: int) -> CutRecords:
        """`count` records that are all zero."""
        return CutRecords(np.zeros((count, self.width)), self._plan.states)

    def static(
        self, step: Step, count: int, state: F64, starts: Starts, *, iteration: int, first: int, weights: F64
    ) -> CutRecords:
        """This rank's `count` records of a step, from the `state` that its trajectories, `first` on, left behind.

        `weights` are those trajectories' (see `weights`).
        """
        records = self.none(count)
        for family, rows, places in step.groups:
            x = self._points(family, *((state, weights) if rows is None else (state[rows], weights[rows])))
            context = SolveContext(iteration, first, rows)
            blocks = [
                self._subproblems.solve_all_openings(child, x, *starts.get(child, rows), context)
                for child in family.children
            ]
            for member, place in zip(family.members, places, strict=True):
                records.rows[place] = self._records(family, member, blocks, x).rows
        return records

    def balanced(self, queue: SharedWorkQueue, *, iteration: int, depth: int, weights: F64) -> None:
        """Take the queue's trajectories one by one until none is left, and store their records there.

        `weights` are those of all of the queue's trajectories.
        """
        assert self._plan.linear_order is not None
        node = int(self._plan.linear_order[depth])
        family = self._plan.families[self._plan.family_of[node]]
        states = self._points(family, queue.states(depth), weights)
        block = self._subproblems.solve_all_openings(
            family.children[0],
            states,
            queue.bases(depth + 1),
            queue.states(depth + 1),
            SolveContext(iteration, queue.trajectories.start, None),
            work_counter=queue.reset_counter(),
        )
        assert block.solved_here is not None
        taken = block.solved_here.view(np.bool_)
        mine = replace(block, objective=block.objective[taken], gradient=block.gradient[taken])
        queue.put(taken, self._records(family, node, [mine], states[taken]))

    def weights(self, iteration: int, trajectories: range, count: int) -> F64:
        """How far inside the points of these of an iteration's `count` trajectories are."""
        if self._interior is None:
            return np.zeros(len(trajectories))
        return self._interior.weights(iteration, np.arange(trajectories.start, trajectories.stop), count)

    def _points(self, family: Family, x: F64, weights: F64) -> F64:
        """Where to solve for the states `x` that nodes of a family handed on."""
        if not weights.any():
            return x
        middle = self._middles[self._plan.family_of[family.members[0]]]
        return np.where(np.isnan(middle), x, x + weights[:, None] * (middle - x))

    def _records(self, family: Family, member: int, blocks: list[Block], x: F64) -> CutRecords:
        intercept, slope = combine(family, member, self._measures[member], blocks, self._openings, x)
        return CutRecords.pack(intercept, slope, x if self._with_states else None)


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
        slope += np.add.accumulate(terms, axis=1, out=terms)[:, -1]
    value = ordered_sum(weight * costs) + offset
    return value - ordered_dot(slope, x), slope
