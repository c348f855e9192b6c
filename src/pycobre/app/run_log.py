"""What rank 0 writes of a run while it goes on: every event into `events.jsonl`, the state into `status.json`.

Events of single stages stay out: they are many, and say nothing that is worth a line on a disk. The status is
written when its last writing is so long ago that writing takes at most a thousandth of the time; within an iteration
at most every second.
"""

from __future__ import annotations

import resource
import time
from collections import deque
from typing import Any

from pycobre._util.files import replace_file
from pycobre.app.results.event_log import EventLog, finite, to_json
from pycobre.app.results.layout import STATUS
from pycobre.app.results.record import FAILED, Session, utc
from pycobre.app.results.status import SCHEMA, RunStatus
from pycobre.app.run_directory import RunDirectory
from pycobre.events import (
    CheckpointWritten,
    ControlApplied,
    Event,
    ForwardFinished,
    IterationFinished,
    PassProgress,
    RanksMeasured,
    RankTiming,
    RunFailed,
    RunFinished,
    SelectionFinished,
    SimulationFinished,
    SimulationProgress,
    SimulationStarted,
    StageFinished,
    TrainingFinished,
    TrainingStarted,
    WarningRaised,
)

__all__ = ["RunLog"]

#: What is not worth a line, and not even made where nobody else listens.
UNLOGGED = frozenset({StageFinished, ForwardFinished, SelectionFinished})
#: What changes the status alone, and is made when it is about to be written.
LIVE = frozenset({PassProgress, RanksMeasured, SimulationProgress})
SHARE = 1000.0
LIVE_S = 1.0
_NOWHERE = {"pass_name": None, "stage": None, "stage_number": None, "stages": None}


class RunLog:
    """A listener on rank 0."""

    def __init__(self, directory: RunDirectory, case: str) -> None:
        self._path = directory.root / STATUS
        session: Session = directory.record.sessions[-1]
        self._events = EventLog(directory.root, directory.record.id)
        self._began = time.monotonic()
        self._written_at = 0.0
        self._cost = 0.0
        self._recent: deque[IterationFinished] = deque(maxlen=10)
        self._timing: tuple[RankTiming, ...] = ()
        self._simulating_since = 0.0
        first = RunStatus(
            run=directory.record.id,
            state="running",
            phase="starting",
            case=case,
            pid=session.pid,
            host=session.host,
            backend=session.backend,
            ranks=session.ranks,
            threads=session.threads,
            started=session.started,
            updated=session.started,
            elapsed_s=0.0,
            warnings=[],
        )
        # A dictionary: making an object of so many fields after every iteration would cost more than writing it.
        self._now: dict[str, Any] = dict(vars(first))
        self._write()

    @property
    def ended(self) -> bool:
        """Whether the end of the run has been written."""
        return bool(self._now["state"] != "running")

    def wants(self, kind: type[Event]) -> bool:
        """Whether an event of this kind would be written somewhere now."""
        if kind in LIVE:
            return self._due(0.0 if kind is RanksMeasured else LIVE_S)
        return kind not in UNLOGGED

    def __call__(self, event: Event) -> None:
        if type(event) in LIVE:
            self._live(event)
            return
        if type(event) in UNLOGGED:
            return
        self._events.write(event)
        changes = self._changes(event)
        if changes:
            # The end of an iteration can wait for the next one; whatever else happens is rare.
            self._set(always=not isinstance(event, IterationFinished), **changes)

    def phase(self, name: str) -> None:
        self._set(always=True, phase=name)

    def finish(self, state: str, result: dict[str, Any]) -> None:
        """The run has ended by itself, or by request."""
        self._events.write(RunFinished(state=state, result=result, time_s=time.monotonic() - self._began))
        self._set(always=True, state=state, phase="done", eta_s=None, result=finite(result))
        self._events.close()

    def fail(self, error: dict[str, Any]) -> None:
        """The run has ended with an error."""
        self._events.write(RunFailed(error=error, time_s=time.monotonic() - self._began))
        self._set(always=True, state=FAILED, eta_s=None, error=finite(error))
        self._events.close()

    def _changes(self, event: Event) -> dict[str, Any]:
        match event:
            case TrainingStarted():
                return {
                    "phase": "training",
                    "iteration": event.first_iteration - 1,
                    "iteration_limit": event.iteration_limit,
                }
            case IterationFinished():
                self._recent.append(event)
                seconds = sum(each.elapsed_s for each in self._recent)
                mean = seconds / len(self._recent)
                limit = self._now["iteration_limit"]
                return {
                    "iteration": event.iteration,
                    "lower_bound": event.lower_bound,
                    "upper_bound": event.upper_bound,
                    "half_width": event.half_width,
                    "gap": event.gap,
                    "sense": event.sense,
                    "cuts": event.cuts_active,
                    "lp_solves": self._now["lp_solves"] + event.lp_solves,
                    "iteration_s": mean,
                    "lps_per_s": sum(each.lp_solves for each in self._recent) / seconds if seconds else None,
                    "eta_s": None if limit is None else mean * max(0, limit - event.iteration),
                    **_NOWHERE,
                }
            case CheckpointWritten():
                return {
                    "checkpoint_iteration": event.iteration,
                    "checkpoint_path": event.path,
                    "checkpoint_at": utc(),
                }
            case ControlApplied(action="iteration_limit"):
                return {"iteration_limit": event.value}
            case TrainingFinished():
                self._timing = event.timing
                return {"eta_s": None, "phase": "writing", **_NOWHERE}
            case SimulationStarted():
                self._simulating_since = time.monotonic()
                return {"phase": "simulating", "scenarios": event.scenarios, "scenarios_done": 0}
            case SimulationFinished():
                return {"scenarios_done": event.scenarios, "eta_s": None, "phase": "writing", **_NOWHERE}
            case WarningRaised():
                return {"warnings": [*self._now["warnings"], event.message]}
        return {}

    def _live(self, event: Event) -> None:
        match event:
            case RanksMeasured():  # the end of the iteration follows, and is written
                self._timing = event.timing
                self._now.update(memory_per_rank=list(event.memory_bytes), retries=event.retries)
                return
            case PassProgress():
                changes: dict[str, Any] = {
                    "pass_name": event.pass_name,
                    "stage": event.node,
                    "stage_number": event.depth + 1,
                    "stages": event.depths,
                }
            case SimulationProgress():
                spent = time.monotonic() - self._simulating_since
                changes = {
                    "scenarios_done": event.done * self._now["scenarios"] // event.scenarios,
                    "eta_s": spent * (event.scenarios - event.done) / event.done,
                }
            case _:
                return
        self._now.update(changes)
        if self._due(LIVE_S):
            self._write()

    def _due(self, least_s: float) -> bool:
        return time.monotonic() - self._written_at >= max(least_s, SHARE * self._cost)

    def _set(self, *, always: bool = False, **changes: Any) -> None:
        self._now.update(changes)
        if always or self._due(0.0):
            self._write()

    def _write(self) -> None:
        begin = time.monotonic()
        self._now.update(
            updated=utc(),
            elapsed_s=begin - self._began,
            memory_bytes=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            seconds_per_rank=[vars(each) for each in self._timing] or None,
        )
        replace_file(self._path, to_json({"schema": SCHEMA, **self._now}) + b"\n")
        self._written_at = time.monotonic()
        self._cost = self._written_at - begin
