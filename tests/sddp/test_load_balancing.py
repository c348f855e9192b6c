"""Dynamic load balancing in the backward pass: whichever rank solves a trajectory, its cut is the same."""

import threading
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sddp_runs import PATIENT

from pycobre.comm import LocalBackend
from pycobre.sddp import IterationLimit, TrainOptions, train
from pycobre.sddp.cuts import CutRecords
from pycobre.sddp.plan import Plan
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.sddp.training.backward import CutGenerator
from pycobre.sddp.training.load_balancing import SharedWorkQueue, local_ranks
from pycobre.solver import BasisBlock, SolverOptions
from pycobre.solver.native import why_not_native
from pycobre.testing import problems, run_ranks

compiled = pytest.mark.skipif(why_not_native() is not None, reason=f"no compiled path: {why_not_native()}")


class Node:
    """A node's communicator that says what ranks 0, 1, … of the node would."""

    def __init__(self, said):
        self.said, self.size = np.array(said, np.int64), len(said)

    def split_local(self):
        return nullcontext(self)

    def allgatherv(self, send, recv, counts, displs):
        assert sum(counts) == recv.size
        assert tuple(displs) == tuple(range(0, 2 * self.size, 2))
        recv[...] = self.said


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([(4, 1), (5, 1), (6, 1)], range(4, 7)),
        ([(5, 1), (4, 1), (6, 1)], range(4, 7)),
        ([(4, 1), (5, 0), (6, 1)], range(5, 6)),  # one of them has no compiled solver
        ([(3, 1), (5, 1), (7, 1)], range(5, 6)),  # ranks placed on nodes in turn: not consecutive
        ([(5, 1)], range(5, 6)),
    ],
)
def test_local_ranks_are_ready_and_consecutive(said, expected):
    class Comm:
        rank = 5

    assert local_ranks(Comm(), Node(said), ready=True) == expected


def bases(rng, plan, node, count):
    lp = plan.nodes[node].model.template
    sizes = rng.integers(0, plan.states + 2, count)
    return BasisBlock(
        np.ones(count, np.uint8),
        rng.integers(0, 5, (count, lp.num_cols)).astype(np.int8),
        rng.integers(0, 5, (count, lp.num_rows)).astype(np.int8),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        rng.integers(0, 1000, sizes.sum()).astype(np.int32),
    )


def through_a_queue(comm, seed, passes, rounds):
    """Publish random starts of the own trajectories; return what every rank sees, and the own records."""
    plan = Plan.of(problems.production())
    split = Split(passes, comm.size)
    block = split.block(comm.rank)
    queue = SharedWorkQueue(comm, plan, split, comm.rank, range(comm.size), 3)
    seen = []
    for turn in range(rounds):
        rng = np.random.default_rng((seed, turn))
        whole = {node: bases(rng, plan, node, passes) for node in plan.linear_order.tolist()}
        states = [rng.random((passes, plan.states)) for _ in plan.linear_order]
        mine = np.arange(block.start, block.stop)
        starts = Starts.of({node: (basis, np.zeros((passes, 0))) for node, basis in whole.items()}, mine)
        queue.publish(starts, [state[mine] for state in states] if len(mine) else [])
        queue.fence()
        same = all(
            np.array_equal(queue.states(depth), states[depth])
            and all(
                a.tobytes() == b.tobytes()
                for a, b in zip(queue.bases(depth).arrays, whole[node].arrays, strict=True)
            )
            for depth, node in enumerate(plan.linear_order.tolist())
        )
        counter = queue.reset_counter()
        fresh = int(counter[0]) == 0
        queue.fence()
        counter[0] = 99  # used up, by every rank alike
        # Every rank makes the records of the trajectories after its own, as if it had been faster.
        taken = np.zeros(passes, bool)
        taken[(mine + len(mine)) % passes if len(set(split.counts)) == 1 else mine] = True
        queue.put(taken, CutRecords((1000.0 * turn + np.flatnonzero(taken))[:, None] * np.ones(3), 1))
        queue.fence()
        records = np.array_equal(queue.own_records().rows, (1000.0 * turn + mine)[:, None] * np.ones(3))
        comm.barrier()
        seen.append((same, fresh, records))
    queue.close()
    return seen


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 4))
@settings(PATIENT, max_examples=15)
def test_what_ranks_publish_is_what_all_see(seed, passes, ranks):
    found = run_ranks("threads", ranks, through_a_queue, seed, passes, 3, timeout=60)
    assert found == [[(True, True, True)] * 3] * ranks


def test_processes_share_a_queue():
    assert run_ranks("shm", 2, through_a_queue, 1, 6, 4, timeout=60) == [[(True, True, True)] * 4] * 2


def leave_all_to_rank_zero(monkeypatch):
    """Rank 1 begins no step before rank 0 has come to its end."""
    original = CutGenerator.balanced
    finished = [threading.Event() for _ in range(100)]
    steps = {0: 0, 1: 0}

    def balanced(generator, queue, **step_of):
        rank = 0 if queue._leads else 1
        step, steps[rank] = steps[rank], steps[rank] + 1
        if rank == 1:
            assert finished[step].wait(60)
        original(generator, queue, **step_of)
        finished[step].set()

    monkeypatch.setattr(CutGenerator, "balanced", balanced)


def train_on(comm, native=None):
    options = TrainOptions(6, IterationLimit(4), solver=SolverOptions(native=native))
    outcome = train(problems.reservoir(5), comm, options)
    return outcome.policy.digest, [each.lp_solves for each in outcome.timing.by_rank()]


@compiled
def test_a_rank_that_comes_late_finds_its_work_done(monkeypatch):
    """Rank 0 makes every cut, the other rank's too; the policy is that of one rank."""
    alone, (total,) = train_on(LocalBackend())
    leave_all_to_rank_zero(monkeypatch)
    found = run_ranks("threads", 2, train_on, timeout=120)
    assert {digest for digest, _ in found} == {alone}
    first, second = found[0][1]
    assert first + second == total
    forward = 4 * 3 * 5  # iterations × own trajectories × stages
    openings_of_the_root = 4 * 3
    assert second <= forward + openings_of_the_root < first


@compiled
def test_ranks_without_the_compiled_solver_keep_their_own_trajectories():
    alone, _ = train_on(LocalBackend())
    found = run_ranks("threads", 2, train_on, False, timeout=120)
    assert {digest for digest, _ in found} == {alone}
    least = 4 * 3 * (5 + 4 * 3)  # iterations × own trajectories × (stages forward + openings backward)
    assert all(min(solves) >= least for _, solves in found)
