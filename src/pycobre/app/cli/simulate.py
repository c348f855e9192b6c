"""`pycobre simulate CASE`: simulate a trained policy again, with other scenarios or settings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pycobre.app.cli.run import add_setting_arguments, add_sharing_arguments, run_command, settings
from pycobre.app.results.layout import default_output, policy_file

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
    return run_command(arguments, _request)


def _request(arguments: argparse.Namespace) -> Request:
    from pycobre.app.build_request import build_request

    return build_request(
        arguments.case,
        settings(arguments),
        policy=arguments.policy or policy_file(default_output(arguments.case)),
        output=arguments.output or arguments.case / "simulation",
        train=False,
        simulate=True,
        scenarios=arguments.scenarios,
        threads=arguments.threads,
    )
