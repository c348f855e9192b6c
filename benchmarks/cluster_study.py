"""What a whole national study takes on two cores and on 64 and 256 ranks: from a measured part of it and the model.

    python -m benchmarks.cluster_study [--case DIRECTORY] [--passes 200] [--iterations 45] [--cuts 1000] [--quick]
                                       [--json FILE]

The case is the national study that `--case` or `PYCOBRE_BENCH_NATIONAL` names; without one nothing is measured.

One trajectory trains for a few iterations, without cuts of an earlier run and with so many harmless ones per stage.
The first run gives the CPU seconds of every chain of openings and of the forward pass, the difference of the two what
evaluating a cut adds to an LP. A later iteration is the first one plus that for all cuts it begins with, which
assumes that LPs themselves get no harder; the model of `benchmarks.cluster_model` divides it over ranks.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.cluster import CACHE_LINE_S, INFINIBAND, MEMORY, PER_NODE
from benchmarks.cluster_model import Line, Nodes, Shared, Work, predict
from benchmarks.cobre_national import NATIONAL_VARIABLE
from benchmarks.harness.cells import Cell, arguments, finish
from pycobre._util.arrays import F64
from pycobre.comm import LocalBackend
from pycobre.events import Event, ForwardFinished, IterationFinished, StageFinished
from pycobre.hydro.examples import synthetic
from pycobre.hydro.files import load_case
from pycobre.hydro.study import CaseStudy, study_of_case
from pycobre.problem import Problem
from pycobre.sddp import Cuts, IterationLimit, Policy, train

RANKS = (1, 2, 64, 256)
HERE = Line(2e-6, 1 / 4e9)  # a gather of two ranks in shared memory
ITERATIONS = 3


@dataclass(frozen=True)
class Part:
    """What one trajectory took, in CPU seconds, without its first iteration."""

    chain_s: F64
    forward_s: float
    lps: int  #: of an iteration


def harmless(problem: Problem, count: int) -> Policy:
    """`count` cuts for every node that looks ahead, none of which ever binds."""
    n, zero = len(problem.states), np.zeros(count, np.int32)
    cuts = Cuts(
        np.full(count, -1e15),
        np.broadcast_to(np.zeros(n), (count, n)),
        zero,
        zero,
        zero,
        np.ones(count, np.uint8),
    )
    ahead = [len(problem.shape.successors(index)[0]) > 0 for index in range(len(problem.nodes))]
    return Policy.of(problem, tuple(cuts if looks else Cuts.none(n) for looks in ahead), 0, 0.0)


def measure(study: CaseStudy, cuts: int) -> Part:
    """Train one trajectory with so many cuts per stage from the beginning."""
    chains: list[float] = []
    forwards: list[float] = []
    lps: list[int] = []
    last = [0.0]

    def note(event: Event) -> None:
        now = time.process_time()
        if isinstance(event, StageFinished):
            chains.append(now - last[0])
        elif isinstance(event, ForwardFinished):
            forwards.append(now - last[0])
        elif isinstance(event, IterationFinished):
            lps.append(event.lp_solves)
        if isinstance(event, StageFinished | ForwardFinished | IterationFinished):
            last[0] = now

    options = replace(study.options, forward_passes=1, stopping=IterationLimit(ITERATIONS), threads=1)
    begin = harmless(study.problem, cuts) if cuts else None
    with LocalBackend() as comm:
        train(study.problem, comm, options, sampler=study.sampler, on_event=note, warm_start=begin)
    steps = len(chains) // ITERATIONS
    return Part(np.array(chains[steps:]), float(np.mean(forwards[1:])), lps[-1])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--case", type=Path, help=f"directory of the national study ({NATIONAL_VARIABLE})")
    parser.add_argument("--passes", type=int, default=200)
    parser.add_argument("--iterations", type=int, default=45)
    parser.add_argument("--cuts", type=int, default=1000)
    given = parser.parse_args()
    named = given.case or os.environ.get(NATIONAL_VARIABLE)
    if given.quick:
        case = synthetic(hydros=2, thermals=3, buses=1, stages=4, openings=3)
    elif named:
        case = load_case(Path(named))
    else:
        print(f"skipped: needs a case directory: --case or {NATIONAL_VARIABLE}")
        finish(given, "cluster_study", [])
        return
    study = study_of_case(case)
    stages, states = len(study.problem.nodes), len(study.problem.states)
    few, many = measure(study, 0), measure(study, given.cuts)
    openings = float(np.mean([node.noise.openings for node in study.problem.nodes[1:]]))
    per_cut = max(0.0, float(many.chain_s.mean() - few.chain_s.mean())) / openings / given.cuts
    print(
        f"CPU per LP {1e3 * few.chain_s.mean() / openings:.2f} ms, and {1e6 * per_cut:.3f} µs for every cut"
    )
    network = Nodes(Shared(HERE, CACHE_LINE_S, MEMORY), INFINIBAND, PER_NODE)
    total = dict.fromkeys(RANKS, 0.0)
    for iteration in range(given.iterations):
        cuts = iteration * given.passes
        work = Work(
            np.array([few.forward_s + stages * cuts * per_cut]),
            few.chain_s + openings * cuts * per_cut,
            0.0,
            0.0,
            0.0,
            stages,
            8 * (1 + states),
        )
        for ranks in RANKS:
            found = predict(work, network, ranks, given.passes, iterations=1, seed=iteration)
            total[ranks] += found.seconds
    cells = []
    for ranks, seconds in total.items():
        share = total[1] / ranks / seconds
        print(f"{ranks:4} ranks: {seconds / 3600:7.2f} h, efficiency {share:.2f}")
        cells.append(Cell(f"{ranks} ranks", "time", seconds / 3600, "h"))
    finish(given, "cluster_study", cells)


if __name__ == "__main__":
    main()
