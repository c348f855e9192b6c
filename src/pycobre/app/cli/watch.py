"""`pycobre watch [DIR …]`: runs in a terminal, in progress or finished, from any process that sees their files."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directories",
        metavar="DIR",
        nargs="*",
        type=Path,
        help="directories with runs at any depth, or of one run (.)",
    )
    parser.add_argument("--plain", action="store_true", help="lines of text, as without a terminal")
    parser.add_argument("--once", action="store_true", help="print the table of runs once")
    parser.add_argument("--light", action="store_true", help="colours for a light terminal")


def run(arguments: argparse.Namespace) -> int:
    """Watch until the person leaves, or, as lines, until all runs have ended."""
    from pycobre.app.tui.session import watch

    roots = arguments.directories or [Path()]
    return watch(roots, plain=arguments.plain, once=arguments.once, light=arguments.light)
