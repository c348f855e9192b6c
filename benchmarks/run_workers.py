"""Two workers against one process on a training of some ten seconds: wall time of the whole call, start included.

Strong scaling does the same training with more ranks, weak scaling twice the trajectories with two. The split of
each worker's time says what keeps the ratio above a half; two trainings at once that know nothing of each other say
how much of that is the machine's doing. Threads are the other way to a second core, without a start.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.harness import entry
from benchmarks.harness.compiled import compiled_modules
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import Spread, interleaved
from pycobre.app import TrainingResult, train
from pycobre.hydro.examples import synthetic
from pycobre.hydro.model import Case

__all__ = ["measure", "train_on_signal"]

Timed = tuple[float, TrainingResult | None]
ALONE, SHM, WEAK = "1 process", "2 workers, shm", "2 workers, shm, twice the trajectories"
PAIR = "2 independent runs at once, each the whole training"
TIMEOUT_S = 600.0
_INDEPENDENT = (
    "import sys; from benchmarks.run_workers import train_on_signal as go; go(sys.argv[1] == 'quick')"
)


def measure(settings: entry.Settings) -> Document:
    """Two workers against one process."""
    passes = _passes(settings.quick)
    case, twice = (_case(settings.quick, passes=count) for count in (passes, 2 * passes))
    with compiled_modules():
        _pair(quick=True)  # compiles what is not compiled
        for backend in ("shm", "tcp"):
            train(_case(True, passes=_passes(True)), backend=backend, num_workers=2)
        found = interleaved(
            {
                ALONE: _call(case, "auto"),
                PAIR: lambda: (_pair(settings.quick), None),
                SHM: _call(case, "shm", workers=2),
                "2 workers, tcp": _call(case, "tcp", workers=2),
                "1 process, 2 threads": _call(case, "auto", threads=2),
                WEAK: _call(twice, "shm", workers=2),
            },
            settings.repetitions(),
        )
    same = {
        result.policy_digest for name, runs in found.items() if name != WEAK for _, result in runs if result
    }
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
            Figure(
                "what the cores allow: half of two independent runs at once", spreads[PAIR].median / alone / 2
            ),
            Figure("twice the work on two workers, against one process", spreads[WEAK].median / alone),
        ),
    )


def _passes(quick: bool) -> int:
    return 4 if quick else 16


def _case(quick: bool, passes: int) -> Case:
    if quick:
        return synthetic(
            hydros=4, thermals=4, buses=2, stages=4, openings=4, forward_passes=passes, iterations=2
        )
    return synthetic(
        hydros=30, thermals=40, buses=4, stages=12, openings=12, forward_passes=passes, iterations=12
    )


def _call(case: Case, backend: str, *, workers: int = 1, threads: int = 1) -> Callable[[], Timed]:
    def timed() -> Timed:
        begin = time.perf_counter()
        result = train(case, backend=backend, num_workers=workers, threads=threads)
        return time.perf_counter() - begin, result

    return timed


def _pair(quick: bool) -> float:
    """Seconds of the slower of two trainings that begin at the same moment and know nothing of each other."""
    command = [sys.executable, "-c", _INDEPENDENT, "quick" if quick else "full"]
    independent = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for each in independent:
            assert each.stdout is not None
            each.stdout.readline()
        for each in independent:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        return max(float(each.communicate(timeout=TIMEOUT_S)[0]) for each in independent)
    finally:
        for each in independent:
            each.kill()
            each.wait()


def train_on_signal(quick: bool) -> None:
    """One training alone in this process, when the first line of input comes; prints its seconds."""
    call = _call(_case(quick, _passes(quick)), "auto")
    print("ready", flush=True)
    sys.stdin.readline()
    print(call()[0])


def _split(found: dict[str, list[Timed]]) -> Table:
    """Where each rank's seconds went, in the run nearest to the median."""
    rows = []
    for name, runs in found.items():
        middle = Spread(tuple(wall for wall, _ in runs)).median
        wall, result = min(runs, key=lambda run: abs(run[0] - middle))
        for rank in result.timing if result is not None else ():
            start = wall - rank.total_s
            rows.append((name, rank.rank, rank.solve_s, rank.communicate_s, rank.wait_s, rank.other_s, start))
    columns = ("", "rank", "solve, s", "communicate, s", "wait, s", "other, s", "start and end, s")
    return Table("where the seconds went", columns, tuple(rows))


if __name__ == "__main__":
    entry.main(measure)
