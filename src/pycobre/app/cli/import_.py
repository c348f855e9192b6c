"""`pycobre import KIND DECK CASE`: a deck of NEWAVE or DECOMP, converted to a case."""

from __future__ import annotations

import argparse
from pathlib import Path

from pycobre.app.wording import counted
from pycobre.hydro.model.findings import Severity

INVALID = 1
_LEADS = {"info": "note", "warning": "warning"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=("newave", "decomp"), help="newave or decomp")
    parser.add_argument("deck", metavar="DECK", type=Path, help="directory of the deck; it is not touched")
    parser.add_argument("case", metavar="CASE", type=Path, help="new directory for the case")
    parser.add_argument(
        "--no-cost-to-go",
        action="store_true",
        help="leave out the cost-to-go beyond the horizon that a DECOMP deck brings along (cortes files)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Convert, say what was done and what is worth knowing; 1 when the case is not valid."""
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
