"""Where the dense tableau ends: training of growing systems with every LP in it, against every LP by HiGHS.

    python -m benchmarks.solver_tableau [--plants 30 40 50 60] [--rounds 2] [--quick] [--json FILE]

Same case, same draws, lazy cuts, one thread; the two in turn, best of the rounds. `SolverOptions.tableau_entries` is
to lie where the ratio crosses 1.
"""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks.harness.cells import Cell, arguments, finish
from pycobre.comm import LocalBackend
from pycobre.hydro.examples import synthetic
from pycobre.hydro.study import study_of_case
from pycobre.sddp import train
from pycobre.sddp.plan import Plan
from pycobre.solver.prepare import prepare

EVERY_LP, NONE = 10**9, 0  # of `tableau_entries`


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--plants", type=int, nargs="+", default=[30, 40, 50, 60])
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    plants, rounds = ([4, 8], 1) if given.quick else (given.plants, given.rounds)
    print("plants   rows × columns   entries   tableau s   HiGHS s   ratio")
    cells: list[Cell] = []
    for count in plants:
        case = synthetic(
            hydros=count,
            thermals=5 * count // 4,
            buses=4,
            stages=6,
            openings=10,
            forward_passes=4,
            iterations=6,
        )
        study = study_of_case(case)
        lp = prepare(Plan.of(study.problem).nodes[1].model, True)
        spent = {EVERY_LP: float("inf"), NONE: float("inf")}
        for _ in range(rounds):
            for entries in spent:
                options = replace(
                    study.options,
                    solver=replace(study.options.solver, tableau_entries=entries, kernel_rows=0),
                )
                begin = time.perf_counter()
                train(study.problem, LocalBackend(), options, sampler=study.sampler)
                spent[entries] = min(spent[entries], time.perf_counter() - begin)
        ratio = spent[EVERY_LP] / spent[NONE]
        size = lp.num_row * lp.active.size
        print(
            f"{count:6} {f'{lp.num_row} × {lp.active.size}':>16} {size:9,} {spent[EVERY_LP]:11.2f} "
            f"{spent[NONE]:9.2f} {ratio:7.2f}",
            flush=True,
        )
        name = f"{count} plants, {size} entries"
        cells += [
            Cell(name, "tableau", spent[EVERY_LP], "s"),
            Cell(name, "HiGHS", spent[NONE], "s"),
            Cell(name, "tableau : HiGHS", ratio, "×"),
        ]
    finish(given, "solver_tableau", cells)


if __name__ == "__main__":
    main()
