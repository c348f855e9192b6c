"""The lower bound: the start's outcomes solved at the initial state, combined by the root's risk measure.

The outcomes are divided among the trajectories in fixed pieces, so that all ranks share the work and the
pieces do not depend on the ranks; each piece is one chain that starts where its trajectory's forward solve
ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.problem import ROOT, Problem
from pycobre.sddp.numbers import ordered_sum, spread
from pycobre.sddp.openings import Openings
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.plan import Plan
from pycobre.sddp.risk import Expectation, RiskMeasure
from pycobre.sddp.sampling import InSample, Sampler
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.sddp.stopping import Progress
from pycobre.sddp.subproblems import SolveContext, SubproblemSolver

__all__ = ["Piece", "RootWork", "bound_above_cost", "why_an_estimate"]


@frozen()
class Piece:
    """Positions `begin … end − 1` of the chain of one child of the root, solved by one trajectory."""

    trajectory: int
    child: int
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin


class RootWork:
    """The division of the root's outcomes over `trajectories`, and the bound that comes out."""

    def __init__(self, plan: Plan, openings: Openings, trajectories: int) -> None:
        self._plan = plan
        self._openings = openings
        self.pieces = _pieces(plan, trajectories)

    def counts(self, split: Split) -> tuple[int, ...]:
        """How many outcomes each rank solves."""
        owned = [0] * split.ranks
        for piece in self.pieces:
            owned[split.owner(piece.trajectory)] += len(piece)
        return tuple(owned)

    def solve(self, subproblems: SubproblemSolver, starts: Starts, block: range, iteration: int) -> F64:
        """Objectives of the outcomes of the trajectories in `block`, piece by piece."""
        mine = [piece for piece in self.pieces if piece.trajectory in block]
        found: dict[Piece, F64] = {}
        for child, size in sorted({(piece.child, len(piece)) for piece in mine}):
            alike = [piece for piece in mine if (piece.child, len(piece)) == (child, size)]
            rows = np.array([piece.trajectory - block.start for piece in alike])
            start, trial_point = starts.get(child, rows)
            solved = subproblems.solve_all_openings(
                child,
                np.repeat(self._plan.problem.initial.reshape(1, -1), len(alike), axis=0),
                start,
                trial_point,
                SolveContext(iteration, block.start, rows),
                np.array([np.arange(piece.begin, piece.end) for piece in alike]),
            )
            found.update(zip(alike, solved.objective, strict=True))
        return np.concatenate([found[piece] for piece in mine]) if mine else np.zeros(0)

    def bound(self, measure: RiskMeasure, objectives: F64) -> float:
        """The bound from the objectives of all pieces, in the order of the pieces."""
        root = self._plan.root
        costs = np.zeros(root.outcomes)
        firsts = dict(zip(root.children, root.firsts, strict=True))
        at = 0
        for piece in self.pieces:
            outcome = np.argsort(self._openings.position[piece.child])[piece.begin : piece.end]
            costs[firsts[piece.child] + outcome] = objectives[at : at + len(piece)]
            at += len(piece)
        weight, offset = measure.weights(root.probability[ROOT], costs[None])
        return float(ordered_sum(weight * costs)[0] + offset[0])


def bound_above_cost(
    problem: Problem,
    measures: Mapping[int, RiskMeasure],
    sampler: Sampler,
    progress: Progress,
    options: TrainOptions,
) -> str | None:
    """A warning when the bound is above what the policies of the later iterations cost when simulated.

    No policy can cost less than the optimum, so a bound above the mean cost, beyond six standard errors of at
    least thirty trajectories (or at all, where nothing is random), cannot be one: some `theta_lower` is above
    the true cost-to-go. Nothing is said where mean and bound are not of the same thing: with risk measures,
    biased or foreign samplers, and on cyclic graphs.
    """
    if options.enumerated:
        return _above_exact(problem, progress)
    neutral = all(isinstance(measure, Expectation) for measure in measures.values())
    fair = isinstance(sampler, InSample) and not sampler.persistence
    if not neutral or not fair or problem.shape.cyclic:
        return None
    begin = progress.iteration // 2
    later, within = progress.upper_bounds[begin:], progress.stds[begin:]
    samples = sum(options.trajectories_in(k) for k in range(begin + 1, progress.iteration + 1))
    certain = all(node.noise.openings == 1 for node in problem.nodes) and len(problem.arcs) == len(
        problem.nodes
    )
    if not certain and samples < 30:
        return None
    lower = float(progress.lower_bounds[-1])
    mean, between, _ = spread(later)
    # The variance of one trajectory, rather too large: within iterations and between their means.
    variance = float(np.mean(within**2)) + between**2
    slack = 0.0 if certain else 6.0 * math.sqrt(variance / samples)
    if lower <= mean + slack + 1e-6 * max(1.0, abs(lower)):
        return None
    return _doubt(problem, lower, mean, "simulated paths give")


def _above_exact(problem: Problem, progress: Progress) -> str | None:
    """The same where every path is walked: no policy costs less than the optimum, risk included."""
    lower, least = float(progress.lower_bounds[-1]), float(progress.upper_bounds.min())
    if lower <= least + 1e-6 * max(1.0, abs(lower)):
        return None
    return _doubt(problem, lower, least, "all paths together give")


def _doubt(problem: Problem, lower: float, mean: float, found: str) -> str:
    seen = problem.as_seen
    word = ("below", "less", "above") if problem.sense.sign > 0 else ("above", "more", "below")
    return (
        f"the bound from {word[0]} is {seen(lower):.9g}, and {found} {seen(mean):.9g}, which is "
        f"{word[1]}: a bound on the cost-to-go (theta_lower) lies {word[2]} the true cost-to-go. "
        "Check the nodes' bounds."
    )


def why_an_estimate(problem: Problem) -> str | None:
    """Why the bound of this problem is an estimate, or None where it is a bound.

    Corrections of right-hand sides that depend on the incoming state (inflows truncated at 0) make the cost-to-go
    a function that is not convex, and the gradient takes them for constant: a cut may lie above it elsewhere.
    """
    for node in problem.nodes:
        corrections = node.rhs_corrections
        if corrections is not None and corrections.input.size:
            return (
                f"node {node.name!r} truncates a right-hand side that depends on the incoming state (an inflow "
                "with lags): its cuts are not valid for all states"
            )
    return None


def _pieces(plan: Plan, trajectories: int) -> tuple[Piece, ...]:
    total = plan.root.outcomes
    shares = Split(total, min(trajectories, total))
    pieces = []
    for share in range(shares.ranks):
        trajectory = share * trajectories // shares.ranks
        span = shares.block(share)
        for child, first in zip(plan.root.children, plan.root.firsts, strict=True):
            begin = max(span.start, first)
            end = min(span.stop, first + plan.nodes[child].chain_length)
            if begin < end:
                pieces.append(Piece(trajectory, child, begin - first, end - first))
    return tuple(pieces)
