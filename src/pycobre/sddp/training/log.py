"""The record of a training run: one history, from which events, stopping rules and results take their numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pycobre._util.arrays import F64
from pycobre.events import (
    CheckpointWritten,
    ForwardFinished,
    IterationFinished,
    PassProgress,
    RanksMeasured,
    SelectionFinished,
    StageFinished,
    TrainingFinished,
    TrainingStarted,
    WarningRaised,
)
from pycobre.problem import Problem
from pycobre.sddp.memory import estimate
from pycobre.sddp.numbers import Spread
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.reporter import Reporter
from pycobre.sddp.stopping import Progress
from pycobre.sddp.training.outcome import Receipt, TrainingOutcome
from pycobre.sddp.training.running_clocks import RunningClocks
from pycobre.sddp.training.state import History

__all__ = ["TrainingLog"]


class TrainingLog:
    """History and warnings of a run, and the events that report them to a listener."""

    def __init__(self, problem: Problem, reporter: Reporter) -> None:
        self._problem, self._reporter = problem, reporter
        self._columns = tuple(_Column() for _ in range(3))
        self._total_s = 0.0
        self.history = History()
        self.warnings: list[str] = []

    def resume(self, history: History) -> None:
        """Go on from the history of an earlier run."""
        self.history = history
        self._total_s = sum(history.elapsed_s)
        bounds = (history.lower_bound, history.upper_bound, history.upper_bound_std)
        for column, values in zip(self._columns, bounds, strict=True):
            for value in values:
                column.append(value)

    @property
    def iteration(self) -> int:
        """Finished iterations."""
        return len(self.history)

    def progress(self, simulated: F64 | None) -> Progress:
        """What stopping rules may look at."""
        lower, upper, std = (column.values for column in self._columns)
        return Progress(lower, upper, std, self._reporter.elapsed_s, simulated)

    def warn(self, message: str) -> None:
        self.warnings.append(message)
        self._reporter.emit(WarningRaised, message=message, iteration=self.iteration)

    def started(self, options: TrainOptions, *, ranks: int, cuts: int) -> None:
        problem = self._problem
        self._reporter.emit(
            TrainingStarted,
            problem=problem.name,
            nodes=len(problem.nodes),
            states=len(problem.states),
            forward_passes=options.forward_passes,
            ranks=ranks,
            threads=options.threads,
            first_iteration=self.iteration + 1,
            iteration_limit=options.stopping.iteration_limit,
            cuts=cuts,
            memory_bytes=estimate(problem, options, ranks=ranks).rank_bytes,
        )

    def forward_finished(self, upper: Spread, *, lp_solves: int, elapsed_s: float) -> None:
        self._reporter.emit(
            ForwardFinished,
            iteration=self.iteration + 1,
            upper_bound=self._problem.as_seen(upper.mean),
            upper_bound_std=upper.std,
            lp_solves=lp_solves,
            elapsed_s=elapsed_s,
        )

    def stage_finished(
        self,
        depth: int,
        nodes: Iterable[int],
        *,
        cuts: int,
        lp_solves: int,
        solve_s: float,
        exchange_s: float,
    ) -> None:
        if not self._reporter.listens_to(StageFinished):
            return
        self._reporter.emit(
            StageFinished,
            iteration=self.iteration + 1,
            depth=depth,
            nodes=tuple(self._problem.nodes[node].name for node in nodes),
            cuts=cuts,
            lp_solves=lp_solves,
            solve_s=solve_s,
            exchange_s=exchange_s,
        )

    def record(
        self,
        bound: float,
        upper: Spread,
        *,
        cuts_added: int,
        cuts_total: int,
        lp_solves: int,
        simplex_iterations: int,
    ) -> None:
        """The numbers of an iteration, but for its active cuts and seconds, which come after the selection."""
        history = self.history
        history.lower_bound.append(bound)
        history.upper_bound.append(upper.mean)
        history.upper_bound_std.append(upper.std)
        history.upper_bound_half_width.append(upper.half_width)
        history.cuts_added.append(cuts_added)
        history.cuts_total.append(cuts_total)
        history.lp_solves.append(lp_solves)
        history.simplex_iterations.append(simplex_iterations)
        for column, value in zip(self._columns, (bound, upper.mean, upper.std), strict=True):
            column.append(value)

    def stage_started(self, pass_name: str, depth: int, depths: int, nodes: Iterable[int]) -> None:
        if not self._reporter.listens_to(PassProgress):
            return
        self._reporter.emit(
            PassProgress,
            iteration=self.iteration + 1,
            pass_name=pass_name,
            depth=depth,
            depths=depths,
            node=", ".join(self._problem.nodes[node].name for node in nodes),
        )

    def forward_enters(self, depth: int, depths: int, node: int) -> None:
        self.stage_started("forward", depth, depths, (node,))

    def ranks_measured(self, clocks: RunningClocks) -> None:
        if not self._reporter.listens_to(RanksMeasured):
            return
        self._reporter.emit(
            RanksMeasured,
            iteration=self.iteration,
            timing=clocks.by_rank(),
            memory_bytes=tuple(clocks.memory_bytes.tolist()),
            retries=int(clocks.recovered[0]),
        )

    def selection_finished(self, *, active: int, elapsed_s: float) -> None:
        self._reporter.emit(
            SelectionFinished,
            iteration=self.iteration,
            cuts=self.history.cuts_total[-1],
            active=active,
            elapsed_s=elapsed_s,
        )

    def iteration_finished(self, forward_s: float, backward_s: float, elapsed_s: float) -> None:
        history, sign = self.history, self._problem.sense.sign
        history.elapsed_s.append(elapsed_s)
        self._total_s += elapsed_s
        self._reporter.emit(
            IterationFinished,
            iteration=self.iteration,
            lower_bound=sign * history.final_lower_bound,
            upper_bound=sign * history.final_upper_bound,
            upper_bound_std=history.upper_bound_std[-1],
            half_width=history.upper_bound_half_width[-1],
            gap=history.final_gap,
            cuts_added=history.cuts_added[-1],
            cuts_active=history.cuts_active[-1],
            lp_solves=history.lp_solves[-1],
            simplex_iterations=history.simplex_iterations[-1],
            forward_s=forward_s,
            backward_s=backward_s,
            elapsed_s=elapsed_s,
            total_s=self._total_s,
            sense=self._problem.sense.value,
        )

    def checkpoint_written(self, receipt: Receipt, elapsed_s: float) -> None:
        self._reporter.emit(
            CheckpointWritten,
            iteration=self.iteration,
            path=receipt.path,
            size_bytes=receipt.size_bytes,
            elapsed_s=elapsed_s,
        )

    def finished(self, outcome: TrainingOutcome) -> None:
        self._reporter.emit(
            TrainingFinished,
            reason=outcome.reason,
            converged=outcome.converged,
            iterations=outcome.iterations,
            lower_bound=outcome.lower_bound,
            upper_bound=outcome.upper_bound,
            gap=outcome.gap,
            cuts=outcome.policy.total_cuts,
            policy_digest=outcome.policy.digest,
            total_s=self._total_s,
            timing=outcome.timing.by_rank(),
            sense=self._problem.sense.value,
            estimate=outcome.estimate,
        )


class _Column:
    """Numbers that come one at a time and are looked at as an array after each: no iteration copies all of them."""

    def __init__(self) -> None:
        self._held: F64 = np.empty(64)
        self._count = 0

    def append(self, value: float) -> None:
        if self._count == len(self._held):
            self._held = np.concatenate([self._held, np.empty(self._count)])
        self._held[self._count] = value
        self._count += 1

    @property
    def values(self) -> F64:
        """All so far, to look at only."""
        view = self._held[: self._count]
        view.flags.writeable = False
        return view
