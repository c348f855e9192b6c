"""`pycobre export PATH --to csv|xlsx`: the tables of a run, or a case, for spreadsheets and other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from pycobre.app.results.directory import open_results
from pycobre.app.results.export import CSV, FORMS, XLSX, export_tables
from pycobre.app.results.frame import Shape, parse_quantiles
from pycobre.app.results.layout import EXPORT
from pycobre.errors import OptionError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="result directory of a run, or a case")
    parser.add_argument("--to", choices=FORMS, required=True, help="files of text, or a workbook")
    parser.add_argument(
        "--table", action="append", default=[], metavar="NAME", help="one table, such as hydros; repeatable"
    )
    parser.add_argument(
        "--per", choices=("block", "stage"), default="block", help="rows by block or by stage"
    )
    parser.add_argument(
        "--total", choices=("system", "bus"), default="", help="sums instead of single plants"
    )
    parser.add_argument(
        "--quantiles",
        metavar="Q,Q",
        help="mean and quantiles over the scenarios, such as 0.1,0.5,0.9, in place of every scenario",
    )
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help="directory or workbook (RUN/export; of a case, here)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the files and say where they are."""
    if (arguments.run / "config.json").is_file():
        return _case(arguments)
    results = open_results(arguments.run)
    quantiles = None if arguments.quantiles is None else parse_quantiles(arguments.quantiles.split(","))
    shape = Shape(arguments.per, arguments.total, quantiles)
    inside = results.directory / EXPORT
    target = arguments.output or (inside if arguments.to == CSV else inside / "tables.xlsx")
    for path, name, rows in export_tables(results, arguments.to, target, arguments.table, shape):
        print(f"{name:<20} {rows:>10,} rows  {path}")
    if arguments.to == XLSX:
        print("units and meanings are on the sheet `columns`")
    return 0


def _case(arguments: argparse.Namespace) -> int:
    """A case, in the form that `pycobre import` reads back."""
    from pycobre.app.case_sheets import case_to_sheets, write_sheets
    from pycobre.hydro.files import load_case

    case, form = arguments.run, arguments.to
    if arguments.table or arguments.total or arguments.quantiles:
        raise OptionError(
            f"{case}: expected no --table, --total or --quantiles for a case, got some. For a run name its directory."
        )
    name = case.resolve().name
    target = arguments.output or Path(f"{name}-csv" if form == CSV else f"{name}.xlsx")
    if target.exists():
        raise OptionError(
            f"{target}: expected a new path, got one that is there. Name another with --output."
        )
    sheets = case_to_sheets(load_case(case))
    write_sheets(sheets, form, target)
    print(f"{target}: {len(sheets)} tables")
    print(f"next: edit them, then pycobre import {form} {target} NEW_CASE")
    return 0
