"""Simulation: scenarios under a fixed policy, recorded as columns.

Every scenario starts all its solves from the same bases, those of one pilot solve per node, so that its
numbers depend on the scenario alone: tables are the same bytes whatever the number of ranks, threads and
batches.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.comm import Communicator
from pycobre.errors import OptionError
from pycobre.events import Listener, PassProgress, SimulationFinished, SimulationProgress, SimulationStarted
from pycobre.problem import Problem
from pycobre.sddp.error_agreement import CheckedCollectives, collective_section
from pycobre.sddp.forward import check_paths, pilot, walk
from pycobre.sddp.numbers import spread, weighted
from pycobre.sddp.plan import Plan
from pycobre.sddp.policy import Policy, cuts_of
from pycobre.sddp.prepared import PreparedProblem, prepared_for
from pycobre.sddp.reporter import Reporter
from pycobre.sddp.sampling import InSample, Paths, Sampler
from pycobre.sddp.simulation.recording import Record, Recorder, Simulation
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.sddp.subproblems import SubproblemSolver
from pycobre.sddp.timing import Ledger
from pycobre.solver import SolverOptions
from pycobre.stochastic.streams import DEFAULT_SEED

__all__ = ["SimulateOptions", "simulate", "simulate_costs"]


SIMULATION = 0
"""The iteration number of simulated paths."""


@frozen()
class SimulateOptions:
    """How to simulate. `threads` and `batch` change no bit."""

    seed: int = DEFAULT_SEED  #: of the in-sample paths
    max_depth: int | None = None  #: longest in-sample path on a cyclic graph
    lazy: bool = True  #: LPs take in violated cuts; False: every LP holds all of them
    threads: int = 1  #: of each rank
    batch: int = 256  #: scenarios solved together, depth by depth
    gather: bool = True  #: every rank returns all scenarios; False: only its own block
    solver: SolverOptions = field(default_factory=SolverOptions)

    def __post_init__(self) -> None:
        for name in ("threads", "batch"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name}: expected at least 1, got {getattr(self, name)}.")


def simulate(
    problem: Problem,
    policy: Policy,
    scenarios: int,
    comm: Communicator,
    options: SimulateOptions | None = None,
    *,
    record: Record | None = None,
    sampler: Sampler | None = None,
    on_event: Listener | None = None,
    prepared: PreparedProblem | None = None,
    probability: F64 | None = None,
) -> Simulation:
    """Simulate scenarios 0 … `scenarios` − 1 in contiguous blocks over the ranks.

    `probability` are those of the scenarios, for the mean that listeners hear of; None: all alike.

    Requires: every rank calls it with the same arguments, `on_event` apart.
    Ensures: the same bytes on every rank and for every number of ranks; with `options.gather` false each rank
        returns its own block of scenarios and no rank holds all. `prepared`, of the training before, is used and
        left open.
    On error: as for `train`.
    """
    options = options or SimulateOptions()
    if scenarios < 1:
        raise OptionError(f"scenarios: expected at least 1, got {scenarios}.")
    with collective_section(comm):
        policy.check(problem)
        with prepared_for(problem, comm, options.solver, options.threads, prepared) as ready:
            return _simulate(
                ready, policy, scenarios, options, record or Record(), sampler, on_event, probability
            )


def _simulate(
    prepared: PreparedProblem,
    policy: Policy,
    scenarios: int,
    options: SimulateOptions,
    record: Record,
    sampler: Sampler | None,
    on_event: Listener | None,
    probability: F64 | None,
) -> Simulation:
    problem, comm, plan = prepared.problem, prepared.comm, prepared.plan
    split = Split(scenarios, comm.size)
    block = split.block(comm.rank)
    ledger = Ledger()
    collectives = CheckedCollectives(comm, ledger)
    report = Reporter(collectives, on_event)
    recorder = Recorder(problem, plan, record, block.start, len(block))
    sampler = sampler or InSample(problem, options.seed, max_depth=options.max_depth)
    cuts = {node.index: cuts_of(node, policy) for node in plan.nodes if node.has_future}
    report.emit(SimulationStarted, scenarios=scenarios, ranks=comm.size)
    subproblems = SubproblemSolver(prepared.engine, plan, prepared.openings, cuts, ledger, lazy=options.lazy)
    with collectives.deferred_errors():
        _record(plan, subproblems, sampler, block, options.batch, recorder, report)
    solves = collectives.gather(np.array([[float(ledger.lp_solves)]]), (1,) * comm.size)
    own = recorder.result
    costs = collectives.gather(own.total_cost[:, None], split.counts)[:, 0]
    cost = spread(costs) if probability is None else weighted(costs, probability)
    result = own.gathered(comm, split) if options.gather and comm.size > 1 else own
    report.emit(
        SimulationFinished,
        scenarios=scenarios,
        mean=cost.mean,
        std=cost.std,
        half_width=cost.half_width,
        lp_solves=int(solves.sum()),
        total_s=report.elapsed_s,
    )
    collectives.gather(np.zeros((1, 1)), (1,) * comm.size)
    return result


def _record(
    plan: Plan,
    subproblems: SubproblemSolver,
    sampler: Sampler,
    block: range,
    batch: int,
    recorder: Recorder,
    report: Reporter,
) -> None:
    def enters(depth: int, depths: int, node: int) -> None:
        if report.listens_to(PassProgress):
            name = plan.problem.nodes[node].name
            report.emit(PassProgress, pass_name="simulation", depth=depth, depths=depths, node=name)

    base = pilot(plan, subproblems, iteration=SIMULATION)
    for first in range(block.start, block.stop, batch):
        paths = _paths(plan, sampler, first, min(batch, block.stop - first))
        offset = first - block.start
        recorder.begin(offset, paths)
        starts = Starts.same(base, len(paths))
        for visit in walk(
            plan,
            subproblems,
            starts,
            paths,
            iteration=SIMULATION,
            first=first,
            want_primal=recorder.wants_lp,
            entering=enters,
        ):
            recorder.add(offset, visit)
        done = offset + len(paths)
        report.emit(
            SimulationProgress,
            done=done,
            scenarios=len(block),
            mean=float(recorder.result.total_cost[:done].mean()),
        )


def simulate_costs(
    collectives: CheckedCollectives,
    plan: Plan,
    subproblems: SubproblemSolver,
    sampler: Sampler,
    scenarios: int,
) -> F64:
    """Minimised total costs of scenarios 0 … `scenarios` − 1 under the present cuts (collective)."""
    split = Split(scenarios, collectives.comm.size)
    block = split.block(collectives.comm.rank)
    costs = np.zeros(len(block))
    with collectives.deferred_errors():
        base = pilot(plan, subproblems, iteration=SIMULATION)
        paths = _paths(plan, sampler, block.start, len(block))
        for visit in walk(
            plan, subproblems, Starts.same(base, len(block)), paths, iteration=SIMULATION, first=block.start
        ):
            costs[visit.at] += visit.weight * visit.cost
    return collectives.gather(costs[:, None], split.counts)[:, 0]


def _paths(plan: Plan, sampler: Sampler, first: int, count: int) -> Paths:
    paths = sampler.sample(SIMULATION, first, count)
    check_paths(plan, paths, count)
    return paths
