"""Where the basis kernel ends: CPU time per backward LP, by the dual simplex on the kernel and by HiGHS.

    python -m benchmarks.solver_kernel [--plants 60 110 160 210] [--case DIR] [--iterations 6] [--rounds 3]
                                       [--quick] [--json FILE]

A system of each number of plants (or the case in DIR) is trained for some iterations by HiGHS, and the calls of the
last backward pass are recorded: states, openings, cuts and starting bases of every stage. Both then solve them in
turn, in one thread; the best CPU time of the rounds counts. `SolverOptions.kernel_rows` is to lie where the ratio
crosses 1. The objectives must agree to 1e-9.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.harness.cells import Cell, arguments, finish
from pycobre.comm import LocalBackend
from pycobre.hydro.examples import synthetic
from pycobre.hydro.files.read_case import load_case
from pycobre.hydro.study import study_of_case
from pycobre.sddp import IterationLimit, train
from pycobre.solver import CutView, SolveCall, SolverOptions, create_engine
from pycobre.solver.engine import HighsEngine
from pycobre.solver.prepare import prepare

METHODS = {
    "HiGHS": SolverOptions(tableau_entries=0, kernel_rows=0),
    "kernel": SolverOptions(tableau_entries=0, kernel_rows=1_000_000),
}


@contextmanager
def recorded(calls: list[SolveCall]) -> Iterator[None]:
    """Append what every engine is asked to solve, with the cuts of that moment."""
    solve = HighsEngine.solve

    def record(self: HighsEngine, call: SolveCall) -> object:
        cuts = call.cuts
        if cuts is not None:
            active = None if cuts.active is None else cuts.active[: cuts.count].copy()
            cuts = CutView(
                cuts.intercept[: cuts.count].copy(), cuts.slope[: cuts.count].copy(), cuts.count, active
            )
        calls.append(replace(call, x=call.x.copy(), cuts=cuts, want_basis=False, work_counter=None))
        return solve(self, call)

    HighsEngine.solve = record  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        HighsEngine.solve = solve  # type: ignore[method-assign]


def backward_calls(case: object, iterations: int) -> list[SolveCall]:
    """The calls of the last backward pass: every opening of every stage, the last stage first."""
    study = study_of_case(case)  # type: ignore[arg-type]
    calls: list[SolveCall] = []
    options = replace(study.options, stopping=IterationLimit(iterations), solver=METHODS["HiGHS"], threads=1)
    with recorded(calls):
        train(study.problem, LocalBackend(), options, sampler=study.sampler)
    every = [call for call in calls if call.values.ndim == 2 and call.values.shape[0] > 1]
    stages = len({id(call.model) for call in every})
    return every[-stages:]


def measure(name: str, calls: list[SolveCall], rounds: int) -> list[Cell]:
    spent = dict.fromkeys(METHODS, float("inf"))
    blocks = {}
    engines = {method: create_engine(options) for method, options in METHODS.items()}
    for _ in range(rounds):
        for method, engine in engines.items():
            begin = time.process_time()
            blocks[method] = [engine.solve(call) for call in calls]
            spent[method] = min(spent[method], time.process_time() - begin)
    for engine in engines.values():
        engine.close()
    for ours, theirs in zip(blocks["kernel"], blocks["HiGHS"], strict=True):
        np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9, atol=1e-9)
    lps = sum(block.objective.size for block in blocks["kernel"])
    left = sum(int(block.by_highs.sum()) for block in blocks["kernel"])
    pivots = {
        method: sum(int(block.iterations.sum()) for block in each) / lps for method, each in blocks.items()
    }
    lp = prepare(calls[0].model, True)
    size, ratio = f"{lp.num_row} × {lp.active.size}", spent["kernel"] / spent["HiGHS"]
    print(
        f"{name:>16} {size:>13} {lps:6} {1e3 * spent['HiGHS'] / lps:9.3f} {1e3 * spent['kernel'] / lps:10.3f} "
        f"{ratio:6.2f} {pivots['HiGHS']:8.0f} {pivots['kernel']:8.0f} {left:6}",
        flush=True,
    )
    cells = [Cell(f"{name}, {size}", f"{method}, CPU", 1e3 * spent[method] / lps, "ms") for method in METHODS]
    return [*cells, Cell(f"{name}, {size}", "kernel : HiGHS", ratio, "×")]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--plants", type=int, nargs="*", default=[60, 110, 160, 210])
    parser.add_argument("--case", type=Path, metavar="DIR", help="a case directory to measure too")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    plants, rounds, iterations = (
        ([6, 12], 1, 2) if given.quick else (given.plants, given.rounds, given.iterations)
    )
    print("                   rows × columns    LPs  HiGHS ms  kernel ms  ratio   pivots  (kernel) by HiGHS")
    cells: list[Cell] = []
    for count in plants:
        case = synthetic(
            hydros=count,
            cascades=max(1, count // 8),
            lags=1,
            thermals=100,
            buses=5,
            blocks=3,
            stages=6,
            openings=10,
            forward_passes=4,
            iterations=iterations,
        )
        cells += measure(f"{count} plants", backward_calls(case, iterations), rounds)
    if given.case is not None:
        cells += measure(given.case.name, backward_calls(load_case(given.case), iterations), rounds)
    finish(given, "solver_kernel", cells)


if __name__ == "__main__":
    main()
