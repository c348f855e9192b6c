"""One rank's share of a training run: what lives between the steps, and the steps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.comm import Communicator, SharedMemoryProvider
from pycobre.errors import OptionError
from pycobre.events import (
    CheckpointWritten,
    ForwardFinished,
    IterationFinished,
    Listener,
    SelectionFinished,
    StageFinished,
    TrainingFinished,
    TrainingStarted,
    WarningRaised,
)
from pycobre.problem import ROOT, Problem
from pycobre.sddp.cuts import CutPool, Cuts
from pycobre.sddp.error_agreement import Meeting
from pycobre.sddp.forward import Trajectories, check_paths, pilot, run_forward
from pycobre.sddp.memory import estimate
from pycobre.sddp.numbers import Spread, spread
from pycobre.sddp.openings import Openings
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.plan import Plan
from pycobre.sddp.policy import Policy
from pycobre.sddp.reporter import Reporter
from pycobre.sddp.risk import Expectation
from pycobre.sddp.sampling import InSample, Paths, Sampler
from pycobre.sddp.selection import SelectionMemory
from pycobre.sddp.simulation.simulate import simulate_costs
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.sddp.stopping import Progress, Stop, relative_gap
from pycobre.sddp.subproblems import Solving
from pycobre.sddp.timing import Ledger
from pycobre.sddp.training.backward import Cutting
from pycobre.sddp.training.bound import RootWork, bound_above_cost
from pycobre.sddp.training.itinerary import Itinerary, Step
from pycobre.sddp.training.load_balancing import Table, neighbours
from pycobre.sddp.training.numerics import numerical_warnings
from pycobre.sddp.training.outcome import Checkpointer, TrainingOutcome
from pycobre.sddp.training.state import History, TrainingState, gather_starts
from pycobre.solver import create_engine

__all__ = ["Trainer"]


# What a rank says at the end of an iteration; rank 0 speaks for the stopping rules.
GO_ON, RULE_FIRED, LISTENER_ASKED, INTERRUPTED = 0.0, 1.0, 2.0, 3.0


class Trainer:
    """Use as a context, so that engine and regions are released: `prepare`, `iterate`, `finish`."""

    def __init__(
        self,
        problem: Problem,
        comm: Communicator,
        options: TrainOptions,
        sampler: Sampler,
        listener: Listener | None,
        should_stop: Callable[[], bool] | None,
        checkpoint: Checkpointer | None,
    ) -> None:
        self.problem, self.comm, self.options = problem, comm, options
        self.sampler, self._should_stop, self._checkpoint = sampler, should_stop, checkpoint
        self.split = Split(options.forward_passes, comm.size)
        self.block = self.split.block(comm.rank)
        self.ledger = Ledger()
        self.meeting = Meeting(comm, self.ledger)
        self.report = Reporter(self.meeting, listener)
        self.history = History()
        self.stop: Stop | None = None
        self.warnings: list[str] = []
        self.retries = 0  # of all ranks, since the training began or was resumed
        self._usual: Itinerary | None = None
        said = json.dumps({"problem": problem.fingerprint, **options.key()}, sort_keys=True)
        self.meeting.require_same(said, "problem and options")
        self.measures = options.measures(problem)
        self.plan = Plan.of(problem)
        provider = cast(SharedMemoryProvider, comm)
        self.openings = Openings(provider, self.plan)
        self.pools = {
            node.index: CutPool(provider, self.plan.states, *self._capacity())
            for node in self.plan.nodes
            if node.has_future
        }
        self.memories = {
            index: SelectionMemory(self.plan.states) for index in self.pools if options.selection is not None
        }
        self.root = RootWork(self.plan, self.openings, options.forward_passes)
        self.engine = create_engine(replace(options.solver, threads=options.threads))
        self.solving = Solving(
            self.engine, self.plan, self.openings, self.pools, self.ledger, lazy=options.lazy
        )
        self.cutting = Cutting(
            self.plan,
            self.solving,
            self.openings,
            self.measures,
            with_states=options.selection is not None,
        )
        self.starts = Starts(len(self.block))
        self.table: Table | None = None
        ranks = neighbours(comm, provider, ready=self.engine.native)
        if len(ranks) > 1 and self.plan.chain is not None:
            self.table = Table(provider, self.plan, self.split, comm.rank, ranks, self.cutting.width)

    def __enter__(self) -> Trainer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.close()
        self.openings.close()
        if self.table is not None:
            self.table.close()
        for pool in self.pools.values():
            pool.close()

    def _capacity(self) -> tuple[int, int | None]:
        """Slots to begin with in every pool, and slots by the end where the number of iterations is known."""
        limit, passes = self.options.stopping.iteration_limit, self.options.forward_passes
        if limit is None:
            return 32 * passes, None
        return min(32, limit) * passes, limit * passes

    def prepare(self, state: TrainingState | None, warm_start: Policy | None) -> None:
        """Begin afresh, go on from a state, or begin with another policy's cuts (collective)."""
        if state is not None and warm_start is not None:
            raise OptionError("train: expected a state to resume or a policy to start from, got both.")
        with self.meeting.attempt():
            if state is not None:
                state.check(self.problem, self.options.key())
            if warm_start is not None:
                warm_start.check(self.problem)
        self._flush()
        if state is not None:
            self.history = History.of(state.history.arrays())
            for node, pool in self.pools.items():
                pool.restore(state.cuts[node])
            for node, memory in self.memories.items():
                memory.add(state.points[node])
            self.starts = Starts.of(state.starts, np.arange(self.block.start, self.block.stop))
        elif warm_start is not None:
            for node, pool in self.pools.items():
                pool.restore(warm_start.cuts[node].as_beginning())
        self.report.emit(
            TrainingStarted,
            problem=self.problem.name,
            nodes=len(self.plan.nodes),
            states=self.plan.states,
            forward_passes=self.options.forward_passes,
            ranks=self.comm.size,
            threads=self.options.threads,
            first_iteration=len(self.history) + 1,
            iteration_limit=self.options.stopping.iteration_limit,
            cuts=sum(pool.count for pool in self.pools.values()),
            memory_bytes=estimate(self.problem, self.options, ranks=self.comm.size).rank_bytes,
        )
        with self.meeting.attempt():
            for message in numerical_warnings(self.plan, self.engine):
                self._warn(message)
        if state is None:
            with self.meeting.attempt():
                base = pilot(self.plan, self.solving, iteration=1)
                self.starts = Starts.same(base, len(self.block))
        self._flush()
        self.ledger.restart()
        if state is not None and len(self.history):
            self._decide_stop(None, resuming=True)

    def iterate(self) -> Stop | None:
        """One iteration; says why to stop, or None to go on."""
        if self.stop is not None:
            return self.stop
        iteration = len(self.history) + 1
        begin = time.perf_counter()
        trajectories, itinerary, upper = self._forward(iteration)
        turn = time.perf_counter()
        added = self._backward(iteration, trajectories, itinerary)
        turned = time.perf_counter()
        self._bound(iteration, upper, added)
        self._select(iteration)
        ended = time.perf_counter()
        self.history.elapsed_s.append(ended - begin)
        self.ledger.close_iteration(iteration, turn - begin, turned - turn, ended - begin)
        self._tell(iteration, turn - begin, turned - turn, ended - begin)
        costs = self._simulate(iteration)
        self._decide_stop(costs)
        return self.stop

    def _forward(self, iteration: int) -> tuple[Trajectories, Itinerary, Spread]:
        begin = time.perf_counter()
        count = len(self.block)
        nothing = Paths(
            np.zeros((count, 0), np.int32), np.zeros((count, 0), np.int32), np.zeros(count, np.int32)
        )
        trajectories = Trajectories(nothing, np.zeros(count), ())
        canonical = True
        with self.meeting.attempt():
            paths = self.sampler.sample(iteration, self.block.start, count)
            check_paths(self.plan, paths, count)
            canonical = self.plan.visits_chain(paths)
            trajectories = run_forward(
                self.plan, self.solving, self.starts, paths, iteration=iteration, first=self.block.start
            )
        own = np.stack(
            [
                trajectories.cost,
                trajectories.paths.lengths.astype(np.float64),
                np.full(count, float(canonical)),
            ],
            axis=1,
        )
        everybody = self.meeting.gather(own, self.split.counts)
        upper = spread(everybody[:, 0])
        itinerary = self._itinerary(
            trajectories.paths, everybody[:, 1].astype(np.int32), bool(everybody[:, 2].all())
        )
        self.report.emit(
            ForwardFinished,
            iteration=iteration,
            upper_bound=self.problem.as_seen(upper.mean),
            upper_bound_std=upper.deviation,
            lp_solves=int(trajectories.paths.lengths.sum()),
            elapsed_s=time.perf_counter() - begin,
        )
        return trajectories, itinerary, upper

    def _itinerary(self, paths: Paths, lengths: NDArray[np.int32], canonical: bool) -> Itinerary:
        """The nodes of all trajectories; on a linear graph everybody knows them without asking."""
        if canonical and self.plan.chain is not None:
            if self._usual is None:
                nodes = np.repeat(self.plan.chain[None], len(lengths), axis=0)
                self._usual = Itinerary(self.plan, self.split, self.comm.rank, nodes, lengths)
            return self._usual
        own = np.zeros((len(self.block), int(lengths.max())))
        own[:, : paths.depth] = paths.nodes[:, : paths.depth]
        nodes = self.meeting.gather(own, self.split.counts).astype(np.int32)
        return Itinerary(self.plan, self.split, self.comm.rank, nodes, lengths)

    def _backward(self, iteration: int, trajectories: Trajectories, itinerary: Itinerary) -> int:
        n, added = self.plan.states, 0
        table = self.table if itinerary is self._usual else None
        if table is not None:
            with self.meeting.attempt():
                table.lay_out(self.starts, trajectories.states)
            with self.ledger.communicating():
                table.fence()
        for depth in reversed(range(itinerary.depth)):
            step = itinerary.step(depth)
            if not step.receivers:
                continue
            begin, solved = time.perf_counter(), self.ledger.lp_solves
            own = self._records(iteration, depth, step, trajectories, table)
            turn = time.perf_counter()
            if table is not None:
                with self.ledger.communicating():
                    table.fence()
                own = table.own_records()
            rows = self.meeting.gather(own, step.counts)
            for node, (at, trajectory) in step.receivers.items():
                with self.ledger.communicating():
                    self.pools[node].append(rows[at, 0], rows[at, 1 : 1 + n], iteration, trajectory, depth)
                if self.memories:
                    self.memories[node].add(rows[at, 1 + n :])
            added += len(rows)
            if not self.report.listening:
                continue
            self.report.emit(
                StageFinished,
                iteration=iteration,
                depth=depth,
                nodes=tuple(self.plan.nodes[node].name for node in step.receivers),
                cuts=len(rows),
                lp_solves=self.ledger.lp_solves - solved,
                solve_s=turn - begin,
                exchange_s=time.perf_counter() - turn,
            )
        return added

    def _records(
        self, iteration: int, depth: int, step: Step, trajectories: Trajectories, table: Table | None
    ) -> F64:
        """This rank's records of one depth; those made at a table are left there instead."""
        count = step.counts[self.comm.rank]
        own = np.zeros((count, self.cutting.width))
        if self.meeting.failed:
            return own
        with self.meeting.attempt():
            if table is not None:
                self.cutting.dealt(table, iteration=iteration, depth=depth)
            elif count:
                state, first = trajectories.states[depth], self.block.start
                own = self.cutting.own(step, count, state, self.starts, iteration=iteration, first=first)
        return own

    def _bound(self, iteration: int, upper: Spread, added: int) -> None:
        """Append this iteration's numbers to the history."""
        outcomes = self.root.counts(self.split)
        own = np.zeros(outcomes[self.comm.rank])
        with self.meeting.attempt():
            own = self.root.solve(self.solving, self.starts, self.block, iteration)
        ledger = self.ledger
        counted = np.array([ledger.lp_solves, ledger.simplex_iterations, ledger.retries], np.float64)
        counts = tuple(3 + count for count in outcomes)
        everybody = self.meeting.gather(np.concatenate([counted, own])[:, None], counts)[:, 0]
        heads = np.cumsum(counts) - counts
        objectives = np.delete(everybody, np.concatenate([heads, heads + 1, heads + 2]))
        self.retries += int(everybody[heads + 2].sum())
        history = self.history
        history.lower_bound.append(self.root.bound(self.measures[ROOT], objectives))
        history.upper_bound.append(upper.mean)
        history.deviation.append(upper.deviation)
        history.confidence.append(upper.confidence)
        history.cuts_added.append(added)
        history.cuts_total.append(sum(pool.count for pool in self.pools.values()))
        history.lp_solves.append(int(everybody[heads].sum()))
        history.simplex_iterations.append(int(everybody[heads + 1].sum()))

    def _select(self, iteration: int) -> None:
        rule = self.options.selection
        if rule is not None and iteration % rule.every == 0:
            begin = time.perf_counter()
            for node, memory in self.memories.items():
                pool = self.pools[node]
                pool.select(memory.choose(rule, pool.view()))
            active = sum(pool.active_count for pool in self.pools.values())
            self.report.emit(
                SelectionFinished,
                iteration=iteration,
                cuts=self.history.cuts_total[-1],
                active=active,
                elapsed_s=time.perf_counter() - begin,
            )
        self.history.cuts_active.append(sum(pool.active_count for pool in self.pools.values()))

    def _tell(self, iteration: int, forward_s: float, backward_s: float, elapsed_s: float) -> None:
        history, seen = self.history, self.problem.as_seen
        self.report.emit(
            IterationFinished,
            iteration=iteration,
            lower_bound=seen(history.lower_bound[-1]),
            upper_bound=seen(history.upper_bound[-1]),
            upper_bound_std=history.deviation[-1],
            confidence=history.confidence[-1],
            gap=relative_gap(history.lower_bound[-1], history.upper_bound[-1]),
            cuts_added=history.cuts_added[-1],
            cuts_active=history.cuts_active[-1],
            lp_solves=history.lp_solves[-1],
            simplex_iterations=history.simplex_iterations[-1],
            forward_s=forward_s,
            backward_s=backward_s,
            elapsed_s=elapsed_s,
            total_s=sum(history.elapsed_s),
        )

    def _simulate(self, iteration: int) -> F64 | None:
        """The costs of as many in-sample scenarios as the stopping rules ask for, or None."""
        scenarios = self.options.stopping.simulations(iteration)
        if not scenarios:
            return None
        sampler = InSample(self.problem, self.options.seed, max_depth=self.options.max_depth)
        return simulate_costs(self.meeting, self.plan, self.solving, sampler, scenarios)

    def _decide_stop(self, simulated: F64 | None, *, resuming: bool = False) -> None:
        """Ask the rules, the listeners and the interrupt, agree, and write a checkpoint if one is due."""
        word, stop = GO_ON, None
        due, due_if_last = False, False
        with self.meeting.attempt():
            if self.comm.rank == 0:
                stop = self.options.stopping.check(self._progress(simulated))
            if stop is not None:
                word = RULE_FIRED
            elif self._should_stop is not None and self._should_stop():
                word = INTERRUPTED
            elif self.report.stop_requested:
                word = LISTENER_ASKED
            if self.comm.rank == 0 and self._checkpoint is not None and not resuming:
                # Whether this iteration is the last one is known after the gather only: any rank may end it.
                due, due_if_last = (
                    self._checkpoint.due(len(self.history), last=last) for last in (False, True)
                )
        own = np.array([[word, float(due), float(due_if_last)]])
        words = self.meeting.gather(own, (1,) * self.comm.size)
        if words[0, 0] == RULE_FIRED:
            text = self.meeting.tell("" if stop is None else f"{stop.converged:d}{stop.reason}")
            self.stop = Stop(text[1:], text[:1] == "1")
        elif np.any(words[:, 0] == INTERRUPTED):
            self.stop = Stop("interrupted", False)
        elif np.any(words[:, 0] == LISTENER_ASKED):
            self.stop = Stop("callback", False)
        if words[0, 1 if self.stop is None else 2]:
            self._write_checkpoint()

    def _progress(self, simulated: F64 | None) -> Progress:
        history = self.history
        return Progress(
            np.array(history.lower_bound),
            np.array(history.upper_bound),
            np.array(history.deviation),
            self.report.elapsed_s,
            simulated,
        )

    def _write_checkpoint(self) -> None:
        begin = time.perf_counter()
        starts = gather_starts(self.comm, self.split, self.starts)
        if self.comm.rank != 0 or self._checkpoint is None:
            return
        with self.meeting.attempt():
            state = TrainingState(
                fingerprint=self.problem.fingerprint,
                options=self.options.key(),
                history=History.of(self.history.arrays()),
                cuts={node: pool.cuts() for node, pool in self.pools.items()},
                starts=starts,
                points={node: memory.all_points() for node, memory in self.memories.items()},
            )
            receipt = self._checkpoint.write(state)
            self.report.emit(
                CheckpointWritten,
                iteration=len(self.history),
                path=receipt.path,
                size_bytes=receipt.size_bytes,
                elapsed_s=time.perf_counter() - begin,
            )

    def finish(self) -> TrainingOutcome:
        """Compose the outcome, the same on every rank (collective)."""
        assert self.stop is not None
        self._check_bound()
        if self.retries:
            self._warn(
                f"some LPs did not end optimal at once: {self.retries} retries were needed (cold, another "
                "simplex, scaled, interior point). Look at the sizes of the problem's numbers."
            )
        nothing = Cuts.none(self.plan.states)
        cuts = tuple(
            self.pools[node.index].cuts() if node.index in self.pools else nothing for node in self.plan.nodes
        )
        policy = Policy.of(self.problem, cuts, len(self.history), self.history.lower_bound[-1])
        timing = self.ledger.table(self.comm)
        outcome = TrainingOutcome(
            policy, self.stop.reason, self.stop.converged, self.history, timing, tuple(self.warnings)
        )
        self.report.emit(
            TrainingFinished,
            reason=outcome.reason,
            converged=outcome.converged,
            iterations=outcome.iterations,
            lower_bound=outcome.lower_bound,
            upper_bound=outcome.upper_bound,
            gap=outcome.gap,
            cuts=policy.total_cuts,
            policy_digest=policy.digest,
            total_s=sum(self.history.elapsed_s),
            timing=timing.by_rank(),
        )
        self._flush()
        return outcome

    def _check_bound(self) -> None:
        neutral = all(isinstance(measure, Expectation) for measure in self.measures.values())
        fair = isinstance(self.sampler, InSample) and not self.sampler.persistence
        if neutral and fair and not self.problem.shape.cyclic:
            message = bound_above_cost(self.problem, self._progress(None), self.options.forward_passes)
            if message is not None:
                self._warn(message)

    def _warn(self, message: str) -> None:
        self.warnings.append(message)
        self.report.emit(WarningRaised, message=message, iteration=len(self.history))

    def _flush(self) -> None:
        """Raise on all ranks what any of them holds."""
        self.meeting.gather(np.zeros((1, 1)), (1,) * self.comm.size)
