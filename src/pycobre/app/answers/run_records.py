"""What questions about runs are answered with. Plain values only, so that they travel as JSON."""

from __future__ import annotations

from typing import Any

from pycobre._util.frozen import frozen
from pycobre.app.answers.case_records import Source

__all__ = [
    "Conflict",
    "Convergence",
    "FailureExplanation",
    "Quantity",
    "RunComparison",
    "RunEntry",
    "RunEstimate",
    "RunList",
    "RunState",
]


@frozen()
class RunEntry:
    """A run on disk."""

    run: str
    state: str
    case: str
    directory: str  #: below the directory that was searched
    iterations: int | None
    lower_bound: float | None
    scenarios: int | None
    mean_cost: float | None
    policy_digest: str | None


@frozen()
class RunList:
    runs: list[RunEntry]
    total: int
    truncated: bool


@frozen()
class RunState:
    """How far a run is."""

    run: str
    state: str  #: starting, running, finished, interrupted, failed or lost
    phase: str
    directory: str
    case: str
    iteration: int
    iteration_limit: int | None
    lower_bound: float | None
    upper_bound: float | None
    half_width: float | None
    gap: float | None
    scenarios: int
    scenarios_done: int
    elapsed_s: float
    eta_s: float | None
    memory_bytes: int
    lps_per_s: float | None
    warnings: list[str]
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    sources: list[Source]


@frozen()
class RunEstimate:
    """What a run will need. Times are of one process of this machine unless said otherwise."""

    case: str
    iterations: int
    forward_passes: int
    stages: int
    states: int
    lps_per_iteration: int
    lps_training: int
    lps_simulation: int
    memory_per_machine_bytes: int
    memory_per_rank_bytes: int
    measured_iterations: int  #: 0: nothing was measured
    seconds_per_lp: float | None
    seconds_per_iteration: float | None
    training_s: float | None
    simulation_s: float | None
    workers: int
    training_with_workers_s: float | None  #: at best: the work divided by the workers
    assumptions: list[str]
    sources: list[Source]


@frozen()
class Quantity:
    """One figure of two runs."""

    group: str  #: cost, price, storage, deficit, training
    quantity: str
    entity: str
    stage: int | None  #: of the first run
    unit: str
    a: float | None
    b: float | None
    change: float | None
    relative: float | None
    error: float | None = None  #: standard error of the change; 0 where every path was simulated
    significant: bool | None = None  #: whether the change is beyond 1.96 of them; None: not known


@frozen()
class RunComparison:
    a: str
    b: str
    sentences: list[str]
    quantities: list[Quantity]
    total: int
    truncated: bool
    sources: list[Source]


@frozen()
class Conflict:
    """Rows and bounds that cannot hold together."""

    rows: list[str]
    columns: list[str]
    irreducible: bool


@frozen()
class FailureExplanation:
    """Why a run stopped."""

    run: str
    state: str
    failed: bool
    summary: str
    kind: str | None
    message: str | None
    rank: int | None
    stage: str | None
    iteration: int | None
    scenario: int | None
    bundle: str | None  #: of the LP that failed, below the directory of the run
    lp: dict[str, int] | None  #: its columns, rows and cuts
    rows: list[str]  #: that cannot hold together, as the run noted them
    conflict: Conflict | None  #: found again from the bundle
    incoming: dict[str, float]
    remedy: str | None
    last_events: list[dict[str, Any]]
    warnings: list[str]
    sources: list[Source]


@frozen()
class Convergence:
    """Whether a training has converged, and on what evidence."""

    run: str
    verdict: str  #: converged, not converged or unclear
    reasons: list[str]
    iterations: int
    termination_reason: str | None
    lower_bound: float
    upper_bound: float
    half_width: float | None
    gap: float
    simulated_mean: float | None
    simulated_half_width: float | None
    simulated_gap: float | None
    bound_gain_last: float | None  #: relative gain of the bound over the last iterations
    last_iterations: int
    seconds_per_iteration: float | None
    lps_per_iteration: float | None
    more_iterations: int
    more_training_s: float | None
    more_lps: float | None
    expected_bound: float | None  #: after that many more, by the trend of the last ones
    sources: list[Source]
