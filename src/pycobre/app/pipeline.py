"""Train, simulate, write: the same steps on every rank of any communicator; rank 0 touches the disk."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pycobre
from pycobre.app.backend import backend_name
from pycobre.app.origin import refuse_another_case
from pycobre.app.output import Output
from pycobre.app.report import Report
from pycobre.app.request import Request
from pycobre.app.rescue import Rescue
from pycobre.app.results.layout import CHECKPOINTS
from pycobre.app.share import gathered_tables
from pycobre.app.study import Study, make_study
from pycobre.comm import Communicator
from pycobre.comm.collectives import broadcast_result, gather_arrays
from pycobre.errors import OptionError
from pycobre.events import Listener, WarningRaised
from pycobre.sddp import Policy, SimulateOptions, TrainingOutcome, TrainingState, simulate, train
from pycobre.sddp.numbers import spread, weighted
from pycobre.sddp.prepared import PreparedProblem
from pycobre.sddp.stopping import relative_gap
from pycobre.sddp.training.checkpoint import latest, pack_checkpoint, unpack_checkpoint

__all__ = ["execute"]

Columns = dict[str, NDArray[Any]]


def execute(
    request: Request,
    comm: Communicator,
    emit: Listener | None,
    should_stop: Callable[[], bool],
    rescue: Rescue | None = None,
) -> Report:
    """Run a request (collective), telling `emit` of every event where there is one.

    Ranks above 0 return a report without the tables of a simulation. `rescue` lets other threads save the state.

    On error: raised on every rank, as by `train`; what was written before stays, checkpoints included.
    """
    started = time.time()
    study = make_study(request)
    policy = None if request.policy is None else Policy.from_bytes(request.policy)
    if request.resume and request.output is None:
        raise OptionError("resume: expected the output directory of the earlier run, got none.")
    if request.train and request.resume and policy is not None:
        raise OptionError("resume and warm start: expected one of them, got both.")
    try:
        with (
            Output(comm, request, study, policy, rescue or Rescue()) as output,
            PreparedProblem(study.problem, comm, study.options.solver, threads=request.threads) as prepared,
        ):
            return _execute(request, study, comm, emit, should_stop, prepared, output, policy, started)
    except MemoryError as cause:
        raise OptionError(
            f"memory: expected enough for this run, got a refusal of the system ({cause}). "
            "Use fewer scenarios or forward passes, or more memory."
        ) from cause


def _execute(
    request: Request,
    study: Study,
    comm: Communicator,
    emit: Listener | None,
    should_stop: Callable[[], bool],
    prepared: PreparedProblem,
    output: Output,
    policy: Policy | None,
    started: float,
) -> Report:
    emit = output.listener(emit)
    metadata: dict[str, Any] = {
        "case": study.name,
        "pycobre": pycobre.__version__,
        "python": sys.version.split()[0],
        "backend": backend_name(comm),
        "ranks": comm.size,
        "threads": request.threads,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        **study.metadata,
    }
    if output.run is not None:
        metadata["run"] = output.run
    tables: dict[str, Columns] = {}
    if request.train:
        faults: list[str] = list(output.warnings)
        outcome = _train(study, request, comm, emit, should_stop, policy, faults, prepared, output)
        policy = outcome.policy
        tables.update(training_tables(outcome))
        metadata.update(_training_metadata(outcome, faults), upper_bound_kind=_kind(study))
        output.tables(tables)
        output.model(study.model_tables)
        output.policy(policy)
    stopped = metadata.get("termination_reason") == "interrupted"
    if study.simulate and study.scenarios and not stopped and not _asked_to_stop(comm, should_stop):
        if policy is None:
            raise OptionError("simulate: expected a policy, got none. Train first, or give a policy file.")
        found = simulate(
            study.problem,
            policy,
            study.scenarios,
            comm,
            _simulation_options(study, request),
            record=study.record,
            sampler=study.simulation_sampler,
            on_event=emit,
            prepared=prepared,
            probability=study.probability,
        )
        simulated = gathered_tables(comm, study.tables(found))
        output.tables(simulated)
        tables.update(simulated)
        costs = gather_arrays(comm, found.total_cost)
        cost = spread(costs) if study.probability is None else weighted(costs, study.probability)
        metadata["simulation"] = {
            "scenarios": study.scenarios,
            "enumerated": study.probability is not None,
            "mean": cost.mean,
            "std": cost.std,
            "half_width": cost.half_width,
            "policy_digest": policy.digest,
        }
        if (
            "lower_bound" in metadata and not study.problem.shape.cyclic
        ):  # else one round of many is simulated
            metadata["simulation"]["gap"] = relative_gap(
                policy.sense.sign * metadata["lower_bound"], policy.sense.sign * cost.mean
            )
        if comm.rank == 0:
            figures, warnings = study.indicators(simulated, study.scenarios)
            metadata["simulation"]["indicators"] = figures
            metadata["warnings"] = [*metadata.get("warnings", ()), *warnings]
            if emit is not None:
                for message in warnings:
                    emit(WarningRaised(message=message))
        metadata.setdefault("policy_digest", policy.digest)
    metadata["elapsed_s"] = time.time() - started
    # The module `platform` knows more, and starts a process to ask for it.
    system = os.uname()
    name = f"{system.sysname}-{system.release}-{system.machine}"
    metadata["machine"] = {"platform": name, "cores": os.cpu_count()}
    output.finish(metadata)
    return Report(metadata, policy, tables)


def _asked_to_stop(comm: Communicator, should_stop: Callable[[], bool]) -> bool:
    """Whether any rank has been asked (collective): they hear of it at different moments, or only one does."""
    return bool(gather_arrays(comm, np.array([should_stop()])).any())


def training_tables(outcome: TrainingOutcome) -> dict[str, Columns]:
    """The `convergence` and `timing` tables of a training run."""
    history, sign = outcome.history.arrays(), outcome.policy.sense.sign
    lower, upper = history["lower_bound"], history["upper_bound"]
    convergence: Columns = {
        "iteration": np.arange(1, len(lower) + 1),
        "lower_bound": sign * lower,
        "upper_bound": sign * upper,
        "upper_bound_std": history["upper_bound_std"],
        "upper_bound_half_width": history["upper_bound_half_width"],
        "gap": (upper - lower) / np.maximum(1.0, np.abs(lower)),
        **{
            name: history[name]
            for name in ("cuts_added", "cuts_total", "cuts_active", "lp_solves", "simplex_iterations")
        },
    }
    return {"convergence": convergence, "timing": outcome.timing.columns()}


def _train(
    study: Study,
    request: Request,
    comm: Communicator,
    emit: Listener | None,
    should_stop: Callable[[], bool],
    warm_start: Policy | None,
    faults: list[str],
    prepared: PreparedProblem,
    output: Output,
) -> TrainingOutcome:
    """Train as asked; `faults` receives what was wrong with the checkpoints found."""
    state: TrainingState | None = None
    if output.resumes:
        assert output.root is not None
        state = _resume(output.root / CHECKPOINTS, study, comm, faults)
        output.clear_results()
    if emit is not None:
        for fault in faults:
            emit(WarningRaised(message=fault, worker_id=comm.rank))
    checkpoints = output.checkpoints(study, request)
    options = study.options
    steering = output.steering(options.stopping, checkpoints, emit)
    if steering is not None:
        options = replace(options, stopping=steering)
    outcome = train(
        study.problem,
        comm,
        options,
        sampler=study.sampler,
        on_event=emit,
        should_stop=lambda: should_stop() or (steering is not None and steering.stop_requested),
        checkpoint=checkpoints,
        state=state,
        warm_start=warm_start,
        prepared=prepared,
    )
    output.rescue.watch(None)  # the last checkpoint has been written
    return outcome


def _resume(directory: Path, study: Study, comm: Communicator, faults: list[str]) -> TrainingState:
    """The newest readable checkpoint, read by rank 0 and sent to all: the others need not see its disk."""

    def produce() -> bytes:
        state, found = latest(directory)
        faults.extend(found)
        if state.fingerprint != study.problem.fingerprint:
            refuse_another_case(directory.parent, study.metadata)
        state.check(study.problem, study.options)
        return pack_checkpoint(state)

    return unpack_checkpoint(broadcast_result(comm, produce), str(directory))


def _simulation_options(study: Study, request: Request) -> SimulateOptions:
    options = study.options
    return SimulateOptions(
        seed=options.seed,
        max_depth=options.max_depth,
        lazy=options.lazy,
        threads=request.threads,
        gather=False,
        solver=options.solver,
    )


def _kind(study: Study) -> str:
    """Of the upper bound: exact where every path is walked, an estimate of a mean otherwise."""
    return "exact" if study.options.enumerated else "statistical"


def _training_metadata(outcome: TrainingOutcome, faults: list[str]) -> dict[str, Any]:
    history = outcome.history
    return {
        "iterations": outcome.iterations,
        "lower_bound": outcome.lower_bound,
        "upper_bound": outcome.upper_bound,
        "upper_bound_half_width": history.upper_bound_half_width[-1],
        "gap": outcome.gap,
        "sense": outcome.policy.sense.value,
        "bound_estimate": outcome.estimate,
        "termination_reason": outcome.reason,
        "converged": outcome.converged,
        "total_cuts": outcome.policy.total_cuts,
        "policy_digest": outcome.policy.digest,
        "warnings": [*faults, *outcome.warnings],
    }
