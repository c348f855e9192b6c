"""Two workers against one process on a training of some ten seconds: wall time of the whole call, start included.

Strong scaling does the same training with more ranks, weak scaling twice the trajectories with two. The split of each
worker's time says what keeps the ratio above a half.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pycobre.bench import entry
from pycobre.bench.document import Document, Figure, Table
from pycobre.bench.timing import Spread, interleaved
from pycobre.cases import synthetic
from pycobre.model import Case
from pycobre.run import TrainingResult, train

__all__ = ["measure"]

Timed = tuple[float, TrainingResult]
ALONE, SHM, WEAK = "1 process", "2 workers, shm", "2 workers, shm, twice the trajectories"


def measure(settings: entry.Settings) -> Document:
    """Two workers against one process."""
    passes = 4 if settings.quick else 16
    case, twice = (_case(settings.quick, passes=count) for count in (passes, 2 * passes))
    found = interleaved(
        {
            ALONE: _call(case, "auto", 1),
            SHM: _call(case, "shm", 2),
            "2 workers, tcp": _call(case, "tcp", 2),
            WEAK: _call(twice, "shm", 2),
        },
        settings.repetitions(),
    )
    same = {result.policy_digest for name, runs in found.items() if name != WEAK for _, result in runs}
    assert len(same) == 1, same
    spreads = {name: Spread(tuple(wall for wall, _ in runs)) for name, runs in found.items()}
    alone = spreads[ALONE].median
    rows = tuple(
        (name, each.median, each.least, each.most, each.median / alone) for name, each in spreads.items()
    )
    columns = ("", "seconds (median)", "least", "most", "ratio")
    return Document(
        "run_workers",
        (Table(f"{passes} trajectories; the same digest everywhere", columns, rows), _split(found)),
        (
            Figure("two workers against one process", spreads[SHM].median / alone, "", at_most=0.55),
            Figure("twice the work on two workers, against one process", spreads[WEAK].median / alone),
        ),
    )


def _case(quick: bool, passes: int) -> Case:
    if quick:
        return synthetic(
            hydros=4, thermals=4, buses=2, stages=4, openings=4, forward_passes=passes, iterations=2
        )
    return synthetic(
        hydros=30, thermals=40, buses=4, stages=12, openings=12, forward_passes=passes, iterations=12
    )


def _call(case: Case, backend: str, workers: int) -> Callable[[], Timed]:
    def timed() -> Timed:
        begin = time.perf_counter()
        result = train(case, backend=backend, num_workers=workers)
        return time.perf_counter() - begin, result

    return timed


def _split(found: dict[str, list[Timed]]) -> Table:
    """Where each rank's seconds went, in the run nearest to the median."""
    rows = []
    for name, runs in found.items():
        middle = Spread(tuple(wall for wall, _ in runs)).median
        wall, result = min(runs, key=lambda run: abs(run[0] - middle))
        for rank in result.timing:
            start = wall - rank.total_s
            rows.append((name, rank.rank, rank.solve_s, rank.communicate_s, rank.wait_s, rank.other_s, start))
    columns = ("", "rank", "solve, s", "communicate, s", "wait, s", "other, s", "start and end, s")
    return Table("where the seconds went", columns, tuple(rows))


if __name__ == "__main__":
    entry.main(measure)
