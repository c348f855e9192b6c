"""Trainings of both programs in processes of their own, and what they are compared by."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Run", "run_cobre", "run_own"]

TIMEOUT_S = 3600.0
_SAME = 1e-9  # bounds closer than this, relatively, are equal


@dataclass(frozen=True)
class Run:
    """One training; lists are by iteration, `at_s` and `cpu_at_s` count from the call."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    lower_bound: tuple[float, ...]
    at_s: tuple[float, ...]
    iteration_s: tuple[float, ...]
    lp_solves: tuple[int, ...]
    cpu_at_s: tuple[float, ...]

    def seconds_to(self, bound: float) -> float:
        """Seconds from the call to the first iteration with this bound; infinite if it is never reached."""
        return self._first(bound, self.at_s)

    def cpu_to(self, bound: float) -> float:
        """The same in seconds of CPU, which another program on the machine disturbs less."""
        return self._first(bound, self.cpu_at_s)

    def iterations_to(self, bound: float) -> float:
        """The first iteration with this bound, counted from 1; infinite if it is never reached."""
        return self._first(bound, tuple(float(k + 1) for k in range(len(self.lower_bound))))

    def cpu_per_lp(self, iterations: int) -> float:
        """Seconds of CPU per LP from the end of the first iteration on, which leaves reading and building out."""
        return (self.cpu_at_s[iterations - 1] - self.cpu_at_s[0]) / sum(self.lp_solves[1:iterations])

    def _first(self, bound: float, clock: tuple[float, ...]) -> float:
        enough = bound - _SAME * abs(bound)
        reached = (at for found, at in zip(self.lower_bound, clock, strict=True) if found >= enough)
        return next(reached, float("inf"))

    def rate(self, iterations: int) -> float:
        """LPs per second of training over the first iterations."""
        return sum(self.lp_solves[:iterations]) / sum(self.iteration_s[:iterations])

    def last_iterations_s(self, iterations: int) -> float:
        """Seconds of a late iteration: the mean of the last eighth."""
        late = self.iteration_s[iterations - max(1, iterations // 8) : iterations]
        return sum(late) / len(late)


def run_cobre(python: Path, case: Path, output: Path, threads: int) -> Run:
    """One training by Cobre; it counts its LPs in the files it writes."""
    child = Path(__file__).with_name("cobre_child.py")
    found = _json([str(python), str(child), str(case), str(output), str(threads)])
    import pyarrow.parquet as parquet

    written = parquet.read_table(output / "training" / "convergence.parquet")
    return Run(
        found["wall_s"],
        found["cpu_s"],
        found["peak_mb"],
        tuple(found["lower_bound"]),
        tuple(found["at_s"]),
        tuple(milliseconds / 1e3 for milliseconds in written["time_total_ms"].to_pylist()),
        tuple(written["lp_solves"].to_pylist()),
        tuple(found["cpu_at_s"]),
    )


def run_own(
    case: Path,
    output: Path,
    *,
    threads: int = 1,
    workers: int = 1,
    all_cuts: bool = False,
    highs: bool = False,
    target: float = float("inf"),
    at_least: int = 0,
) -> Run:
    """One training by pycobre, until the bound is reached and so many iterations are done."""
    words = [sys.executable, "-m", "benchmarks.pycobre_child", str(case), str(output)]
    words += ["--threads", str(threads), "--workers", str(workers)]
    words += ["--target", repr(target), "--at-least", str(at_least)]
    words += ["--all-cuts"] * all_cuts + ["--highs"] * highs
    found = _json(words)
    return Run(
        found["wall_s"],
        found["cpu_s"],
        found["peak_mb"],
        tuple(found["lower_bound"]),
        tuple(found["at_s"]),
        tuple(found["iteration_s"]),
        tuple(found["lp_solves"]),
        tuple(found["cpu_at_s"]),
    )


def _json(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
