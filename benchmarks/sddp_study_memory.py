"""Memory of a national study with all its cuts, on ranks that share a machine, against the estimate before the run.

    python -m benchmarks.sddp_study_memory [--cuts 1500 9000] [--ranks 2] [--passes 200] [--quick] [--json FILE]

A synthetic system of the size of the Brazilian long-term study (152 plants with six lags of inflow, 120 stages, 20
openings: 1,064 states) begins a training with so many cuts per stage, up to where its first trajectory would be
solved. By then cuts, openings, LPs and the starts of all trajectories are in memory; what the first backward pass
adds is small. PSS (proportional set size) divides shared pages by the ranks that map them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.cells import Cell, arguments, finish
from benchmarks.sddp_memory import memory_mib
from pycobre.errors import OptionError
from pycobre.hydro import build_model
from pycobre.hydro.examples import synthetic
from pycobre.problem import Problem
from pycobre.sddp import Cuts, IterationLimit, Policy, TrainOptions, estimate, train
from pycobre.sddp.sampling import Paths, Sampler
from pycobre.testing import run_ranks

ENOUGH = "measured"


def study(quick: bool) -> Problem:
    hydros, stages = (10, 6) if quick else (152, 120)
    case = synthetic(
        hydros=hydros, cascades=max(1, hydros // 8), lags=6, thermals=100, buses=5, stages=stages, openings=20
    )
    return build_model(case).problem


def options(passes: int, cuts: int) -> TrainOptions:
    return TrainOptions(passes, IterationLimit(max(1, cuts // passes)))


class Reached(Sampler):
    """Asked for the first trajectories, it notes what is in memory and ends the training."""

    def __init__(self) -> None:
        self.memory: dict[str, float] = {}

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        self.memory = memory_mib()
        raise OptionError(ENOUGH)


def measure(comm: Any, cuts: int, passes: int, quick: bool) -> dict[str, float]:
    """What a training with so many cuts per stage adds to this rank before its first solve, in MiB."""
    problem = study(quick)
    n, last = len(problem.states), len(problem.nodes) - 1
    zero = np.broadcast_to(np.int32(0), (cuts,))
    same = Cuts(
        np.broadcast_to(-1e15, (cuts,)),
        np.broadcast_to(np.zeros(n), (cuts, n)),
        zero,
        zero,
        zero,
        np.broadcast_to(np.uint8(1), (cuts,)),
    )
    policy = Policy.of(problem, tuple(same if t < last else Cuts.none(n) for t in range(last + 1)), 0, 0.0)
    before = memory_mib()
    reached = Reached()
    try:
        train(problem, comm, options(passes, cuts), warm_start=policy, sampler=reached)
    except OptionError as error:
        if ENOUGH not in str(error):
            raise
    return {name: reached.memory[name] - before[name] for name in before}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cuts", type=int, nargs="+", default=[1500, 9000])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--passes", type=int, default=200)
    given = parser.parse_args()
    passes = 4 if given.quick else given.passes
    problem = study(given.quick)
    print(f"{len(problem.states)} states, {len(problem.nodes)} stages, {passes} trajectories")
    cells: list[Cell] = []
    for cuts in [40] if given.quick else given.cuts:
        found = run_ranks("shm", given.ranks, measure, cuts, passes, given.quick, timeout=900)
        together = sum(each["PSS"] for each in found)
        expected = estimate(problem, options(passes, cuts), ranks=given.ranks)
        mib = (expected.shared_bytes + given.ranks * expected.rank_bytes) / 2**20
        print(
            f"{cuts} cuts per stage, {given.ranks} ranks: {together:.0f} MiB together, estimate {mib:.0f} MiB"
        )
        cells.append(Cell(f"{cuts} cuts", "PSS of all", together, "MiB"))
        cells.append(Cell(f"{cuts} cuts", "estimate", mib, "MiB"))
    print(expected)
    finish(given, "sddp_study_memory", cells)


if __name__ == "__main__":
    # Ranks import what they run, and nobody can import __main__.
    from benchmarks import sddp_study_memory

    sddp_study_memory.main()
