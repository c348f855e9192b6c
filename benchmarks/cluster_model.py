"""Training on machines that are not here: ranks as clocks, measured solve times, costs of collectives.

An iteration is a fixed sequence of steps (the forward pass, one step per stage backwards, the bound). In each, a
rank solves its own trajectories one after the other, or backwards, where ranks share memory, the next one that none
of them has taken, and then meets the others: nobody leaves a meeting before the last has come, and it takes what the
network makes it take. Solve times are drawn from measured ones, so that a meeting waits for the slowest of as many
draws as there are ranks, which is what limits many ranks most.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64

__all__ = ["Line", "Network", "Nodes", "Prediction", "Shared", "Star", "Work", "predict"]


@dataclass(frozen=True, eq=False)
class Work:
    """What one iteration solves, and how long it takes here. Seconds."""

    forward_s: F64  #: measured seconds of one trajectory's forward pass
    chain_s: F64  #: measured seconds of one trajectory's openings at one stage
    call_s: float  #: what a rank spends once per step, however many trajectories it has
    forward_call_s: float  #: the same for the whole forward pass
    shared_s: float  #: what every rank spends per step on all trajectories together: storing their records
    stages: int
    record_bytes: int  #: of one trajectory's cut


@dataclass(frozen=True)
class Line:
    """A message costs `latency_s` and each byte of it `byte_s`."""

    latency_s: float
    byte_s: float


class Network(Protocol):
    """What joins ranks."""

    def gather_s(self, ranks: int, nbytes: float) -> float:
        """How long a gather of `nbytes` from each of `ranks` takes after the last rank has come."""
        ...

    def neighbours(self, ranks: int) -> int:
        """How many of `ranks` share one memory, and with it their trajectories."""
        ...


@dataclass(frozen=True)
class Shared:
    """Ranks of one machine: each reads the others' slots; together they share the memory's bandwidth."""

    line: Line  #: of two ranks
    further_rank_s: float  #: each further rank's cache line
    memory_bytes_per_s: float

    def gather_s(self, ranks: int, nbytes: float) -> float:
        if ranks == 1:
            return 0.0
        total = ranks * nbytes
        copying = max(total * self.line.byte_s, ranks * total / self.memory_bytes_per_s)
        return self.line.latency_s + (ranks - 2) * self.further_rank_s + copying

    def neighbours(self, ranks: int) -> int:
        return ranks


@dataclass(frozen=True)
class Nodes:
    """Machines of `per_node` ranks each, joined by MPI: a gather by doubling over nodes, then shared memory."""

    inside: Shared
    between: Line
    per_node: int

    def gather_s(self, ranks: int, nbytes: float) -> float:
        nodes = -(-ranks // self.per_node)
        here = self.inside.gather_s(min(ranks, self.per_node), nbytes)
        if nodes == 1:
            return here
        # Every node receives what the others have; the number of rounds grows with the logarithm.
        rounds = int(np.ceil(np.log2(nodes)))
        return here + rounds * self.between.latency_s + (ranks - self.per_node) * nbytes * self.between.byte_s

    def neighbours(self, ranks: int) -> int:
        return min(ranks, self.per_node)


@dataclass(frozen=True)
class Star:
    """One coordinator: it takes a message from every worker and sends every worker everybody else's."""

    line: Line  #: of the wire
    message_s: float  #: the coordinator's own work per message

    def gather_s(self, ranks: int, nbytes: float) -> float:
        if ranks == 1:
            return 0.0
        workers = ranks - 1
        sent = workers * workers * nbytes  # all but a worker's own block, to each of them
        return 2 * self.line.latency_s + 2 * workers * self.message_s + sent * self.line.byte_s

    def neighbours(self, ranks: int) -> int:
        return 1


@dataclass(frozen=True)
class Prediction:
    """Mean seconds of an iteration; the parts are those of the average rank."""

    ranks: int
    seconds: float
    solve_s: float
    wait_s: float
    communicate_s: float


def predict(
    work: Work, network: Network, ranks: int, passes: int, *, iterations: int = 20, seed: int = 0
) -> Prediction:
    """Run so many iterations of so many trajectories on so many ranks."""
    random = np.random.default_rng(seed)
    share, more = divmod(passes, ranks)
    own = np.full(ranks, share) + (np.arange(ranks) < more)
    first = np.cumsum(own) - own
    clock = np.zeros(ranks)
    solve = wait = communicate = 0.0

    def step(samples: F64, call_s: float, nbytes: float, *, dealt: bool = False) -> None:
        nonlocal clock, solve, wait, communicate
        # Draws belong to trajectories, so that the same ones are made on any number of ranks.
        drawn = random.choice(samples, passes)
        cost = network.gather_s(ranks, nbytes * passes / ranks)
        table = network.neighbours(ranks) if dealt else 1
        if table > 1:
            spent = _dealt(drawn, own, table)
            cost += network.gather_s(table, 0.0)  # they meet once more, to find what others made for them
        else:
            spent = np.add.reduceat(np.append(drawn, 0.0), np.minimum(first, passes)) * (own > 0)
        busy = spent + call_s * (spent > 0) + work.shared_s
        arrived = clock + busy
        solve += float(busy.mean())
        wait += float((arrived.max() - arrived).mean())
        communicate += cost
        clock = np.full(ranks, arrived.max() + cost)

    for _ in range(iterations):
        step(work.forward_s, work.forward_call_s, 24.0)
        for _ in range(work.stages - 1):
            step(work.chain_s, work.call_s, float(work.record_bytes), dealt=True)
        # The first stage's openings are shared by all trajectories: one chain in all.
        step(work.chain_s / passes, work.call_s, 24.0)
    total = float(clock[0]) / iterations
    return Prediction(ranks, total, solve / iterations, wait / iterations, communicate / iterations)


def _dealt(drawn: F64, own: NDArray[np.int64], table: int) -> F64:
    """Seconds of each rank where so many ranks at a time take their trajectories from one table."""
    spent = np.zeros(len(own))
    begin = 0
    for first in range(0, len(own), table):
        ranks = range(first, min(first + table, len(own)))
        end = begin + int(own[ranks.start : ranks.stop].sum())
        free = [(0.0, rank) for rank in ranks]  # when each is free again: a heap
        for seconds in drawn[begin:end].tolist():
            at, rank = free[0]
            heapreplace(free, (at + seconds, rank))
        for at, rank in free:
            spent[rank] = at
        begin = end
    return spent
