"""Training and simulating from Python: one call, one process or several."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre._util.frozen import frozen
from pycobre.app.arguments import at_least_one, callable_or_none
from pycobre.app.stop_switch import StopSwitch, catching_signals
from pycobre.app.workers import NAMES, WorkerInfo, choose_backend, run_on_workers, start_workers
from pycobre.errors import InvalidBackend, OptionError
from pycobre.events import Event, RankTiming

# The rest is imported where it is needed: workers are started first, and load it at the same time.
if TYPE_CHECKING:
    import pyarrow as pa

    from pycobre.app.report import Report
    from pycobre.app.request import CaseSource, ProblemSource, Request
    from pycobre.comm import Communicator
    from pycobre.hydro.model import Case
    from pycobre.launch.launcher import RankGroup
    from pycobre.problem import Problem
    from pycobre.sddp import Policy, TrainOptions

__all__ = [
    "SimulationResult",
    "TrainingResult",
    "WorkerInfo",
    "communicator_for",
    "run_here",
    "run_request",
    "simulate",
    "train",
    "waiting_workers",
]

Callback = Callable[[Event], object]


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
            f"lower bound {self.final_lower_bound:.10g}, upper bound {self.final_upper_bound:.10g}, "
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
    backend: str = "auto",
    num_workers: int = 1,
    threads: int = 1,
    *,
    options: TrainOptions | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    warm_start: Policy | str | os.PathLike[str] | None = None,
    checkpoint_iterations: int | None = None,
    checkpoint_minutes: float | None = None,
) -> TrainingResult:
    """Train a policy for a case (an object or a directory) or for a problem built in Python.

    `config_overrides` replaces settings by dotted path or in groups: of a case those of its configuration
    (`{"training.selection.forward_passes": 8}`, `{"training": {"tree_seed": 7}}`), of a problem those of
    `TrainOptions` (`{"forward_passes": 8, "iteration_limit": 50}`). With `num_workers` above 1 that many fresh
    processes share the work, with the same bits in the result. `progress_callback` receives every event of every
    worker; a true return value ends the run after the iteration, its exception too, and is raised then. Ctrl-C
    ends the run after the current iteration; a second one at once. With `output`, results and checkpoints are
    written there; `resume` goes on from the newest checkpoint in it, bit for bit.
    """
    at_least_one("checkpoint_iterations", checkpoint_iterations, optional=True)
    callable_or_none("progress_callback", progress_callback)
    with waiting_workers(backend, num_workers) as group:
        from pycobre.app.request import Request

        request = Request(
            source=_source(case_or_problem, config_overrides, options),
            simulate=False,
            threads=threads,
            output=None if output is None else os.fspath(output),
            resume=resume,
            policy=_policy_bytes(warm_start),
            checkpoint_iterations=checkpoint_iterations,
            checkpoint_minutes=checkpoint_minutes,
            listen=progress_callback is not None,
            ask=progress_callback is not None,
        )
        report, workers = run_request(request, backend, num_workers, progress_callback, group)
    return _training_result(report, workers)


def simulate(
    case_or_problem: Case | Problem | str | os.PathLike[str],
    policy: Policy | str | os.PathLike[str],
    scenarios: int | None = None,
    *,
    config_overrides: Mapping[str, Any] | None = None,
    progress_callback: Callback | None = None,
    backend: str = "auto",
    num_workers: int = 1,
    threads: int = 1,
    options: TrainOptions | None = None,
    record: tuple[str, ...] = (),
    output: str | os.PathLike[str] | None = None,
) -> SimulationResult:
    """Simulate a policy; `scenarios` defaults to the case's configuration.

    `record` names variables of a problem whose values are kept; a case's tables are always complete.
    """
    at_least_one("scenarios", scenarios, optional=True)
    callable_or_none("progress_callback", progress_callback)
    with waiting_workers(backend, num_workers) as group:
        from pycobre.app.request import ProblemSource, Request

        source = _source(case_or_problem, config_overrides, options)
        if scenarios is None and isinstance(source, ProblemSource):
            raise OptionError(
                "scenarios: expected how many to simulate, got none: a problem has no configuration."
            )
        request = Request(
            source=source,
            train=False,
            simulate=True,
            scenarios=scenarios,
            threads=threads,
            output=None if output is None else os.fspath(output),
            policy=_policy_bytes(policy),
            record=tuple(record),
            listen=progress_callback is not None,
            ask=progress_callback is not None,
        )
        report, workers = run_request(request, backend, num_workers, progress_callback, group)
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


def waiting_workers(backend: str, num_workers: int) -> AbstractContextManager[RankGroup | None]:
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
    backend: str,
    num_workers: int,
    callback: Callback | None,
    group: RankGroup | None = None,
    switch: StopSwitch | None = None,
) -> tuple[Report, tuple[WorkerInfo, ...] | None]:
    """Run a request here or on workers, those of `group` if they have been started already.

    Everything that can be known to be wrong is raised before any of them begins.
    """
    at_least_one("num_workers", num_workers)
    at_least_one("threads", request.threads)
    switch = switch or StopSwitch()
    if num_workers > 1:
        _require_sound(request)
        _warn_of_idle_workers(request, num_workers)
        with waiting_workers(backend, num_workers) if group is None else nullcontext(group) as started:
            assert started is not None
            return run_on_workers(request, started, callback, switch)
    with communicator_for(backend) as comm:
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


def communicator_for(backend: str) -> Communicator:
    """This process's communicator: what the environment announces, or one rank of the backend asked for."""
    if backend not in NAMES:
        raise InvalidBackend(backend, NAMES)
    from pycobre.comm import ShmConfig, TcpConfig, create_communicator

    if backend == "shm" and "COBRE_SHM_NAME" not in os.environ:
        return create_communicator(ShmConfig(f"pycobre-{os.getpid()}-{os.urandom(6).hex()}", 0, 1))
    if backend == "tcp" and not any(name in os.environ for name in ("COBRE_TCP_RANK", "SLURM_PROCID")):
        return create_communicator(TcpConfig(rank=0, size=1, port=0, bind_addr="127.0.0.1"))
    return create_communicator(None if backend == "auto" else backend)


def _source(
    given: Case | Problem | str | os.PathLike[str],
    overrides: Mapping[str, Any] | None,
    options: TrainOptions | None,
) -> CaseSource | ProblemSource:
    from pycobre.app.request import CaseSource, ProblemSource

    overrides = {} if overrides is None else overrides
    if not isinstance(given, str | os.PathLike):
        from pycobre.problem import Problem

        if isinstance(given, Problem):
            from pycobre.app.options import problem_options
            from pycobre.sddp import TrainOptions

            return ProblemSource(given, problem_options(options or TrainOptions(), overrides))
    if options is not None:
        raise OptionError("options: expected config_overrides for a case, got TrainOptions.")
    from pycobre.hydro.files import load_case, with_overrides
    from pycobre.hydro.model import Case

    if not isinstance(given, Case | str | os.PathLike):
        raise OptionError(
            f"case: expected a Case, the directory of one or a Problem, got {type(given).__name__}. "
            "`pycobre init` writes an example case."
        )
    case = given if isinstance(given, Case) else load_case(given)
    return CaseSource(with_overrides(case, overrides))


def _policy_bytes(policy: Policy | str | os.PathLike[str] | None) -> bytes | None:
    if policy is None:
        return None
    from pycobre.sddp import Policy

    return policy.to_bytes() if isinstance(policy, Policy) else Policy.load(Path(policy)).to_bytes()


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
