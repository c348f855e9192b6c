"""The clocks of a rank: what they cost in memory over a long training."""

from __future__ import annotations

import tracemalloc

import numpy as np

from pycobre.comm import LocalBackend
from pycobre.sddp.timing import Ledger

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
