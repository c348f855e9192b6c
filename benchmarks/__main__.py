"""`python -m benchmarks [NAME …]`: run benchmarks and write a report over them."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.catalogue import ROOT, select
from benchmarks.harness.driver import run_all
from benchmarks.harness.machine import look
from benchmarks.harness.report import write_report
from pycobre.errors import OptionError

_DEFAULT = Path("bench-results")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks.")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="benchmarks, or how their names begin; none: all"
    )
    parser.add_argument("--list", action="store_true", help="name the benchmarks")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: whether they work")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="repetitions, where a benchmark has rounds (its own number)"
    )
    parser.add_argument(
        "--output", type=Path, default=_DEFAULT, metavar="DIR", help=f"tables, data and pictures ({_DEFAULT})"
    )
    return parser


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run what was chosen and write the report; 1 when a benchmark failed. `root` holds `benchmarks/`."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        chosen = select(arguments.names)
    except OptionError as error:
        parser.error(str(error))
    if arguments.list:
        for each in chosen:
            print(f"{each.name:16} {each.purpose}")
        return 0
    for line in look().lines():
        print(line)
    print(flush=True)
    # Ends like an interrupt: by default a process ends at once, and the benchmark that it waits for runs on.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    outcomes = run_all(
        chosen,
        arguments.output,
        root,
        quick=arguments.quick,
        rounds=arguments.rounds,
        say=lambda text: print(text, flush=True),
    )
    print(f"report: {write_report(arguments.output)}")
    failed = [outcome.name for outcome in outcomes if outcome.failed]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
