"""Restarting a run whose worker was lost: a killed or evicted process, a dead or silent connection.

What the run itself does wrong (an LP without a solution, a full disk) would happen again, and is raised at once.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pycobre._util.frozen import frozen
from pycobre.app.arguments import at_least
from pycobre.app.failures import is_lost_rank
from pycobre.app.results.layout import CHECKPOINTS
from pycobre.app.workers import WorkerInfo, run_on_workers, start_workers
from pycobre.errors import CollectiveFailed, OptionError, WorkerError
from pycobre.events import Event, WarningRaised

if TYPE_CHECKING:
    from pycobre.app.report import Report
    from pycobre.app.request import Request
    from pycobre.app.stop_switch import StopSwitch
    from pycobre.launch.launcher import RankGroup

__all__ = ["Restarts", "run_with_restarts"]


@frozen()
class Restarts:
    """How often a run may be restarted, and on how few workers."""

    times: int = 0
    min_workers: int | None = None  #: None: on as many as before

    def check(self, workers: int, *, apart: bool) -> None:
        """Refuse what makes no sense for so many processes; `apart`: none of them is this one."""
        at_least("restarts", self.times, 0)
        if self.times and not apart:
            raise OptionError(
                f"restarts: expected 0 without workers, got {self.times}: nobody is left to restart a lost process. "
                "Use num_workers above 1, or let the scheduler start it again with resume."
            )
        if self.min_workers is not None:
            at_least("min_workers", self.min_workers, 1)
            if self.min_workers > workers:
                raise OptionError(
                    f"min_workers: expected at most the number of workers, {workers}, got {self.min_workers}."
                )

    def size_after(self, workers: int) -> int:
        """On how many workers a run goes on that has lost one of so many."""
        return workers if self.min_workers is None else max(self.min_workers, workers - 1)


def run_with_restarts(
    request: Request,
    group: RankGroup,
    on_event: Callable[[Event], object] | None,
    switch: StopSwitch,
    restarts: Restarts,
    on_restart: Callable[[RankGroup], None] | None = None,
) -> tuple[Report, tuple[WorkerInfo, ...]]:
    """Run a request on started workers, and again on new ones from the newest checkpoint when one is lost or evicted.

    Not after the run was asked to stop. The bits are those of an undisturbed run, on however many workers.
    """
    if restarts.times and request.output is None:
        raise OptionError("restarts: expected an output directory to restart from, got none. Give output=.")
    size, backend = len(group.ranks), group.backend
    with ExitStack() as started:
        for attempt in range(1, restarts.times + 1):
            evicted: list[int] = []
            try:
                found = run_on_workers(request, group, on_event, switch, evicted.append)
                if switch() or not evicted or not _ended_early(found[0]):
                    return found
                lost = f"worker {evicted[0]} was asked to end by signal {signal.SIGTERM:d}"
            except WorkerError as error:
                if switch() or not _is_lost(error):
                    raise
                lost = str(error)
            group.close()  # ends and reaps all workers, so that the directory is free
            size = restarts.size_after(size)
            _warn(f"{lost}: restart {attempt} of {restarts.times}, on {size} {_workers(size)}", on_event)
            request = _continued(request)
            group = started.enter_context(start_workers(size, backend))
            if on_restart is not None:
                on_restart(group)
        return run_on_workers(request, group, on_event, switch)


def _workers(count: int) -> str:
    return "worker" if count == 1 else "workers"


def _ended_early(report: Report) -> bool:
    return bool(report.metadata.get("termination_reason") == "interrupted")


def _is_lost(error: WorkerError) -> bool:
    return is_lost_rank(error) or isinstance(error.inner, CollectiveFailed)


def _continued(request: Request) -> Request:
    """The request from the newest checkpoint on; where there is none yet, from the beginning."""
    from pycobre.sddp.training.checkpoint import has_checkpoints

    assert request.output is not None
    if not request.train or not has_checkpoints(Path(request.output) / CHECKPOINTS):
        return replace(request, resume=False)
    return replace(request, resume=True, policy=None)


def _warn(message: str, on_event: Callable[[Event], object] | None) -> None:
    if on_event is None:
        warnings.warn(message, stacklevel=2)
    else:
        on_event(WarningRaised(message=message))
