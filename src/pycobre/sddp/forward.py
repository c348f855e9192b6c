"""The forward pass: trajectories through the graph under the current policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32, I64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.sddp.plan import Plan
from pycobre.sddp.sampling import GIVEN, Paths
from pycobre.sddp.starts import Starts
from pycobre.sddp.subproblems import SolveContext, SubproblemSolver
from pycobre.solver import BasisBlock, Block

__all__ = ["Entering", "Leaders", "Trajectories", "Visit", "check_paths", "pilot", "run_forward", "walk"]

Entering: TypeAlias = Callable[[int, int, int], None]
"""Told a depth, the number of depths and a node."""


class Leaders(NamedTuple):
    """Whom trajectories follow that begin like others; both [trajectories, depth]."""

    own: I32  #: the first trajectory of this rank with the same beginning
    first: NDArray[np.bool_]  #: whether it is the first of all ranks: then its solves count


@frozen(eq=False)
class Visit:
    """One node at one depth, solved for the trajectories at positions `rows` (None: for all of them).

    Where trajectories share their beginning, the i-th of them has entry `of[i]` of the block.
    """

    depth: int
    node: int
    rows: I64 | None
    block: Block  #: one opening per entry
    stage_cost: F64  #: [trajectories], without the cost-to-go
    weight: F64  #: [trajectories], the product of the discounts before this visit
    cost: F64  #: [trajectories]: the stage's, and at a boundary what lies beyond, discounted to the stage
    of: I64 | None = None

    @property
    def at(self) -> I64 | slice:
        """The trajectories as an index."""
        return slice(None) if self.rows is None else self.rows

    @property
    def output(self) -> F64:
        """[trajectories, states]: the outgoing states."""
        found = self.block.output[:, 0]
        return found if self.of is None else found[self.of]


@frozen(eq=False)
class Trajectories:
    """What a forward pass leaves for the backward pass and the upper bound."""

    paths: Paths
    cost: F64  #: [trajectories], discounted to the start
    stage_cost: F64  #: [trajectories, depth], undiscounted, with what lies beyond a boundary
    states: tuple[F64, ...]  #: per depth [trajectories, states]: outgoing states

    @classmethod
    def none(cls, count: int) -> Trajectories:
        """`count` trajectories that have not left the start."""
        nowhere = np.zeros((count, 0), np.int32)
        return cls(
            Paths(nowhere, nowhere, np.zeros(count, np.int32)), np.zeros(count), np.zeros((count, 0)), ()
        )


def check_paths(plan: Plan, paths: Paths, count: int) -> None:
    """Refuse paths that a sampler should not have given."""
    if len(paths) != count or paths.nodes.shape != paths.openings.shape or len(paths.nodes) != count:
        raise OptionError(f"sampler: expected {count} paths, got {len(paths)}.")
    if count and (paths.lengths.min() < 1 or paths.depth > paths.nodes.shape[1]):
        raise OptionError(
            f"sampler: expected paths of 1 to {paths.nodes.shape[1]} nodes, got {paths.lengths}."
        )
    inside = np.arange(paths.nodes.shape[1]) < paths.lengths[:, None]
    nodes, openings = paths.nodes[inside], paths.openings[inside]
    if nodes.size and not (nodes.min() >= 0 and nodes.max() < len(plan.nodes)):
        raise OptionError(f"sampler: expected nodes from 0 to {len(plan.nodes) - 1}, got {nodes.max()}.")
    sizes = np.array([node.openings for node in plan.nodes])
    if np.any(openings < GIVEN) or np.any(openings >= sizes[nodes]):
        raise OptionError("sampler: an opening is outside its node's support.")


def walk(
    plan: Plan,
    subproblems: SubproblemSolver,
    starts: Starts,
    paths: Paths,
    *,
    iteration: int,
    first: int,
    want_primal: bool = False,
    entering: Entering | None = None,
    leaders: Leaders | None = None,
) -> Iterator[Visit]:
    """Solve the paths depth by depth and node by node, each solve starting where `starts` says.

    `entering` hears of every node before it is solved. With `leaders` beginnings are shared:
    leaders are solved, the others follow them.
    """
    count, n = len(paths), plan.states
    state = np.repeat(plan.problem.initial.reshape(1, n), count, axis=0)
    weight = np.ones(count)
    linear = (
        plan.linear_order.tolist()
        if leaders is None and plan.linear_order is not None and plan.visits_linear_graph(paths)
        else None
    )
    for depth in range(paths.depth):
        here = [(linear[depth], None)] if linear is not None else _groups(paths, depth)
        following = state.copy() if linear is None else state
        for node, rows in here:
            prepared = plan.nodes[node]
            solved, of = _shared(rows, leaders, depth, count)
            at = slice(None) if solved is None else solved
            openings = paths.openings[at, depth]
            start, trial_point = starts.get(node, solved)
            if entering is not None:
                entering(depth, paths.depth, node)
            block = subproblems.solve_sampled(
                node,
                state[at],
                _noise(plan, paths, depth, node, at),
                start,
                trial_point,
                SolveContext(iteration, first, solved, openings),
                want_primal=want_primal,
                counted=None if leaders is None else leaders.first[solved, depth],
            )
            stage_cost = block.objective[:, 0] - prepared.discount * block.theta[:, 0]
            cost = stage_cost if prepared.boundary is None else block.objective[:, 0]
            if of is not None:
                stage_cost, cost = stage_cost[of], cost[of]
            members = slice(None) if rows is None else rows
            visit = Visit(depth, node, rows, block, stage_cost, weight[members].copy(), cost, of)
            yield visit
            if rows is None:
                following = visit.output
            else:
                following[rows] = visit.output
            weight[members] *= prepared.discount
        state = following


def _shared(
    rows: I64 | None, leaders: Leaders | None, depth: int, count: int
) -> tuple[I64 | None, I64 | None]:
    """Which of the trajectories at `rows` are solved, and the place of each one's leader among those."""
    if leaders is None:
        return rows, None
    members = np.arange(count) if rows is None else rows
    leader = leaders.own[members, depth]
    solved = members[leader == members]
    return solved, np.searchsorted(solved, leader)


def _groups(paths: Paths, depth: int) -> list[tuple[int, I64 | None]]:
    """The nodes visited at this depth, in index order, and by which trajectories."""
    visiting = paths.lengths > depth
    groups: list[tuple[int, I64 | None]] = []
    for node in np.unique(paths.nodes[visiting, depth]).tolist():
        here = visiting & (paths.nodes[:, depth] == node)
        groups.append((node, None if here.all() else np.flatnonzero(here)))
    return groups


def run_forward(
    plan: Plan,
    subproblems: SubproblemSolver,
    starts: Starts,
    paths: Paths,
    *,
    iteration: int,
    first: int,
    entering: Entering | None = None,
    leaders: Leaders | None = None,
) -> Trajectories:
    """Walk the paths, remember where every solve ended, and add up the costs."""
    cost, stage_cost = np.zeros(len(paths)), np.zeros((len(paths), paths.depth))
    states = [np.zeros((len(paths), plan.states)) for _ in range(paths.depth)]
    for visit in walk(
        plan, subproblems, starts, paths, iteration=iteration, first=first, entering=entering, leaders=leaders
    ):
        cost[visit.at] += visit.weight * visit.cost
        stage_cost[visit.at, visit.depth] = visit.cost
        states[visit.depth][visit.at] = visit.output
        assert visit.block.basis is not None
        rows = np.arange(len(paths)) if visit.rows is None and visit.of is not None else visit.rows
        starts.put(visit.node, rows, visit.block.basis, visit.block.output[:, 0], visit.of)
    return Trajectories(paths, cost, stage_cost, tuple(states))


def pilot(plan: Plan, subproblems: SubproblemSolver, *, iteration: int) -> dict[int, tuple[BasisBlock, F64]]:
    """Solve every reachable node once, cold: where all trajectories start (see `Starts.same`).

    Every rank does the same few solves, so that no trajectory starts cold and all start alike. A node
    receives the state of the first node that leads to it; its noise is the first opening of its chain. What
    fails here is reported as scenario 0 of `iteration`, which these solves prepare.
    """
    base: dict[int, tuple[BasisBlock, F64]] = {}
    shape = plan.problem.shape
    arriving: dict[int, F64] = dict.fromkeys(plan.root.children, plan.problem.initial)
    waiting = list(plan.root.children)
    while waiting:
        node = waiting.pop(0)
        prepared = plan.nodes[node]
        opening = prepared.order[:1]
        block = subproblems.solve_sampled(
            node,
            arriving[node].reshape(1, -1),
            prepared.support[opening],
            None,
            None,
            SolveContext(iteration, 0, None, opening),
        )
        assert block.basis is not None
        base[node] = (block.basis, block.output[0])
        for child in shape.successors(node)[0].tolist():
            if child not in arriving:
                arriving[child] = block.output[0, 0]
                waiting.append(child)
    return base


def _noise(plan: Plan, paths: Paths, depth: int, node: int, at: slice | I64) -> F64:
    """The patch vectors of these trajectories at this node."""
    openings = paths.openings[at, depth]
    support = plan.nodes[node].support
    given = paths.values[depth] if depth < len(paths.values) else None
    outside = openings == GIVEN
    if not outside.any():
        return support.take(openings, axis=0)
    if given is None:
        raise OptionError(f"sampler: depth {depth} has openings marked as given, and no values for them.")
    chosen = support[np.where(outside, 0, openings)]
    chosen[outside] = given[at][outside, : support.shape[1]]
    return chosen
