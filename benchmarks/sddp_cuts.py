"""LP solves per second and core with all cuts in the LP (by HiGHS alone, and as usual), with a selection, and lazily.

    python -m benchmarks.sddp_cuts [--large] [--marks 50 200 1000] [--iterations 3] [--quick] [--json FILE]

One lazy training supplies the cuts. At each mark (number of cuts per stage) five trainings go on from its
state, one iteration each in turn, so that a noisy machine disturbs them alike. Rates are per second of CPU time
on one thread: solves and everything around them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from benchmarks.harness.cells import Cell, arguments, finish
from benchmarks.sddp_systems import production_like, reservoirs
from pycobre.comm import LocalBackend
from pycobre.problem import Problem
from pycobre.sddp import (
    InSample,
    IterationLimit,
    Level1,
    LimitedMemoryLevel1,
    Receipt,
    TrainingState,
    TrainOptions,
    train,
)
from pycobre.sddp.prepared import PreparedProblem
from pycobre.sddp.training.trainer import Trainer
from pycobre.solver import SolverOptions

PASSES = 10
NEVER = 10**9
IN_HIGHS = SolverOptions(tableau_entries=0, kernel_rows=0)
MODES: dict[str, dict[str, Any]] = {
    "all in HiGHS": {"lazy": False, "solver": IN_HIGHS},
    "all cuts": {"lazy": False},
    "Level-1": {"lazy": False, "selection": Level1(every=1)},
    "LML1": {"lazy": False, "selection": LimitedMemoryLevel1(every=1)},
    "lazy": {},
}


class AtMarks:
    """A checkpointer that keeps the states at the marks in memory."""

    def __init__(self, marks: list[int]) -> None:
        self._iterations = {mark // PASSES for mark in marks}
        self.states: dict[int, TrainingState] = {}

    def due(self, iteration: int, *, last: bool) -> bool:
        return iteration in self._iterations

    def write(self, state: TrainingState) -> Receipt:
        self.states[state.iteration * PASSES] = TrainingState.from_arrays(*state.to_arrays())
        return Receipt("memory", 0)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--large", action="store_true", help="a production-like LP instead of a small one")
    parser.add_argument("--marks", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--iterations", type=int, default=3)
    given = parser.parse_args()
    marks, iterations = ([50, 200], 1) if given.quick else (given.marks, given.iterations)
    problem = production_like(stages=3, openings=10) if given.large else reservoirs(stages=4, openings=20)
    lp = problem.nodes[0].template
    print(
        f"{lp.num_cols} columns × {lp.num_rows} rows, {len(problem.states)} states, {PASSES} trajectories × "
        f"{problem.nodes[1].noise.openings} openings, {len(problem.nodes)} stages"
    )
    kept = AtMarks(marks)
    # A selection that never selects: the training collects the visited states that the rules look at.
    options = TrainOptions(PASSES, IterationLimit(max(marks) // PASSES), selection=Level1(every=NEVER))
    train(problem, LocalBackend(), options, checkpoint=kept)
    cells: list[Cell] = []
    for mark in marks:
        cells += compare(problem, mark, kept.states[mark], iterations)
    finish(given, "sddp_cuts_large" if given.large else "sddp_cuts", cells)


def compare(problem: Problem, mark: int, state: TrainingState, iterations: int) -> list[Cell]:
    trainers = {}
    for name, mode in MODES.items():
        options = TrainOptions(PASSES, IterationLimit(NEVER), **mode)
        comm = LocalBackend()
        prepared = PreparedProblem(problem, comm, options.solver, threads=options.threads)
        trainers[name] = Trainer(prepared, comm, options, InSample(problem, 42), None, None, None)
        points = state.points if options.selection is not None else {}
        trainers[name].prepare(replace(state, options=options.key(), points=points), None)
        trainers[name].iterate()  # the first applies the selection
    spent = dict.fromkeys(MODES, 0.0)
    for _ in range(iterations):
        for name, trainer in trainers.items():
            begin = time.process_time()
            trainer.iterate()
            spent[name] += time.process_time() - begin
    rates = {
        name: sum(each.log.history.lp_solves[-iterations:]) / spent[name] for name, each in trainers.items()
    }
    print(f"\n{mark} cuts per stage")
    print(f"  {'':12} {'solves/s':>9} {'× all in HiGHS':>14} {'active':>7} {'bound':>18}", flush=True)
    for name, rate in rates.items():
        history, stages = trainers[name].log.history, len(trainers[name].pools)
        print(
            f"  {name:12} {rate:9.0f} {rate / rates['all in HiGHS']:14.2f} "
            f"{history.cuts_active[-1] / stages:7.0f} {history.lower_bound[-1]:18.8g}"
        )
        trainers[name].__exit__(None, None, None)
    return [Cell(f"{mark} cuts", name, rate, "solves per second of CPU") for name, rate in rates.items()]


if __name__ == "__main__":
    main()
