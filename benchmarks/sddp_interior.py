"""Cuts at interior points: bounds early, half-way and at the end, over schedules, problems and seeds.

    python -m benchmarks.sddp_interior [--seeds N] [--first-seed K] [--only TEXT ...] [--cases DIRECTORY ...]
                                       [--held-out] [--quick] [--json FILE]

Every problem is trained with plain cuts and with every schedule, from the same seeds, for the same number of
iterations. Shown is how far the bound is below the best final bound of all runs, in percent of it, as a mean over
seeds: early (after a tenth of the iterations), half-way and at the end. A mean that differs from the plain method's
by more than the standard deviation of the plain method between seeds is marked + (better) or * (worse).

The default schedule was chosen on the first set of problems; `--held-out` measures the second one, whose problems
and seeds had no part in that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.harness.cells import Cell, arguments, finish
from pycobre._util.arrays import F64
from pycobre.comm import LocalBackend
from pycobre.hydro import build_model
from pycobre.hydro.examples import EXAMPLES, synthetic
from pycobre.hydro.files import load_case
from pycobre.hydro.model import Case
from pycobre.hydro.study.options import train_options
from pycobre.problem import Problem
from pycobre.sddp import InteriorPoints, IterationLimit, TrainOptions, train
from pycobre.testing import problems
from pycobre.testing.random_problems import Recipe, random_problem

PLAIN = "plain"
SCHEDULES = {
    PLAIN: None,
    "default": InteriorPoints(),
    "not graded": InteriorPoints(graded=False),
    "0.5/√k": InteriorPoints(decay="sqrt", graded=False),
}
RANDOM = Recipe(stages=5, states=4, controls=4, openings=5)
Systems = tuple[tuple[int, int, int, int, int, int, int], ...]
CHOSEN: Systems = (  # hydros, lags, stages, openings, passes, iterations, seed of the system
    (4, 1, 8, 5, 4, 40, 21),
    (8, 1, 12, 6, 2, 40, 22),
    (10, 1, 12, 8, 4, 30, 23),
    (12, 2, 24, 5, 1, 40, 24),
    (20, 1, 12, 5, 2, 30, 25),
)
HELD_OUT: Systems = (
    (3, 1, 6, 5, 4, 40, 31),
    (6, 0, 12, 5, 4, 40, 32),
    (6, 1, 24, 6, 1, 60, 33),
    (14, 1, 12, 8, 4, 30, 37),
    (16, 2, 24, 5, 1, 40, 35),
    (28, 1, 12, 5, 2, 25, 36),
)
MOMENTS = ("early", "half", "end")


@dataclass(frozen=True)
class Trial:
    name: str
    problem: Problem
    options: TrainOptions


@dataclass(frozen=True)
class Runs:
    """A schedule's runs of a problem, seed by seed."""

    bounds: F64  #: [seeds, iterations], minimised
    cpu_s: float

    def short(self, best: float) -> F64:
        """[seeds, moments]: percent of the best bound that are missing."""
        count = self.bounds.shape[1]
        at = [max(1, count // 10) - 1, count // 2 - 1, count - 1]
        found: F64 = 100.0 * (best - self.bounds[:, at]) / max(1.0, abs(best))
        return found


def trials(held_out: bool, quick: bool, cases: list[Path]) -> Iterator[Trial]:
    """The problems by which the default was chosen, or those that had no part in it."""
    seeds = range(20, 26) if held_out else range(10, 14)
    for seed in list(seeds)[: 1 if quick else None]:
        yield Trial(f"random {seed}", random_problem(RANDOM, seed), TrainOptions(2, IterationLimit(25)))
    for hydros, lags, stages, openings, passes, iterations, seed in (HELD_OUT if held_out else CHOSEN)[
        : 1 if quick else None
    ]:
        case = synthetic(hydros=hydros, lags=lags, stages=stages, openings=openings, seed=seed)
        options = TrainOptions(passes, IterationLimit(5 if quick else iterations))
        yield Trial(f"synthetic {hydros} × {stages}, {passes} passes", build_model(case).problem, options)
    if held_out:
        named: dict[str, Callable[[], Problem]] = {
            "reservoir, 12 stages": lambda: problems.reservoir(12),
            "one_stock": problems.one_stock,
            "valley": problems.valley,
            "production": problems.production,
            "reservoir for ever": problems.reservoir_for_ever,
        }
        for name, make in named.items():
            yield Trial(name, make(), TrainOptions(2, IterationLimit(25)))
    elif not quick:
        for example in EXAMPLES.values():
            yield _of_case(f"example {example.name}", example.build())
    for path in cases:
        yield _of_case(path.name, load_case(path))


def _of_case(name: str, case: Case) -> Trial:
    model = build_model(case)
    options = replace(train_options(model), stopping=IterationLimit(40))
    return Trial(name, model.problem, replace(options, forward_passes=min(4, options.forward_passes)))


def run(trial: Trial, schedule: InteriorPoints | None, seeds: range) -> Runs:
    """A training per seed."""
    begin = time.process_time()
    bounds = []
    for seed in seeds:
        options = replace(trial.options, interior=schedule, seed=seed)
        bounds.append(train(trial.problem, LocalBackend(), options).history.lower_bound)
    return Runs(np.array(bounds), time.process_time() - begin)


def measure(trial: Trial, seeds: range) -> list[Cell]:
    found = {name: run(trial, schedule, seeds) for name, schedule in SCHEDULES.items()}
    best = max(float(each.bounds[:, -1].max()) for each in found.values())
    plain = found[PLAIN].short(best)
    spread = plain.std(axis=0, ddof=1) if len(seeds) > 1 else np.zeros(3)
    cells = []
    for name, each in found.items():
        short = each.short(best)
        for moment, mean, base, width in zip(
            MOMENTS, short.mean(axis=0), plain.mean(axis=0), spread, strict=True
        ):
            least = max(float(width), 0.01)
            mark = "+" if mean < base - least else "*" if mean > base + least else ""
            cells.append(Cell(trial.name, f"{name} {moment}", float(mean), f"% short{mark}"))
        cells.append(Cell(trial.name, f"{name} CPU", each.cpu_s / max(found[PLAIN].cpu_s, 1e-9), "of plain"))
    return cells


def show(cells: list[Cell]) -> None:
    """A row of the page's table."""
    by_name = {cell.name: cell for cell in cells}
    columns = []
    for name in SCHEDULES:
        parts = [by_name[f"{name} {moment}"] for moment in MOMENTS]
        columns.append(" · ".join(f"{part.value:.2f}{part.unit[7:]}" for part in parts))
    print("| " + " | ".join([cells[0].case, *columns]) + " |", flush=True)


def counts(cells: list[Cell]) -> str:
    """How often a schedule was better and worse than the plain method."""
    columns = []
    for name in SCHEDULES:
        parts = []
        for moment in MOMENTS:
            units = [cell.unit for cell in cells if cell.name == f"{name} {moment}"]
            parts.append(f"{sum(u.endswith('+') for u in units)}/{sum(u.endswith('*') for u in units)}")
        columns.append(" · ".join(parts))
    return "| " + " | ".join(["better/worse than plain", *columns]) + " |"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cases", type=Path, nargs="*", default=[], help="case directories to measure too")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of problems to measure")
    parser.add_argument("--seeds", type=int, default=6, help="trainings of each problem and schedule")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--held-out", action="store_true", help="problems that had no part in the choice")
    given = parser.parse_args()
    cells: list[Cell] = []
    print("| " + " | ".join(["problem", *SCHEDULES]) + " |")
    print("|" + "---|" * (1 + len(SCHEDULES)))
    for trial in trials(given.held_out, given.quick, given.cases):
        if given.only and not any(part in trial.name for part in given.only):
            continue
        new = measure(trial, range(given.first_seed, given.first_seed + given.seeds))
        show(new)
        cells += new
    print(counts(cells))
    finish(given, "sddp_interior", cells)


if __name__ == "__main__":
    main()
