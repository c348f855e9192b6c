"""`pycobre replay FILE`: solve alone what failed inside a run."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pycobre.errors import OutputError, SolverError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle, and where to write its LP."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a bundle that a failed run has written")
    parser.add_argument(
        "--write", metavar="LP", type=Path, help="write the failed LP to LP (.lp or .mps) for other programs"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what the LP is like and solve it; a failure that repeats ends as it did in the run."""
    from pycobre.solver import create_engine
    from pycobre.solver.bundle import read_bundle
    from pycobre.solver.explicit import write_lp
    from pycobre.solver.report import numerical_report

    try:
        bundle = read_bundle(arguments.file)
    except SolverError as error:  # of the file, not of the LP in it
        raise OutputError(str(error)) from error
    template, cuts = bundle.call.model.template, 0 if bundle.call.cuts is None else bundle.call.cuts.count
    print(f"{template.num_cols} columns, {template.num_rows} rows, {cuts} cuts")
    print(f"{len(bundle.call.values)} openings, of which the last one failed")
    print(numerical_report(bundle.call.model, scale=bundle.options.scale))
    if arguments.write is not None:
        write_lp(bundle.last_lp(), arguments.write)
        print(f"written to {arguments.write}")
    with create_engine(replace(bundle.options, bundles=None, native=None)) as engine:
        block = bundle.solve(engine)
    print(f"solved here: objective {block.objective[0, -1]!r}, {int(block.retries[0, -1])} retries")
    return 0
