"""`pycobre report DIR`: the page about a run, and its pictures."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", metavar="DIR", type=Path, help="result directory of a run")
    parser.add_argument("--output", type=Path, metavar="FILE", help="the page (DIR/report.html)")
    parser.add_argument("--no-png", action="store_true", help="write the page only")


def run(arguments: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    from pycobre.app.plot import write_report

    page = write_report(arguments.results, arguments.output, png=not arguments.no_png)
    print(f"report     {page} ({page.stat().st_size / 1e6:.1f} MB, opens without a network)")
    if not arguments.no_png:
        print(f"pictures   {page.parent / 'plots'}")
    return 0
