"""What a run will need, before it starts: LPs, memory, and time by a short measurement."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pycobre.app.answers.case_records import Source
from pycobre.app.answers.run_records import RunEstimate
from pycobre.app.arguments import at_least_one
from pycobre.app.backend import communicator_for
from pycobre.hydro.files import load_case, with_overrides
from pycobre.hydro.study import CaseStudy, study_of_case
from pycobre.sddp import AnyOf, IterationLimit, TimeLimit, train
from pycobre.sddp.memory import estimate

__all__ = ["estimate_run"]

MEASURED = 3
MEASURED_S = 5.0


def estimate_run(
    directory: Path,
    name: str,
    overrides: Mapping[str, Any] | None = None,
    workers: int = 1,
    measure: bool = True,
) -> RunEstimate:
    """Count the LPs of a training and its simulation, estimate the memory, and measure a few iterations."""
    at_least_one("workers", workers)
    case = with_overrides(load_case(directory), overrides or {})
    study = study_of_case(case)
    options, problem = study.options, study.problem
    iterations = options.stopping.iteration_limit or 100
    openings = [node.noise.openings for node in problem.nodes]
    forward = options.forward_passes * len(problem.nodes)
    backward = options.forward_passes * sum(openings[1:])
    per_iteration = forward + backward + openings[0]
    memory = estimate(problem, options, ranks=workers, iterations=iterations)
    simulated = study.scenarios * len(problem.nodes) if study.simulate else 0
    assumptions = [f"{iterations} iterations, the limit of the stopping rules" if options.stopping.iteration_limit
                   else "100 iterations, because no stopping rule limits them"]  # fmt: skip
    done, seconds, lps = _measured(study) if measure else (0, None, 0)
    per_lp = None if seconds is None or not lps else seconds / lps
    per_run = None if per_lp is None else per_lp * per_iteration
    training = None if per_run is None else per_run * iterations
    if done:
        assumptions += [
            f"measured on {done} iterations of one process, without the first where there are several",
            "later iterations hold more cuts and take longer, typically up to twice as long",
            f"{workers} workers share the work evenly" if workers > 1 else "one process",
        ]
    return RunEstimate(
        case=name,
        iterations=iterations,
        forward_passes=options.forward_passes,
        stages=len(problem.nodes),
        states=len(problem.states),
        lps_per_iteration=per_iteration,
        lps_training=per_iteration * iterations,
        lps_simulation=simulated,
        memory_per_machine_bytes=memory.shared_bytes,
        memory_per_rank_bytes=memory.rank_bytes,
        measured_iterations=done,
        seconds_per_lp=per_lp,
        seconds_per_iteration=per_run,
        training_s=training,
        simulation_s=None if per_lp is None else per_lp * simulated,
        workers=workers,
        training_with_workers_s=None if training is None else training / workers,
        assumptions=assumptions,
        sources=[Source("case", name, "all files", str(study.metadata["input_hash"]))],
    )


def _measured(study: CaseStudy) -> tuple[int, float | None, int]:
    """Iterations done in a few seconds, and the seconds and LPs of the later ones."""
    begun = time.perf_counter()
    options = replace(study.options, stopping=AnyOf(IterationLimit(MEASURED), TimeLimit(MEASURED_S)))
    with communicator_for("local") as comm:
        outcome = train(study.problem, comm, options, sampler=study.sampler)
    columns = outcome.timing.columns()
    first = 1 if outcome.iterations > 1 else 0
    seconds = float(columns["total_s"][first:].sum()) or time.perf_counter() - begun
    return outcome.iterations, seconds, int(columns["lp_solves"][first:].sum())
