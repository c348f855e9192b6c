"""A failure anywhere is the same error everywhere, and nobody hangs."""

from __future__ import annotations

import pytest
from sddp_runs import (
    die_in_training,
    different_arguments,
    how_it_fails,
    interrupted_rank,
    with_a_listener_that_stops,
    with_should_stop,
)

from pycobre.comm import LocalBackend
from pycobre.errors import CollectiveFailed, SolverError, WorkerError
from pycobre.problem import Graph, Stage, build
from pycobre.sddp import IterationLimit, TrainOptions, simulate, train
from pycobre.testing import problems, run_ranks

KINDS = {
    "solve": ("SolverError", "node '2', iteration 2, scenario 2, noise from outside the support: "),
    "callback": ("ValueError", "no more of this, says rank 1"),
    "early callback": ("KeyError", "depth"),
    "sampler": ("OSError", "the history file is gone"),
    "foreign class": ("RuntimeError", "_Strange: from another package"),
    "checkpoint": ("OutputError", "checkpoint: no space left"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_rank_raises_the_same_error(kind):
    name, text = KINDS[kind]
    for rank, (raised, said, fields) in enumerate(
        run_ranks("threads", 3, how_it_fails, kind, 1, timeout=200)
    ):
        if kind == "foreign class" and rank == 1:
            name_here = "_Strange"
        elif kind == "sampler":
            name_here = "OSError"
        else:
            name_here = name
        assert raised == name_here
        assert text in said or (kind == "foreign class" and rank == 1)
        if kind == "solve":
            assert (fields["stage"], fields["iteration"], fields["scenario"]) == ("2", 2, 2)
            assert fields["status"] == "infeasible"
            assert fields["rows"] == ("balance",)
            assert list(fields["incoming"]) == ["volume.in"]


@pytest.mark.parametrize(("backend", "kind"), [("shm", "solve"), ("tcp", "callback")])
def test_processes_raise_the_same_error(backend, kind):
    found = run_ranks(backend, 2, how_it_fails, kind, 1, timeout=200)
    assert {raised for raised, _, _ in found} == {KINDS[kind][0]}
    assert all(KINDS[kind][1] in said for _, said, _ in found)


def test_one_process_raises_its_own_error():
    name, said, _ = how_it_fails(LocalBackend(), "callback", 0)
    assert (name, said) == ("ValueError", "no more of this, says rank 0")


def test_a_dead_rank_is_named_by_the_survivors():
    with pytest.raises(ExceptionGroup) as caught:
        run_ranks("shm", 3, die_in_training, 1, timeout=200)
    kinds = [type(error) for error in caught.value.exceptions]
    assert kinds.count(WorkerError) == 1
    survivors = [error for error in caught.value.exceptions if isinstance(error, CollectiveFailed)]
    assert [error.rank for error in survivors] == [1, 1]


def test_ranks_with_other_arguments_are_refused():
    for text in run_ranks("threads", 3, different_arguments, timeout=200):
        assert "expected the same problem and options on every rank" in text
        assert "on ranks [1]" in text


@pytest.mark.parametrize("odd", [0, 2])
def test_an_interrupt_on_any_rank_stops_all_with_a_checkpoint(odd):
    found = run_ranks("threads", 3, with_should_stop, odd, timeout=200)
    assert found == [("interrupted", 3, written) for written in ([3], [], [])]


def test_a_listener_on_any_rank_stops_all():
    assert run_ranks("threads", 3, with_a_listener_that_stops, timeout=200) == [("callback", 2)] * 3


def becomes_infeasible():
    """The second stage needs at least 3 and the noise takes away up to 9: some policies cannot pay."""

    def stage(sp: Stage, t):
        x = sp.state("x", initial=10.0, upper=10.0)
        use = sp.variable("use", upper=8.0)
        loss = sp.noise([0.0, 9.0], name="loss") if t == 2 else 0.0
        sp.add(x.out == x.in_ - use - loss, "balance")
        sp.minimise(-use)

    return build(Graph.linear(2), stage, lower_bound=-100.0, name="no recourse")


def test_a_stage_that_becomes_infeasible_says_where():
    with pytest.raises(SolverError) as caught:
        train(becomes_infeasible(), LocalBackend(), TrainOptions(2, IterationLimit(3)))
    error = caught.value
    assert (error.stage, error.opening, error.status) == ("2", 1, "infeasible")
    assert error.rows == ("balance",)
    assert error.incoming == {"x.in": 2.0}
    assert error.scenario is not None
    assert "node '2', iteration" in str(error)
    assert "opening 1: " in str(error)


def test_what_fails_in_the_first_solves_belongs_to_the_first_iteration():
    def stage(sp: Stage, t):
        x = sp.state("x", initial=10.0, upper=10.0)
        sp.add(x.out == x.in_ - 4.0 * t, "balance")

    with pytest.raises(
        SolverError, match="node '2', iteration 1, scenario 0, opening 0: infeasible"
    ) as caught:
        train(build(Graph.linear(2), stage, lower_bound=0.0), LocalBackend())
    assert (caught.value.stage, caught.value.iteration, caught.value.scenario) == ("2", 1, 0)


def test_simulation_errors_say_where_too():
    feasible = train(problems.hydro_thermal(), LocalBackend(), TrainOptions(2, IterationLimit(1)))
    from sddp_runs import _Poisoned

    class Late(_Poisoned):
        def sample(self, iteration, first, count):
            return super().sample(2, first, count)

    with pytest.raises(SolverError, match="node '2', iteration 0, scenario 2, noise from outside"):
        simulate(
            problems.hydro_thermal(),
            feasible.policy,
            5,
            LocalBackend(),
            sampler=Late(problems.hydro_thermal()),
        )


def test_an_interrupted_rank_tells_the_others():
    found = run_ranks("threads", 3, interrupted_rank, 2, timeout=200)
    assert found[2] == "interrupted"
    assert all("rank 2 aborted: KeyboardInterrupt" in text for text in found[:2])
