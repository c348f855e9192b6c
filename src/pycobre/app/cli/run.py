"""`pycobre run CASE`: train and simulate a case, here, on workers, or as one rank of a launcher's job."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre.app.api import communicator_for, run_here, run_request, waiting_workers
from pycobre.app.cli.exits import describe, exit_code, silence
from pycobre.app.stop_switch import StopSwitch
from pycobre.comm.select import joins_mpi
from pycobre.errors import BackendError, CobreError, OptionError
from pycobre.events import Event

if TYPE_CHECKING:
    from pycobre.app.report import Report
    from pycobre.app.request import Request
    from pycobre.comm import Communicator
    from pycobre.launch.launcher import RankGroup

INTERRUPTED = 130
# The least value of each option that counts something.
_COUNTS = {
    "workers": 1,
    "threads": 1,
    "iterations": 1,
    "forward_passes": 1,
    "scenarios": 0,
    "checkpoint_every": 1,
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
        "--resume", action="store_true", help="go on from the newest checkpoint in the output"
    )
    parser.add_argument(
        "--warm-start", type=Path, metavar="POLICY", help="begin with the cuts of a policy file"
    )
    parser.add_argument("--checkpoint-every", type=int, metavar="K", help="iterations between checkpoints")


def add_sharing_arguments(parser: argparse.ArgumentParser) -> None:
    """How the work is shared, and what is printed of it."""
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes on this machine (1)")
    parser.add_argument("--backend", default="auto", help="auto, local, shm, tcp or mpi (auto)")
    parser.add_argument("--threads", type=int, default=1, metavar="T", help="threads of each process (1)")
    parser.add_argument("--format", choices=("human", "json", "jsonl"), default="human", help="what to print")
    parser.add_argument("--quiet", action="store_true", help="print the summary only")


def add_setting_arguments(parser: argparse.ArgumentParser) -> None:
    """Settings of the case's configuration, by path."""
    help_text = "replace a setting, such as training.stopping_mode=all"
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help=help_text)


def run(arguments: argparse.Namespace) -> int:
    """Run the case; 130 when it was interrupted and stopped after an iteration."""
    check_counts(arguments)
    with waiting_workers(arguments.backend, arguments.workers) as group:
        return run_shown(arguments, prepare(arguments, _request), group)


def prepare(arguments: argparse.Namespace, make: Callable[[argparse.Namespace], Request]) -> Request:
    """The request that `make` reads; where it cannot, a launcher's whole job ends with the error's exit code.

    The other ranks would wait for this one to join MPI, some launchers for ever.
    """
    try:
        return make(arguments)
    except (CobreError, OSError) as error:
        failure = error
    if arguments.workers == 1 and joins_mpi(None if arguments.backend == "auto" else arguments.backend):
        # Where this rank cannot join, the others cannot either, and its own error is the one to show.
        with suppress(BackendError), communicator_for(arguments.backend) as comm:
            _end_job(comm, failure)
    raise failure


def _end_job(comm: Communicator, error: Exception) -> None:
    """Under MPI with several ranks: say the error and end the launcher's job with its exit code; else do nothing.

    An exception that left the communicator's block would end the job too, with a traceback and the code 1.
    """
    from pycobre.app.pipeline import backend_name

    if comm.size == 1 or backend_name(comm) != "mpi":
        return
    print(describe(error), file=sys.stderr, flush=True)
    try:
        sys.exit(exit_code(error))
    except SystemExit:
        comm.abort(f"{type(error).__name__}, as said above")  # its exit code is that of the exception in hand


def run_shown(arguments: argparse.Namespace, request: Request, group: RankGroup | None) -> int:
    """Run a request as the arguments say, on `group` if there is one, shown by rank 0; return the exit code."""
    if arguments.workers > 1:
        assert group is not None
        with _Show(arguments, request, arguments.workers, group.backend) as show:
            switch = StopSwitch(show.stopping)
            report, _ = run_request(request, arguments.backend, arguments.workers, show, group, switch)
            show.report(report)
    else:
        with communicator_for(arguments.backend) as comm:
            try:
                report = _run_rank(arguments, request, comm)
            except (CobreError, OSError) as error:
                _end_job(comm, error)
                raise
    return INTERRUPTED if report.metadata.get("termination_reason") == "interrupted" else 0


def _run_rank(arguments: argparse.Namespace, request: Request, comm: Communicator) -> Report:
    from pycobre.app.pipeline import backend_name

    if comm.rank != 0:
        return run_here(request, comm, None, StopSwitch())
    with _Show(arguments, request, comm.size, backend_name(comm)) as show:
        report = run_here(request, comm, show, StopSwitch(show.stopping))
        show.report(report)
    return report


def check_counts(arguments: argparse.Namespace) -> None:
    """Refuse counts that make no sense by the option's own name, before anything is read or started."""
    for name, least in _COUNTS.items():
        count = getattr(arguments, name, None)
        if count is not None and count < least:
            raise OptionError(f"--{name.replace('_', '-')}: expected at least {least}, got {count}.")


def _request(arguments: argparse.Namespace) -> Request:
    from pycobre.app.request import CaseSource, Request
    from pycobre.hydro.files import load_case, with_overrides

    overrides = settings(arguments)
    if arguments.iterations is not None:
        overrides["training.stopping_rules"] = [{"type": "iteration_limit", "limit": arguments.iterations}]
    if arguments.forward_passes is not None:
        overrides["training.selection.forward_passes"] = arguments.forward_passes
    if arguments.seed is not None:
        overrides["training.tree_seed"] = arguments.seed
    case = with_overrides(load_case(arguments.case), overrides)
    policy = None
    if arguments.warm_start is not None:
        from pycobre.sddp import Policy

        policy = Policy.load(arguments.warm_start).to_bytes()
    return Request(
        source=CaseSource(case),
        scenarios=arguments.scenarios,
        simulate=None if arguments.scenarios is None else arguments.scenarios > 0,
        threads=arguments.threads,
        output=str(arguments.output or arguments.case / "output"),
        resume=arguments.resume,
        policy=policy,
        checkpoint_iterations=arguments.checkpoint_every,
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


class _Show:
    """Everything that rank 0 shows: the header, the events as they come, the summary."""

    def __init__(self, arguments: argparse.Namespace, request: Request, ranks: int, backend: str) -> None:
        self._form: str = arguments.format
        self._request = request
        self._ranks = ranks
        self._backend = backend
        self._quiet: bool = arguments.quiet
        self._stack = ExitStack()
        self._screens: list[Any] = []
        self._report: Report | None = None

    def __enter__(self) -> _Show:
        from pycobre.app.cli.screen import screen_for
        from pycobre.app.cli.summary import header

        if self._form == "human" and not self._quiet:
            _say(header(self._request, self._ranks, self._backend))
        self._screens.append(self._stack.enter_context(screen_for(self._form, self._quiet, sys.stdout)))
        return self

    def __call__(self, event: Event) -> None:
        for screen in self._screens:
            screen(event)

    def stopping(self) -> None:
        for screen in self._screens:
            screen.stopping()

    def report(self, report: Report) -> None:
        self._report = report

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        if self._report is None:
            return
        if self._form == "human":
            from pycobre.app.cli.summary import summary

            _say(summary(self._report, self._request))
        elif self._form == "json":
            document = dict(self._report.metadata, output_dir=self._request.output)
            document.pop("entities", None)
            _say(json.dumps(document, indent=2))


def _say(text: str) -> None:
    """Print; a reader that has gone away does not end a run."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        silence(sys.stdout)
