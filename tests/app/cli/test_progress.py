"""What the console knows of a run while it is drawn by another thread."""

from __future__ import annotations

import io
import re
from dataclasses import fields

from rich.console import Console

from pycobre.app.cli.screen import HEADINGS, LineScreen, LiveScreen
from pycobre.app.progress import SHOWN, Progress
from pycobre.events import IterationFinished, SimulationProgress, TrainingStarted


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


def started(first: int) -> TrainingStarted:
    values = {field.name: 1 for field in fields(TrainingStarted)}
    return TrainingStarted(**{**values, "worker_id": 0, "first_iteration": first, "iteration_limit": 100_000})


def largest() -> IterationFinished:
    """What makes the widest row: a long run of a large system."""
    values = {field.name: 1.0 for field in fields(IterationFinished)}
    values.update(worker_id=0, iteration=99_999, lower_bound=99_999_999_998.0, upper_bound=99_999_999_999.0)
    values.update(gap=-9.999, cuts_active=999_999, lp_solves=999_999, elapsed_s=1.0, total_s=3599.0)
    return IterationFinished(**values)


def test_the_widest_row_fits_into_80_columns():
    live = LiveScreen(io.StringIO())
    live(started(50_001))
    live(largest())
    live.stopping()
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    console.print(live._draw())
    shown = console.file.getvalue()
    assert "…" not in shown
    assert re.search(r"99999 +99,999,999,998 +99,999,999,999 +-999\.9 % +999999 +999,999 +59:59 min", shown)
    assert all(heading in shown for heading in HEADINGS)
    assert "resumed after iteration 50000\n" in shown
    assert "Press Ctrl-C again to abort.\n" in shown


def test_plain_lines_stay_within_80_columns_and_apart():
    stream = io.StringIO()
    with LineScreen(stream) as screen:
        screen(started(1))
        screen(largest())
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines[1].split()) == 9  # seven cells, of which two have a unit
    assert "resumed" not in stream.getvalue()
