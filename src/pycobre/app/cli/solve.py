"""`pycobre solve FILE`: train and simulate a problem in MSPFormat, StochOptFormat or SMPS."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre.app.cli.run import add_setting_arguments, add_sharing_arguments, run_command, settings

if TYPE_CHECKING:
    from pycobre.app.report import Report
    from pycobre.app.request import Request
    from pycobre.problem import Problem

SCENARIOS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="X.problem.json, X.sof.json, X.cor, or a saved problem"
    )
    parser.add_argument(
        "--lattice", type=Path, metavar="FILE", help="second file of MSPFormat, where elsewhere"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="results directory (X-output beside FILE)")
    parser.add_argument("--iterations", type=int, metavar="N", help="iteration limit (100)")
    parser.add_argument("--forward-passes", type=int, metavar="M", help="trajectories per iteration (1)")
    parser.add_argument(
        "--scenarios", type=int, default=SCENARIOS, metavar="S", help=f"simulated scenarios ({SCENARIOS})"
    )
    parser.add_argument("--seed", type=int, help="seed of the forward paths")
    parser.add_argument("--bound", type=float, metavar="B", help="bound on all that follows a node (derived)")
    parser.add_argument("--relax", action="store_true", help="read integer variables as continuous ones")
    parser.add_argument(
        "--resume", action="store_true", help="continue from the newest checkpoint in the results directory"
    )
    add_sharing_arguments(parser)
    add_setting_arguments(parser, "replace a setting, such as solver.primal_tolerance=1e-9")


def run(arguments: argparse.Namespace) -> int:
    """Solve the problem; 130 when it was interrupted and stopped after an iteration."""
    return run_command(arguments, _request, lambda report: _validated(arguments, report))


def _request(arguments: argparse.Namespace) -> Request:
    from pycobre.app.build_request import build_request

    overrides = settings(arguments)
    for name, value in (
        ("iteration_limit", arguments.iterations),
        ("forward_passes", arguments.forward_passes),
        ("seed", arguments.seed),
    ):
        if value is not None:
            overrides[name] = value
    arguments.problem = _problem(arguments)
    return build_request(
        arguments.problem,
        overrides,
        output=arguments.output or _output_of(arguments.file),
        simulate=arguments.scenarios > 0,
        scenarios=arguments.scenarios,
        threads=arguments.threads,
        resume=arguments.resume,
    )


def _problem(arguments: argparse.Namespace) -> Problem:
    from pycobre.problem.formats import read

    return read(arguments.file, lattice=arguments.lattice, bound=arguments.bound, relax=arguments.relax)


def _validated(arguments: argparse.Namespace, report: Report) -> Mapping[str, Any]:
    """What the policy costs in the file's validation scenarios, where it has some."""
    from pycobre.problem.formats import read_validation
    from pycobre.sddp import path_costs

    paths = read_validation(arguments.file, relax=arguments.relax)
    if not paths or report.policy is None:
        return {}
    costs = path_costs(arguments.problem, report.policy, paths)
    mean, least, most = (float(value) for value in (costs.mean(), costs.min(), costs.max()))
    return {"validation": {"paths": len(paths), "mean": mean, "least": least, "most": most}}


def _output_of(file: Path) -> Path:
    """A directory beside the file, named like it."""
    return file.with_name(f"{file.name.split('.')[0]}-output")
