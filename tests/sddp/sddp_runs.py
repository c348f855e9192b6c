"""Functions that ranks run: importable, so that real processes can."""

from __future__ import annotations

import hashlib
import os
from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings

from pycobre.errors import CobreError
from pycobre.events import Event
from pycobre.problem import Boundary, Problem
from pycobre.sddp import (
    CVaR,
    IterationLimit,
    Level1,
    LimitedMemoryLevel1,
    Receipt,
    Record,
    SimulateOptions,
    Simulation,
    TrainingState,
    TrainOptions,
    expectation_and_cvar,
    simulate,
    train,
)
from pycobre.testing import problems
from pycobre.testing.random_problems import Recipe, random_problem

# A busy machine is no reason to fail.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMED = {known.name: known for known in problems.known_problems()}


def digest_of(simulation: Simulation) -> str:
    """One hash of every table of a simulation."""
    digest = hashlib.sha256()
    for item in fields(simulation):
        value = getattr(simulation, item.name)
        if isinstance(value, np.ndarray):
            digest.update(f"{item.name}{value.dtype}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def with_boundary(problem: Problem) -> Problem:
    """The problem with a price of what is left in the end."""
    intercept, slope = np.array([30.0, 12.0, 0.0]), np.array([[-3.0], [-1.0], [0.0]])
    *nodes, last = problem.nodes
    ending = replace(last, boundary=Boundary(intercept, slope), theta_lower=0.0, discount=0.9)
    return replace(problem, nodes=(*nodes, ending))


def variants() -> dict[str, tuple[Problem, TrainOptions]]:
    """Problems and options that together touch every mechanism whose bits could depend on the ranks."""
    five = TrainOptions(forward_passes=5, stopping=IterationLimit(4))
    short = TrainOptions(forward_passes=5, stopping=IterationLimit(4), max_depth=6)
    ring = random_problem(Recipe(graph="ring", states=2, openings=3, first_stage_noise=True), 4)
    markov = random_problem(
        Recipe(graph="markov", stages=3, states=2, controls=2, openings=3, first_stage_noise=True), 8
    )
    tree = random_problem(Recipe(graph="tree", stages=3, states=2, openings=2), 6)
    every = TrainOptions(stopping=IterationLimit(4), enumerated=True)
    return {
        "linear, lazy": (problems.reservoir(5), five),
        "linear, all cuts": (problems.reservoir(5), TrainOptions(5, IterationLimit(4), lazy=False)),
        "level 1": (problems.one_stock(), TrainOptions(5, IterationLimit(5), selection=Level1(every=2))),
        "limited memory": (
            problems.production(),
            TrainOptions(5, IterationLimit(5), selection=LimitedMemoryLevel1(every=2), lazy=False),
        ),
        "risk": (
            problems.one_stock(),
            TrainOptions(5, IterationLimit(4), risk=expectation_and_cvar(0.4, 0.3), root_risk=CVaR(0.5)),
        ),
        "markov": (problems.valley(), five),
        "random markov": (markov, five),
        "every path of a chain": (problems.reservoir(3), every),
        "every path, with risk": (markov, replace(every, risk=expectation_and_cvar(0.4, 0.3))),
        "every path of a tree": (tree, replace(every, lazy=False, selection=Level1(every=2))),
        "boundary": (with_boundary(problems.reservoir(5)), five),
        "cyclic": (problems.reservoir_for_ever(), short),
        "random ring": (ring, short),
    }


def fingerprint(comm: Any, name: str, threads: int) -> tuple[str, ...]:
    """Everything that must not depend on ranks and threads, as texts that compare exactly."""
    problem, options = variants()[name]
    options = TrainOptions(
        **{f.name: getattr(options, f.name) for f in fields(options)} | {"threads": threads}
    )
    outcome = train(problem, comm, options)
    history = outcome.history
    simulation = simulate(problem, outcome.policy, 11, comm, record=Record(columns="all", rows="all"))
    return (
        outcome.policy.digest,
        " ".join(value.hex() for value in history.lower_bound),
        " ".join(value.hex() for value in history.upper_bound + history.upper_bound_std),
        str((history.cuts_active, history.lp_solves, history.simplex_iterations)),
        outcome.reason,
        digest_of(simulation),
    )


def all_fingerprints(comm: Any, names: list[str], threads: int) -> dict[str, tuple[str, ...]]:
    return {name: fingerprint(comm, name, threads) for name in names}


def known_bounds(comm: Any, names: list[str], iterations: int) -> dict[str, tuple[float, str]]:
    """Final bound and digest of known problems, all in one start of the ranks."""
    found = {}
    for name in names:
        outcome = train(NAMED[name].make(), comm, TrainOptions(6, IterationLimit(iterations)))
        found[name] = (outcome.lower_bound, outcome.policy.digest)
    return found


class Keep:
    """A checkpointer that keeps every n-th state in memory, through plain arrays as a file would."""

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self.states: dict[int, tuple[dict[str, Any], dict[str, np.ndarray]]] = {}

    def due(self, iteration: int, *, last: bool) -> bool:
        return last or iteration % self.every == 0

    def write(self, state: TrainingState) -> Receipt:
        meta, arrays = state.to_arrays()
        self.states[state.iteration] = (meta, {name: array.copy() for name, array in arrays.items()})
        return Receipt("memory", sum(array.nbytes for array in arrays.values()))


def interrupted_then_resumed(comm: Any, name: str, stop_after: int, arrays: Any = None) -> Any:
    """Train `stop_after` iterations and return the state; or, given a state, go on to the end."""
    problem, options = variants()[name]
    if arrays is None:
        keep = Keep()
        train(problem, comm, _stopping_after(options, stop_after), checkpoint=keep)
        return keep.states.get(stop_after)
    outcome = train(problem, comm, options, state=TrainingState.from_arrays(*arrays))
    return outcome.policy.digest, " ".join(value.hex() for value in outcome.history.upper_bound)


def _stopping_after(options: TrainOptions, iterations: int) -> TrainOptions:
    changed = {f.name: getattr(options, f.name) for f in fields(options)}
    return TrainOptions(**changed | {"stopping": IterationLimit(iterations)})


def how_it_fails(comm: Any, kind: str, odd: int) -> tuple[str, str, dict[str, Any]]:
    """Provoke a failure on rank `odd` alone; say what this rank raised, and prove the communicator still works."""
    problem = problems.hydro_thermal()
    more: dict[str, Any] = {}
    if kind == "callback":

        def listener(event: Event) -> None:
            if event.kind == "iteration_finished" and comm.rank == odd:
                raise ValueError(f"no more of this, says rank {odd}")

        more["on_event"] = listener
    elif kind == "early callback":

        def early(event: Event) -> None:
            if event.kind == "stage_finished" and comm.rank == odd:
                raise KeyError("depth")

        more["on_event"] = early
    elif kind == "sampler":
        more["sampler"] = _FailingSampler(problem, comm.rank == odd)
    elif kind == "foreign class":

        def foreign(event: Event) -> None:
            if comm.rank == odd:
                raise _Strange("from another package")

        more["on_event"] = foreign
    elif kind == "solve":
        more["sampler"] = _Poisoned(problem)
    elif kind == "checkpoint":
        more["checkpoint"] = _FullDisk()
    try:
        train(problem, comm, TrainOptions(4, IterationLimit(5)), **more)
    except (CobreError, ValueError, KeyError, OSError, RuntimeError, _Strange) as error:
        seen = {
            name: value for name, value in vars(error).items() if isinstance(value, str | int | tuple | dict)
        }
        comm.barrier()
        return type(error).__name__, str(error), seen
    raise AssertionError("nothing was raised")


class _Strange(Exception):
    pass


class _FailingSampler:
    def __init__(self, problem: Problem, fails: bool) -> None:
        from pycobre.sddp import InSample

        self._inside, self._fails = InSample(problem, 1), fails

    def sample(self, iteration: int, first: int, count: int) -> Any:
        if self._fails and iteration == 3:
            raise OSError(5, "the history file is gone")
        return self._inside.sample(iteration, first, count)


class _Poisoned:
    """Gives scenario 2 of iteration 2 an inflow that no volume can balance."""

    def __init__(self, problem: Problem) -> None:
        from pycobre.sddp import OutOfSample

        def draw(node: int, iteration: int, scenarios: Any, depth: int) -> Any:
            inflow = np.full((len(scenarios), 1), 50.0)
            if iteration == 2 and depth == 1:
                inflow[scenarios == 2] = -1e6
            return inflow

        self._inside = OutOfSample(problem, 1, draw)

    def sample(self, iteration: int, first: int, count: int) -> Any:
        return self._inside.sample(iteration, first, count)


class _FullDisk(Keep):
    def write(self, state: TrainingState) -> Receipt:
        from pycobre.errors import OutputError

        if state.iteration == 2:
            raise OutputError("checkpoint: no space left")
        return super().write(state)


def different_arguments(comm: Any) -> str:
    """Rank 1 trains something else."""
    from pycobre.errors import OptionError

    try:
        train(problems.hydro_thermal(), comm, TrainOptions(seed=comm.rank % 2, stopping=IterationLimit(1)))
    except OptionError as error:
        return str(error)
    return ""


def die_in_training(comm: Any, odd: int) -> str:
    """Rank `odd` is gone in the middle of an iteration."""

    def listener(event: Event) -> None:
        if event.kind == "stage_finished" and comm.rank == odd:
            os._exit(7)

    train(problems.hydro_thermal(), comm, TrainOptions(4, IterationLimit(50)), on_event=listener)
    return "finished"


def with_should_stop(comm: Any, odd: int) -> tuple[str, int, list[int]]:
    """Rank `odd` hears an interrupt after three iterations; also the iterations of the checkpoints."""
    asked = iter([False, False, True])
    keep = Keep(every=100)
    outcome = train(
        problems.hydro_thermal(),
        comm,
        TrainOptions(4, IterationLimit(50)),
        should_stop=(lambda: next(asked)) if comm.rank == odd else None,
        checkpoint=keep,
    )
    return outcome.reason, outcome.iterations, list(keep.states)


def with_a_listener_that_stops(comm: Any) -> tuple[str, int]:
    """The last rank's listener has seen enough after two iterations."""

    def listener(event: Event) -> bool:
        return comm.rank == comm.size - 1 and getattr(event, "iteration", 0) == 2

    outcome = train(problems.hydro_thermal(), comm, TrainOptions(4, IterationLimit(50)), on_event=listener)
    return outcome.reason, outcome.iterations


def interrupted_rank(comm: Any, odd: int) -> str:
    """Rank `odd` is interrupted in the middle of an iteration, as by a second Ctrl-C."""

    def listener(event: Event) -> None:
        if event.kind == "stage_finished" and comm.rank == odd:
            raise KeyboardInterrupt

    try:
        train(problems.hydro_thermal(), comm, TrainOptions(4, IterationLimit(5)), on_event=listener)
    except KeyboardInterrupt:
        return "interrupted"
    except CobreError as error:
        return str(error)
    return "finished"


def few_scenarios(comm: Any, name: str, gather: bool) -> tuple[int, int, str]:
    """Two scenarios on three ranks: one has nothing to simulate."""
    problem, options = variants()[name]
    policy = train(problem, comm, options).policy
    finished: list[Event] = []
    result = simulate(
        problem,
        policy,
        2,
        comm,
        SimulateOptions(gather=gather),
        on_event=lambda event: finished.append(event),
    )
    return result.first, len(result), finished[-1].mean.hex()  # type: ignore[attr-defined]
