"""The compiled path: chains through `pycobre._native.highs`, the retry ladder through the same session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from pycobre.errors import SolverError
from pycobre.solver.highs import OptionValue, Status, option_refused
from pycobre.solver.job import ChainFailure, Job
from pycobre.solver.ladder import climb

__all__ = ["NativeWorker", "library_path", "why_not_native"]

Failed = tuple[int, int, int]  # chain, opening, HiGHS status
FRESH = -1  # not a continuation of a chain that the ladder has mended


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
        from pycobre._native import highs
    except ImportError as error:
        return f"the compiled module is not there ({error})"
    library = library_path()
    if library is None:
        return "the installed highspy has no libhighs beside it"
    try:
        highs.open_library(str(library))
    except OSError as error:
        return f"{library.name}: {error}"
    return None


class NativeWorker:
    """One thread's session of the compiled path; to the ladder it is a `Session`."""

    def __init__(self, options: dict[str, OptionValue]) -> None:
        from pycobre._native import highs

        self._session = highs.Session()
        self._options = options
        self.set_options(options)

    def solve(self, job: Job, begin: int, end: int) -> ChainFailure | None:
        """Solve the chains `begin ≤ i < end`; stops at the first that fails."""
        first, retries = begin, FRESH
        run_chains = _bind(self._session.solve, job)
        while True:
            failed = run_chains(first, end, retries)
            if failed is None:
                break
            chain, opening, status = failed
            climbed = climb(self, self._options, Status.of(status))
            if climbed.status is not Status.OPTIMAL:
                present = np.frombuffer(self._session.present(), np.int32).copy()
                return ChainFailure(chain, opening, climbed.status, climbed.steps, present)
            first, retries = chain, len(climbed.steps)
        if job.basis is not None:
            job.basis.slots[begin] = np.frombuffer(self._session.kept_slots(), np.int32)
        return None

    def close(self) -> None:
        """Nothing to do: the session ends with the worker."""

    def set_options(self, options: dict[str, OptionValue]) -> None:
        for name, value in options.items():
            if not self._session.set_option(name, value):
                raise SolverError(option_refused(name, value))

    def clear(self) -> None:
        self._session.clear()

    def run(self) -> Status:
        return Status.of(self._session.run())

    def keep_basis(self) -> bool:
        return self._session.keep_basis()

    def put_basis(self) -> None:
        self._session.put_basis()


def _bind(solve: Callable[..., Failed | None], job: Job) -> Callable[[int, int, int], Failed | None]:
    """`Session.solve` without (first chain, end, retries); arrays in the order of `BLOCK_ARRAYS`, highs.c."""
    pool, start, block, basis, options = job.pool, job.start, job.block, job.basis, job.options
    arrays = (
        job.x,
        job.values,
        *((pool.intercept, pool.slope, pool.active) if pool is not None else (None,) * 3),
        job.seed,
        *(start.arrays if start is not None else (None,) * 5),
        block.objective,
        block.gradient,
        block.output,
        block.head,
        block.iterations,
        block.rounds,
        block.retries,
        block.by_highs,
        block.primal,
        block.col_dual,
        block.row_dual,
        *((basis.col_status, basis.row_status, basis.counts) if basis is not None else (None,) * 3),
    )
    per_chain = job.values.shape[0] > 1
    return partial(
        solve,
        job.prepared.native,
        arrays,
        *(job.x.shape[0], job.values.shape[1], job.values.shape[2]),
        0 if start is None else len(start),
        *((pool.count, pool.slope.shape[1]) if pool is not None else (0, 0)),
        *(per_chain, job.lazy),
        *(options.pool_tolerance, options.primal_tolerance, options.dual_tolerance),
        *(options.pool_rows_per_round, options.pool_seed_rows),
        *(options.tableau_entries, options.iteration_limit),
    )
