"""A growing number of trajectories: CPU time to the bound that a constant number reaches.

    python -m benchmarks.sddp_trajectories [--quick] [--json FILE]

Synthetic systems and bundled examples are trained with 16 trajectories in every iteration, and with numbers that grow
up to that. Shown is the CPU time until the bound is within 1 %, and within 0.1 %, of the constant number's final one,
relative to the constant number's.
"""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks.harness.cells import Cell, arguments, finish
from pycobre.comm import LocalBackend
from pycobre.events import Event, IterationFinished
from pycobre.hydro import build_model
from pycobre.hydro.examples import EXAMPLES, synthetic
from pycobre.problem import Problem
from pycobre.sddp import GrowingTrajectories, IterationLimit, TrainOptions, train

PASSES, ITERATIONS = 16, 24
SCHEDULES = {
    "1, doubled every 3": GrowingTrajectories(1, 3),
    "2, doubled every 5": GrowingTrajectories(2, 5),
    "4, doubled every 5": GrowingTrajectories(4, 5),
}
SYSTEMS = ((6, 12, 1), (10, 12, 2), (16, 12, 3))  # hydros, stages, seed


def problems(quick: bool) -> dict[str, Problem]:
    systems = SYSTEMS[: 1 if quick else None]
    found = {
        f"synthetic {hydros} × {stages}": synthetic(hydros=hydros, stages=stages, seed=seed, openings=6)
        for hydros, stages, seed in systems
    }
    if not quick:
        found |= {f"example {example.name}": example.build() for example in EXAMPLES.values()}
    return {name: build_model(case).problem for name, case in found.items()}


def trace(problem: Problem, options: TrainOptions) -> list[tuple[float, float]]:
    """CPU seconds and bound after every iteration."""
    begin, found = time.process_time(), []

    def note(event: Event) -> None:
        if isinstance(event, IterationFinished):
            found.append((time.process_time() - begin, event.lower_bound))

    train(problem, LocalBackend(), options, on_event=note)
    return found


def seconds_to(points: list[tuple[float, float]], bound: float) -> float:
    return next((seconds for seconds, reached in points if reached >= bound), float("nan"))


def main() -> None:
    given = arguments(__doc__).parse_args()
    cells: list[Cell] = []
    count = 5 if given.quick else ITERATIONS
    for name, problem in problems(given.quick).items():
        options = TrainOptions(PASSES, IterationLimit(count))
        constant = trace(problem, options)
        print(name, flush=True)
        for label, schedule in SCHEDULES.items():
            longer = replace(options, stopping=IterationLimit(3 * count), trajectories=schedule)
            growing = trace(problem, longer)
            for short in (0.01, 0.001):
                target = constant[-1][1] - short * abs(constant[-1][1])
                ratio = seconds_to(growing, target) / seconds_to(constant, target)
                cells.append(Cell(name, f"{label}, to {100 * short:g} %", ratio, "of constant"))
            first, second = cells[-2].value, cells[-1].value
            print(f"    {label:20} to 1 %: {first:.2f}   to 0.1 %: {second:.2f}", flush=True)
    finish(given, "sddp_trajectories", cells)


if __name__ == "__main__":
    main()
