"""What a training run will occupy, before it starts."""

from __future__ import annotations

import hashlib
from typing import Any

from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.problem import Node, Problem
from pycobre.sddp.enumeration import Enumeration
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.sampling import default_depth, linear_nodes

__all__ = ["MemoryEstimate", "estimate"]


@frozen()
class MemoryEstimate:
    """Bytes. What is shared exists once per machine if the backend can share memory, else once per rank."""

    cuts: int  #: shared, when the last iteration is reached
    points: int  #: shared: the states at which cuts were made, where a selection compares cuts at them
    openings: int  #: shared
    work_queue: (
        int  #: shared, where the ranks of one machine balance a linear graph's trajectories among them
    )
    starts: (
        int  #: per rank: bases and outgoing states of its trajectories, and what each cut is told apart by
    )
    work: int  #: per rank: the largest step of the backward pass
    lps: int  #: per rank: distinct LPs, and what a solve of the largest one needs, for each thread
    iterations: int  #: that the number of cuts assumes

    @property
    def shared_bytes(self) -> int:
        return self.cuts + self.points + self.openings + self.work_queue

    @property
    def rank_bytes(self) -> int:
        return self.starts + self.work + self.lps

    def __str__(self) -> str:
        lines = [
            f"cuts after {self.iterations} iterations  {_bytes(self.cuts)}  once per machine",
            f"states visited, for the selection  {_bytes(self.points)}  once per machine",
            f"openings  {_bytes(self.openings)}  once per machine",
            f"trajectories of all ranks  {_bytes(self.work_queue)}  once per machine",
            f"starting bases  {_bytes(self.starts)}  per rank",
            f"backward pass  {_bytes(self.work)}  per rank",
            f"linear programs  {_bytes(self.lps)}  per rank",
            f"together  {_bytes(self.shared_bytes)} per machine and {_bytes(self.rank_bytes)} per rank",
        ]
        return "\n".join(lines)


def estimate(
    problem: Problem, options: TrainOptions | None = None, *, ranks: int = 1, iterations: int | None = None
) -> MemoryEstimate:
    """Bytes that `train(problem, comm, options)` needs on each of `ranks` ranks of one machine.

    `iterations` stands in where the stopping rules know no limit (else 100). On a cyclic graph the number of
    cuts per iteration is guessed from the longest path.
    """
    options = (options or TrainOptions()).resolved(problem)
    count = iterations or options.stopping.iteration_limit or 100
    n, shape = len(problem.states), problem.shape
    own = -(-options.forward_passes // ranks)
    walked = Enumeration.of(problem).vertices if options.enumerated else {}
    visits = 1 if not shape.cyclic else max(1, default_depth(problem) // max(1, len(problem.nodes)))
    balanced = ranks > 1 and linear_nodes(problem) is not None
    slots = openings = work_queue = starts = work = lps = largest = 0
    seen: set[bytes] = set()
    for index, node in enumerate(problem.nodes):
        lp = node.template
        children = shape.successors(index)[0].tolist()
        if children:
            slots += walked.get(index, options.forward_passes) * count * visits
            outcomes = sum(problem.nodes[child].noise.openings for child in children)
            work = max(work, 8 * own * (outcomes * (2 * n + 4) + 3 * n))
        openings += node.noise.values.nbytes
        if balanced:
            work_queue += options.forward_passes * (lp.num_cols + lp.num_rows + 12 * n + 8)
        # The state that a forward pass hands on is also where the next solve of the node looks for cuts.
        starts += min(own, walked.get(index, own)) * (lp.num_cols + lp.num_rows + 1 + 16 * n + 16)
        if (content := _content(node)) not in seen:
            seen.add(content)
            lps += _LP_BYTES * (lp.num_cols + lp.num_rows)
            largest = max(largest, min(lp.num_rows, options.solver.kernel_rows))
    points = 8 * n * slots if options.selection is not None else 0
    work += options.threads * 8 * largest * largest
    lps += _PROGRAM_BYTES
    starts += _CUT_KEY_BYTES * slots
    return MemoryEstimate(8 * (n + 1) * slots, points, openings, work_queue, starts, work, lps, count)


_LP_BYTES = 120
"""Of a distinct LP, per column and row: prepared, scaled, reduced and in the solver. Measured on national systems."""
_PROGRAM_BYTES = 5 << 20
"""What a first training needs whatever its size."""
_CUT_KEY_BYTES = 13
"""Iteration, trajectory, depth and whether it is active."""


def _content(node: Node) -> bytes:
    """Nodes with the same LP share what the solver makes of it."""
    lp, plan, corrections = node.template, node.noise.plan, node.rhs_corrections
    digest = hashlib.blake2b(f"{node.discount!r} {node.theta_lower!r}".encode(), digest_size=16)
    arrays: list[NDArray[Any]] = [
        lp.cost,
        lp.col_lower,
        lp.col_upper,
        lp.row_lower,
        lp.row_upper,
        lp.starts,
        lp.rows,
        lp.values,
    ]
    arrays += [node.state_in, node.state_out, plan.kind, plan.row, plan.col]
    if corrections is not None:
        arrays += [corrections.coef, corrections.limit]
    for array in arrays:
        digest.update(array.tobytes())
    return digest.digest()


def _bytes(amount: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")
