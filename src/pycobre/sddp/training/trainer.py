"""One rank's share of a training run: what lives between the steps, and the steps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import TracebackType
from typing import cast

import numpy as np

from pycobre._util.arrays import F64
from pycobre.comm import Communicator, SharedMemoryProvider
from pycobre.errors import OptionError, SolverError
from pycobre.events import Listener
from pycobre.problem import ROOT
from pycobre.sddp.cuts import CutPool, CutRecords, Cuts
from pycobre.sddp.enumeration import Enumeration
from pycobre.sddp.error_agreement import AgreedError, CheckedCollectives
from pycobre.sddp.forward import Trajectories, pilot, run_forward
from pycobre.sddp.numbers import Spread
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.policy import Policy
from pycobre.sddp.prepared import PreparedProblem
from pycobre.sddp.reporter import Reporter
from pycobre.sddp.sampling import InSample, Sampler
from pycobre.sddp.selection import SelectionMemory
from pycobre.sddp.simulation.simulate import simulate_costs
from pycobre.sddp.starts import Starts
from pycobre.sddp.stopping import Stop
from pycobre.sddp.subproblems import SubproblemSolver
from pycobre.sddp.timing import Ledger
from pycobre.sddp.training.backward import CutGenerator
from pycobre.sddp.training.backward_schedule import BackwardSchedule, Step
from pycobre.sddp.training.bound import bound_above_cost, why_an_estimate
from pycobre.sddp.training.division import Division
from pycobre.sddp.training.load_balancing import SharedWorkQueue, local_ranks
from pycobre.sddp.training.log import TrainingLog
from pycobre.sddp.training.numerics import numerical_warnings, recovery_warnings
from pycobre.sddp.training.outcome import Checkpointer, HoldsStates, TrainingOutcome
from pycobre.sddp.training.running_clocks import RunningClocks
from pycobre.sddp.training.snapshot import Snapshot, StartsOfAll
from pycobre.sddp.training.state import History, TrainingState
from pycobre.sddp.training.stop_agreement import StopAgreement
from pycobre.sddp.training.walks import EnumeratedWalks, SampledWalks, Walks

__all__ = ["Trainer"]


class Trainer:
    """Use as a context, so that shared memory is released: `prepare`, `iterate`, `finish`."""

    def __init__(
        self,
        prepared: PreparedProblem,
        comm: Communicator,
        options: TrainOptions,
        sampler: Sampler,
        listener: Listener | None,
        should_stop: Callable[[], bool] | None,
        checkpoint: Checkpointer | None,
    ) -> None:
        problem = self.problem = prepared.problem
        self.comm, self.options, self.sampler, self._checkpoint = comm, options, sampler, checkpoint
        self.ledger = Ledger()
        self.collectives = CheckedCollectives(comm, self.ledger)
        reporter = Reporter(self.collectives, listener)
        self.log = TrainingLog(problem, reporter)
        self.ending = StopAgreement(self.collectives, options, reporter, should_stop, checkpoint)
        self.stop: Stop | None = None
        self.clocks = RunningClocks(self.ledger, comm.size)
        arguments = json.dumps({"problem": problem.fingerprint, **options.key()}, sort_keys=True)
        self.collectives.require_same(arguments, "problem and options")
        self.measures = options.measures(problem)
        self.plan, self.engine = prepared.plan, prepared.engine
        openings = prepared.openings
        provider = cast(SharedMemoryProvider, comm)
        selecting = options.selection is not None
        every = Enumeration.of(problem) if options.enumerated else None
        self.walks: Walks = (
            SampledWalks(self.plan, sampler)
            if every is None
            else EnumeratedWalks(self.plan, every, self.measures)
        )
        self.pools = CutPool.of_nodes(
            provider,
            self.plan,
            lambda node: options.forward_passes if every is None else every.vertices.get(node, 1),
            options.stopping.iteration_limit,
            keep_points=selecting,
        )
        trained = [index for index in self.pools if self.plan.nodes[index].boundary is None]
        self.memories = {index: SelectionMemory() for index in trained if selecting}
        self.subproblems = SubproblemSolver(
            self.engine, self.plan, openings, self.pools, self.ledger, lazy=options.lazy
        )
        self.cut_generator = CutGenerator(
            self.plan,
            self.subproblems,
            openings,
            self.measures,
            with_states=selecting,
            interior=options.interior,
        )
        local = local_ranks(comm, provider, ready=self.engine.native)
        width = self.cut_generator.width
        self._divide: Callable[[int], Division] = lambda count: Division(prepared, comm, count, local, width)
        self.division = self._divide(options.trajectories_in(1))
        self.starts = Starts(len(self.division.block))

    def __enter__(self) -> Trainer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.division.close()
        for pool in self.pools.values():
            pool.close()

    def prepare(self, state: TrainingState | None, warm_start: Policy | None) -> None:
        """Begin afresh, go on from a state, or begin with another policy's cuts (collective)."""
        if state is not None and warm_start is not None:
            raise OptionError("train: expected a state to resume or a policy to start from, got both.")
        with self.collectives.deferred_errors():
            if state is not None:
                state.check(self.problem, self.options)
            if warm_start is not None:
                warm_start.check(self.problem)
        self._flush()
        if state is not None:
            self.log.resume(History.of(state.history.arrays()))
            for node, pool in self.pools.items():
                pool.restore(state.cuts[node], state.points.get(node))
            self._change_division(self.options.trajectories_in(max(1, state.iteration)))
            block = self.division.block
            self.starts = Starts.of(state.starts, np.arange(block.start, block.stop))
        elif warm_start is not None:
            for node, pool in self.pools.items():
                if self.plan.nodes[node].boundary is None:
                    pool.restore(warm_start.cuts[node].as_beginning())
        if state is None:
            for node, pool in self.pools.items():
                if (boundary := self.plan.nodes[node].boundary) is not None:
                    pool.restore(Cuts.of_boundary(boundary))
        cuts = sum(pool.count for pool in self.pools.values())
        self.log.started(self.options, ranks=self.comm.size, cuts=cuts)
        with self.collectives.deferred_errors():
            for message in numerical_warnings(self.plan, self.engine):
                self.log.warn(message)
        if state is None:
            with self.collectives.deferred_errors():
                base = pilot(self.plan, self.subproblems, iteration=1)
                self.starts = Starts.same(base, len(self.division.block))
        self._flush()
        self.ledger.restart()
        self.clocks.restart()
        if state is not None and self.log.iteration:
            self._decide_stop(None, resuming=True)

    def iterate(self) -> Stop | None:
        """One iteration; says why to stop, or None to go on."""
        if self.stop is not None:
            return self.stop
        iteration = self.log.iteration + 1
        begin = time.perf_counter()
        if (before := self._change_division(self.options.trajectories_in(iteration))) is not None:
            self.starts = self.division.starts_from(before, self.starts)
        trajectories, schedule, upper = self._forward(iteration)
        turn = time.perf_counter()
        added = self._backward(iteration, trajectories, schedule)
        turned = time.perf_counter()
        self._bound(iteration, upper, added)
        self._select(iteration)
        ended = time.perf_counter()
        self.ledger.close_iteration(iteration, turn - begin, turned - turn, ended - begin)
        self.log.iteration_finished(turn - begin, turned - turn, ended - begin)
        costs = self._simulate(iteration)
        self._decide_stop(costs)
        return self.stop

    def _change_division(self, count: int) -> Division | None:
        """Divide another number of trajectories over the ranks; the division before, if another (collective)."""
        before = self.division
        if count == before.count:
            return None
        before.close()
        self.division = self._divide(count)
        return before

    def _forward(self, iteration: int) -> tuple[Trajectories, BackwardSchedule, Spread]:
        begin = time.perf_counter()
        block = self.division.block
        count = len(block)
        trajectories = Trajectories.none(count)
        solved = self.ledger.lp_solves
        with self.collectives.deferred_errors():
            trajectories = run_forward(
                self.plan,
                self.subproblems,
                self.starts,
                self.walks.paths(iteration, block),
                iteration=iteration,
                first=block.start,
                entering=self.log.forward_enters,
                leaders=self.walks.leaders(block),
            )
        upper, schedule = self.walks.conclude(self.collectives, self.division, trajectories)
        solves = self.ledger.lp_solves - solved
        self.log.forward_finished(upper, lp_solves=solves, elapsed_s=time.perf_counter() - begin)
        return trajectories, schedule, upper

    def _backward(self, iteration: int, trajectories: Trajectories, schedule: BackwardSchedule) -> int:
        added = 0
        queue = self.division.queue_for(schedule)
        if queue is not None:
            with self.collectives.deferred_errors():
                queue.publish(self.starts, trajectories.states)
            with self.ledger.communicating():
                queue.fence()
        for depth in reversed(range(schedule.depth)):
            step = schedule.step(depth)
            if not step.receivers:
                continue
            self.log.stage_started("backward", depth, schedule.depth, step.receivers)
            begin, counters = time.perf_counter(), self.ledger.counters()
            try:
                turn, gathered = self._records(iteration, depth, step, trajectories, queue)
            except AgreedError as agreed:
                if not self._only_inside(agreed.error, iteration):
                    raise
                self.collectives.retract()
                self.ledger.take_back(counters)
                turn, gathered = self._records(iteration, depth, step, trajectories, queue, inside=False)
            for node, (at, trajectory) in step.receivers.items():
                records = gathered.take(at)
                with self.ledger.communicating():
                    self.pools[node].append(records, iteration, trajectory, depth)
            added += len(gathered.rows)
            self.log.stage_finished(
                depth,
                step.receivers,
                cuts=len(gathered.rows),
                lp_solves=self.ledger.lp_solves - counters[0],
                solve_s=turn - begin,
                exchange_s=time.perf_counter() - turn,
            )
        return added

    def _records(
        self,
        iteration: int,
        depth: int,
        step: Step,
        trajectories: Trajectories,
        queue: SharedWorkQueue | None,
        *,
        inside: bool = True,
    ) -> tuple[float, CutRecords]:
        """When this rank had solved its share of a depth, and the records of all ranks (collective).

        Without `inside` they are made at the trial points, whatever the weights.
        """
        count, generator, division = step.counts[self.comm.rank], self.cut_generator, self.division
        own = generator.none(count)
        whose = division.block if queue is None else queue.trajectories
        if not self.collectives.failed:
            with self.collectives.deferred_errors():
                weights = generator.weights(iteration, whose, division.count) * inside
                if queue is not None:
                    generator.balanced(queue, iteration=iteration, depth=depth, weights=weights)
                elif count:
                    state, first = trajectories.states[depth], whose.start
                    own = generator.static(
                        step, count, state, self.starts, iteration=iteration, first=first, weights=weights
                    )
        turn = time.perf_counter()
        if queue is not None:
            with self.ledger.communicating():
                queue.fence()
            own = queue.own_records()
        return turn, CutRecords(self.collectives.gather(own.rows, step.counts), own.states)

    def _only_inside(self, error: BaseException, iteration: int) -> bool:
        """Whether an error can be one of the interior points alone: trajectories may never come there."""
        everyone = self.cut_generator.weights(iteration, range(self.division.count), self.division.count)
        return (
            isinstance(error, SolverError) and "infeasible" in (error.status or "") and bool(everyone.any())
        )

    def _bound(self, iteration: int, upper: Spread, added: int) -> None:
        """Append this iteration's numbers to the history."""
        root, block = self.division.root, self.division.block
        outcomes = root.counts(self.division.split)
        own = np.zeros(outcomes[self.comm.rank])
        with self.collectives.deferred_errors():
            own = root.solve(self.subproblems, self.starts, block, iteration)
        counted = self.clocks.own()
        counts = tuple(counted.size + count for count in outcomes)
        gathered = self.collectives.gather(np.concatenate([counted, own])[:, None], counts)[:, 0]
        heads = np.cumsum(counts, dtype=np.int64) - np.array(counts, np.int64)
        places = heads[:, None] + np.arange(counted.size)
        objectives = np.delete(gathered, places.reshape(-1))
        lp_solves, simplex_iterations = self.clocks.add(gathered[places])
        self.log.record(
            root.bound(self.measures[ROOT], objectives),
            upper,
            cuts_added=added,
            cuts_total=sum(pool.count for pool in self.pools.values()),
            lp_solves=lp_solves,
            simplex_iterations=simplex_iterations,
        )
        self.log.ranks_measured(self.clocks)

    def _select(self, iteration: int) -> None:
        rule = self.options.selection
        if rule is not None and iteration % rule.every == 0:
            begin = time.perf_counter()
            for node, memory in self.memories.items():
                pool = self.pools[node]
                pool.select(memory.choose(rule, pool.view(), pool.points()))
            active = sum(pool.active_count for pool in self.pools.values())
            self.log.selection_finished(active=active, elapsed_s=time.perf_counter() - begin)
        self.log.history.cuts_active.append(sum(pool.active_count for pool in self.pools.values()))

    def _simulate(self, iteration: int) -> F64 | None:
        """The costs of as many in-sample scenarios as the stopping rules ask for, or None."""
        scenarios = self.options.stopping.simulations(iteration)
        if not scenarios:
            return None
        sampler = InSample(self.problem, self.options.seed, max_depth=self.options.max_depth)
        return simulate_costs(self.collectives, self.plan, self.subproblems, sampler, scenarios)

    def _decide_stop(self, simulated: F64 | None, *, resuming: bool = False) -> None:
        """Agree on whether to stop; hold the state, and write it if a checkpoint is due."""
        self.stop, write, hold = self.ending.decide(self.log, simulated, resuming=resuming)
        if not write and not hold:
            return
        begin, worked = time.perf_counter(), time.thread_time()
        starts = StartsOfAll.gather(self.comm, self.division.split, self.starts)
        if self.comm.rank != 0 or self._checkpoint is None:
            return
        snapshot = Snapshot(
            fingerprint=self.problem.fingerprint,
            options=self.options.key(),
            iteration=self.log.iteration,
            history=self.log.history,
            cuts={node: pool.stored() for node, pool in self.pools.items()},
            starts=starts,
            points={node: self.pools[node].points() for node in self.memories},
        )
        if hold and isinstance(self._checkpoint, HoldsStates):
            self._checkpoint.hold(snapshot.iteration, snapshot.state, time.thread_time() - worked)
        if write:
            with self.collectives.deferred_errors():
                receipt = self._checkpoint.write(snapshot.state())
                self.log.checkpoint_written(receipt, time.perf_counter() - begin)

    def finish(self) -> TrainingOutcome:
        """Compose the outcome, the same on every rank (collective)."""
        assert self.stop is not None
        progress = self.log.progress(None)
        doubt = bound_above_cost(self.problem, self.measures, self.sampler, progress, self.options)
        for warning in filter(None, (doubt, *recovery_warnings(*map(int, self.clocks.recovered)))):
            self.log.warn(warning)
        cuts = CutPool.of_all_nodes(self.pools, self.plan)
        history = self.log.history
        policy = Policy.of(self.problem, cuts, len(history), history.final_lower_bound)
        outcome = TrainingOutcome(
            policy,
            self.stop.reason,
            self.stop.converged,
            history,
            self.ledger.table(self.comm),
            tuple(self.log.warnings),
            why_an_estimate(self.problem),
        )
        self.log.finished(outcome)
        self._flush()
        return outcome

    def _flush(self) -> None:
        """Raise on all ranks what any of them has deferred."""
        self.collectives.gather(np.zeros((1, 1)), (1,) * self.comm.size)
