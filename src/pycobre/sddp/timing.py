"""Where a rank's seconds go: solve, communicate, wait, other.

A collective takes as long as the last rank makes it take. Its communication is what the rank that came last
spent in it (the shortest time of all ranks); whatever another rank spent beyond that, it waited. So the split
is known only when all ranks have laid their clocks side by side, once, at the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pycobre._util.arrays import F64, I64
from pycobre._util.frozen import frozen
from pycobre.comm import Communicator
from pycobre.events import RankTiming

__all__ = ["Ledger", "TimingTable"]


@frozen(eq=False)
class TimingTable:
    """Seconds by iteration (from the run's first) and rank; every array is [iterations, ranks]."""

    iteration: I64  #: [iterations]
    forward_s: F64
    backward_s: F64
    solve_s: F64
    communicate_s: F64
    wait_s: F64
    other_s: F64
    total_s: F64
    lp_solves: F64
    simplex_iterations: F64

    def by_rank(self) -> tuple[RankTiming, ...]:
        """The sums over iterations."""
        return tuple(
            RankTiming(
                rank=rank,
                solve_s=float(self.solve_s[:, rank].sum()),
                communicate_s=float(self.communicate_s[:, rank].sum()),
                wait_s=float(self.wait_s[:, rank].sum()),
                other_s=float(self.other_s[:, rank].sum()),
                lp_solves=int(self.lp_solves[:, rank].sum()),
                simplex_iterations=int(self.simplex_iterations[:, rank].sum()),
            )
            for rank in range(self.total_s.shape[1])
        )


class Ledger:
    """One rank's clocks and counters, iteration by iteration."""

    _FIELDS = ("forward_s", "backward_s", "solve_s", "total_s", "lp_solves", "simplex_iterations")

    def __init__(self) -> None:
        self.solve_s = 0.0
        self.lp_solves = 0
        self.simplex_iterations = 0
        self.retries = 0  #: steps of the solver's retry ladder
        self._collectives: list[float] = []
        self._rows: list[tuple[float, ...]] = []
        self._edges: list[int] = []
        self._iterations: list[int] = []

    def restart(self) -> None:
        """Forget what has been counted since the last iteration: it belongs to none, and differs by rank."""
        self.solve_s, self.lp_solves, self.simplex_iterations, self.retries = 0.0, 0, 0, 0
        del self._collectives[self._edges[-1] if self._edges else 0 :]

    @contextmanager
    def communicating(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._collectives.append(time.perf_counter() - begin)

    def close_iteration(self, iteration: int, forward_s: float, backward_s: float, total_s: float) -> None:
        """Book what has been counted since the last call as this iteration's."""
        self._iterations.append(iteration)
        self._rows.append(
            (
                forward_s,
                backward_s,
                self.solve_s,
                total_s,
                float(self.lp_solves),
                float(self.simplex_iterations),
            )
        )
        self._edges.append(len(self._collectives))
        self.restart()

    def table(self, comm: Communicator) -> TimingTable:
        """Lay the clocks of all ranks side by side (collective)."""
        ranks, iterations = comm.size, len(self._rows)
        own = np.concatenate(
            [
                np.array(self._rows).reshape(-1),
                np.array(self._collectives[: self._edges[-1] if self._edges else 0]),
            ]
        )
        gathered = np.zeros(ranks * len(own))
        if len(own):
            counts = (len(own),) * ranks
            comm.allgatherv(own, gathered, counts, tuple(len(own) * rank for rank in range(ranks)))
        everybody = gathered.reshape(ranks, len(own))
        width = len(self._FIELDS)
        columns = everybody[:, : iterations * width].reshape(ranks, iterations, width).transpose(2, 1, 0)
        spent = everybody[:, iterations * width :]
        least = spent.min(axis=0) if ranks else spent
        bounds = np.concatenate([[0], np.array(self._edges, np.int64)])
        communicate = np.zeros((iterations, ranks))
        wait = np.zeros((iterations, ranks))
        for row in range(iterations):
            span = slice(bounds[row], bounds[row + 1])
            communicate[row] = least[span].sum()
            wait[row] = (spent[:, span] - least[span]).sum(axis=1)
        named = dict(zip(self._FIELDS, columns, strict=True))
        other = np.maximum(0.0, named["total_s"] - named["solve_s"] - communicate - wait)
        return TimingTable(
            iteration=np.array(self._iterations, np.int64),
            communicate_s=communicate,
            wait_s=wait,
            other_s=other,
            **named,
        )
