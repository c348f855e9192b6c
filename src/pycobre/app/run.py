"""Run a request: in this process, as one rank of a launcher's job, or on workers that are started for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from pycobre.app.arguments import at_least_one
from pycobre.app.backend import communicator_for
from pycobre.app.job import ending_job
from pycobre.app.restarts import run_with_restarts
from pycobre.app.stop_switch import StopSwitch, catching_signals
from pycobre.app.workers import WorkerInfo, choose_backend, start_workers
from pycobre.errors import OptionError
from pycobre.events import Event

# The rest is imported where it is needed: workers are started first, and load it at the same time.
if TYPE_CHECKING:
    from pycobre.app.backend import BackendChoice
    from pycobre.app.report import Report
    from pycobre.app.request import Request
    from pycobre.comm import Communicator
    from pycobre.launch.launcher import RankGroup

__all__ = ["Callback", "run_here", "run_request", "waiting_workers"]

Callback = Callable[[Event], object]


def waiting_workers(backend: BackendChoice, num_workers: int) -> AbstractContextManager[RankGroup | None]:
    """Workers that load their modules while the caller reads and checks what they shall do; None for one process.

    Leaving the context ends them, so that a case which turns out to be wrong leaves nothing behind.
    """
    at_least_one("num_workers", num_workers)
    return (
        nullcontext()
        if num_workers == 1
        else start_workers(num_workers, choose_backend(backend, num_workers))
    )


def run_request(
    request: Request,
    backend: BackendChoice,
    num_workers: int,
    callback: Callback | None,
    group: RankGroup | None = None,
    switch: StopSwitch | None = None,
    restarts: int = 0,
) -> tuple[Report, tuple[WorkerInfo, ...] | None]:
    """Run a request here or on workers, those of `group` if they have been started already.

    Everything that can be known to be wrong is raised before any of them begins. After a lost worker the run is
    restarted from its newest checkpoint, at most `restarts` times.
    """
    at_least_one("num_workers", num_workers)
    at_least_one("threads", request.threads)
    if restarts and num_workers == 1:
        raise OptionError(
            f"restarts: expected 0 without workers, got {restarts}: nobody is left to restart a lost process. "
            "Use num_workers above 1, or let the scheduler start it again with resume."
        )
    switch = switch or StopSwitch()
    if num_workers > 1:
        _require_sound(request)
        _warn_of_idle_workers(request, num_workers)
        with waiting_workers(backend, num_workers) if group is None else nullcontext(group) as started:
            assert started is not None
            return run_with_restarts(request, started, callback, switch, restarts)
    with communicator_for(backend) as comm, ending_job(comm):
        return run_here(request, comm, callback, switch), None


def run_here(request: Request, comm: Communicator, callback: Callback | None, switch: StopSwitch) -> Report:
    """This rank's part of a run: signals and the callback ask it to stop after the iteration."""
    raised: list[Exception] = []

    def emit(event: Event) -> bool:
        assert callback is not None
        if raised:
            return True
        try:
            return bool(callback(event))
        except Exception as error:  # noqa: BLE001 - raised again after the iteration's checkpoint
            raised.append(error)
            return True

    from pycobre.app.pipeline import execute

    with catching_signals(switch):
        report = execute(request, comm, None if callback is None else emit, switch)
    if raised:
        raise raised[0]
    return report


def _require_sound(request: Request) -> None:
    """What building the study would refuse, said before workers come to it."""
    from pycobre.app.request import CaseSource

    if isinstance(request.source, CaseSource):
        from pycobre.hydro.checks import require_sound

        require_sound(request.source.case)


def _warn_of_idle_workers(request: Request, workers: int) -> None:
    from pycobre.app.request import ProblemSource

    if not request.train:
        return
    if isinstance(request.source, ProblemSource):
        passes = request.source.options.forward_passes
    else:
        passes = getattr(request.source.case.config.training.selection, "forward_passes", workers)
    if workers > passes:
        warnings.warn(
            f"{workers} workers share {passes} forward passes: {workers - passes} of them will have nothing to do. "
            "Use fewer workers or more passes.",
            stacklevel=4,
        )
