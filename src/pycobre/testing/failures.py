"""The bodies of `CommunicatorTests` in which something goes wrong, on one rank or on all."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from pycobre.comm.api import Buffer, Communicator, ReduceOp
from pycobre.errors import CollectiveFailed, InvalidBufferSize, InvalidRoot
from pycobre.testing.collectives import prove_usable

Call = Callable[[Communicator], None]
REASON = "the reservoir is empty"


def _gather(
    comm: Communicator,
    *,
    send: Any = None,
    recv: Any = None,
    counts: list[int] | None = None,
    displs: list[int] | None = None,
) -> None:
    """A valid `allgatherv` of two float64 per rank but for what is given."""
    comm.allgatherv(
        np.zeros(2) if send is None else send,
        np.zeros(2 * comm.size) if recv is None else recv,
        [2] * comm.size if counts is None else counts,
        [2 * rank for rank in range(comm.size)] if displs is None else displs,
    )


def _reduce(comm: Communicator, send: Any, recv: Any, op: Any = ReduceOp.SUM) -> None:
    comm.allreduce(send, recv, op)


def _frozen(count: int) -> Buffer:
    array = np.zeros(count)
    array.flags.writeable = False
    return array


def _unaligned(count: int) -> Buffer:
    return np.zeros(8 * count + 1, np.uint8)[1:].view(np.float64)


def _overlapping(comm: Communicator) -> None:
    buffer = np.zeros(2 * comm.size + 1)
    _gather(comm, send=buffer[:2], recv=buffer[1:])


_OBJECT = np.array([None, None])
_PAIR = np.dtype([("a", "i4"), ("b", "f8")])

#: Calls that violate one precondition, on every rank alike, with what they raise.
VIOLATIONS: dict[str, tuple[type[Exception], Call]] = {
    "gather-counts-short": (InvalidBufferSize, lambda c: _gather(c, counts=[2] * (c.size - 1))),
    "gather-displs-long": (InvalidBufferSize, lambda c: _gather(c, displs=list(range(0, 2 * c.size + 2, 2)))),
    "gather-count-negative": (InvalidBufferSize, lambda c: _gather(c, counts=[-1] * c.size)),
    "gather-displ-negative": (InvalidBufferSize, lambda c: _gather(c, displs=[-2] * c.size)),
    "gather-count-fraction": (TypeError, lambda c: _gather(c, counts=cast(list[int], [2.0] * c.size))),
    "gather-send-size": (InvalidBufferSize, lambda c: _gather(c, send=np.zeros(3))),
    "gather-recv-small": (InvalidBufferSize, lambda c: _gather(c, recv=np.zeros(2 * c.size - 1))),
    "gather-dtypes": (InvalidBufferSize, lambda c: _gather(c, send=np.zeros(2, np.float32))),
    "gather-object": (
        InvalidBufferSize,
        lambda c: _gather(c, send=_OBJECT, recv=np.array([None] * 2 * c.size)),
    ),
    "gather-send-strided": (InvalidBufferSize, lambda c: _gather(c, send=np.zeros(4)[::2])),
    "gather-send-unaligned": (InvalidBufferSize, lambda c: _gather(c, send=_unaligned(2))),
    "gather-recv-strided": (InvalidBufferSize, lambda c: _gather(c, recv=np.zeros(4 * c.size)[::2])),
    "gather-recv-frozen": (InvalidBufferSize, lambda c: _gather(c, recv=_frozen(2 * c.size))),
    "gather-list": (InvalidBufferSize, lambda c: _gather(c, send=[0.0, 0.0])),
    "gather-overlap": (InvalidBufferSize, _overlapping),
    "reduce-sizes": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(2), np.zeros(3))),
    "reduce-empty": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(0), np.zeros(0))),
    "reduce-dtypes": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(2), np.zeros(2, int))),
    "reduce-bool": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(2, bool), np.zeros(2, bool))),
    "reduce-complex": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(2, complex), np.zeros(2, complex))),
    "reduce-structured": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(2, _PAIR), np.zeros(2, _PAIR))),
    "reduce-endian": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(2, ">f8"), np.zeros(2, ">f8"))),
    "reduce-strided": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(4)[::2], np.zeros(2))),
    "reduce-frozen": (InvalidBufferSize, lambda c: _reduce(c, np.zeros(2), _frozen(2))),
    "reduce-list": (InvalidBufferSize, lambda c: _reduce(c, [1.0], np.zeros(1))),
    "reduce-op": (TypeError, lambda c: _reduce(c, np.zeros(1), np.zeros(1), "sum")),
    "broadcast-root-high": (InvalidRoot, lambda c: c.broadcast(np.zeros(1), c.size)),
    "broadcast-root-negative": (InvalidRoot, lambda c: c.broadcast(np.zeros(1), -1)),
    "broadcast-root-fraction": (TypeError, lambda c: c.broadcast(np.zeros(1), cast(int, 0.0))),
    "broadcast-object": (InvalidBufferSize, lambda c: c.broadcast(_OBJECT)),
    "broadcast-strided": (InvalidBufferSize, lambda c: c.broadcast(np.zeros(4)[::2])),
    "broadcast-list": (InvalidBufferSize, lambda c: c.broadcast(cast(Buffer, [1.0]))),
}

#: The operations, by the first word of their violations.
OPERATIONS = {"gather": "allgatherv", "reduce": "allreduce", "broadcast": "broadcast"}


def violate(comm: Communicator, first_word: str) -> None:
    """Violate on every rank, then on one alone; the communicator stays usable and the ranks in step."""
    for name, (error_type, call) in VIOLATIONS.items():
        if not name.startswith(first_word):
            continue
        for violators in ({*range(comm.size)}, {comm.size - 1}):
            if comm.rank in violators:
                raised: Exception | None = None
                try:
                    call(comm)
                except error_type as error:
                    raised = error
                assert raised is not None, f"{name}: expected {error_type.__name__}, got no error"
                if isinstance(raised, InvalidBufferSize):
                    assert raised.operation == OPERATIONS[first_word], f"{name}: blamed {raised.operation}"
            comm.barrier()
        prove_usable(comm)


def violate_between_ranks(comm: Communicator) -> None:
    """The violations that need two ranks: ranges that overlap, and a read-only buffer on a receiver."""
    calls: tuple[Callable[[], None], ...] = (
        lambda: _gather(comm, displs=[max(0, 2 * rank - 1) for rank in range(comm.size)]),
        lambda: comm.broadcast(_frozen(2), 1 if comm.rank == 0 else 0),
    )
    for call in calls:
        try:
            call()
        except InvalidBufferSize:
            prove_usable(comm)
        else:
            raise AssertionError("expected InvalidBufferSize, got no error")


def _allreduce_of(count: int, dtype: Any = np.float64, op: ReduceOp = ReduceOp.SUM) -> Call:
    return lambda comm: comm.allreduce(np.zeros(count, dtype), np.zeros(count, dtype), op)


def _allgatherv_of(counts: Callable[[int], list[int]], dtype: Any = np.float64) -> Call:
    def call(comm: Communicator) -> None:
        each = counts(comm.size)
        displs = [10 * rank for rank in range(comm.size)]
        comm.allgatherv(np.zeros(each[comm.rank], dtype), np.zeros(10 * comm.size, dtype), each, displs)

    return call


def _broadcast_of(count: int, root: int, dtype: Any = np.float64) -> Call:
    return lambda comm: comm.broadcast(np.zeros(count, dtype), root)


#: What most ranks call, what the odd one calls, and the words that must name both sides.
MISMATCHES: dict[str, tuple[Call, Call, tuple[str, ...]]] = {
    "barrier-allreduce": (lambda comm: comm.barrier(), _allreduce_of(4), ("barrier", "allreduce")),
    "broadcast-barrier": (_broadcast_of(3, 0), lambda comm: comm.barrier(), ("broadcast", "barrier")),
    "allgatherv-allreduce": (
        _allgatherv_of(lambda size: [2] * size),
        _allreduce_of(4),
        ("allgatherv", "allreduce"),
    ),
    "allreduce-count": (_allreduce_of(4), _allreduce_of(5), ("4", "5")),
    "allreduce-large-count": (_allreduce_of(400_000), _allreduce_of(3), ("400000", "3")),
    "allreduce-dtype": (_allreduce_of(4), _allreduce_of(4, np.int64), ("float64", "int64")),
    "allreduce-op": (_allreduce_of(4), _allreduce_of(4, op=ReduceOp.MAX), ("sum", "max")),
    "allgatherv-counts": (
        _allgatherv_of(lambda size: [2] * size),
        _allgatherv_of(lambda size: [3] * size),
        ("2", "3"),
    ),
    "allgatherv-dtype": (
        _allgatherv_of(lambda size: [2] * size),
        _allgatherv_of(lambda size: [2] * size, np.int64),
        ("float64", "int64"),
    ),
    "broadcast-root": (_broadcast_of(3, 0), _broadcast_of(3, 1), ("root",)),
    "broadcast-count": (_broadcast_of(3, 0), _broadcast_of(4, 0), ("3", "4")),
    "broadcast-dtype": (_broadcast_of(3, 0), _broadcast_of(3, 0, np.int64), ("float64", "int64")),
}


def mismatch(comm: Communicator, name: str, odd: int) -> None:
    """Rank `odd` calls something else: every rank raises, naming both sides, now and from now on."""
    common, other, words = MISMATCHES[name]
    prove_usable(comm)
    error = _expect_failure(comm, other if comm.rank == odd else common)
    assert error.mpi_error_code == 0, f"mpi_error_code is {error.mpi_error_code}"
    absent = [word for word in words if word not in str(error)]
    assert not absent, f"expected both sides to be named, got no {absent} in: {error}"
    _expect_failure(comm, lambda c: c.barrier())


def _expect_failure(comm: Communicator, call: Call) -> CollectiveFailed:
    try:
        call(comm)
    except CollectiveFailed as error:
        return error
    raise AssertionError("expected CollectiveFailed, got no error")


def _expect_blame(comm: Communicator, rank: int, reason: str = "") -> None:
    """A barrier that cannot complete because of `rank` says so, and so does the next collective."""
    calls: tuple[Call, ...] = (lambda c: c.barrier(), lambda c: c.broadcast(np.zeros(1)))
    for call in calls:
        error = _expect_failure(comm, call)
        assert error.rank == rank, f"expected rank {rank} to be blamed, got {error.rank}: {error}"
        assert reason in str(error), f"expected {reason!r} in: {error}"


def abort(comm: Communicator, odd: int) -> None:
    """Rank `odd` aborts while the others wait."""
    prove_usable(comm)
    if comm.rank == odd:
        comm.abort(REASON)
        comm.abort("said once is enough")
    _expect_blame(comm, odd, REASON)


def leave_by_exception(comm: Communicator, odd: int) -> None:
    """Rank `odd` leaves its `with` block by an exception while the others wait."""
    prove_usable(comm)
    if comm.rank == odd:
        try:
            with comm:
                raise LookupError(REASON)
        except LookupError:
            return
    _expect_blame(comm, odd, REASON)


def leave_by_close(comm: Communicator, odd: int) -> None:
    """Rank `odd` closes while the others wait."""
    prove_usable(comm)
    if comm.rank == odd:
        comm.close()
        return
    _expect_blame(comm, odd)


def die(comm: Communicator, odd: int) -> None:
    """Rank `odd` is killed while the others wait."""
    prove_usable(comm)
    if comm.rank == odd:
        os.kill(os.getpid(), signal.SIGKILL)
    _expect_blame(comm, odd)


def stall(comm: Communicator, odd: int, directory: str) -> None:
    """Rank `odd` lives but does not come until the others have given up."""
    prove_usable(comm)
    if comm.rank == odd:
        pause = threading.Event()
        while len(list(Path(directory).iterdir())) < comm.size - 1:
            pause.wait(0.01)
        return
    _expect_blame(comm, odd)
    Path(directory, str(comm.rank)).touch()


def raise_each(comm: Communicator) -> None:
    """Every rank raises an error with fields, to be pickled on its way to the parent."""
    raise CollectiveFailed("broadcast", 17, f"from rank {comm.rank}", rank=comm.rank)
