"""What a checkpoint costs at production scale: its seconds beside those of an iteration and of writing its bytes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import Spread, seconds
from pycobre.app import train
from pycobre.events import CheckpointWritten, Event, IterationFinished
from pycobre.hydro.examples import synthetic
from pycobre.hydro.model import Case

__all__ = ["measure"]


def measure(settings: entry.Settings) -> Document:
    """Checkpoints as a share of an iteration."""
    case = _case(settings)
    iterations: list[float] = []
    checkpoints: list[CheckpointWritten] = []

    def note(event: Event) -> None:
        if isinstance(event, IterationFinished):
            iterations.append(event.elapsed_s)
        elif isinstance(event, CheckpointWritten):
            checkpoints.append(event)

    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = Path(directory)
        result = train(case, progress_callback=note, output=root / "run", checkpoint_iterations=1)
        newest = max((root / "run" / "checkpoints").glob("*.cobre"))
        content = newest.read_bytes()
        plain = Spread(tuple(seconds(lambda: _write(root / "plain", content)) for _ in range(3)))
    written = Spread(tuple(event.elapsed_s for event in checkpoints[-3:]))
    iteration = Spread(tuple(iterations[-3:]))
    rows = (
        ("last iterations", iteration.median, iteration.least, iteration.most, None),
        ("checkpoint after each", written.median, written.least, written.most, len(content) / 1e6),
        ("writing and syncing the same bytes", plain.median, plain.least, plain.most, len(content) / 1e6),
    )
    columns = ("", "seconds (median)", "least", "most", "MB")
    states = len(result.metadata["states"]) if "states" in result.metadata else len(case.hydros)
    return Document(
        "checkpoint",
        (Table(f"{len(case.stages)} stages, {result.total_cuts} cuts, {states} plants", columns, rows),),
        (
            Figure(
                "checkpoint as a share of an iteration",
                100 * written.median / iteration.median,
                "%",
                at_most=5.0,
            ),
            Figure("checkpoint against writing its bytes", written.median / plain.median),
        ),
    )


def _case(settings: entry.Settings) -> Case:
    if settings.quick:
        return synthetic(hydros=4, thermals=4, buses=2, stages=4, openings=4, forward_passes=4, iterations=3)
    return synthetic(
        hydros=60, cascades=8, thermals=100, buses=5, stages=24, openings=20, forward_passes=16, iterations=5
    )


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


if __name__ == "__main__":
    entry.main(measure)
