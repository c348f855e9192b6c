"""`pycobre migrate CASE OUT`: a case of the 0.5 form, written in the 0.18 form."""

from __future__ import annotations

import argparse
from pathlib import Path

from pycobre.hydro.model.findings import Severity

INVALID = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", type=Path, help="case directory in the form of Cobre 0.5")
    parser.add_argument("target", metavar="OUT", type=Path, help="new directory for the form of Cobre 0.18")


def run(arguments: argparse.Namespace) -> int:
    """Write the new case, then say what is worth knowing about it; 1 when it is not valid."""
    from pycobre.hydro.files import migrate, validate

    notes = migrate(arguments.case, arguments.target)
    print(f"{arguments.target}: written in the form of Cobre 0.18")
    for note in notes:
        print(f"note: {note}")
    errors = [finding for finding in validate(arguments.target) if finding.severity is Severity.ERROR]
    for finding in errors:
        print(finding)
    if errors:
        print(f"hint: correct these in {arguments.target} and run `pycobre validate {arguments.target}`")
        return INVALID
    print(f"next: pycobre run {arguments.target}")
    return 0
