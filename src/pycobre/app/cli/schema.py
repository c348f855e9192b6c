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
    print('hint: a file that says "$schema": "DIR/stages.schema.json" is completed and checked by editors')
    return 0
