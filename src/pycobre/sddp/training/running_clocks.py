"""Where the seconds of all ranks have gone so far: what each sends along at the end of an iteration, added up."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from pycobre._util.arrays import F64
from pycobre.events import RankTiming
from pycobre.sddp.timing import Ledger

__all__ = ["RunningClocks"]

# What a rank sends before the clocks of its collectives.
_LP_SOLVES, _SIMPLEX_ITERATIONS, _RECOVERED, _SOLVE_S, _ELAPSED_S, _MEMORY, _HEAD = 0, 1, 2, 5, 6, 7, 8
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class RunningClocks:
    """The sums of this session, the same on every rank.

    The split into communicating and waiting is that of `Ledger.table`, taken iteration by iteration.
    """

    def __init__(self, ledger: Ledger, ranks: int) -> None:
        self._ledger = ledger
        self._seen = 0  # clocks of the ledger that have been sent
        self._since = time.perf_counter()
        self.recovered = np.zeros(3)  #: retries, rejected and uncertified answers, of all ranks
        self.memory_bytes = np.zeros(ranks, np.int64)
        self._solve_s, self._wait_s, self._elapsed_s = (np.zeros(ranks) for _ in range(3))
        self._solves, self._iterations = (np.zeros(ranks, np.int64) for _ in range(2))
        self._communicate_s = 0.0

    def restart(self) -> None:
        """Forget what was before the first iteration."""
        self._seen, self._since = self._ledger.collectives, time.perf_counter()

    def own(self) -> F64:
        """What this rank sends: the same number of values on every rank."""
        ledger = self._ledger
        clocks = ledger.clocks(self._seen)
        self._seen += len(clocks)
        now = time.perf_counter()
        head = np.array(
            [
                ledger.lp_solves,
                ledger.simplex_iterations,
                ledger.retries,
                ledger.rejected_answers,
                ledger.uncertified_answers,
                ledger.solve_s,
                now - self._since,
                _RSS_UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            ],
            np.float64,
        )
        self._since = now
        return np.concatenate([head, clocks])

    def add(self, sent: F64) -> tuple[int, int]:
        """Add what all ranks sent, [ranks, values]; LPs and simplex iterations of this iteration."""
        self.recovered += sent[:, _RECOVERED:_SOLVE_S].sum(axis=0)
        self._solve_s += sent[:, _SOLVE_S]
        self._elapsed_s += sent[:, _ELAPSED_S]
        self.memory_bytes = sent[:, _MEMORY].astype(np.int64)
        clocks = sent[:, _HEAD:]
        least = clocks.min(axis=0)
        self._communicate_s += float(least.sum())
        self._wait_s += (clocks - least).sum(axis=1)
        solves, iterations = (
            sent[:, _LP_SOLVES].astype(np.int64),
            sent[:, _SIMPLEX_ITERATIONS].astype(np.int64),
        )
        self._solves += solves
        self._iterations += iterations
        return int(solves.sum()), int(iterations.sum())

    def by_rank(self) -> tuple[RankTiming, ...]:
        """The sums so far."""
        columns = (self._solve_s, self._wait_s, self._elapsed_s, self._solves, self._iterations)
        communicate = self._communicate_s
        return tuple(
            RankTiming(
                rank,
                solve,
                communicate,
                wait,
                max(0.0, total - solve - communicate - wait),
                solves,
                iterations,
            )
            for rank, (solve, wait, total, solves, iterations) in enumerate(
                zip(*(column.tolist() for column in columns), strict=True)
            )
        )
