"""One preparation for training and simulation: the same bits, and refused where it does not fit."""

import pytest

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError
from pycobre.sddp import IterationLimit, PreparedProblem, SimulateOptions, TrainOptions, simulate, train
from pycobre.sddp.plan import Plan
from pycobre.solver import SolverOptions
from pycobre.testing import problems, run_ranks

OPTIONS = TrainOptions(4, IterationLimit(5))


def separately(comm):
    problem = problems.reservoir(4)
    policy = train(problem, comm, OPTIONS).policy
    found = simulate(problem, policy, 9, comm)
    return policy.to_bytes(), found.total_cost.tobytes(), found.state.tobytes()


def with_one_preparation(comm):
    problem = problems.reservoir(4)
    with PreparedProblem(problem, comm) as prepared:
        policy = train(problem, comm, OPTIONS, prepared=prepared).policy
        found = simulate(problem, policy, 9, comm, prepared=prepared)
        again = simulate(problem, policy, 9, comm, prepared=prepared)
    assert found.total_cost.tobytes() == again.total_cost.tobytes()
    return policy.to_bytes(), found.total_cost.tobytes(), found.state.tobytes()


@pytest.mark.parametrize(("backend", "ranks"), [("threads", 1), ("threads", 3), ("shm", 2)])
def test_simulation_with_the_preparation_of_training_gives_the_same_bits(backend, ranks):
    expected = separately(LocalBackend())
    assert run_ranks(backend, ranks, with_one_preparation, timeout=60) == [expected] * ranks


def test_it_is_prepared_once(monkeypatch):
    made, original = [], Plan.of.__func__
    monkeypatch.setattr(
        Plan, "of", classmethod(lambda cls, problem: made.append(1) or original(cls, problem))
    )
    with_one_preparation(LocalBackend())
    assert made == [1]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda problem, comm: (problems.reservoir(4), comm, None), "problem"),
        (lambda problem, comm: (problem, LocalBackend(), None), "communicator"),
        (lambda problem, comm: (problem, comm, SolverOptions(native=False)), "solver options and threads"),
    ],
)
def test_a_preparation_for_something_else_is_refused(change, what):
    problem, comm = problems.reservoir(4), LocalBackend()
    policy = train(problem, comm, OPTIONS).policy
    with PreparedProblem(problem, comm) as prepared:
        other, elsewhere, solver = change(problem, comm)
        options = SimulateOptions(solver=solver or SolverOptions())
        with pytest.raises(OptionError) as caught:
            simulate(other, policy, 3, elsewhere, options, prepared=prepared)
    assert str(caught.value) == (
        f"prepared: expected the {what} that it was made for, got another. "
        "Leave it out, or make one for these arguments."
    )
