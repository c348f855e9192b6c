"""What rank 0 writes of a run while it goes on: every event into `events.jsonl`, the state into `status.json`.

Events of single stages stay out: they are many, and say nothing that is worth a line on a disk. The status is
written when its last writing is so long ago that writing takes at most a thousandth of the time.
"""

from __future__ import annotations

import resource
import time
from dataclasses import asdict
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

__all__ = ["LOGGED", "RunLog"]

#: What is worth a line; others are not even made where nobody else listens.
UNLOGGED = (StageFinished, ForwardFinished, SelectionFinished, SimulationProgress)
LOGGED = (
    TrainingStarted,
    IterationFinished,
    CheckpointWritten,
    ControlApplied,
    TrainingFinished,
    SimulationStarted,
    SimulationProgress,
    SimulationFinished,
    WarningRaised,
)
SHARE = 1000.0


class RunLog:
    """A listener on rank 0."""

    def __init__(self, directory: RunDirectory, case: str) -> None:
        self._path = directory.root / STATUS
        session: Session = directory.record.sessions[-1]
        self._events = EventLog(directory.root, directory.record.id)
        self._began = time.monotonic()
        self._written_at = 0.0
        self._cost = 0.0
        self._recent: list[float] = []
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
        # A dictionary: making an object of 27 fields after every iteration would cost more than writing it.
        self._now: dict[str, Any] = dict(vars(first))
        self._write()

    @property
    def ended(self) -> bool:
        """Whether the end of the run has been written."""
        return bool(self._now["state"] != "running")

    def __call__(self, event: Event) -> None:
        if isinstance(event, UNLOGGED):
            if isinstance(event, SimulationProgress):
                self._set(scenarios_done=event.done)
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
                self._recent = [*self._recent, event.elapsed_s][-10:]
                limit = self._now["iteration_limit"]
                left = None if limit is None else limit - event.iteration
                return {
                    "iteration": event.iteration,
                    "lower_bound": event.lower_bound,
                    "upper_bound": event.upper_bound,
                    "gap": event.gap,
                    "lp_solves": self._now["lp_solves"] + event.lp_solves,
                    "eta_s": None if left is None else left * sum(self._recent) / len(self._recent),
                }
            case CheckpointWritten():
                return {"checkpoint_iteration": event.iteration, "checkpoint_path": event.path}
            case ControlApplied(action="iteration_limit"):
                return {"iteration_limit": event.value}
            case TrainingFinished():
                return {"eta_s": None, "seconds_per_rank": [asdict(each) for each in event.timing]}
            case SimulationStarted():
                return {"phase": "simulating", "scenarios": event.scenarios}
            case SimulationFinished():
                return {"scenarios_done": event.scenarios, "phase": "writing"}
            case WarningRaised():
                return {"warnings": [*self._now["warnings"], event.message]}
        return {}

    def _set(self, *, always: bool = False, **changes: Any) -> None:
        self._now.update(changes)
        if always or time.monotonic() - self._written_at >= SHARE * self._cost:
            self._write()

    def _write(self) -> None:
        begin = time.monotonic()
        self._now.update(
            updated=utc(),
            elapsed_s=begin - self._began,
            memory_bytes=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        )
        replace_file(self._path, to_json({"schema": SCHEMA, **self._now}) + b"\n")
        self._written_at = time.monotonic()
        self._cost = self._written_at - begin
