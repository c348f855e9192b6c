"""Training and simulating from Python: one call, one process or several."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pycobre._util.frozen import frozen
from pycobre.app.arguments import at_least_one, callable_or_none
from pycobre.app.backend import communicator_for
from pycobre.app.build_request import build_request
from pycobre.app.notebook import bar_for
from pycobre.app.restarts import Restarts
from pycobre.app.run import Callback, Execution, run_here
from pycobre.app.workers import WorkerInfo
from pycobre.events import RankTiming

# The rest is imported where it is needed: workers are started first, and load it at the same time.
if TYPE_CHECKING:
    import pyarrow as pa

    from pycobre.app.backend import BackendChoice
    from pycobre.app.report import Report
    from pycobre.hydro.model import Case
    from pycobre.problem import Problem
    from pycobre.sddp import Policy, TrainOptions

__all__ = [
    "Execution",
    "SimulationResult",
    "TrainingResult",
    "WorkerInfo",
    "communicator_for",
    "run_here",
    "simulate",
    "train",
]


@frozen(eq=False, repr=False)
class TrainingResult:
    """A trained policy and how it came about.

    It shows as one line; every part has its own field.
    """

    policy: Policy
    convergence_history: pa.Table  #: one row per iteration
    iterations: int
    final_lower_bound: float
    final_upper_bound: float
    final_gap: float
    termination_reason: str
    total_cuts: int
    policy_digest: str
    workers: tuple[WorkerInfo, ...] | None  #: None for one process
    timing: tuple[RankTiming, ...]  #: seconds per rank: solve, communicate, wait, other; and its LPs
    warnings: tuple[str, ...]
    metadata: Mapping[str, Any]

    def __repr__(self) -> str:
        return (
            f"<TrainingResult: {self.iterations} iterations (stopped by {self.termination_reason}), "
            f"{'lower' if self.policy.sense.sign > 0 else 'upper'} bound {self.final_lower_bound:.10g}, "
            f"simulated {self.final_upper_bound:.10g}, "
            f"{self.total_cuts} cuts, policy {self.policy_digest[:12]}…>"
        )


@frozen(eq=False, repr=False)
class SimulationResult:
    """Simulated scenarios as tables by name, and the cost over all of them."""

    tables: Mapping[str, pa.Table]
    scenarios: int
    mean_cost: float
    std_cost: float
    half_width: float  #: of the 95 % interval of the mean
    workers: tuple[WorkerInfo, ...] | None
    metadata: Mapping[str, Any]

    def __repr__(self) -> str:
        return (
            f"<SimulationResult: {self.scenarios} scenarios, mean cost {self.mean_cost:.10g} ± "
            f"{self.half_width:.4g}, tables {', '.join(self.tables)}>"
        )


def train(
    case_or_problem: Case | Problem | str | os.PathLike[str],
    config_overrides: Mapping[str, Any] | None = None,
    progress_callback: Callback | None = None,
    backend: BackendChoice = "auto",
    num_workers: int = 1,
    threads: int = 1,
    *,
    options: TrainOptions | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    warm_start: Policy | str | os.PathLike[str] | None = None,
    checkpoint_iterations: int | None = None,
    checkpoint_minutes: float | None = None,
    restarts: int = 0,
    min_workers: int | None = None,
    progress: bool = True,
) -> TrainingResult:
    """Train a policy for a case (an object or a directory) or for a problem built in Python.

    `config_overrides` replaces settings by dotted path or in groups: of a case those of its configuration
    (`{"training.selection.forward_passes": 8}`, `{"training": {"tree_seed": 7}}`), of a problem those of
    `TrainOptions` (`{"forward_passes": 8, "iteration_limit": 50}`). With `num_workers` above 1 that many fresh
    processes share the work, with the same bits in the result. `progress_callback` receives every event of every
    worker; a true return value ends the run after the iteration, its exception too, and is raised then. Ctrl-C
    ends the run after the current iteration; a second one at once. With `output`, results and checkpoints are
    written there; `resume` goes on from the newest checkpoint in it, bit for bit. When a worker is lost (killed,
    or its connection), the run is restarted from there by itself, at most `restarts` times, each time on
    one worker fewer where `min_workers` says down to how many. A notebook shows a
    progress bar, unless `progress` is false.
    """
    at_least_one("checkpoint_iterations", checkpoint_iterations, optional=True)
    callable_or_none("progress_callback", progress_callback)
    listener, bar = _listener(progress, progress_callback)
    with bar, Execution(backend, num_workers, Restarts(restarts, min_workers)) as run:
        request = build_request(
            case_or_problem,
            config_overrides,
            options,
            policy=warm_start,
            output=output,
            simulate=False,
            threads=threads,
            resume=resume,
            checkpoint_iterations=checkpoint_iterations,
            checkpoint_minutes=checkpoint_minutes,
            emit_events=listener is not None,
            confirm_each_iteration=progress_callback is not None,
        )
        report, workers = run.drive(request, listener)
    return _training_result(report, workers)


def simulate(
    case_or_problem: Case | Problem | str | os.PathLike[str],
    policy: Policy | str | os.PathLike[str],
    scenarios: int | None = None,
    *,
    config_overrides: Mapping[str, Any] | None = None,
    progress_callback: Callback | None = None,
    backend: BackendChoice = "auto",
    num_workers: int = 1,
    threads: int = 1,
    options: TrainOptions | None = None,
    record: tuple[str, ...] = (),
    output: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SimulationResult:
    """Simulate a policy; `scenarios` defaults to the case's configuration.

    `record` names variables of a problem whose values are kept; a case's tables are always complete. A notebook
    shows a progress bar, unless `progress` is false.
    """
    at_least_one("scenarios", scenarios, optional=True)
    callable_or_none("progress_callback", progress_callback)
    listener, bar = _listener(progress, progress_callback)
    with bar, Execution(backend, num_workers) as run:
        request = build_request(
            case_or_problem,
            config_overrides,
            options,
            policy=policy,
            output=output,
            train=False,
            simulate=True,
            scenarios=scenarios,
            threads=threads,
            record=tuple(record),
            emit_events=listener is not None,
            confirm_each_iteration=progress_callback is not None,
        )
        report, workers = run.drive(request, listener)
    from pycobre.app.results.files import as_arrow
    from pycobre.app.results.schemas import TABLES

    schemas = {table.name: table for table in TABLES}
    found = report.metadata["simulation"]
    return SimulationResult(
        tables={name: as_arrow(schemas[name], columns) for name, columns in report.tables.items()},
        scenarios=found["scenarios"],
        mean_cost=found["mean"],
        std_cost=found["std"],
        half_width=found["half_width"],
        workers=workers,
        metadata=report.metadata,
    )


def _listener(
    progress: bool, callback: Callback | None
) -> tuple[Callback | None, AbstractContextManager[object]]:
    """Who hears of the run, and the bar that is shown meanwhile."""
    bar = bar_for(progress)
    return (callback, nullcontext()) if bar is None else (bar.listener(callback), bar)


def _training_result(report: Report, workers: tuple[WorkerInfo, ...] | None) -> TrainingResult:
    from pycobre.app.results.files import as_arrow
    from pycobre.app.results.schemas import CONVERGENCE
    from pycobre.sddp.timing import sums_by_rank

    metadata = report.metadata
    assert report.policy is not None
    return TrainingResult(
        policy=report.policy,
        convergence_history=as_arrow(CONVERGENCE, report.tables["convergence"]),
        iterations=metadata["iterations"],
        final_lower_bound=metadata["lower_bound"],
        final_upper_bound=metadata["upper_bound"],
        final_gap=metadata["gap"],
        termination_reason=metadata["termination_reason"],
        total_cuts=metadata["total_cuts"],
        policy_digest=metadata["policy_digest"],
        workers=workers,
        timing=sums_by_rank(report.tables["timing"]),
        warnings=tuple(metadata["warnings"]),
        metadata=metadata,
    )
