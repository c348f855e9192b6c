"""What careless implementations do, put in place of the mechanisms that keep the bits the same.

Each depends on the circumstances that the matrix varies (ranks, threads, hash seeds) and on nothing else.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

_JOBS = ("pycobre.app.worker", "reference_run.py")


def prepare(name: str) -> None:
    """Break one mechanism in this process, if it is one of a reference run."""
    if any(job in word for word in sys.orig_argv for job in _JOBS):
        MUTATIONS[name]()


def sum_per_rank() -> None:
    """Every rank adds up its own trajectories' costs and their squares, and the ranks' sums are added."""
    from pycobre.sddp.numbers import Spread
    from pycobre.sddp.split import Split
    from pycobre.sddp.training import walks

    def spread(costs: Any) -> Spread:
        count, split = len(costs), Split(len(costs), _number("SIZE", 1))
        blocks = [costs[f : f + n].tolist() for f, n in zip(split.firsts, split.counts, strict=True)]
        mean = sum(sum(block) for block in blocks) / count
        squares = sum(sum(cost * cost for cost in block) for block in blocks)
        std = math.sqrt(max(0.0, squares - count * mean * mean) / (count - 1))
        return Spread(mean, std, 1.96 * std / math.sqrt(count))

    walks.spread = spread


def seed_per_rank() -> None:
    """Every rank has a random generator of its own."""
    from pycobre.sddp.sampling import InSample

    original = InSample.__init__

    def initialise(self: Any, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        self._seed += _number("RANK", 0)

    InSample.__init__ = initialise  # type: ignore[method-assign]


def hot_start() -> None:
    """A solve starts from whatever basis the last one of this process ended with."""
    from pycobre.sddp.subproblems import SubproblemSolver

    original = SubproblemSolver._solve
    last: dict[int, Any] = {}

    def solve(self: Any, node: int, x: Any, values: Any, start: Any, *rest: Any, **named: Any) -> Any:
        block = original(self, node, x, values, last.get(node, start), *rest, **named)
        if block.basis is not None:
            last[node] = block.basis.take([len(block.basis) - 1])
        return block

    SubproblemSolver._solve = solve  # type: ignore[method-assign]


def loop_over_a_set() -> None:
    """Cuts are stored in the order in which a set of names gives them."""
    from pycobre.sddp.error_agreement import CheckedCollectives

    original = CheckedCollectives.gather

    def gather(self: Any, rows: Any, counts: Any) -> Any:
        found = original(self, rows, counts)
        if rows.shape[1] < 3:  # costs and counts; cuts are wider
            return found
        return found[[int(name.split()[1]) for name in {f"trajectory {i}" for i in range(len(found))}]]

    CheckedCollectives.gather = gather  # type: ignore[method-assign]


MUTATIONS = {made.__name__: made for made in (sum_per_rank, seed_per_rank, hot_start, loop_over_a_set)}


def _number(what: str, otherwise: int) -> int:
    """This process's rank, or the number of ranks."""
    for backend in ("SHM", "TCP"):
        if (text := os.environ.get(f"COBRE_{backend}_{what}")) is not None:
            return int(text)
    return otherwise
