"""Cuts at interior points: bounds by iteration and by CPU second, over schedules and problems.

    python -m benchmarks.sddp_interior [--cases DIRECTORY ...] [--only TEXT ...] [--quick] [--json FILE]

Problems of `pycobre.testing`, random ones, the bundled examples, synthetic systems of several sizes, and the cases
in the given directories are trained with plain cuts and with every schedule, with the same seed and number of
iterations. Shown is how far the bound is below the best final bound of all runs, in percent of it: early (after a
tenth of the iterations), half-way and at the end; and the CPU time relative to the plain method's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness.cells import Cell, arguments, finish
from pycobre.comm import LocalBackend
from pycobre.errors import SolverError
from pycobre.hydro import build_model
from pycobre.hydro.examples import EXAMPLES, synthetic
from pycobre.hydro.files import load_case
from pycobre.hydro.model import Case
from pycobre.hydro.study.options import train_options
from pycobre.problem import Problem
from pycobre.sddp import InteriorPoints, IterationLimit, TrainOptions, train
from pycobre.testing import problems
from pycobre.testing.random_problems import Recipe, random_problem

SCHEDULES = {
    "plain": None,
    "0.5/√k": InteriorPoints(0.5, "sqrt"),
    "0.2/√k": InteriorPoints(0.2, "sqrt"),
    "0.5/k": InteriorPoints(0.5),
    "0.5/k to 3": InteriorPoints(0.5, last=3),
    "0.5/k to 8": InteriorPoints(0.5, last=8),
}
RANDOM = Recipe(stages=5, states=4, controls=4, openings=5)
SYSTEMS = (  # hydros, lags, stages, openings, passes, iterations, seed
    (3, 0, 6, 5, 4, 40, 1),
    (6, 1, 12, 5, 4, 40, 2),
    (6, 1, 12, 5, 1, 60, 3),
    (10, 1, 12, 8, 4, 30, 4),
    (10, 2, 24, 5, 2, 30, 5),
    (16, 1, 12, 8, 2, 30, 6),
    (24, 1, 12, 5, 2, 20, 7),
)


@dataclass(frozen=True)
class Trial:
    name: str
    problem: Problem
    options: TrainOptions


@dataclass(frozen=True)
class Run:
    bounds: list[float]  #: minimised, by iteration
    cpu_s: float


def trials(quick: bool, cases: list[Path]) -> Iterator[Trial]:
    for name in ("hydro_thermal", "production", "reservoir", "valley", "air_conditioners", "one_stock"):
        yield Trial(name, getattr(problems, name)(), TrainOptions(2, IterationLimit(20)))
    yield Trial("reservoir, 12 stages", problems.reservoir(12), TrainOptions(2, IterationLimit(30)))
    yield Trial("reservoir for ever", problems.reservoir_for_ever(), TrainOptions(2, IterationLimit(20)))
    for seed in range(1 if quick else 4):
        yield Trial(f"random {seed}", random_problem(RANDOM, seed), TrainOptions(2, IterationLimit(20)))
    for hydros, lags, stages, openings, passes, iterations, seed in SYSTEMS[: 1 if quick else None]:
        case = synthetic(hydros=hydros, lags=lags, stages=stages, openings=openings, seed=seed)
        options = TrainOptions(passes, IterationLimit(5 if quick else iterations))
        yield Trial(f"synthetic {hydros} × {stages}, {passes} passes", build_model(case).problem, options)
    for example in EXAMPLES.values() if not quick else ():
        yield _of_case(f"example {example.name}", example.build(), 30)
    for path in cases:
        yield _of_case(path.name, load_case(path), 20)


def _of_case(name: str, case: Case, iterations: int) -> Trial:
    model = build_model(case)
    options = replace(train_options(model), stopping=IterationLimit(iterations))
    return Trial(name, model.problem, replace(options, forward_passes=min(4, options.forward_passes)))


def run(trial: Trial, schedule: InteriorPoints | None) -> Run | None:
    """A training, or None where a subproblem is infeasible at an interior point."""
    begin = time.process_time()
    try:
        outcome = train(trial.problem, LocalBackend(), replace(trial.options, interior=schedule))
    except SolverError:
        return None
    return Run(outcome.history.lower_bound, time.process_time() - begin)


def measure(trial: Trial) -> list[Cell]:
    found = {name: run(trial, schedule) for name, schedule in SCHEDULES.items()}
    plain = found["plain"]
    assert plain is not None
    best = max(each.bounds[-1] for each in found.values() if each is not None)
    count = len(plain.bounds)
    cells = []
    for name, each in found.items():
        if each is None:
            cells.append(Cell(trial.name, f"{name} infeasible", 1.0, ""))
            continue
        for moment, at in (("early", max(1, count // 10)), ("half", count // 2), ("end", count)):
            short = 100.0 * (best - each.bounds[at - 1]) / max(1.0, abs(best))
            cells.append(Cell(trial.name, f"{name} {moment}", short, "% short"))
        cells.append(Cell(trial.name, f"{name} CPU", each.cpu_s / max(plain.cpu_s, 1e-9), "of plain"))
    return cells


def show(cells: list[Cell]) -> None:
    values = {cell.name: cell.value for cell in cells}
    print(f"{cells[0].case}", flush=True)
    for name in SCHEDULES:
        if f"{name} infeasible" in values:
            print(f"    {name:10} infeasible at an interior point")
            continue
        left = "  ".join(
            f"{moment} {values[f'{name} {moment}']:8.3f} %" for moment in ("early", "half", "end")
        )
        print(f"    {name:10} {left}  CPU {values[f'{name} CPU']:.2f}", flush=True)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cases", type=Path, nargs="*", default=[], help="case directories to measure too")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of problems to measure")
    given = parser.parse_args()
    cells: list[Cell] = []
    for trial in trials(given.quick, given.cases):
        if given.only and not any(part in trial.name for part in given.only):
            continue
        new = measure(trial)
        show(new)
        cells += new
    finish(given, "sddp_interior", cells)


if __name__ == "__main__":
    main()
