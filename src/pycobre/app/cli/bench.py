"""`pycobre bench [NAME …]`: measure this installation, alone and against its peers."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from pycobre.bench.catalogue import find_scripts, select
from pycobre.bench.driver import run_all
from pycobre.bench.machine import look
from pycobre.bench.report import write_report

_DEFAULT = Path("bench-results")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="benchmarks, or how their names begin; none: all"
    )
    parser.add_argument("--list", action="store_true", help="name the benchmarks and what they need")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: whether they work")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="repetitions (3)")
    parser.add_argument(
        "--output", type=Path, default=_DEFAULT, metavar="DIR", help=f"tables, data and pictures ({_DEFAULT})"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run what was chosen and write the report; 1 when a benchmark failed."""
    chosen = select(arguments.names)
    scripts = find_scripts()
    if arguments.list:
        for each in chosen:
            here = (
                ""
                if each.module or (scripts and (scripts / each.script).is_file())
                else "  [needs a checkout]"
            )
            print(f"{each.name:16} {each.purpose}{here}")
        return 0
    for line in look().lines():
        print(line)
    print(flush=True)
    # Ends like an interrupt: by default a process ends at once, and the benchmark that it waits for runs on.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    outcomes = run_all(
        chosen,
        arguments.output,
        scripts,
        quick=arguments.quick,
        rounds=arguments.rounds,
        say=lambda text: print(text, flush=True),
    )
    print(f"report: {write_report(arguments.output)}")
    failed = [outcome.name for outcome in outcomes if outcome.failed]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0
