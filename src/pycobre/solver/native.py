"""The compiled path: chains through `pycobre._native.lp`, recovery through the same session."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pycobre.errors import SolverError
from pycobre.solver.api import I32
from pycobre.solver.highs import OptionValue, Status, option_refused
from pycobre.solver.job import ChainFailure, Job
from pycobre.solver.recovery import recover

__all__ = ["NativeTeam", "NativeWorker", "library_path", "why_not_native"]

Failed = tuple[int, int, int]  # chain, opening, HiGHS status
FRESH = -1  # not a continuation of a recovered chain


def library_path() -> Path | None:
    """The HiGHS library inside the highspy package, where it ships one."""
    spec = find_spec("highspy")
    if spec is None or spec.origin is None:
        return None
    suffix = "libhighs*.dylib" if sys.platform == "darwin" else "libhighs.so*"
    found = sorted(Path(spec.origin).parent.glob(suffix))
    return found[0] if found else None


def why_not_native() -> str | None:
    """What keeps the compiled path from working here; None when it works."""
    try:
        from pycobre._native import lp
    except ImportError as error:
        return f"the compiled module is not there ({error})"
    library = library_path()
    if library is None:
        return "the installed highspy has no libhighs beside it"
    try:
        lp.open_library(str(library))
    except OSError as error:
        return f"{library.name}: {error}"
    return None


class NativeWorker:
    """One thread's session of the compiled path; to `recovery` it is a `Session`."""

    def __init__(self, options: dict[str, OptionValue]) -> None:
        from pycobre._native import lp

        self.session = lp.Session()
        self._options = options
        self.set_options(options)

    def solve(self, job: Job, begin: int, end: int) -> ChainFailure | None:
        """Solve the chains `begin ≤ i < end`; stops at the first that fails."""
        run_chains = _bind(self.session.solve, job)
        failed = run_chains(begin, end, FRESH)
        while failed is not None:
            failure, failed = self._recover_and_resume(run_chains, failed, end)
            if failure is not None:
                return failure
        if job.basis is not None:
            job.basis.slots[begin] = np.frombuffer(self.session.kept_slots(), np.int32)
        return None

    def finish_failed(self, job: Job, failed: Failed) -> ChainFailure | None:
        """Finish the one chain that failed here, and take no other."""
        run_chains = _bind(self.session.solve, replace(job, call=replace(job.call, work_counter=None)))
        left: Failed | None = failed
        while left is not None:
            failure, left = self._recover_and_resume(run_chains, left, left[0] + 1)
            if failure is not None:
                return failure
        return None

    def _recover_and_resume(
        self, run_chains: Callable[[int, int, int], Failed | None], failed: Failed, end: int
    ) -> tuple[ChainFailure | None, Failed | None]:
        """Run the recovery steps, then resume up to `end`: what could not be recovered, or what failed next."""
        chain, opening, status = failed
        recovered = recover(self, self._options, Status.of(status))
        if recovered.status is not Status.OPTIMAL:
            present = np.frombuffer(self.session.present(), np.int32).copy()
            return ChainFailure(chain, opening, recovered.status, recovered.steps, present), None
        return None, run_chains(chain, end, len(recovered.steps))

    def close(self) -> None:
        """Nothing to do: the session ends with the worker."""

    def set_options(self, options: dict[str, OptionValue]) -> None:
        for name, value in options.items():
            if not self.session.set_option(name, value):
                raise SolverError(option_refused(name, value))

    def clear(self) -> None:
        self.session.clear()

    def run(self) -> Status:
        return Status.of(self.session.run())

    def keep_basis(self) -> bool:
        return self.session.keep_basis()

    def put_basis(self) -> None:
        self.session.put_basis()


class NativeTeam:
    """Workers that share the chains of a job among threads of the compiled path: dynamic self-scheduling."""

    def __init__(self, options: dict[str, OptionValue], threads: int) -> None:
        self._workers = [NativeWorker(options) for _ in range(threads)]
        self.sessions = [worker.session for worker in self._workers]
        self.sessions[0].lead(tuple(self.sessions[1:]), threads <= _cores())

    def solve(self, job: Job, begin: int, end: int) -> ChainFailure | None:
        """Solve the chains `begin ≤ i < end`; of those that fail, the lowest is reported, whoever was first."""
        if end - begin <= 1:
            return self._workers[0].solve(job, begin, end)
        run_chains = _bind(self.sessions[0].solve_together, job)
        while (ended := run_chains(begin, end, FRESH)) is not None:
            begin, failed = ended
            failures = (self._workers[who].finish_failed(job, where) for who, where in failed)
            unrecovered: dict[int, ChainFailure] = {each.chain: each for each in failures if each is not None}
            if unrecovered:
                return unrecovered[min(unrecovered)]
        if job.basis is not None:
            job.basis.slots[0] = self._slots(job.basis.owner, job.basis.counts)
        return None

    def close(self) -> None:
        """End the threads, which end with the leading session."""
        self._workers, self.sessions = [], []

    def _slots(self, owner: I32, counts: I32) -> I32:
        """The slots of all chains, one after the other, from the sessions that solved them."""
        kept = [np.frombuffer(session.kept_slots(), np.int32) for session in self.sessions]
        at = [0] * len(kept)
        pieces = []
        for who, count in zip(owner.tolist(), counts.tolist(), strict=True):
            pieces.append(kept[who][at[who] : at[who] + count])
            at[who] += count
        return np.concatenate(pieces)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _bind(solve: Callable[..., Any], job: Job) -> Callable[[int, int, int], Any]:
    """`Session.solve` without (first chain, end, retries); arrays in the order of `BLOCK_ARRAYS`, lp.c."""
    call, block, basis, options = job.call, job.block, job.basis, job.options
    cuts, start = call.cuts, call.start
    arrays = (
        call.x,
        call.values,
        *((cuts.intercept, cuts.slope, cuts.active) if cuts is not None else (None,) * 3),
        call.trial_point,
        *(start.arrays if start is not None else (None,) * 5),
        block.objective,
        block.gradient,
        block.output,
        block.theta,
        block.iterations,
        block.rounds,
        block.retries,
        block.by_highs,
        block.rejected,
        block.certified,
        block.primal,
        block.col_dual,
        block.row_dual,
        *(basis.arrays if basis is not None else (None,) * 4),
        call.work_counter,
        block.solved_here,
    )
    per_chain = call.values.shape[0] > 1
    return partial(
        solve,
        job.prepared.native,
        arrays,
        *(call.x.shape[0], call.values.shape[1], call.values.shape[2]),
        0 if start is None else len(start),
        *((cuts.count, cuts.slope.shape[1]) if cuts is not None else (0, 0)),
        *(per_chain, call.lazy),
        *(options.pool_tolerance, options.primal_tolerance, options.dual_tolerance),
        *job.cut_counts,
        *(options.tableau_entries, options.kernel_rows, options.iteration_limit),
    )
