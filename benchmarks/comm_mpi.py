"""The mpi backend against the raw mpi4py calls under it, and against MPI 4's persistent collectives.

    python -m benchmarks.comm_mpi [--ranks 2] [--rounds 3] [--libraries mpich openmpi] [--least-bytes B]
        [--most-bytes B] [--output DIR]

All run in the same processes, in alternating blocks of calls, so that a busy machine disturbs them alike, and in
every order equally often. A block lasts as long as on its slowest rank. Of small payloads the quietest blocks are
compared, of large ones, where memory makes every block differ, each block with its neighbours: the median counts.
`raw` is MPI's own collective; for allreduce, MPI's own reduction, in an order of terms that is the library's: there
the difference is the price of determinism. `control` is the raw call on a second duplicate of the world against the
first: what no layer explains.
The environments with the MPIs are made in --cache (default: under the system's temporary directory) on first use.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Call = Callable[[], object]
TIMEOUT_S = 400.0


@dataclass(frozen=True)
class Case:
    """One operation with a payload of `nbytes` per rank, timed in so many blocks of so many calls."""

    operation: str
    nbytes: int
    calls: int
    blocks: int

    @property
    def large(self) -> bool:
        return self.nbytes >= 1_000_000

    @property
    def label(self) -> str:
        if self.large:
            return f"{self.operation} {self.nbytes / 1e6:g} MB"
        if self.nbytes >= 1000:
            return f"{self.operation} {self.nbytes // 1000} KB"
        return f"{self.operation} {self.nbytes} B" if self.nbytes else self.operation


SMALL = (
    ("barrier", 0),
    *(("allgatherv", nbytes) for nbytes in (8, 1000)),
    *(("broadcast", nbytes) for nbytes in (8, 10_000)),
    *(("allreduce", nbytes) for nbytes in (32, 1000, 10_000)),
)
MIDDLE = tuple(("allreduce", nbytes) for nbytes in (20_000, 40_000, 80_000, 320_000))
LARGE = tuple(
    (operation, nbytes, blocks)
    for operation in ("allgatherv", "broadcast", "allreduce")
    for nbytes, blocks in ((3_200_000, 480), (32_000_000, 48))
)
# Short blocks, and many: on a machine with other work some of them fall between its time slices.
CASES = [
    *(Case(operation, nbytes, 50, 72) for operation, nbytes in SMALL),
    *(Case(operation, nbytes, 5, 48) for operation, nbytes in MIDDLE),
    *(Case(operation, nbytes, 1, blocks) for operation, nbytes, blocks in LARGE),
]


def candidates(case: Case, comm: Any, raw: Any, other: Any, mpi: Any) -> dict[str, Call]:
    """The same collective by each way; persistent only where the library has it for this operation."""
    from pycobre.comm import ReduceOp

    count, size = case.nbytes // 8, comm.size
    send, recv = np.full(count, raw.rank + 0.5), np.zeros(count * size)
    counts, displs = (count,) * size, tuple(count * rank for rank in range(size))
    total = recv[:count]
    ours: dict[str, Call] = {
        "barrier": comm.barrier,
        "allgatherv": lambda: comm.allgatherv(send, recv, counts, displs),
        "broadcast": lambda: comm.broadcast(send, 0),
        "allreduce": lambda: comm.allreduce(send, total, ReduceOp.SUM),
    }
    target = [recv, counts, displs, mpi.DOUBLE]

    def plain(world: Any) -> Call:
        calls: dict[str, Call] = {
            "barrier": world.Barrier,
            "allgatherv": lambda: world.Allgatherv(send, target),
            "broadcast": lambda: world.Bcast(send, 0),
            "allreduce": lambda: world.Allreduce(send, total),
        }
        return calls[case.operation]

    found = {"ours": ours[case.operation], "raw": plain(raw), "again": plain(other)}
    prepare: dict[str, Call] = {
        "barrier": raw.Barrier_init,
        "allgatherv": lambda: raw.Allgatherv_init(send, target),
        "broadcast": lambda: raw.Bcast_init(send, 0),
        "allreduce": lambda: raw.Allreduce_init(send, total),
    }
    try:
        request: Any = prepare[case.operation]()
    except NotImplementedError:
        return found

    def persistent() -> None:
        request.Start()
        request.Wait()

    return {**found, "persistent": persistent}


def be_a_rank(directory: Path, sizes: range) -> None:
    """Time every case in alternating blocks, and save seconds per call by case, candidate and block."""
    from pycobre.comm import create_communicator

    comm = create_communicator("mpi")
    from mpi4py import MPI

    raw, other = MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Dup()
    clock = time.perf_counter
    for number, case in enumerate(CASES):
        if case.nbytes not in sizes:
            continue
        calls = candidates(case, comm, raw, other, MPI)
        for call in calls.values():
            for _ in range(case.calls):
                call()
        durations = {name: np.empty(case.blocks) for name in calls}
        # In every order equally often: who comes after a call that left other things in the caches pays for it.
        orders = list(itertools.permutations(calls.items()))
        shuffle = np.random.default_rng(number)  # the same on every rank
        for block in range(case.blocks):
            if block % len(orders) == 0:
                turns = shuffle.permutation(len(orders))
            for name, call in orders[turns[block % len(orders)]]:
                raw.Barrier()
                start = clock()
                for _ in range(case.calls):
                    call()
                durations[name][block] = (clock() - start) / case.calls
        for name, found in durations.items():
            slowest = np.empty_like(found)
            raw.Allreduce(found, slowest, MPI.MAX)
            if raw.rank == 0:
                np.save(directory / f"{number}-{name}.npy", slowest)
    comm.close()


Blocks = np.ndarray[Any, np.dtype[np.float64]]


def run_ranks(library: str, ranks: int, sizes: range, cache: Path) -> dict[tuple[int, str], Blocks]:
    """One job: the blocks, in microseconds per call, by number of the case and candidate."""
    from benchmarks.comm_common import environment

    python = environment(library, cache)
    options = ["--allow-run-as-root", "--oversubscribe"] if library == "openmpi" else []
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join([str(root), str(root / "src")])
    environ = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as directory:
        limits = ["--least-bytes", str(sizes.start), "--most-bytes", str(sizes.stop - 1)]
        launcher = [str(python.parent / "mpiexec"), *options, "-n", str(ranks)]
        subprocess.run(
            [*launcher, str(python), "-m", "benchmarks.comm_mpi", "--rank", directory, *limits],
            env=environ,
            check=True,
            timeout=TIMEOUT_S,
        )
        files = {path: path.stem.split("-") for path in Path(directory).glob("*.npy")}
        return {(int(number), name): np.load(path) * 1e6 for path, (number, name) in files.items()}


def table(found: dict[tuple[int, str], Blocks], library: str, ranks: int) -> str:
    """Markdown: µs per call of each candidate, and what our layer adds."""
    lines = [
        f"{library}, {ranks} ranks; µs per call",
        "",
        "| operation | raw mpi4py | ours | added | ours / raw | control | persistent |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, case in enumerate(CASES):
        if (number, "raw") not in found:
            continue
        raw = found[number, "raw"]

        def typical(candidate: str, number: int = number, case: Case = case) -> float:
            blocks = found[number, candidate]
            return float(np.median(blocks) if case.large else blocks.min())

        def ratio(candidate: str, number: int = number, case: Case = case, raw: Blocks = raw) -> float:
            blocks = found[number, candidate]
            return float(np.median(blocks / raw) if case.large else blocks.min() / raw.min())

        # The median of the differences: blocks of large payloads are fast or slow together, in two heaps.
        ours = found[number, "ours"]
        added = float(np.median(ours - raw) if case.large else ours.min() - raw.min())
        persistent = f"{typical('persistent'):.4g}" if (number, "persistent") in found else "not there"
        lines.append(
            f"| {case.label} | {typical('raw'):.4g} | {typical('ours'):.4g} | {added:+.2f} "
            f"| {ratio('ours'):.3f} | {ratio('again'):.3f} | {persistent} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--libraries", nargs="+", default=["mpich", "openmpi"])
    parser.add_argument("--least-bytes", type=int, default=0, help="leave out smaller payloads")
    parser.add_argument("--most-bytes", type=int, default=32_000_000, help="leave out larger payloads")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "pycobre-bench")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = range(options.least_bytes, options.most_bytes + 1)
    if options.rank is not None:
        be_a_rank(options.rank, sizes)
        return
    all_found: dict[tuple[str, int], dict[tuple[int, str], Blocks]] = {}
    for number in range(options.rounds):
        for library in options.libraries:
            for ranks in options.ranks:
                print(f"round {number + 1}: {library}, {ranks} ranks", file=sys.stderr, flush=True)
                found = run_ranks(library, ranks, sizes, options.cache)
                kept = all_found.setdefault((library, ranks), {})
                for key, blocks in found.items():
                    kept[key] = np.concatenate([kept.get(key, np.empty(0)), blocks])
    text = "\n\n".join(table(found, library, ranks) for (library, ranks), found in all_found.items())
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "comm_mpi.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
