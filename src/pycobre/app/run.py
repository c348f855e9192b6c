"""Run a request: in this process, as one rank of a launcher's job, or on workers that are started for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from pycobre.app.arguments import at_least_one
from pycobre.app.backend import backend_name, communicator_for, named_backend
from pycobre.app.job import end_job, end_job_without_communicator
from pycobre.app.restarts import Restarts, run_with_restarts
from pycobre.app.stop_switch import StopSwitch, catching_signals
from pycobre.app.workers import WorkerInfo, choose_backend, start_workers
from pycobre.events import Event

# The rest is imported where it is needed: workers are started first, and load it at the same time.
if TYPE_CHECKING:
    from pycobre.app.backend import BackendChoice
    from pycobre.app.report import Report
    from pycobre.app.request import Request
    from pycobre.comm import Communicator
    from pycobre.launch.launcher import RankGroup

__all__ = ["Callback", "Execution", "Place", "run_here"]

Callback = Callable[[Event], object]


class Place(NamedTuple):
    """What a process is in a run; of a run on workers its parent speaks for rank 0."""

    rank: int
    size: int
    backend: str


class Execution:
    """One run, from before its request is there to its report: every entrance of the application is built on it.

    Use as a context, or close it. On entering, workers begin to load their modules, while the caller reads and checks
    what they shall do; leaving ends them, so that a case which turns out to be wrong leaves nothing behind. Leaving
    with an error ends a launcher's job. With `apart` also one rank is a process of its own.
    """

    def __init__(
        self,
        backend: BackendChoice,
        num_workers: int = 1,
        restarts: Restarts | None = None,
        *,
        apart: bool = False,
    ) -> None:
        at_least_one("num_workers", num_workers)
        self._name, self._workers, self._restarts = backend, num_workers, restarts or Restarts()
        apart = apart or num_workers > 1
        self._restarts.check(num_workers, apart=apart)
        self._comm: Communicator | None = None
        self._stack = ExitStack()
        self._group: RankGroup | None = None
        if apart:
            # One rank has nobody to talk to, and a process of its own all the same.
            chosen = "auto" if num_workers == 1 and named_backend(backend) == "local" else backend
            self._group = start_workers(num_workers, choose_backend(chosen, num_workers))

    def __enter__(self) -> Execution:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._group is None:
            if self._comm is None:
                end_job_without_communicator(self._name, error)
            else:
                end_job(self._comm, error)
        self.close(kind, error, trace)

    def close(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """End what still runs."""
        if self._group is not None:
            self._group.close()
        self._stack.__exit__(kind, error, trace)

    def place(self) -> Place:
        """Join the other ranks, where there are any, and say what this process is among them."""
        if self._group is not None:
            return Place(0, self._workers, self._group.backend)
        comm = self._joined()
        return Place(comm.rank, comm.size, backend_name(comm))

    def drive(
        self, request: Request, callback: Callback | None = None, switch: StopSwitch | None = None
    ) -> tuple[Report, tuple[WorkerInfo, ...] | None]:
        """Run a request; what can be known to be wrong with it is raised before any rank begins.

        After a lost worker the run is restarted from its newest checkpoint, as often as may be.
        """
        at_least_one("threads", request.threads)
        switch = switch or StopSwitch()
        if self._group is None:
            return run_here(request, self._joined(), callback, switch), None
        _require_sound(request)
        _warn_of_idle_workers(request, self._workers)
        return run_with_restarts(request, self._group, callback, switch, self._restarts, self._restarted)

    def stop(self, *, now: bool = False) -> None:
        """Ask workers to end after the iteration, or end them; from any thread."""
        assert self._group is not None
        if now:
            self._group.kill()
        else:
            self._group.request_stop()

    def _joined(self) -> Communicator:
        if self._comm is None:
            self._comm = self._stack.enter_context(communicator_for(self._name))
        return self._comm

    def _restarted(self, group: RankGroup) -> None:
        self._group = group


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
