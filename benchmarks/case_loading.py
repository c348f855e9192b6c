"""Reading cases: time beside plain reading of the same bytes, memory, and how fast openings are generated.

    python -m benchmarks.case_loading [CASE ...] [--rounds 9] [--quick] [--json FILE]

Every case given, the bundled four-regions and a synthetic system of production scale (160 hydros in 20 cascades, 130
thermals, 60 stages of 3 blocks, 6 lags) are loaded in turn with a plain reader, which only parses: `json.loads` and
`pyarrow.parquet` on every file, without looking at what they say. Times are the best of the rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from pycobre.hydro.examples import EXAMPLES, synthetic
from pycobre.hydro.files import load_case, validate, write_case
from pycobre.stochastic import streams

STAGES, OPENINGS, DIMENSION = 60, 20, 160


def parse_only(root: Path) -> list[Any]:
    """The least that any reader does."""
    found: list[Any] = []
    for path in sorted(root.rglob("*.json")):
        found.append(json.loads(path.read_bytes()))
    for path in sorted(root.rglob("*.parquet")):
        found.append(pq.ParquetFile(io.BytesIO(path.read_bytes())).read())
    return found


def best_of(rounds: int, candidates: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of each, the candidates in turn, so that all see the same machine."""
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, work in candidates.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def megabytes_of(work: Callable[[], object]) -> float:
    """What the result of the work keeps allocated."""
    tracemalloc.start()
    kept = work()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return size / 1e6


def reading(root: Path, rounds: int) -> dict[str, float]:
    best = best_of(
        rounds,
        {
            "parse": lambda: parse_only(root),
            "load": lambda: load_case(root),
            "validate": lambda: validate(root),
        },
    )
    files = [p for pattern in ("*.json", "*.parquet") for p in root.rglob(pattern)]
    return {
        "files": len(files),
        "file_megabytes": sum(p.stat().st_size for p in files) / 1e6,
        "parse_ms": 1e3 * best["parse"],
        "load_ms": 1e3 * best["load"],
        "validate_ms": 1e3 * best["validate"],
        "load_ratio": best["load"] / best["parse"],
        "validate_ratio": best["validate"] / best["parse"],
        "case_megabytes": megabytes_of(lambda: load_case(root)),
    }


def openings(rounds: int) -> dict[str, float]:
    """Standard normals on Cobre's streams, beside as many of NumPy's."""
    counts, ids = [OPENINGS] * STAGES, list(range(STAGES))
    rng = np.random.default_rng(1)
    best = best_of(
        rounds,
        {
            "ours": lambda: streams.opening_normals(42, counts, ids, DIMENSION),
            "numpy": lambda: rng.standard_normal((STAGES * OPENINGS, DIMENSION)),
        },
    )
    total = STAGES * OPENINGS
    return {
        "openings_per_second": total / best["ours"],
        "normals_per_second": total * DIMENSION / best["ours"],
        "numpy_ratio": best["ours"] / best["numpy"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "cases", metavar="CASE", nargs="*", type=Path, help="case directories to read as well"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="three rounds, a tenth of the production scale")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE too")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else arguments.rounds
    small = {"hydros": 16, "thermals": 13, "stages": 6} if arguments.quick else {}
    size = {"hydros": 160, "thermals": 130, "stages": STAGES, "buses": 5, "blocks": 3, "lags": 6} | small
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        write_case(EXAMPLES["four-regions"].build(), Path(scratch, "four-regions"))
        write_case(synthetic(openings=OPENINGS, **size), Path(scratch, "synthetic"))
        roots = [*arguments.cases, Path(scratch, "four-regions"), Path(scratch, "synthetic")]
        for root in roots:
            found[root.name] = reading(root, rounds)
    columns = (
        "file_megabytes",
        "parse_ms",
        "load_ms",
        "load_ratio",
        "validate_ms",
        "validate_ratio",
        "case_megabytes",
    )
    print(" ".join([f"{'case':14}", *(f"{name:>15}" for name in columns)]))
    for case, figures in found.items():
        print(" ".join([f"{case:14}", *(f"{figures[name]:15.2f}" for name in columns)]))
    drawn = openings(rounds)
    print(
        f"openings of {DIMENSION} numbers: {drawn['openings_per_second']:,.0f} per second, "
        f"{drawn['normals_per_second']:,.0f} normals per second, {drawn['numpy_ratio']:.1f} times NumPy's time"
    )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"cases": found, "openings": drawn}, indent=1) + "\n")


if __name__ == "__main__":
    main()
