"""Where a rank's seconds go: solve, communicate, wait, other.

A collective takes as long as the last rank makes it take. Its communication is what the rank that came last
spent in it (the shortest time of all ranks); whatever another rank spent beyond that, it waited. So the split
is known only when the clocks of all ranks have been gathered, once, at the end.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I64
from pycobre._util.frozen import frozen
from pycobre.comm import Communicator
from pycobre.comm.collectives import gather_rows
from pycobre.events import RankTiming

__all__ = ["Ledger", "TimingTable", "sums_by_rank"]


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
    rejected_answers: F64

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row per iteration and rank, as in the table `timing` of the results."""
        iterations, ranks = self.total_s.shape
        parts = [item.name for item in fields(self) if item.name != "iteration"]
        return {
            "iteration": np.repeat(self.iteration, ranks),
            "rank": np.tile(np.arange(ranks), iterations),
            **{name: getattr(self, name).reshape(-1) for name in parts},
        }

    def by_rank(self) -> tuple[RankTiming, ...]:
        """The sums over iterations."""
        return sums_by_rank(self.columns())


def sums_by_rank(columns: Mapping[str, NDArray[Any]]) -> tuple[RankTiming, ...]:
    """Sums over the iterations of a table `timing`, rank by rank."""
    ranks, at = np.unique(columns["rank"], return_inverse=True)

    def sums(name: str) -> list[float]:
        totals: list[float] = np.bincount(at, columns[name], len(ranks)).tolist()
        return totals

    solve, communicate, wait, other = map(sums, ("solve_s", "communicate_s", "wait_s", "other_s"))
    solves, iterations = sums("lp_solves"), sums("simplex_iterations")
    return tuple(
        RankTiming(int(rank), solve[i], communicate[i], wait[i], other[i], int(solves[i]), int(iterations[i]))
        for i, rank in enumerate(ranks)
    )


class Ledger:
    """One rank's clocks and counters, iteration by iteration."""

    _FIELDS = (
        "forward_s",
        "backward_s",
        "solve_s",
        "total_s",
        "lp_solves",
        "simplex_iterations",
        "rejected_answers",
    )

    def __init__(self) -> None:
        self.solve_s = 0.0
        self.lp_solves = 0
        self.simplex_iterations = 0
        self.retries = 0  #: recovery steps of the solver
        self.rejected_answers = 0  #: answers of HiGHS that failed the certificate and were solved again
        self.uncertified_answers = 0  #: those that failed it to the end
        # Kept for the whole run, one clock per collective: as numbers in arrays, a quarter of the memory of objects.
        self._collectives = array("d")
        self._rows = array("d")
        self._edges = array("q")
        self._iterations = array("q")

    def restart(self) -> None:
        """Forget what has been counted since the last iteration: it belongs to none, and differs by rank."""
        self.solve_s, self.lp_solves, self.simplex_iterations, self.retries = 0.0, 0, 0, 0
        self.rejected_answers = self.uncertified_answers = 0
        del self._collectives[self._edges[-1] if self._edges else 0 :]

    def counters(self) -> tuple[int, int, int, int, int]:
        """What has been counted since the last iteration, for `take_back`."""
        return (
            self.lp_solves,
            self.simplex_iterations,
            self.retries,
            self.rejected_answers,
            self.uncertified_answers,
        )

    def take_back(self, counters: tuple[int, int, int, int, int]) -> None:
        """Count as if nothing had been solved since `counters`: how much was differs by rank."""
        self.lp_solves, self.simplex_iterations, self.retries = counters[:3]
        self.rejected_answers, self.uncertified_answers = counters[3:]

    @contextmanager
    def communicating(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._collectives.append(time.perf_counter() - begin)

    @property
    def collectives(self) -> int:
        """How many have been timed."""
        return len(self._collectives)

    def clocks(self, start: int) -> F64:
        """Seconds in each collective from number `start` on."""
        return np.array(self._collectives[start:])

    def close_iteration(self, iteration: int, forward_s: float, backward_s: float, total_s: float) -> None:
        """Book what has been counted since the last call as this iteration's."""
        self._iterations.append(iteration)
        self._rows.extend(
            (
                forward_s,
                backward_s,
                self.solve_s,
                total_s,
                float(self.lp_solves),
                float(self.simplex_iterations),
                float(self.rejected_answers),
            )
        )
        self._edges.append(len(self._collectives))
        self.restart()

    def table(self, comm: Communicator) -> TimingTable:
        """The clocks of all ranks (collective)."""
        ranks, iterations = comm.size, len(self._iterations)
        booked = self._edges[-1] if self._edges else 0
        own = np.array(self._rows + self._collectives[:booked])
        gathered = gather_rows(comm, own[None], (1,) * ranks)
        width = len(self._FIELDS)
        columns = gathered[:, : iterations * width].reshape(ranks, iterations, width).transpose(2, 1, 0)
        spent = gathered[:, iterations * width :]
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
