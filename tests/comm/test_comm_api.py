"""The base classes: numbering, refusal after close and failure, abort, and what reaches the hooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pycobre.comm import (
    CollectiveFailed,
    Communicator,
    InvalidBufferSize,
    InvalidCommunicator,
    LocalBackend,
    ReduceOp,
    SharedRegion,
)


class Recorder(Communicator):
    """Rank 1 of 3 that writes down what its hooks are given, and fails when told to."""

    def __init__(self) -> None:
        super().__init__(rank=1, size=3)
        self.calls: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None

    def _record(self, *call: Any) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure

    def _allgatherv(self, sequence, send, recv, counts, displs):
        self._record("allgatherv", sequence, counts, displs)

    def _allreduce(self, sequence, send, recv, op):
        self._record("allreduce", sequence, op)

    def _broadcast(self, sequence, buf, root):
        self._record("broadcast", sequence, root)

    def _barrier(self, sequence):
        self._record("barrier", sequence)

    def _close(self):
        self._record("close")

    def _abort(self, reason):
        self._record("abort", reason)


class Region(SharedRegion):
    """Counts its hooks."""

    def __init__(self) -> None:
        super().__init__(np.zeros(3))
        self.fenced = self.closed = 0

    def _fence(self) -> None:
        self.fenced += 1

    def _close(self) -> None:
        self.closed += 1


def call_all(comm: Communicator) -> list[Any]:
    a, b = np.zeros(2), np.zeros(6)
    return [
        lambda: comm.allgatherv(a, b, [2, 2, 2], [0, 2, 4]),
        lambda: comm.allreduce(a, np.zeros(2), ReduceOp.SUM),
        lambda: comm.broadcast(a),
        lambda: comm.barrier(),
    ]


def test_collectives_are_numbered_from_one_and_violations_are_not():
    comm = Recorder()
    comm.barrier()
    with pytest.raises(InvalidBufferSize):
        comm.allreduce(np.zeros(1), np.zeros(2), ReduceOp.SUM)
    for call in call_all(comm):
        call()
    assert [call[:2] for call in comm.calls] == [
        ("barrier", 1),
        ("allgatherv", 2),
        ("allreduce", 3),
        ("broadcast", 4),
        ("barrier", 5),
    ]


def test_hooks_get_plain_ints_whatever_the_caller_passes():
    comm = Recorder()
    comm.allgatherv(np.zeros(2), np.zeros(6), np.array([2, 2, 2]), [np.int8(0), 2, np.uint64(4)])
    comm.broadcast(np.zeros(1), np.int32(2))
    (_, _, counts, displs), (_, _, root) = comm.calls
    assert (counts, displs, root) == ((2, 2, 2), (0, 2, 4), 2)
    assert {type(value) for value in (*counts, *displs, root)} == {int}


def test_close_happens_once_and_everything_is_refused_after_it():
    comm = Recorder()
    comm.close()
    comm.close()
    comm.abort("too late")
    for call in call_all(comm):
        with pytest.raises(InvalidCommunicator, match="closed"):
            call()
    assert comm.calls == [("close",)]


def test_after_a_failure_every_collective_fails_and_says_why():
    comm = Recorder()
    comm.failure = CollectiveFailed("allreduce", 0, "rank 2 died", rank=2)
    with pytest.raises(CollectiveFailed, match="rank 2 died"):
        comm.barrier()
    comm.failure = None
    for call in call_all(comm):
        with pytest.raises(CollectiveFailed, match="failed earlier, in allreduce: rank 2 died") as caught:
            call()
        assert caught.value.rank == 2
        assert isinstance(caught.value.__cause__, CollectiveFailed)
    assert comm.calls == [("barrier", 1)]
    comm.close()
    with pytest.raises(InvalidCommunicator):
        comm.barrier()


def test_any_other_exception_of_a_hook_passes_through():
    comm = Recorder()
    comm.failure = KeyError("a bug")
    with pytest.raises(KeyError):
        comm.barrier()


def test_abort_is_told_once_and_blames_this_rank():
    comm = Recorder()
    comm.abort("no fuel")
    comm.abort("again")
    assert comm.calls == [("abort", "no fuel")]
    with pytest.raises(CollectiveFailed, match="rank 1 aborted: no fuel") as caught:
        comm.barrier()
    assert caught.value.rank == 1


def test_leaving_a_with_block_closes_and_by_an_exception_aborts_first():
    with Recorder() as comm:
        pass
    assert comm.calls == [("close",)]
    with pytest.raises(ZeroDivisionError), Recorder() as comm:
        _ = 1 // 0
    assert [call[0] for call in comm.calls] == ["abort", "close"]
    assert "ZeroDivisionError" in comm.calls[0][1]


def test_closes_even_if_abort_fails():
    comm = Recorder()
    comm.failure = OSError("the wire is cut")
    with pytest.raises(OSError, match="wire"), comm:
        raise LookupError
    assert [call[0] for call in comm.calls] == ["abort", "close"]


def test_repr_shows_rank_size_and_state():
    comm = Recorder()
    assert repr(comm) == "<Recorder rank 1 of 3>"
    comm.close()
    assert repr(comm) == "<Recorder rank 1 of 3, closed>"


def test_a_region_is_closed_once_by_whoever_comes_first():
    region = Region()
    with region:
        region.fence()
        assert region.as_array().sum() == 0
    region.close()
    assert (region.fenced, region.closed) == (1, 1)
    with pytest.raises(InvalidCommunicator, match="the shared region is closed"):
        region.fence()


def test_a_region_that_is_dropped_is_closed():
    closed = []

    class Recording(Region):
        def _close(self) -> None:
            closed.append(True)

    region = Recording()
    del region
    assert closed == [True]


def test_a_region_whose_constructor_failed_is_dropped_quietly():
    class Broken(Region):
        def __init__(self) -> None:
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        Broken()


def test_local_copies_and_does_nothing_else():
    """Identity copies for allgatherv and allreduce, true no-ops for broadcast and barrier."""
    comm = LocalBackend()
    assert (comm.rank, comm.size, comm.is_leader) == (0, 1, True)
    send = np.array([1.0, 2.0])
    recv = np.full(5, 9.0)
    comm.allgatherv(send, recv, [2], [1])
    assert recv.tolist() == [9.0, 1.0, 2.0, 9.0, 9.0]
    total = np.zeros(2)
    comm.allreduce(send, total, ReduceOp.SUM)
    send[0] = 7.0
    assert total.tolist() == [1.0, 2.0]
    assert recv.tolist() == [9.0, 1.0, 2.0, 9.0, 9.0]
    frozen = np.zeros(1)
    frozen.flags.writeable = False
    comm.broadcast(frozen)
    comm.barrier()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((4,), (2, 2)),
        ((2, 2), (4,)),
        ((1, 4), (4,)),
        ((4, 1), (1, 4)),
        ((), (1,)),
        ((1,), ()),
        ((2, 3), (3, 2)),
    ],
)
def test_local_allreduce_between_shapes(given, wanted):
    size = int(np.prod(given))
    send, recv = np.arange(size, dtype=float).reshape(given), np.full(wanted, -1.0)
    LocalBackend().allreduce(send, recv, ReduceOp.MIN)
    assert recv.reshape(-1).tolist() == list(range(size))
