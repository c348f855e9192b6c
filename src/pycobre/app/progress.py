"""What a console or a notebook shows of a run: fed by events, read by whoever draws.

Feeding is a few assignments, so that drawing, however slow the terminal, never holds up training. Another thread
draws meanwhile: what it goes through is replaced as a whole and never changed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pycobre.app.wording import amount, duration, percent
from pycobre.events import (
    CheckpointWritten,
    Event,
    IterationFinished,
    SimulationProgress,
    SimulationStarted,
    TrainingStarted,
    WarningRaised,
)

__all__ = ["Progress", "row"]

SHOWN = 10


@dataclass
class Progress:
    """The state of a run as far as it has been told."""

    limit: int | None = None
    first_iteration: int = 1
    latest: IterationFinished | None = None
    rows: tuple[IterationFinished, ...] = ()
    simulated: Mapping[int, int] = field(default_factory=dict)
    scenarios: int = 0
    checkpoint: int | None = None
    warnings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    stopping: bool = False

    def feed(self, event: Event) -> None:
        """Take one event in; those of other ranks than 0 only count where ranks differ."""
        match event:
            case SimulationProgress():
                self.simulated = {**self.simulated, event.worker_id: event.done}
            case WarningRaised() if event.message not in self.warnings:
                self.warnings.append(event.message)
            case _ if event.worker_id != 0:
                return
            case TrainingStarted():
                self.limit, self.first_iteration = event.iteration_limit, event.first_iteration
            case IterationFinished():
                self.latest = event
                self.rows = (*self.rows, event)[-SHOWN:]
            case CheckpointWritten():
                self.checkpoint = event.iteration
            case SimulationStarted():
                self.scenarios = event.scenarios
            case _:
                return

    @property
    def iteration(self) -> int:
        return self.latest.iteration if self.latest else self.first_iteration - 1

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining_s(self) -> float | None:
        """Until the iteration limit, judged by the last iterations; None where there is nothing to judge by."""
        rows = self.rows
        if self.limit is None or not rows:
            return None
        mean = sum(event.elapsed_s for event in rows) / len(rows)
        return mean * (self.limit - self.iteration)


def row(event: IterationFinished) -> tuple[str, ...]:
    """One iteration as cells: iteration, bounds, gap, cuts, LPs per second, time."""
    rate = event.lp_solves / event.elapsed_s if event.elapsed_s > 0 else 0.0
    return (
        str(event.iteration),
        amount(event.lower_bound),
        amount(event.upper_bound),
        percent(event.gap),
        f"{event.cuts_active}",
        f"{rate:,.0f}",
        duration(event.total_s),
    )
