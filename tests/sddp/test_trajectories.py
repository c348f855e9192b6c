"""A growing number of trajectories: a function of the iteration, the same bits on every path, resumable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError, PolicyError
from pycobre.sddp import (
    GrowingTrajectories,
    InteriorPoints,
    IterationLimit,
    Level1,
    TrainOptions,
    simulate,
    train,
)
from pycobre.sddp.codec import decode_options, encode_options
from pycobre.sddp.training import checkpoint
from pycobre.sddp.training.outcome import Receipt
from pycobre.solver import SolverOptions
from pycobre.testing import problems, run_ranks

GROWING = GrowingTrajectories(initial=1, every=2)


def test_the_number_doubles_up_to_all():
    assert [GROWING.count(k, 6) for k in range(1, 10)] == [1, 1, 2, 2, 4, 4, 6, 6, 6]
    assert GrowingTrajectories(8).count(1, 5) == 5
    assert GrowingTrajectories(1, 1).count(10**9, 7) == 7
    options = TrainOptions(6, trajectories=GROWING)
    assert [options.trajectories_in(k) for k in (1, 3, 7)] == [1, 2, 6]
    assert TrainOptions(6).trajectories_in(1) == 6


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: GrowingTrajectories(initial=0),
            "trajectories initial: expected a whole number from 1 on, got 0.",
        ),
        (
            lambda: GrowingTrajectories(every=1.5),
            "trajectories every: expected a whole number from 1 on, got 1.5.",
        ),
        (
            lambda: TrainOptions(trajectories=3),
            "trajectories: expected GrowingTrajectories or None, got int. "
            "The number of all trajectories is forward_passes.",
        ),
    ],
)
def test_schedules_are_checked(make, text):
    with pytest.raises(OptionError) as caught:
        make()
    assert str(caught.value) == text


def test_options_travel():
    options = TrainOptions(trajectories=GROWING)
    assert decode_options(encode_options(options)) == options


CONFIGURATIONS = {
    "linear": (lambda: problems.reservoir(5), {}),
    "selection": (lambda: problems.reservoir(4), {"selection": Level1(every=2)}),
    "interior": (problems.production, {"interior": InteriorPoints()}),
    "cyclic": (problems.reservoir_for_ever, {}),
    "markovian": (problems.valley, {}),
}


def bits(comm, name, native, threads):
    make, more = CONFIGURATIONS[name]
    problem = make()
    solver = SolverOptions(native=native)
    options = TrainOptions(5, IterationLimit(8), threads=threads, solver=solver, trajectories=GROWING, **more)
    outcome = train(problem, comm, options)
    costs = simulate(problem, outcome.policy, 6, comm).total_cost
    return outcome.policy.digest, tuple(outcome.history.cuts_added), costs.tobytes()


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_same_bits_on_every_path(name):
    expected = bits(LocalBackend(), name, None, 1)
    assert expected[1] == tuple(sorted(expected[1])) or name == "cyclic"
    assert bits(LocalBackend(), name, False, 1) == expected
    assert bits(LocalBackend(), name, None, 3) == expected
    assert run_ranks("threads", 2, bits, name, None, 1, timeout=120) == [expected] * 2
    assert run_ranks("threads", 4, bits, name, False, 1, timeout=120) == [expected] * 4
    assert run_ranks("shm", 3, bits, name, None, 1, timeout=120) == [expected] * 3


def test_slots_follow_iterations_and_trajectories():
    cuts = train(
        problems.reservoir(3), LocalBackend(), TrainOptions(4, IterationLimit(5), trajectories=GROWING)
    ).policy.cuts[0]
    assert cuts.iteration.tolist() == [1, 2, 3, 3, 4, 4, 5, 5, 5, 5]
    assert cuts.trajectory.tolist() == [0, 0, 0, 1, 0, 1, 0, 1, 2, 3]


class Keep:
    def __init__(self) -> None:
        self.data: dict[int, bytes] = {}

    def due(self, iteration, *, last):
        return True

    def write(self, state):
        self.data[state.iteration] = checkpoint.pack_checkpoint(state)
        return Receipt("memory", len(self.data[state.iteration]))


def resumed(comm, data):
    state = checkpoint.unpack_checkpoint(data, "here")
    return train(problems.reservoir(4), comm, OPTIONS, state=state).policy.digest


OPTIONS = TrainOptions(5, IterationLimit(9), trajectories=GROWING)


@pytest.mark.parametrize("iteration", [1, 2, 3, 4, 8])
def test_a_resumed_training_has_the_same_bits(iteration):
    """Before, at and after a change of the number, on another number of ranks."""
    keep = Keep()
    whole = train(problems.reservoir(4), LocalBackend(), OPTIONS, checkpoint=keep).policy.digest
    assert resumed(LocalBackend(), keep.data[iteration]) == whole
    assert run_ranks("threads", 3, resumed, keep.data[iteration], timeout=60) == [whole] * 3


def test_another_schedule_is_refused():
    keep = Keep()
    train(problems.reservoir(4), LocalBackend(), OPTIONS, checkpoint=keep)
    state = checkpoint.unpack_checkpoint(keep.data[4], "here")
    with pytest.raises(
        PolicyError, match=r"trajectories was GrowingTrajectories\(initial=1, every=2\), is None"
    ):
        train(problems.reservoir(4), LocalBackend(), replace(OPTIONS, trajectories=None), state=state)


def test_known_optima_are_reached():
    options = TrainOptions(4, IterationLimit(60), trajectories=GrowingTrajectories())
    found = train(problems.reservoir(4), LocalBackend(), options)
    assert found.lower_bound == pytest.approx(275 / 6, rel=1e-9)
