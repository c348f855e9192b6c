"""The same bits whatever the number of ranks, threads, backends and interruptions."""

from __future__ import annotations

import numpy as np
import pytest
from sddp_runs import Keep, all_fingerprints, fingerprint, interrupted_then_resumed, variants

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError, PolicyError
from pycobre.sddp import IterationLimit, TrainingState, TrainOptions, train
from pycobre.testing import problems, run_ranks

NAMES = list(variants())


@pytest.fixture(scope="module")
def alone() -> dict[str, tuple[str, ...]]:
    return all_fingerprints(LocalBackend(), NAMES, 1)


@pytest.mark.parametrize("name", NAMES)
def test_again_and_with_threads(name, alone):
    assert fingerprint(LocalBackend(), name, 1) == alone[name]
    assert fingerprint(LocalBackend(), name, 2) == alone[name]


def test_more_ranks_than_trajectories(alone):
    """Seven ranks for five trajectories: two of them have nothing to do."""
    some = ["level 1", "risk", "random markov", "random ring"]
    for found in run_ranks("threads", 7, all_fingerprints, some, 1, timeout=200):
        assert found == {name: alone[name] for name in some}


@pytest.mark.parametrize(("backend", "ranks", "threads"), [("shm", 2, 2), ("shm", 3, 1), ("tcp", 2, 1)])
def test_ranks_as_processes(backend, ranks, threads, alone):
    for found in run_ranks(backend, ranks, all_fingerprints, NAMES, threads, timeout=200):
        assert found == alone


@pytest.mark.parametrize("name", NAMES)
def test_resumed_training_is_the_uninterrupted_one(name, alone):
    """Three ranks stop after two iterations; one, then two, go on from the arrays they left."""
    state = run_ranks("threads", 3, interrupted_then_resumed, name, 2)[0]
    found = [interrupted_then_resumed(LocalBackend(), name, 2, state)]
    found += run_ranks("threads", 2, interrupted_then_resumed, name, 2, state)
    for digest, upper in found:
        assert digest == alone[name][0]
        assert alone[name][2].startswith(upper)


def test_states_do_not_depend_on_the_ranks():
    name = "random markov"
    (_, ours), (_, theirs) = (
        interrupted_then_resumed(LocalBackend(), name, 2),
        run_ranks("threads", 3, interrupted_then_resumed, name, 2)[0],
    )
    assert ours.keys() == theirs.keys()
    for key, array in ours.items():
        if key != "history/elapsed_s":
            assert array.tobytes() == theirs[key].tobytes(), key


def test_nothing_is_left_to_do():
    keep = Keep(every=100)
    options = TrainOptions(3, IterationLimit(4))
    first = train(problems.production(), LocalBackend(), options, checkpoint=keep)
    again = train(
        problems.production(),
        LocalBackend(),
        options,
        state=TrainingState.from_arrays(*keep.states[4]),
        checkpoint=keep,
    )
    assert list(keep.states) == [4]
    assert again.iterations == 4
    assert again.policy.digest == first.policy.digest
    assert again.lower_bound == first.lower_bound


def test_another_problem_or_other_options_are_refused_with_the_difference():
    keep = Keep()
    train(problems.production(), LocalBackend(), TrainOptions(3, IterationLimit(1)), checkpoint=keep)
    state = TrainingState.from_arrays(*keep.states[1])
    with pytest.raises(PolicyError, match="the problem has changed"):
        train(problems.newsvendor(), LocalBackend(), TrainOptions(3, IterationLimit(2)), state=state)
    with pytest.raises(PolicyError, match="forward_passes was 3, is 4; seed was 42, is 7"):
        train(problems.production(), LocalBackend(), TrainOptions(4, IterationLimit(2), seed=7), state=state)


def test_a_warm_start_begins_with_the_other_policy_s_cuts():
    problem = problems.reservoir(6)
    trained = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(10)))
    warm = train(
        problem, LocalBackend(), TrainOptions(5, IterationLimit(1), seed=8), warm_start=trained.policy
    )
    cold = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(1), seed=8))
    assert warm.lower_bound >= trained.lower_bound - 1e-9 > cold.lower_bound
    cuts = warm.policy.cuts[0]
    assert len(cuts) == 55
    assert np.count_nonzero(cuts.iteration == 0) == 50
    with pytest.raises(PolicyError, match="expected equal nodes"):
        train(problems.reservoir(4), LocalBackend(), warm_start=trained.policy)
    state = TrainingState("", {}, trained.history, {}, {}, {})
    with pytest.raises(OptionError, match="got both"):
        train(problem, LocalBackend(), warm_start=trained.policy, state=state)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "ranks", "threads"), [("tcp", 3, 2), ("shm", 4, 4), ("tcp", 4, 1)])
def test_more_ranks_as_processes(backend, ranks, threads, alone):
    for found in run_ranks(backend, ranks, all_fingerprints, NAMES, threads, timeout=200):
        assert found == alone
