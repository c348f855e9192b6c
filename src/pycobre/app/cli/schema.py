"""`pycobre schema DIR`: the JSON Schemas of a case's files."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="where to write them")


def run(arguments: argparse.Namespace) -> int:
    """Write one schema for every JSON file of a case."""
    from pycobre.hydro.files import write_schemas

    written = write_schemas(arguments.directory)
    print(f"{arguments.directory}: {len(written)} JSON Schemas, one for each JSON file of a case")
    print(
        'hint: editors complete and check a file that names its schema: "$schema": "./DIR/stages.schema.json"'
    )
    print("      (`pycobre init` and `write_case` write files that do, and the schemas beside them)")
    return 0
