"""What watching costs a run: the same case watched and unwatched in turn, and the bits of both.

    python -m benchmarks.run_watched [--quick] [--rounds N] [--json FILE]

Processor time of the run is compared, so that other programs do not count, and that of the app is said beside it: it
reads less often when reading takes longer, and gives way to the run.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from pycobre.app.results.directory import open_results
from pycobre.app.results.status import read_status
from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import write_case

__all__ = ["measure"]

WATCH = """
import sys
from pathlib import Path
from pycobre.app.tui.app import WatchApp, be_modest
be_modest()
WatchApp([Path(sys.argv[1])], open_run=Path(sys.argv[1])).run(headless=True, size=(140, 45))
"""
TICKS = os.sysconf("SC_CLK_TCK")


def measure(settings: entry.Settings) -> Document:
    """Processor time of a run that is watched, relative to one that nobody watches."""
    iterations = 60 if settings.quick else 600
    spent: dict[bool, list[float]] = {False: [], True: []}
    digests, shares = set(), []
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as place:
        case = Path(place) / "case"
        write_case(EXAMPLES["four-regions"].build(), case)
        for number in range(settings.repetitions(5)):
            for watched in (False, True) if number % 2 else (True, False):
                output = Path(place) / f"{number}-{watched}"
                seconds, share = _run(case, output, iterations, watched=watched)
                spent[watched].append(seconds)
                shares += [share] if share is not None else []
                digests.add(str(open_results(output).metadata["policy_digest"]))
    ratios = [100 * (w / u - 1) for w, u in zip(spent[True], spent[False], strict=True)]
    rows = tuple(
        (place, unwatched, watched, ratio)
        for place, (unwatched, watched, ratio) in enumerate(
            zip(spent[False], spent[True], ratios, strict=True), 1
        )
    )
    columns = ("round", "unwatched, CPU s", "watched, CPU s", "more %")
    figures = (
        Figure(
            "processor time of a watched run, more than of an unwatched one",
            statistics.median(ratios),
            "%",
            at_most=1.0,
        ),
        Figure("different digests", float(len(digests) - 1), "", at_most=0.0),
        Figure("the app, of one core", statistics.median(shares), "%"),
    )
    return Document("run_watched", (Table("the same case in turn", columns, rows),), figures)


def _run(case: Path, output: Path, iterations: int, *, watched: bool) -> tuple[float, float | None]:
    """Processor seconds of the run, and the share of a core that the app took while it went on."""
    words = [
        "run",
        str(case),
        "--output",
        str(output),
        "--iterations",
        str(iterations),
        "--scenarios",
        "0",
        "--quiet",
    ]
    run = subprocess.Popen([sys.executable, "-m", "pycobre", *words], stdout=subprocess.DEVNULL)
    if not watched:
        return _ended(run), None
    while not output.is_dir() or read_status(output) is None:
        time.sleep(0.02)
    app = subprocess.Popen([sys.executable, "-c", WATCH, str(output)], stdout=subprocess.DEVNULL)
    time.sleep(2.0)  # its start is not what is measured
    before, begin = _cpu(app.pid), time.monotonic()
    spent = _ended(run)
    share = 100 * (_cpu(app.pid) - before) / (time.monotonic() - begin)
    app.send_signal(signal.SIGKILL)
    app.wait()
    return spent, share


def _ended(process: subprocess.Popen[bytes]) -> float:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    entry.main(measure)
