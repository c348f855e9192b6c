"""Production size against Cobre, one thread each: CPU to its bounds, CPU per LP, memory.

    python -m benchmarks.cobre_national [--case DIRECTORY] [--only national|nat60|nat160|regions] [--seed N]

`national` is a case directory that `--case` or `PYCOBRE_BENCH_NATIONAL` names (a national study that both programs
read alike; without one it is skipped), `nat60` and `nat160` are synthetic systems of 60 and 160 plants, `regions` is
the four-region case. `--seed` is the seed of the tree and of the trajectories. Every run is a process of its own, and
per seed both programs run in turn. Cobre's bounds after 7 and after 20 iterations are the targets; what counts is
the CPU of the process from the call on, reading the case included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.against_cobre import CASE_VARIABLE
from benchmarks.cobre_environment import Missing, cobre_python
from benchmarks.cobre_runs import Run, run_cobre, run_own
from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import interleaved
from pycobre.hydro.examples import example, synthetic
from pycobre.hydro.files import write_case
from pycobre.hydro.model import Case

__all__ = ["NATIONAL_VARIABLE", "Study", "measure", "studies"]

NATIONAL_VARIABLE = "PYCOBRE_BENCH_NATIONAL"
DEFAULT_SEED = 7
MARKS = (7, 20)  # Cobre's iterations whose bounds are to be reached
MORE = 2  # times Cobre's iterations that pycobre may take
COBRE, OWN = "Cobre", "pycobre"


@dataclass(frozen=True)
class Study:
    """A case, given by a directory or made here, and how both programs train it."""

    name: str
    source: Path | Callable[[], Case]
    passes: int
    iterations: int
    to_bound: tuple[tuple[int, float], ...]  #: (Cobre's iteration, target of the ratio)
    per_lp: float | None = None  #: target of the ratio of CPU per LP

    def write(self, directory: Path, iterations: int, seed: int) -> None:
        """The case with this study's settings, without a simulation."""
        if isinstance(self.source, Path):
            shutil.copytree(self.source, directory)
        else:
            write_case(self.source(), directory)
        path = directory / "config.json"
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        config["training"] = {
            **config["training"],
            "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
            "selection": {"method": "sampled", "forward_passes": self.passes},
            "tree_seed": seed,
        }
        config["simulation"] = {**config.get("simulation", {}), "enabled": False}
        path.write_text(json.dumps(config), encoding="utf-8")


def studies(national: Path | None, regions: Path | None, *, quick: bool = False) -> dict[str, Study]:
    """All studies by name; the national one only where its directory is given."""

    def plants(count: int, cascades: int, lags: int, thermals: int, openings: int) -> Callable[[], Case]:
        return lambda: synthetic(
            hydros=6 if quick else count,
            cascades=1 if quick else cascades,
            lags=lags,
            thermals=thermals,
            buses=5,
            blocks=3,
            stages=12,
            openings=openings,
        )

    most = 3 if quick else MARKS[-1]
    early = min(MARKS[0], most)
    found = [
        Study("nat60", plants(60, 8, 1, 100, 10), 8, most, ((early, 0.35), (most, 0.35))),
        Study("nat160", plants(160, 20, 6, 130, 20), 8, most, ((early, 0.5), (most, 0.5))),
        Study(
            "regions",
            regions or example("four-regions").build,
            4,
            3 if quick else 256,
            ((3 if quick else 256, 0.08),),
        ),
    ]
    if national is not None:
        found.insert(0, Study("national", national, 1, most, ((early, 0.15), (most, 0.15)), per_lp=0.5))
    return {study.name: study for study in found}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--case", type=Path, help=f"directory of the national study ({NATIONAL_VARIABLE})")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="of tree and trajectories (7)")
    parser.add_argument("--passes", type=int, help="trajectories per iteration, where other than usual")
    parser.add_argument("--iterations", type=int, help="of Cobre, where other than usual")


def measure(settings: entry.Settings) -> Document:
    """Train production-size cases against Cobre, one thread each."""
    name = f"cobre-{settings.only or 'production-size'}"
    try:
        python = cobre_python()
    except Missing as reason:
        return Document(name, skipped=str(reason))
    given = settings.given
    national = given.get("case") or os.environ.get(NATIONAL_VARIABLE)
    regions = os.environ.get(CASE_VARIABLE)
    known = studies(
        Path(national) if national else None, Path(regions) if regions else None, quick=settings.quick
    )
    if settings.only and settings.only not in known:
        return Document(
            name, skipped=f"{settings.only} needs a case directory: --case or {NATIONAL_VARIABLE}"
        )
    chosen = [known[settings.only]] if settings.only else list(known.values())
    parts = [_compare(_changed(study, given), python, settings) for study in chosen]
    return Document(
        name,
        tables=tuple(table for part in parts for table in part.tables),
        figures=tuple(figure for part in parts for figure in part.figures),
        notes=() if national else (f"without the national study: name it by --case or {NATIONAL_VARIABLE}",),
        data={study.name: part.data for study, part in zip(chosen, parts, strict=True)},
    )


def _changed(study: Study, given: dict[str, Any]) -> Study:
    """The study with the passes and iterations of the command line; targets are of the usual ones."""
    passes, iterations = given.get("passes") or study.passes, given.get("iterations") or study.iterations
    marks = tuple((mark, target) for mark, target in study.to_bound if mark <= iterations)
    return Study(study.name, study.source, passes, iterations, marks, study.per_lp)


def _compare(study: Study, python: Path, settings: entry.Settings) -> Document:
    seed = settings.given.get("seed") or DEFAULT_SEED
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = Path(directory)
        study.write(root / "case", study.iterations, seed)
        study.write(root / "more", MORE * study.iterations, seed)
        targets: list[float] = []

        def cobre() -> Run:
            run = run_cobre(python, root / "case", root / "cobre", 1)
            targets.append(run.lower_bound[-1])
            return run

        def own() -> Run:
            # At least as many iterations as the mark up to which the CPU per LP is compared.
            least = min(MARKS[0], study.iterations)
            return run_own(root / "more", root / "own", target=targets[0], at_least=least)

        found = interleaved({COBRE: cobre, OWN: own}, settings.repetitions(1))
    return findings(study, seed, found)


def findings(study: Study, seed: int, found: dict[str, list[Run]]) -> Document:
    """Tables and figures of a study's runs; of several rounds the least CPU counts."""
    cobre = found[COBRE][0]
    marks = sorted({mark for mark, _ in study.to_bound} | {min(MARKS[0], study.iterations), study.iterations})
    common = min(len(run.lower_bound) for runs in found.values() for run in runs)
    title = f"{study.name}, seed {seed}, {study.passes} trajectories"
    rows = [
        (
            name,
            min(run.cpu_per_lp(common) for run in runs) * 1e3,
            sum(runs[0].lp_solves[:common]),
            max(run.peak_mb for run in runs),
            runs[0].lower_bound[common - 1],
            min(run.cpu_at_s[0] for run in runs),
            min(run.cpu_at_s[common - 1] for run in runs),
        )
        for name, runs in found.items()
    ]
    heads = (
        "",
        "CPU per LP, ms",
        f"LPs in {common} iterations",
        "peak MB",
        f"bound after {common}",
        "CPU s to iteration 1",
        f"to iteration {common}",
    )
    reached, figures = [], []
    for mark in marks:
        bound = cobre.lower_bound[mark - 1]
        theirs, ours = (min(run.cpu_to(bound) for run in found[name]) for name in (COBRE, OWN))
        reached.append((mark, bound, theirs, ours, found[OWN][0].iterations_to(bound), ours / theirs))
        target = dict(study.to_bound).get(mark)
        label = f"{study.name}: CPU to Cobre's bound after {mark} iterations, ratio"
        figures.append(Figure(label, ours / theirs, "", at_most=target))
    label = f"{study.name}: CPU per LP, ratio"
    figures.append(Figure(label, rows[1][1] / rows[0][1], "", at_most=study.per_lp))
    figures.append(Figure(f"{study.name}: peak memory, ratio", rows[1][3] / rows[0][3]))
    tables = (
        Table(f"{title}: {common} iterations of both", heads, tuple(rows)),
        Table(
            f"{title}: CPU seconds from the call to Cobre's bound",
            ("Cobre's iteration", "bound", "Cobre", "pycobre", "its iterations", "ratio"),
            tuple(reached),
        ),
    )
    data = {
        name: [
            {
                "cpu_at_s": run.cpu_at_s,
                "lower_bound": run.lower_bound,
                "lp_solves": run.lp_solves,
                "peak_mb": run.peak_mb,
            }
            for run in runs
        ]
        for name, runs in found.items()
    }
    return Document(study.name, tables, tuple(figures), data=data)


if __name__ == "__main__":
    entry.main(measure, arguments)
