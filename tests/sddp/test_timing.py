"""The clocks of a rank: what they cost in memory over a long training."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pycobre.comm import Communicator, LocalBackend
from pycobre.events import Event, RanksMeasured, RankTiming
from pycobre.sddp import IterationLimit, TrainOptions, train
from pycobre.sddp.timing import Ledger
from pycobre.testing import problems, run_ranks

COLLECTIVES, ITERATIONS = 20, 2000


def run(ledger: Ledger, iterations: range) -> None:
    for iteration in iterations:
        for _ in range(COLLECTIVES):
            with ledger.communicating():
                pass
        ledger.close_iteration(iteration, 0.5, 0.25, 1.0)


def test_an_iteration_costs_eight_bytes_per_number():
    ledger = Ledger()
    run(ledger, range(1, ITERATIONS + 1))
    tracemalloc.start()
    try:
        run(ledger, range(ITERATIONS + 1, 2 * ITERATIONS + 1))
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    numbers = COLLECTIVES + len(Ledger._FIELDS) + 2
    # Arrays grow in steps of an eighth; as objects in lists the numbers would take four times as much.
    assert grown < 1.5 * 8 * numbers * ITERATIONS + 8 * numbers * ITERATIONS


def test_the_table_has_what_was_booked():
    ledger = Ledger()
    run(ledger, range(1, 4))
    with ledger.communicating():
        pass  # belongs to no iteration
    table = ledger.table(LocalBackend())
    assert table.iteration.tolist() == [1, 2, 3]
    assert np.array_equal(table.total_s, np.full((3, 1), 1.0))
    assert np.array_equal(table.forward_s, np.full((3, 1), 0.5))
    assert (table.communicate_s > 0.0).all()
    assert np.array_equal(table.wait_s, np.zeros((3, 1)))


def test_the_table_of_no_iteration_is_empty():
    assert Ledger().table(LocalBackend()).total_s.shape == (0, 1)


class Measurements:
    """A listener that asks for one kind of events."""

    def __init__(self) -> None:
        self.seen: list[RanksMeasured] = []

    def wants(self, kind: type[Event]) -> bool:
        return kind is RanksMeasured

    def __call__(self, event: Event) -> None:
        assert isinstance(event, RanksMeasured)
        self.seen.append(event)


def measured(comm: Communicator) -> tuple[list[RanksMeasured], tuple[RankTiming, ...]]:
    listener = Measurements()
    options = TrainOptions(5, IterationLimit(4))
    outcome = train(problems.reservoir(5), comm, options, on_event=listener)
    return listener.seen, outcome.timing.by_rank()


def test_the_running_sums_are_those_of_the_table_at_the_end() -> None:
    for rank, (events, timing) in enumerate(run_ranks("threads", 3, measured, timeout=60)):
        last = events[-1]
        assert last.iteration == 4
        assert len(last.memory_bytes) == 3
        for running, final in zip(last.timing, timing, strict=True):
            assert (running.rank, running.lp_solves, running.simplex_iterations) == (
                final.rank,
                final.lp_solves,
                final.simplex_iterations,
            )
            assert running.solve_s == pytest.approx(final.solve_s, rel=1e-9)
            # The last gather, by which the ranks tell each other, is not in what they tell.
            assert 0.0 <= running.communicate_s <= final.communicate_s + 1e-9
            assert 0.0 <= running.wait_s <= final.wait_s + 1e-9, rank
        assert [event.iteration for event in events] == [1, 2, 3, 4]
