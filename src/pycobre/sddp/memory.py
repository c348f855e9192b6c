"""What a training run will occupy, before it starts."""

from __future__ import annotations

from pycobre._util.frozen import frozen
from pycobre.problem import Problem
from pycobre.sddp.enumeration import Enumeration
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.sampling import default_depth, linear_nodes

__all__ = ["MemoryEstimate", "estimate"]


@frozen()
class MemoryEstimate:
    """Bytes. What is shared exists once per machine if the backend can share memory, else once per rank."""

    cuts: int  #: shared, when the last iteration is reached
    openings: int  #: shared
    work_queue: (
        int  #: shared, where the ranks of one machine balance a linear graph's trajectories among them
    )
    starts: int  #: per rank: bases and outgoing states of its trajectories
    work: int  #: per rank: the largest step of the backward pass
    lps: int  #: per rank: one LP per thread and distinct node, roughly
    iterations: int  #: that the number of cuts assumes

    @property
    def shared_bytes(self) -> int:
        return self.cuts + self.openings + self.work_queue

    @property
    def rank_bytes(self) -> int:
        return self.starts + self.work + self.lps

    def __str__(self) -> str:
        lines = [
            f"cuts after {self.iterations} iterations  {_bytes(self.cuts)}  once per machine",
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
    cuts = openings = work_queue = starts = work = lps = 0
    for index, node in enumerate(problem.nodes):
        lp = node.template
        children = shape.successors(index)[0].tolist()
        if children:
            cuts += 8 * (n + 1) * walked.get(index, options.forward_passes) * count * visits
            outcomes = sum(problem.nodes[child].noise.openings for child in children)
            work = max(work, 8 * own * (outcomes * (2 * n + 4) + 3 * n))
        openings += node.noise.values.nbytes
        if balanced:
            work_queue += options.forward_passes * (lp.num_cols + lp.num_rows + 12 * n + 8)
        starts += min(own, walked.get(index, own)) * (lp.num_cols + lp.num_rows + 1 + 8 * n + 16)
        lps += options.threads * (96 * lp.num_cols + 96 * lp.num_rows + 48 * lp.values.size)
    return MemoryEstimate(cuts, openings, work_queue, starts, work, lps, count)


def _bytes(amount: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")
