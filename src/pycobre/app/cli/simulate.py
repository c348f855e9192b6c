"""`pycobre simulate CASE`: simulate a trained policy again, with other scenarios or settings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pycobre.app.api import waiting_workers
from pycobre.app.cli.run import (
    add_setting_arguments,
    add_sharing_arguments,
    check_counts,
    prepare,
    run_shown,
    settings,
)

if TYPE_CHECKING:
    from pycobre.app.request import Request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", type=Path, help="case directory")
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="policy file (CASE/output/policy/policy.cobre)"
    )
    parser.add_argument("--scenarios", type=int, metavar="S", help="scenarios, in place of the case's")
    parser.add_argument("--output", type=Path, metavar="DIR", help="results directory (CASE/simulation)")
    add_sharing_arguments(parser)
    add_setting_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate and write the tables."""
    check_counts(arguments)
    with waiting_workers(arguments.backend, arguments.workers) as group:
        return run_shown(arguments, prepare(arguments, _request), group)


def _request(arguments: argparse.Namespace) -> Request:
    from pycobre.app.request import CaseSource, Request
    from pycobre.hydro.files import load_case, with_overrides
    from pycobre.sddp import Policy

    case = with_overrides(load_case(arguments.case), settings(arguments))
    path = arguments.policy or arguments.case / "output" / "policy" / "policy.cobre"
    return Request(
        source=CaseSource(case),
        train=False,
        simulate=True,
        scenarios=arguments.scenarios,
        threads=arguments.threads,
        output=str(arguments.output or arguments.case / "simulation"),
        policy=Policy.load(path).to_bytes(),
    )
