"""What a run's own records cost: events, status and default checkpoints as a share of an iteration.

Processor time is compared, of the thread that computes and writes, so that other programs do not count.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from pycobre.app import train
from pycobre.app.run_log import RunLog
from pycobre.events import CheckpointWritten, Event, IterationFinished
from pycobre.hydro.examples import EXAMPLES, synthetic
from pycobre.hydro.model import Case
from pycobre.sddp.training.checkpoint import DEFAULT_S

__all__ = ["measure"]


def measure(settings: entry.Settings) -> Document:
    """Events, status and default checkpoints as a share of an iteration."""
    rows: list[tuple[Any, ...]] = []
    figures: list[Figure] = []
    for name, case, iterations in _cases(settings):
        spent = _spent(case, iterations)
        rows.append((name, iterations, 1e3 * spent.iteration_s, 1e6 * spent.records_s, spent.records_share))
        rows.append((f"{name}, a checkpoint", "", 1e3 * spent.checkpoint_s, "", spent.checkpoint_share))
        figures.append(Figure(f"{name}: events and status", spent.records_share, "%", at_most=0.5))
        figures.append(
            Figure(f"{name}: default checkpoints of a long run", spent.checkpoint_share, "%", at_most=1.0)
        )
    columns = ("", "iterations", "ms (median)", "µs of records", "share %")
    return Document("run_records", (Table("per iteration", columns, tuple(rows)),), tuple(figures))


class _Spent:
    """Processor seconds of one training, taken apart."""

    def __init__(self) -> None:
        self.iterations: list[float] = []
        self.records: list[float] = []
        self.checkpoints: list[float] = []

    @property
    def iteration_s(self) -> float:
        return sorted(self.iterations)[len(self.iterations) // 2]

    @property
    def records_s(self) -> float:
        return sum(self.records) / len(self.records)

    @property
    def records_share(self) -> float:
        return 100 * sum(self.records) / sum(self.iterations)

    @property
    def checkpoint_s(self) -> float:
        return max(self.checkpoints)

    @property
    def checkpoint_share(self) -> float:
        """One every two minutes, or less often where a hundredth of that is not enough."""
        return 100 * self.checkpoint_s / max(DEFAULT_S, 100 * self.checkpoint_s)


def _spent(case: Case, iterations: int) -> _Spent:
    spent = _Spent()
    write = RunLog.__call__
    last = time.thread_time()

    def timed(log: RunLog, event: Event) -> None:
        nonlocal last
        begin = time.thread_time()
        write(log, event)
        end = time.thread_time()
        if isinstance(event, IterationFinished):
            spent.iterations.append(begin - last)
            spent.records.append(end - begin)
            last = end
        elif isinstance(event, CheckpointWritten):
            spent.checkpoints.append(event.elapsed_s)
            last = time.thread_time()

    overrides = {"training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}]}
    RunLog.__call__ = timed  # type: ignore[method-assign, assignment]
    try:
        with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
            train(case, overrides, output=Path(directory) / "run")
    finally:
        RunLog.__call__ = write  # type: ignore[method-assign, assignment]
    return spent


def _cases(settings: entry.Settings) -> list[tuple[str, Case, int]]:
    small = EXAMPLES["four-regions"].build()
    if settings.quick:
        return [("four regions", small, 5)]
    large = synthetic(
        hydros=60, cascades=8, thermals=100, buses=5, stages=24, openings=20, forward_passes=16, iterations=8
    )
    return [("four regions", small, 60), ("60 plants", large, 8)]


if __name__ == "__main__":
    entry.main(measure)
