"""Training end to end against Cobre, one part per case: `--only base|openings|passes|stages|production`.

Both programs read the same case directory, train from nothing and write their results; each run is a process of
its own, and clocks start at the call. Cobre's bounds after a quarter, half and all of its iterations are the
targets; pycobre goes on until it has reached the last of them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.cobre_cases import Trial, trials
from benchmarks.cobre_environment import Missing, cobre_python
from benchmarks.cobre_runs import Run, run_cobre, run_own
from benchmarks.harness import entry
from benchmarks.harness.document import Curve, Document, Figure, Picture, Table
from benchmarks.harness.timing import Spread, interleaved

__all__ = ["CASE_VARIABLE", "measure"]

CASE_VARIABLE = "PYCOBRE_BENCH_CASE"
MORE = 2  # times Cobre's iterations that pycobre may take to reach its bound
COBRE, OWN, ALL_CUTS = "Cobre, 1 thread", "pycobre, 1 thread", "pycobre, 1 thread, all cuts"
ALL_IN_HIGHS = "pycobre, 1 thread, all cuts, HiGHS alone"
COBRE_TWO, OWN_TWO, OWN_WORKERS = "Cobre, 2 threads", "pycobre, 2 threads", "pycobre, 2 workers"
MATCHES = {OWN: COBRE, ALL_CUTS: COBRE, ALL_IN_HIGHS: COBRE, OWN_TWO: COBRE_TWO, OWN_WORKERS: COBRE_TWO}


def measure(settings: entry.Settings) -> Document:
    """Train against Cobre on one case, or on all of them."""
    name = f"cobre-{settings.only}" if settings.only else "cobre"
    try:
        python = cobre_python()
    except Missing as reason:
        return Document(name, skipped=str(reason))
    given = os.environ.get(CASE_VARIABLE)
    chosen = trials(Path(given) if given else None, quick=settings.quick)
    if settings.only:
        chosen = {settings.only: chosen[settings.only]}
    parts = [_compare(trial, python, settings.repetitions()) for trial in chosen.values()]
    return Document(
        name,
        tables=tuple(table for part in parts for table in part.tables),
        figures=tuple(figure for part in parts for figure in part.figures),
        pictures=tuple(picture for part in parts for picture in part.pictures),
        data={trial.name: part.data for trial, part in zip(chosen.values(), parts, strict=True)},
    )


def _compare(trial: Trial, python: Path, rounds: int) -> Document:
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = Path(directory)
        trial.write(root / "case", trial.iterations)
        trial.write(root / "more", MORE * trial.iterations)
        found = interleaved(_candidates(trial, python, root), rounds)
    return _findings(trial, found)


def _candidates(trial: Trial, python: Path, root: Path) -> dict[str, Callable[[], Run]]:
    targets: list[float] = []

    def cobre(threads: int) -> Run:
        run = run_cobre(python, root / "case", root / "cobre", threads)
        # Its bounds are the same in every run, and it runs first: they say where pycobre has to arrive.
        targets.append(run.lower_bound[-1])
        return run

    def own(threads: int = 1, workers: int = 1) -> Run:
        return run_own(
            root / "more",
            root / "own",
            threads=threads,
            workers=workers,
            target=targets[0],
            at_least=trial.iterations,
        )

    return {
        COBRE: lambda: cobre(1),
        OWN: own,
        ALL_CUTS: lambda: run_own(root / "case", root / "own", all_cuts=True),
        ALL_IN_HIGHS: lambda: run_own(root / "case", root / "own", all_cuts=True, highs=True),
        COBRE_TWO: lambda: cobre(2),
        OWN_TWO: lambda: own(threads=2),
        OWN_WORKERS: lambda: own(workers=2),
    }


def _findings(trial: Trial, found: dict[str, list[Run]]) -> Document:
    count = trial.iterations
    cobre = found[COBRE][0]
    marks = sorted({max(1, count // 4), max(1, count // 2), count})
    rows = []
    for name, runs in found.items():
        same = [found[MATCHES.get(name, name)], runs]
        rates = [Spread(tuple(run.rate(count) for run in group)).median for group in same]
        late = Spread(tuple(run.last_iterations_s(count) for run in runs)).median
        rows.append(
            (
                name,
                Spread(tuple(run.wall_s for run in runs)).median,
                Spread(tuple(run.cpu_s for run in runs)).median,
                rates[1],
                rates[1] / rates[0],
                1e3 * late,
                max(run.peak_mb for run in runs),
                runs[0].lower_bound[count - 1],
            )
        )
    columns = (
        "",
        "seconds",
        "CPU s",
        "LPs/s",
        "ratio",
        "ms per late iteration",
        "peak MB",
        f"bound after {count}",
    )
    tables = [Table(f"{trial.name}: {count} iterations of {trial.passes} passes", columns, tuple(rows))]
    bounds = []
    for mark in marks:
        bound = cobre.lower_bound[mark - 1]
        for name, other in ((OWN, COBRE), (OWN_TWO, COBRE_TWO), (OWN_WORKERS, COBRE_TWO)):
            own, reference = (
                Spread(tuple(run.seconds_to(bound) for run in found[which])) for which in (name, other)
            )
            bounds.append((mark, bound, name, str(reference), str(own), own.median / reference.median))
    heads = ("Cobre's iteration", "bound", "", "Cobre, s", "pycobre, s", "ratio")
    tables.append(Table(f"{trial.name}: seconds from the call to Cobre's bound", heads, tuple(bounds)))
    to_bound = [
        Spread(tuple(run.seconds_to(cobre.lower_bound[-1]) for run in found[n])) for n in (OWN, COBRE)
    ]
    rate = [Spread(tuple(run.rate(count) for run in found[n])).median for n in (ALL_CUTS, COBRE)]
    figures = (
        Figure(
            f"{trial.name}: time to Cobre's last bound, ratio",
            to_bound[0].median / to_bound[1].median,
            "",
            at_most=1 / 3 if trial.third else None,
        ),
        Figure(f"{trial.name}: rate with all cuts in every LP, ratio", rate[0] / rate[1], "", at_least=1.0),
    )
    curves = tuple(
        Curve(name, found[name][0].at_s, found[name][0].lower_bound) for name in (COBRE, OWN, ALL_CUTS)
    )
    picture = Picture(trial.name, "seconds from the call", "lower bound", curves, log_x=True)
    data = {
        name: [
            {
                "wall_s": r.wall_s,
                "cpu_s": r.cpu_s,
                "peak_mb": r.peak_mb,
                "at_s": r.at_s,
                "lower_bound": r.lower_bound,
            }
            for r in runs
        ]
        for name, runs in found.items()
    }
    return Document(trial.name, tuple(tables), figures, (picture,), data=data)


if __name__ == "__main__":
    entry.main(measure)
