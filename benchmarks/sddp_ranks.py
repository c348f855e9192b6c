"""One rank against two (and more) on the same training, with the split solve / communicate / wait / other.

    python -m benchmarks.sddp_ranks [--ranks 1 2] [--backend shm] [--passes 48] [--iterations 60] [--rounds 3]
                                   [--quick] [--json FILE]

Runs alternate between the rank counts; the table shows the median wall time of the training loop, and the CPU
time of the busiest rank, which says how the work divides even where other programs take the cores. Equal digests
are checked. What the cores themselves allow is measured in the same rounds: as many processes as there are ranks,
each doing the whole training at the same time without knowing of the others, do that much work in that time.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.harness.cells import Cell, arguments, finish
from benchmarks.sddp_systems import reservoirs
from pycobre.comm import LocalBackend
from pycobre.sddp import IterationLimit, TrainOptions, train
from pycobre.testing import run_ranks


def training(comm: Any, stages: int, openings: int, passes: int, iterations: int) -> tuple[Any, ...]:
    problem = reservoirs(stages=stages, openings=openings)
    comm.barrier()
    begin, cpu = time.perf_counter(), time.process_time()
    outcome = train(problem, comm, TrainOptions(passes, IterationLimit(iterations)))
    return (
        time.perf_counter() - begin,
        time.process_time() - cpu,
        outcome.policy.digest,
        outcome.timing.by_rank(),
    )


def independent(comm: Any, *work: int) -> tuple[Any, ...]:
    """The whole training on every rank, all at once and each by itself."""
    comm.barrier()
    return training(LocalBackend(), *work)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--backend", default="shm")
    parser.add_argument("--stages", type=int, default=12)
    parser.add_argument("--openings", type=int, default=20)
    parser.add_argument("--passes", type=int, default=48)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    iterations, rounds = (8, 1) if given.quick else (given.iterations, given.rounds)
    work = (given.stages, given.openings, given.passes, iterations)
    found: dict[int, list[Any]] = {ranks: [] for ranks in given.ranks}
    beside: dict[int, list[float]] = {ranks: [] for ranks in given.ranks}
    cells: list[Cell] = []
    digests = set()
    for _ in range(rounds):
        for ranks in given.ranks:
            backend = given.backend if ranks > 1 else "local"
            results = run_ranks(backend, ranks, training, *work, timeout=600)
            digests |= {result[2] for result in results}
            found[ranks].append(results)
            if ranks > 1:
                alike = run_ranks("shm", ranks, independent, *work, timeout=600)
                digests |= {result[2] for result in alike}
                beside[ranks].append(max(result[0] for result in alike))
    assert len(digests) == 1, digests
    print("stages {}, openings {}, passes {}, iterations {}; one digest for all runs".format(*work))
    print("ranks    wall s  speed-up   allowed   CPU s of the busiest  speed-up   LPs per second")
    alone = [
        statistics.median(max(r[i] for r in results) for results in found[given.ranks[0]]) for i in (0, 1)
    ]
    for ranks, runs in found.items():
        wall, cpu = (statistics.median(max(r[i] for r in results) for results in runs) for i in (0, 1))
        typical = min(runs, key=lambda results: abs(max(r[0] for r in results) - wall))
        timing = typical[0][3]
        solves = sum(each.lp_solves for each in timing)
        allowed = ranks * alone[0] / statistics.median(beside[ranks]) if beside[ranks] else 1.0
        print(
            f"{ranks:5} {wall:9.2f} {alone[0] / wall:9.2f} {allowed:9.2f} {cpu:22.2f} "
            f"{alone[1] / cpu:9.2f} {solves / wall:16.0f}"
        )
        case = f"{ranks} ranks"
        cells += [
            Cell(case, "wall", wall, "s"),
            Cell(case, "CPU of the busiest", cpu, "s"),
            Cell(case, "speed-up", alone[0] / wall, "×"),
            Cell(case, "speed-up by CPU", alone[1] / cpu, "×"),
            Cell(case, "speed-up that the cores allow", allowed, "×"),
        ]
        for each in timing:
            for name in ("solve", "communicate", "wait", "other"):
                cells.append(Cell(case, f"{name} of rank {each.rank}", getattr(each, f"{name}_s"), "s"))
            print(
                f"        rank {each.rank}: solve {each.solve_s:.2f} s, communicate {each.communicate_s:.3f}, "
                f"wait {each.wait_s:.2f}, other {each.other_s:.2f}"
            )
    finish(given, "sddp_ranks", cells)


if __name__ == "__main__":
    # Ranks import what they run, and nobody can import __main__.
    from benchmarks import sddp_ranks

    sddp_ranks.main()
