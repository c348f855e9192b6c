"""The engine: checks a call once, shares its chains among threads, and turns a failure into a full report."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pycobre.errors import SolverError
from pycobre.solver.api import Block, LpModel, SolveCall, SolverOptions
from pycobre.solver.failure import failure_error
from pycobre.solver.highs import highs_options
from pycobre.solver.job import ChainFailure, Job, make_job
from pycobre.solver.native import NativeTeam, NativeWorker, why_not_native
from pycobre.solver.prepare import Prepared, prepare

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from pycobre.solver.reference.chains import PythonWorker
    from pycobre.solver.report import NumericalReport

__all__ = ["HighsEngine"]


class HighsEngine:
    """`Engine` by HiGHS. Threads share the models and nothing else; each holds one LP at a time."""

    def __init__(self, options: SolverOptions) -> None:
        self.options = options
        self._prepared: WeakKeyDictionary[LpModel, Prepared] = WeakKeyDictionary()
        reason = why_not_native() if options.native is not False else "switched off"
        if reason is not None and options.native:
            raise SolverError(
                f"the compiled path was asked for, but {reason}. Reinstall, or leave native unset."
            )
        self.native = reason is None  #: whether the compiled path is in use
        wanted, threads = highs_options(options), options.threads
        self._workers: list[NativeTeam | NativeWorker | PythonWorker] = []
        self._threads: ThreadPoolExecutor | None = None
        if not self.native:
            from concurrent.futures import ThreadPoolExecutor

            from pycobre.solver.reference.chains import PythonWorker

            self._workers += [PythonWorker(wanted) for _ in range(threads)]
            self._threads = ThreadPoolExecutor(threads) if threads > 1 else None
        else:
            self._workers.append(NativeTeam(wanted, threads) if threads > 1 else NativeWorker(wanted))

    def __enter__(self) -> HighsEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        for worker in self._workers:
            worker.close()
        self._workers = []

    def solve(self, call: SolveCall) -> Block:
        """See `Engine.solve`."""
        if not self._workers:
            raise SolverError("the engine is closed: create a new one to go on.")
        if call.work_counter is not None and (call.want_basis or not self.native):
            raise SolverError(
                "a block shared among engines: expected the compiled path, and no bases to keep."
            )
        prepared = self._prepare(call.model)
        job = make_job(prepared, self.options, call)
        if self.native:
            _ = prepared.native  # made here, once, before threads share it
        failure = self._run(job, job.call.x.shape[0])
        if failure is not None:
            raise failure_error(job, failure)
        return job.block if job.basis is None else replace(job.block, basis=job.basis.finish())

    def report(self, model: LpModel) -> NumericalReport:
        """See `Engine.report`."""
        from pycobre.solver.report import report_of

        return report_of(self._prepare(model))

    def _prepare(self, model: LpModel) -> Prepared:
        prepared = self._prepared.get(model)
        if prepared is None:
            prepared = self._prepared[model] = prepare(model, self.options.scale)
        return prepared

    def _run(self, job: Job, m: int) -> ChainFailure | None:
        shares = min(len(self._workers), m)
        if shares <= 1 or self._threads is None:
            return self._workers[0].solve(job, 0, m) if m else None
        edges = [m * s // shares for s in range(shares + 1)]
        parts = [
            self._threads.submit(self._workers[s].solve, job, edges[s], edges[s + 1]) for s in range(shares)
        ]
        # Every share is waited for: the failure that is reported is that of the lowest chain, whoever was
        # first.
        failures = [part.result() for part in parts]
        return next((failure for failure in failures if failure is not None), None)
