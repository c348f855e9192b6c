"""The first steps of a run by both programs, one thread each: validate, load, build, one iteration.

    python -m benchmarks.cobre_steps --case DIRECTORY [--passes M] [--rounds N]

`--case`, or `PYCOBRE_BENCH_NATIONAL`, is a case directory. Every step is a process of its own, in which what comes
before it is done too and not counted; the programs take turns. `build` reads the case, fits its inflow models and
writes its LPs; `iteration` is one iteration of `--passes` trajectories (8).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.cobre_environment import Missing, cobre_python
from benchmarks.cobre_national import NATIONAL_VARIABLE
from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import interleaved

__all__ = ["measure"]

STEPS = ("validate", "load", "build", "iteration")
PASSES = 8
COBRE, OWN = "cobre", "pycobre"
Found = dict[str, float]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--case", type=Path, help=f"case directory ({NATIONAL_VARIABLE})")
    parser.add_argument(
        "--passes", type=int, default=PASSES, help=f"trajectories of the iteration ({PASSES})"
    )


def measure(settings: entry.Settings) -> Document:
    """Measure the first steps of a run against Cobre."""
    source = settings.given.get("case") or os.environ.get(NATIONAL_VARIABLE)
    if not source:
        return Document("cobre-steps", skipped=f"name a case by --case or {NATIONAL_VARIABLE}")
    try:
        interpreters = {COBRE: str(cobre_python()), OWN: sys.executable}
    except Missing as reason:
        return Document("cobre-steps", skipped=str(reason))
    passes = 1 if settings.quick else settings.given.get("passes") or PASSES
    rows, figures, data = [], [], {}
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = Path(directory)
        _write(Path(source), root / "case", passes)
        for step in STEPS:
            run = {name: partial(_step, python, name, step, root) for name, python in interpreters.items()}
            found: dict[str, list[Found]] = interleaved(run, settings.repetitions(1))
            cpu, peak = (
                {name: min(each[key] for each in runs) for name, runs in found.items()}
                for key in ("cpu_s", "peak_mb")
            )
            rows.append((step, cpu[COBRE], cpu[OWN], cpu[OWN] / cpu[COBRE], peak[COBRE], peak[OWN]))
            figures.append(Figure(f"{step}: CPU, ratio", cpu[OWN] / cpu[COBRE]))
            figures.append(Figure(f"{step}: peak memory, ratio", peak[OWN] / peak[COBRE]))
            data[step] = found
    heads = ("step", "Cobre, CPU s", "pycobre, CPU s", "ratio", "Cobre, peak MB", "pycobre, peak MB")
    title = f"{Path(source).name}: first steps, {passes} trajectories"
    return Document("cobre-steps", (Table(title, heads, tuple(rows)),), tuple(figures), data=data)


def _write(source: Path, case: Path, passes: int) -> None:
    shutil.copytree(source, case, ignore=shutil.ignore_patterns("output"))
    path = case / "config.json"
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    config["training"] = {
        **config["training"],
        "stopping_rules": [{"type": "iteration_limit", "limit": 1}],
        "selection": {"method": "sampled", "forward_passes": passes},
    }
    config["simulation"] = {**config.get("simulation", {}), "enabled": False}
    path.write_text(json.dumps(config), encoding="utf-8")


def _step(python: str, program: str, step: str, root: Path) -> Found:
    child = Path(__file__).with_name("cobre_steps_child.py")
    command = [python, str(child), program, step, str(root / "case"), str(root / f"output-{program}")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    found: Found = json.loads(done.stdout.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    entry.main(measure, arguments)
