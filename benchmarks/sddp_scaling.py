"""Time per iteration against stages, trajectories, openings, cuts and state dimension.

    python -m benchmarks.sddp_scaling [--quick] [--json FILE]

One thing at a time is doubled from a common base; every variant advances one iteration in turn, and the median
CPU time of the last iterations is printed with its ratio to the base.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.harness.cells import Cell, arguments, finish
from benchmarks.sddp_systems import reservoirs
from pycobre.comm import LocalBackend
from pycobre.sddp import InSample, IterationLimit, TrainOptions
from pycobre.sddp.prepared import PreparedProblem
from pycobre.sddp.training.trainer import Trainer

BASE = {"stages": 6, "passes": 8, "openings": 10, "plants": 4}
VARIANTS = {
    "base": {},
    "stages × 2": {"stages": 12},
    "stages × 4": {"stages": 24},
    "passes × 2": {"passes": 16},
    "passes × 4": {"passes": 32},
    "openings × 2": {"openings": 20},
    "openings × 4": {"openings": 40},
    "states × 2": {"plants": 8},
    "states × 4": {"plants": 16},
}
MARKS, LAST = (10, 30, 60, 120), 5  # iterations after which times are taken, each over so many


def trainer(size: dict[str, int], iterations: int) -> Trainer:
    problem = reservoirs(size["plants"], stages=size["stages"], openings=size["openings"])
    options = TrainOptions(size["passes"], IterationLimit(iterations + 1))
    comm = LocalBackend()
    prepared = PreparedProblem(problem, comm, options.solver, threads=options.threads)
    made = Trainer(prepared, comm, options, InSample(problem, 1), None, None, None)
    made.prepare(None, None)
    return made


def main() -> None:
    given = arguments(__doc__).parse_args()
    marks = MARKS[:2] if given.quick else MARKS
    cells: list[Cell] = []
    trainers = {name: trainer(BASE | change, marks[-1]) for name, change in VARIANTS.items()}
    spent: dict[str, list[float]] = {name: [] for name in VARIANTS}
    print("milliseconds of CPU per iteration (ratio to base); columns: after so many iterations")
    for _ in range(marks[-1]):
        for name, each in trainers.items():
            begin = time.process_time()
            each.iterate()
            spent[name].append(time.process_time() - begin)
    print(f"{'':14}" + "".join(f"{mark:>16}" for mark in marks) + f"{'LPs/iteration':>16}{'µs per LP':>11}")
    for name, each in trainers.items():
        row = []
        for mark in marks:
            mine, base = (
                statistics.median(spent[which][mark - LAST : mark]) * 1e3 for which in (name, "base")
            )
            row.append(f"{mine:9.2f} ({mine / base:4.2f})")
            cells.append(Cell(name, f"after {mark} iterations", mine, "ms of CPU per iteration"))
        solves = each.log.history.lp_solves[-1]
        last = statistics.median(spent[name][-LAST:])
        print(
            f"{name:14}" + "".join(f"{cell:>16}" for cell in row) + f"{solves:16}{last / solves * 1e6:11.1f}"
        )
        cells.append(Cell(name, "each LP", last / solves * 1e6, "µs"))
        each.__exit__(None, None, None)
    finish(given, "sddp_scaling", cells)


if __name__ == "__main__":
    main()
