"""`pycobre run CASE`: train and simulate a case, here, on workers, or as one rank of a launcher's job."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre.app.failures import INTERRUPTED
from pycobre.app.restarts import Restarts
from pycobre.app.results.layout import default_output
from pycobre.app.run import Execution
from pycobre.app.stop_switch import StopSwitch
from pycobre.errors import OptionError

if TYPE_CHECKING:
    from pycobre.app.report import Report
    from pycobre.app.request import Request

# The least value of each option that counts something.
_COUNTS = {
    "workers": 1,
    "threads": 1,
    "iterations": 1,
    "forward_passes": 1,
    "scenarios": 0,
    "checkpoint_every": 1,
    "restarts": 0,
    "min_workers": 1,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", type=Path, help="case directory")
    add_sharing_arguments(parser)
    parser.add_argument("--output", type=Path, metavar="DIR", help="results directory (CASE/output)")
    parser.add_argument("--iterations", type=int, metavar="N", help="iteration limit, in place of the case's")
    parser.add_argument("--forward-passes", type=int, metavar="M", help="trajectories per iteration")
    parser.add_argument(
        "--scenarios", type=int, metavar="S", help="simulated scenarios; 0 skips the simulation"
    )
    parser.add_argument("--seed", type=int, help="seed of the opening tree and the forward paths")
    add_setting_arguments(parser)
    parser.add_argument(
        "--resume", action="store_true", help="continue from the newest checkpoint in the results directory"
    )
    parser.add_argument(
        "--warm-start", type=Path, metavar="POLICY", help="start with the cuts of a policy file"
    )
    parser.add_argument(
        "--checkpoint-every", type=int, metavar="K", help="iterations between checkpoints (2 minutes)"
    )
    parser.add_argument(
        "--restarts", type=int, default=0, metavar="N", help="restarts with --resume after a lost worker (0)"
    )
    parser.add_argument(
        "--tui", action="store_true", help="watch the run in the terminal; leaving does not end it"
    )
    parser.add_argument(
        "--min-workers", type=int, metavar="M", help="restart on one worker fewer each time, down to M"
    )
    parser.add_argument(
        "--checkpoint-minutes", type=float, metavar="T", help="minutes between checkpoints (2)"
    )


def add_sharing_arguments(parser: argparse.ArgumentParser) -> None:
    """How the work is shared, and what is printed of it."""
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes on this machine (1)")
    parser.add_argument("--backend", default="auto", help="auto, local, shm, tcp or mpi (auto)")
    parser.add_argument("--threads", type=int, default=1, metavar="T", help="threads of each process (1)")
    parser.add_argument("--format", choices=("human", "json", "jsonl"), default="human", help="output format")
    parser.add_argument("--quiet", action="store_true", help="print the summary only")


def add_setting_arguments(
    parser: argparse.ArgumentParser, help_text: str = "replace a setting, such as training.stopping_mode=all"
) -> None:
    """Settings of the case's configuration, or of a problem's training, by path."""
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help=help_text)


def run(arguments: argparse.Namespace) -> int:
    """Run the case; 130 when it was interrupted and stopped after an iteration."""
    return _in_app(arguments) if arguments.tui else run_command(arguments, _request)


def _in_app(arguments: argparse.Namespace) -> int:
    """The same command without `--tui` in a process of its own, and the app in this one."""
    from pycobre.app.tui.session import run_in_app
    from pycobre.comm.select import announced_size

    check_counts(arguments)
    if arguments.format != "human":
        raise OptionError(f"--tui: expected --format human, got {arguments.format}. Leave one of them out.")
    announced = announced_size(os.environ)
    if announced is not None:
        raise OptionError(
            f"--tui: expected a run that this command starts, got one of a job: {announced[0]} announces "
            f"{announced[1]} ranks. Leave --tui out, and use `pycobre watch DIR` from a terminal."
        )
    words = [word for word in arguments.words if not (len(word) > 3 and "--tui".startswith(word))]
    output = arguments.output or default_output(arguments.case)
    return run_in_app([*words, *([] if arguments.quiet else ["--quiet"])], output)


def run_command(
    arguments: argparse.Namespace,
    make_request: Callable[[argparse.Namespace], Request],
    further: Callable[[Report], Mapping[str, Any]] = lambda _: {},
) -> int:
    """Run the request of a command as its arguments say, displayed by rank 0; return the exit code.

    `further` gives what else rank 0 shall say of the results, by name.
    """
    check_counts(arguments)
    times: int = getattr(arguments, "restarts", 0)
    if times and arguments.workers == 1:
        raise OptionError(
            f"--restarts: expected 0 without --workers, got {times}. Use --workers 2 or more, or let the "
            "scheduler start the command again with --resume."
        )
    restarts = Restarts(times, getattr(arguments, "min_workers", None))
    with Execution(arguments.backend, arguments.workers, restarts) as run:
        from pycobre.app.cli.display import Display  # loaded while the workers start

        request = make_request(arguments)
        place = run.place()
        if place.rank != 0:
            report, _ = run.drive(request)
        else:
            with Display(arguments, request, place.size, place.backend, further) as display:
                report, _ = run.drive(request, display, StopSwitch(display.stopping))
                display.finish(report)
    return INTERRUPTED if report.metadata.get("termination_reason") == "interrupted" else 0


def check_counts(arguments: argparse.Namespace) -> None:
    """Refuse counts that make no sense by the option's own name, before anything is read or started."""
    for name, least in _COUNTS.items():
        count = getattr(arguments, name, None)
        if count is not None and count < least:
            raise OptionError(f"--{name.replace('_', '-')}: expected at least {least}, got {count}.")


def _request(arguments: argparse.Namespace) -> Request:
    from pycobre.app.build_request import build_request

    overrides = settings(arguments)
    if arguments.iterations is not None:
        overrides["training.stopping_rules"] = [{"type": "iteration_limit", "limit": arguments.iterations}]
    if arguments.forward_passes is not None:
        overrides["training.selection.forward_passes"] = arguments.forward_passes
    if arguments.seed is not None:
        overrides["training.tree_seed"] = arguments.seed
    return build_request(
        arguments.case,
        overrides,
        policy=arguments.warm_start,
        output=arguments.output or default_output(arguments.case),
        scenarios=arguments.scenarios,
        threads=arguments.threads,
        resume=arguments.resume,
        checkpoint_iterations=arguments.checkpoint_every,
        checkpoint_minutes=arguments.checkpoint_minutes,
    )


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `--set` says, by dotted path; values are JSON where they can be read as such, else text."""
    found: dict[str, Any] = {}
    for assignment in arguments.set:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise OptionError(f"--set {assignment}: expected PATH=VALUE. Write --set {assignment}=VALUE.")
        try:
            found[path] = json.loads(text)
        except ValueError:
            found[path] = text
    return found
