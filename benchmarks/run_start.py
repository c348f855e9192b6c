"""Seconds from calling `pycobre.train` to the start of the first iteration, in fresh interpreters.

The floor is what nobody can avoid: starting an interpreter that imports numpy and the solver.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import entry
from benchmarks.harness.compiled import compiled_modules
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import Spread, interleaved, seconds
from pycobre.hydro.examples import example
from pycobre.hydro.files import with_overrides, write_case

__all__ = ["measure"]

TIMEOUT_S = 300.0
_FLOOR = "interpreter that imports numpy and highspy"
_CALL = """
import sys, time
import pycobre
begin = time.perf_counter()
def note(event):
    if event.kind == "iteration_finished" and event.worker_id == 0:
        print(time.perf_counter() - begin - event.elapsed_s)
        return True
pycobre.train(sys.argv[1], None, note, sys.argv[2], int(sys.argv[3]))
"""


def measure(settings: entry.Settings) -> Document:
    """From the call to the first iteration, with one process and two workers."""
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory, compiled_modules():
        case = Path(directory) / "case"
        overrides = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 2}]}
        write_case(with_overrides(example("four-regions").build(), overrides), case)
        candidates: dict[str, Callable[[], float]] = {
            _FLOOR: lambda: seconds(lambda: _python("import numpy, highspy")),
            "1 process": _first_iteration(case, "auto", 1),
            "2 workers, shm": _first_iteration(case, "shm", 2),
            "2 workers, tcp": _first_iteration(case, "tcp", 2),
        }
        interleaved(candidates, 1)  # compiles what is not compiled
        found = interleaved(candidates, settings.repetitions(5))
    spreads = {name: Spread(tuple(values)) for name, values in found.items()}
    floor = spreads[_FLOOR].median
    rows = tuple(
        (name, each.median, each.least, each.most, each.median / floor) for name, each in spreads.items()
    )
    columns = ("", "seconds (median)", "least", "most", "ratio to the floor")
    return Document(
        "run_start",
        (Table("from the call to the first iteration", columns, rows),),
        (
            Figure("call to first iteration, 1 process", spreads["1 process"].median, "s", at_most=1.0),
            Figure("call to first iteration, 2 workers", spreads["2 workers, shm"].median, "s", at_most=1.0),
        ),
    )


def _first_iteration(case: Path, backend: str, workers: int) -> Callable[[], float]:
    return lambda: float(_python(_CALL, str(case), backend, str(workers)).splitlines()[0])


def _python(code: str, *words: str) -> str:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout


if __name__ == "__main__":
    entry.main(measure)
