"""`pycobre import KIND DECK CASE`: a deck of NEWAVE or DECOMP, or tables of a spreadsheet, converted to a case."""

from __future__ import annotations

import argparse
from pathlib import Path

from pycobre.app.wording import counted
from pycobre.hydro.model.findings import Severity

INVALID = 1
_DECKS, _SHEETS = ("newave", "decomp"), ("csv", "xlsx")
_LEADS = {"info": "note", "warning": "warning"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", metavar="KIND", choices=(*_DECKS, *_SHEETS), help="newave, decomp, csv or xlsx"
    )
    parser.add_argument("deck", metavar="DECK", type=Path, help="the deck, folder of CSV files or workbook")
    parser.add_argument("case", metavar="CASE", type=Path, help="new directory for the case")
    parser.add_argument(
        "--no-cost-to-go",
        action="store_true",
        help="leave out the cost-to-go beyond the horizon that a DECOMP deck brings along (cortes files)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Convert, say what was done and what is worth knowing; 1 when the case is not valid."""
    if arguments.kind in _SHEETS:
        return _sheets(arguments)
    from pycobre.hydro.decks import import_deck

    case: Path = arguments.case
    done = import_deck(arguments.kind, arguments.deck, case, cost_to_go=not arguments.no_cost_to_go)
    for repair in done.repairs:
        print(f"repaired: {repair}")
    for note in done.notes:
        print(f"{_LEADS[note.severity]}: {note.text}")
    errors = [finding for finding in done.findings if finding.severity is Severity.ERROR]
    for finding in errors:
        print(finding)
    warnings = len(done.findings) - len(errors)
    print(f"{case}: written, {counted(len(errors), 'error')}, {counted(warnings, 'warning')}")
    if errors:
        print(f"hint: correct these in {case} and run `pycobre validate {case}`")
        return INVALID
    print(f"next: pycobre validate {case} lists the warnings, pycobre run {case} trains a policy")
    return 0


def _sheets(arguments: argparse.Namespace) -> int:
    """Tables as `pycobre export CASE` writes them."""
    from pycobre.app.case_sheets import read_sheets, sheets_to_case
    from pycobre.errors import OptionError
    from pycobre.hydro.files import write_case

    case: Path = arguments.case
    if case.exists():
        raise OptionError(f"{case}: expected a new directory, got one that is there. Name another.")
    write_case(sheets_to_case(read_sheets(arguments.kind, arguments.deck), case.name), case)
    print(f"{case}: written")
    print(f"next: pycobre validate {case} lists the warnings, pycobre run {case} trains a policy")
    return 0
