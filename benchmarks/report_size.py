"""The report of a simulation of 2,000 scenarios: seconds to draw it, and megabytes of the page."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import Spread, seconds
from pycobre.hydro.examples import example
from pycobre.hydro.files import with_overrides, write_case

__all__ = ["measure"]

TIMEOUT_S = 600.0


def measure(settings: entry.Settings) -> Document:
    """Simulate, write and draw many scenarios."""
    missing = [name for name in ("plotly", "matplotlib") if importlib.util.find_spec(name) is None]
    if missing:
        return Document(
            "report_size", skipped=f"{' and '.join(missing)} missing: pip install 'pycobre[plot]'"
        )
    scenarios, iterations = (20, 2) if settings.quick else (2000, 25)
    overrides = {
        "training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
        "simulation": {"enabled": True, "selection": {"method": "sampled", "num_scenarios": scenarios}},
    }
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = Path(directory)
        write_case(with_overrides(example("four-regions").build(), overrides), root / "case")
        run = seconds(lambda: _pycobre("run", str(root / "case"), "--output", str(root / "out"), "--quiet"))
        tables = sum(path.stat().st_size for path in (root / "out" / "simulation").rglob("*.parquet"))
        before = set((root / "out").rglob("*"))
        drawn = Spread(
            tuple(
                seconds(lambda: _pycobre("report", str(root / "out"))) for _ in range(settings.repetitions())
            )
        )
        made = [path for path in (root / "out").rglob("*") if path not in before and path.is_file()]
        sizes = {path.name: path.stat().st_size / 1e6 for path in sorted(made)}
    page = sum(size for name, size in sizes.items() if name.endswith(".html"))
    rows = (
        ("training, simulating and writing", run, None),
        ("the simulation's tables", None, tables / 1e6),
        ("`pycobre report`", drawn.median, sum(sizes.values())),
        *((f"of it {name}", None, size) for name, size in sizes.items()),
    )
    return Document(
        "report_size",
        (Table(f"four regions, {scenarios:,} scenarios", ("", "seconds", "MB"), rows),),
        (Figure("report", drawn.median, "s"), Figure("report page", page, "MB")),
    )


def _pycobre(*words: str) -> None:
    command = [sys.executable, "-m", "pycobre", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)


if __name__ == "__main__":
    entry.main(measure)
