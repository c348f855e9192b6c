"""How long the command line takes to say anything, beside an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import entry
from benchmarks.harness.compiled import compiled_modules
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import Spread, interleaved, seconds

__all__ = ["measure"]

_BARE = "bare interpreter"
_COMMANDS = {
    _BARE: ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import pycobre": ["-c", "import pycobre"],
    "pycobre --help": ["-m", "pycobre", "--help"],
    "pycobre run --help": ["-m", "pycobre", "run", "--help"],
    "pycobre version": ["-m", "pycobre", "version"],
}


def measure(settings: entry.Settings) -> Document:
    """Commands against a bare interpreter."""
    candidates = {name: (lambda words=words: _start(words)) for name, words in _COMMANDS.items()}
    with compiled_modules():
        interleaved(candidates, 1)  # compiles what is not compiled
        found = interleaved(candidates, settings.repetitions(15))
    spreads = {name: Spread(tuple(values)) for name, values in found.items()}
    bare = spreads[_BARE].median
    rows = tuple(
        (name, 1e3 * each.median, 1e3 * each.least, 1e3 * each.most, 1e3 * (each.median - bare))
        for name, each in spreads.items()
    )
    columns = ("", "ms (median)", "least", "most", "beyond the bare one")
    return Document(
        "cli_start",
        (Table("starting and ending", columns, rows),),
        (
            Figure(
                "`pycobre --help` beyond a bare interpreter",
                spreads["pycobre --help"].median - bare,
                "s",
                at_most=0.3,
            ),
        ),
    )


def _start(words: list[str]) -> float:
    command = [sys.executable, *words]
    return seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, timeout=60, check=True))


if __name__ == "__main__":
    entry.main(measure)
