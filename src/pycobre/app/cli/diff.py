"""`pycobre diff CASE_A CASE_B`: what changed between two decks, by plant and date."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycobre.app.answers.case_records import Difference

_WIDTH = 100
_COLUMNS = ("category", "section", "entity", "field", "when", "before", "after")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "first", metavar="CASE_A", type=Path, help="case directory, such as that of last month"
    )
    parser.add_argument("second", metavar="CASE_B", type=Path, help="another one")
    parser.add_argument(
        "--format",
        choices=("human", "table", "json"),
        default="human",
        help="sentences, a table, or a document",
    )
    parser.add_argument(
        "--limit", type=int, default=200, metavar="N", help="most differences in a table (200)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what the second case has that the first has not, and the other way round."""
    from pycobre.app.answers.case_differences import diff_cases
    from pycobre.hydro.files import load_case

    names = str(arguments.first), str(arguments.second)
    found = diff_cases(load_case(names[0]), load_case(names[1]), names, arguments.limit)
    if arguments.format == "json":
        print(json.dumps(asdict(found), indent=2))
    elif arguments.format == "table":
        _print_table(found.differences)
        if found.truncated:
            print(f"… and {found.total - len(found.differences)} more: add --limit {found.total}")
    else:
        for sentence in found.sentences:
            print(textwrap.fill(sentence, _WIDTH, subsequent_indent="  "))
    return 0


def _print_table(differences: Sequence[Difference]) -> None:
    rows = [_COLUMNS, *(tuple(str(getattr(each, name)) for name in _COLUMNS) for each in differences)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
