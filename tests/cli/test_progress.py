"""What the console knows of a run while it is drawn by another thread."""

from __future__ import annotations

from dataclasses import fields

from pycobre.cli.progress import SHOWN, Progress
from pycobre.events import IterationFinished, SimulationProgress


def iteration(number: int) -> IterationFinished:
    values = {field.name: 1.0 for field in fields(IterationFinished)}
    return IterationFinished(**{**values, "worker_id": 0, "iteration": number})


def test_the_last_iterations_are_kept():
    known = Progress()
    for number in range(1, SHOWN + 4):
        known.feed(iteration(number))
    assert [event.iteration for event in known.rows] == list(range(4, SHOWN + 4))
    assert known.iteration == SHOWN + 3


def test_what_is_being_drawn_does_not_change():
    """An event that comes between two rows of a table, or two ranks of a sum, is shown the next time."""
    known = Progress(limit=10)
    known.feed(iteration(1))
    known.feed(iteration(2))
    known.feed(SimulationProgress(worker_id=0, done=3, scenarios=9, mean=0.0))
    rows, simulated = iter(known.rows), iter(known.simulated.values())
    assert (next(rows).iteration, next(simulated)) == (1, 3)
    known.feed(iteration(3))
    known.feed(SimulationProgress(worker_id=1, done=4, scenarios=9, mean=0.0))
    assert [event.iteration for event in rows] == [2]
    assert list(simulated) == []
    assert len(known.rows) == 3
    assert dict(known.simulated) == {0: 3, 1: 4}
    assert known.remaining_s == 7.0
