"""Memory per rank with 1 and 4 ranks on one machine: cuts exist once, not once per rank.

    python -m benchmarks.sddp_memory [--cuts 40000] [--ranks 1 4] [--quick] [--json FILE]

A training begins with many cuts per stage and makes one iteration. Shown is what it adds to each rank: PSS
(proportional set size) divides shared pages by the ranks that map them, USS counts private pages only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.cells import Cell, arguments, finish
from benchmarks.sddp_systems import reservoirs
from pycobre.events import Event
from pycobre.sddp import Cuts, IterationLimit, Policy, TrainOptions, estimate, train
from pycobre.testing import run_ranks

PLANTS, STAGES, OPENINGS, PASSES = 60, 12, 20, 4


def memory_mib() -> dict[str, float]:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    fields = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {
        "RSS": fields["Rss"],
        "PSS": fields["Pss"],
        "USS": fields["Private_Clean"] + fields["Private_Dirty"],
    }


def repeated_cuts(count: int) -> Cuts:
    """`count` times the same harmless cut, in arrays that occupy one row of memory."""
    zero = np.broadcast_to(np.int32(0), (count,))
    return Cuts(
        np.broadcast_to(-1e15, (count,)),
        np.broadcast_to(np.zeros(PLANTS), (count, PLANTS)),
        zero,
        zero,
        zero,
        np.broadcast_to(np.uint8(1), (count,)),
    )


def measure(comm: Any, count: int) -> dict[str, float]:
    """What one iteration with `count` cuts per stage adds to this rank, in MiB."""
    problem = reservoirs(PLANTS, 5, 5, 60, stages=STAGES, openings=OPENINGS)
    cuts = tuple(repeated_cuts(count if t < STAGES - 1 else 0) for t in range(STAGES))
    policy = Policy.of(problem, cuts, 0, 0.0)
    train(problem, comm, TrainOptions(PASSES, IterationLimit(1)))  # what every training needs once
    before, after = memory_mib(), {}

    def listener(event: Event) -> None:
        if event.kind == "iteration_finished":
            comm.barrier()  # every rank has touched what it will touch
            after.update(memory_mib())
            comm.barrier()

    train(problem, comm, TrainOptions(PASSES, IterationLimit(1)), warm_start=policy, on_event=listener)
    return {name: after[name] - before[name] for name in after}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cuts", type=int, default=40000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--backend", default="shm")
    given = parser.parse_args()
    count = 4000 if given.quick else given.cuts
    cells: list[Cell] = []
    size = count * (PLANTS + 1) * 8 * (STAGES - 1) / 2**20
    print(f"{count} cuts × {PLANTS} states × {STAGES - 1} stages = {size:.0f} MiB of coefficients")
    for ranks in given.ranks:
        backend = given.backend if ranks > 1 else "local"
        found = run_ranks(backend, ranks, measure, count, timeout=300)
        total = sum(each["PSS"] for each in found)
        print(f"{ranks} rank{'s' if ranks > 1 else ''} ({backend}): together {total:.0f} MiB")
        cells.append(Cell(f"{ranks} ranks", "PSS of all", total, "MiB"))
        for rank, each in enumerate(found):
            cells += [
                Cell(f"{ranks} ranks", f"{name} of rank {rank}", mib, "MiB") for name, mib in each.items()
            ]
            print(f"  rank {rank}: " + "  ".join(f"{name} {value:8.1f} MiB" for name, value in each.items()))
    problem = reservoirs(PLANTS, 5, 5, 60, stages=STAGES, openings=OPENINGS)
    print(estimate(problem, TrainOptions(PASSES), iterations=count // PASSES))
    finish(given, "sddp_memory", cells)


if __name__ == "__main__":
    # Ranks import what they run, and nobody can import __main__.
    from benchmarks import sddp_memory

    sddp_memory.main()
