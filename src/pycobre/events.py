"""The one stream of events a long run emits: frozen, typed, the same on the command line and in Python.

    TrainingStarted
      per iteration: ForwardFinished · StageFinished* · SelectionFinished? · IterationFinished · CheckpointWritten?
      where a listener asks for them: PassProgress · RanksMeasured
    TrainingFinished
    SimulationStarted · SimulationProgress* · SimulationFinished
    RunFinished, or RunFailed
    WarningRaised at any time

Amounts are as the problem's author sees them (a maximised problem reports rewards). `worker_id` is the rank
that emitted the event, `time_s` the seconds since its run started there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar, TypeAlias

from pycobre._util.frozen import frozen

__all__ = [
    "KINDS",
    "CheckpointWritten",
    "ControlApplied",
    "Event",
    "ForwardFinished",
    "IterationFinished",
    "Listener",
    "PassProgress",
    "RankTiming",
    "RanksMeasured",
    "RunFailed",
    "RunFinished",
    "SelectionFinished",
    "SimulationFinished",
    "SimulationProgress",
    "SimulationStarted",
    "StageFinished",
    "TrainingFinished",
    "TrainingStarted",
    "WarningRaised",
    "event_from_dict",
]


@frozen()
class RankTiming:
    """Where one rank's seconds went, and what it solved.

    `communicate_s` is the part of the collectives that no rank could have avoided, `wait_s` the rest of them:
    the time spent waiting for a slower rank.
    """

    rank: int = 0
    solve_s: float = 0.0
    communicate_s: float = 0.0
    wait_s: float = 0.0
    other_s: float = 0.0
    lp_solves: int = 0
    simplex_iterations: int = 0

    @property
    def total_s(self) -> float:
        return self.solve_s + self.communicate_s + self.wait_s + self.other_s


KINDS: dict[str, type[Event]] = {}
"""The classes of events by their `kind`."""


@frozen(kw_only=True)
class Event:
    """Root of the stream. `kind` names the class in `to_dict` and in JSON lines."""

    kind: ClassVar[str] = "event"
    parts: ClassVar[dict[str, type[Any]]] = {}  #: fields that hold a tuple of objects, and their class
    on_request: ClassVar[bool] = False  #: made only for listeners whose method `wants(kind)` says so

    worker_id: int = 0
    time_s: float = 0.0

    def __init_subclass__(cls, kind: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.kind = kind
        KINDS[kind] = cls

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, `kind` first."""
        document = {"kind": self.kind, **vars(self)}
        for name in self.parts:
            document[name] = tuple(asdict(part) for part in document[name])
        return document


Listener: TypeAlias = Callable[[Event], object]
"""What receives events. A true return value asks the run to stop after the current iteration.

A listener may have a method `wants(kind)`, with a class of events: those that it does not want are not made.
"""


@frozen(kw_only=True)
class TrainingStarted(Event, kind="training_started"):
    """A run begins to train: the size of the problem and of the group."""

    problem: str
    nodes: int
    states: int
    forward_passes: int
    ranks: int
    threads: int
    first_iteration: int
    iteration_limit: int | None
    cuts: int = 0  #: already there, from a resumed state or a warm start
    memory_bytes: int = 0  #: expected per rank, without what a node's ranks share


@frozen(kw_only=True)
class ForwardFinished(Event, kind="forward_finished"):
    """An iteration's trajectories are simulated: what they cost."""

    iteration: int
    upper_bound: float  #: mean cost of the iteration's trajectories
    upper_bound_std: float
    lp_solves: int
    elapsed_s: float


@frozen(kw_only=True)
class StageFinished(Event, kind="stage_finished"):
    """One step of the backward pass: the cuts of one depth are solved, exchanged and stored on every rank."""

    iteration: int
    depth: int
    nodes: tuple[str, ...]  #: nodes that received cuts
    cuts: int
    lp_solves: int
    solve_s: float
    exchange_s: float


@frozen(kw_only=True)
class SelectionFinished(Event, kind="selection_finished"):
    """Cuts that no longer help were put aside."""

    iteration: int
    cuts: int
    active: int
    elapsed_s: float


@frozen(kw_only=True)
class PassProgress(Event, kind="pass_progress"):
    """This rank begins to solve one stage of a pass."""

    on_request: ClassVar[bool] = True

    pass_name: str  #: forward, backward or simulation
    depth: int  #: from 0
    depths: int  #: of the longest trajectory
    node: str
    iteration: int | None = None  #: None in a simulation


@frozen(kw_only=True)
class RanksMeasured(Event, kind="ranks_measured"):
    """Where the seconds of all ranks have gone so far, and what they hold in memory."""

    parts: ClassVar[dict[str, type[Any]]] = {"timing": RankTiming}
    on_request: ClassVar[bool] = True

    iteration: int
    timing: tuple[RankTiming, ...]
    memory_bytes: tuple[int, ...]  #: largest resident size of each rank
    retries: int  #: LPs that were solved again in another way, of all ranks


@frozen(kw_only=True)
class IterationFinished(Event, kind="iteration_finished"):
    """One iteration is done: bounds, gap and what it took."""

    iteration: int
    lower_bound: float  #: the bound: an upper one where `sense` is "maximise"
    upper_bound: float  #: mean of the iteration's trajectories
    upper_bound_std: float
    half_width: float  #: of the 95 % interval of the upper bound
    gap: float  #: (upper − lower) / max(1, |lower|) of the minimised problem
    cuts_added: int
    cuts_active: int
    lp_solves: int  #: of all ranks, in this iteration
    simplex_iterations: int
    forward_s: float
    backward_s: float
    elapsed_s: float  #: this iteration
    total_s: float  #: since training began, earlier runs of a resumed training included
    sense: str = "minimise"  #: of the problem: the bound is a lower one, or an upper one with "maximise"

    @property
    def bound_name(self) -> str:
        return _bound_name(self.sense)


@frozen(kw_only=True)
class CheckpointWritten(Event, kind="checkpoint_written"):
    """The state of the run is on disk and can be resumed from."""

    iteration: int
    path: str
    size_bytes: int
    elapsed_s: float


@frozen(kw_only=True)
class TrainingFinished(Event, kind="training_finished"):
    """Training is over: why, and with what."""

    parts: ClassVar[dict[str, type[Any]]] = {"timing": RankTiming}

    reason: str
    converged: bool
    iterations: int
    lower_bound: float  #: the bound: an upper one where `sense` is "maximise"
    upper_bound: float  #: mean of the last iteration's trajectories
    gap: float
    cuts: int
    policy_digest: str
    total_s: float
    timing: tuple[RankTiming, ...] = ()
    sense: str = "minimise"  #: of the problem: the bound is a lower one, or an upper one with "maximise"
    estimate: str | None = None  #: why the bound is an estimate and not a bound

    @property
    def bound_name(self) -> str:
        return _bound_name(self.sense)


@frozen(kw_only=True)
class SimulationStarted(Event, kind="simulation_started"):
    """A policy is about to be simulated."""

    scenarios: int
    ranks: int


@frozen(kw_only=True)
class SimulationProgress(Event, kind="simulation_progress"):
    """So many scenarios are simulated."""

    done: int  #: scenarios of this rank
    scenarios: int  #: this rank's share
    mean: float


@frozen(kw_only=True)
class SimulationFinished(Event, kind="simulation_finished"):
    """The simulation is over: what the scenarios cost."""

    scenarios: int
    mean: float
    std: float
    half_width: float  #: of the 95 % interval of the mean
    lp_solves: int
    total_s: float


@frozen(kw_only=True)
class WarningRaised(Event, kind="warning"):
    """Something a person should know and nothing has to stop for."""

    message: str
    iteration: int | None = None


@frozen(kw_only=True)
class ControlApplied(Event, kind="control_applied"):
    """Another process asked something of the run, and it was done after this iteration, on every rank."""

    iteration: int
    action: str  #: checkpoint, stop or iteration_limit
    value: int | None = None


@frozen(kw_only=True)
class RunFinished(Event, kind="run_finished"):
    """All that was asked for is done and written. `state` is finished or interrupted."""

    state: str
    result: dict[str, Any]


@frozen(kw_only=True)
class RunFailed(Event, kind="run_failed"):
    """The run has ended with an error: its kind, message, fields, rank, exit code and remedy."""

    error: dict[str, Any]


def _bound_name(sense: str) -> str:
    return "upper bound" if sense == "maximise" else "lower bound"


def event_from_dict(document: dict[str, Any]) -> Event:
    """Undo `to_dict`, also after a trip through JSON.

    Raises KeyError for an unknown kind and TypeError for fields that do not belong to it.
    """
    values = dict(document)
    cls = KINDS[values.pop("kind")]
    for name, value in values.items():
        if isinstance(value, list | tuple):
            of = cls.parts.get(name)
            values[name] = tuple(value if of is None else (of(**part) for part in value))
    return cls(**values)
