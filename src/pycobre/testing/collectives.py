"""The bodies of `CommunicatorTests` that end well: each runs on every rank, with that rank's communicator.

Expected values come from the definitions in the contract, written out with NumPy; nothing here uses the
package's own fold or checks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pycobre.comm.api import Buffer, Communicator, ReduceOp
from pycobre.testing.values import FAMILIES, MOVABLE, REDUCIBLE, contribution, expect_same

FLOAT = np.dtype(np.float64)


def gather(
    comm: Communicator, counts: list[int], displs: list[int], length: int, dtype: np.dtype[Any], salt: int = 0
) -> None:
    """One `allgatherv`, checked in full: the ranges, the gaps between them, and `send` itself."""
    send = contribution(comm.rank, counts[comm.rank], dtype, salt)
    recv = contribution(99, length, dtype, salt)
    expected = recv.copy()
    for rank, (count, displ) in enumerate(zip(counts, displs, strict=True)):
        expected[displ : displ + count] = contribution(rank, count, dtype, salt)
    comm.allgatherv(send, recv, counts, displs)
    expect_same(recv, expected, f"allgatherv of {counts} at {displs}")
    expect_same(send, contribution(comm.rank, counts[comm.rank], dtype, salt), "send after allgatherv")


def packed(counts: list[int]) -> list[int]:
    """Displacements without gaps, in rank order."""
    return [sum(counts[:rank]) for rank in range(len(counts))]


def prove_usable(comm: Communicator) -> None:
    """Every collective once: the communicator works and the ranks are in step."""
    counts = [rank + 1 for rank in range(comm.size)]
    gather(comm, counts, packed(counts), sum(counts), FLOAT, salt=7)
    recv = np.zeros(1, np.int64)
    comm.allreduce(np.array([comm.rank + 1]), recv, ReduceOp.SUM)
    assert recv[0] == comm.size * (comm.size + 1) // 2, f"allreduce gave {recv[0]}"
    buf = np.full(3, comm.rank)
    comm.broadcast(buf, comm.size - 1)
    assert (buf == comm.size - 1).all(), f"broadcast gave {buf}"
    comm.barrier()


def identity(comm: Communicator) -> tuple[int, int]:
    """Rank and size, read from several threads."""
    seen: set[tuple[int, int]] = set()
    threads = [threading.Thread(target=lambda: seen.add((comm.rank, comm.size))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {(comm.rank, comm.size)}
    return comm.rank, comm.size


def gather_heterogeneous(comm: Communicator) -> None:
    """Different counts, ranks that contribute nothing, nobody contributing anything, one element each."""
    size = comm.size
    for counts in (
        [3 * rank + 1 for rank in range(size)],
        [0 if rank % 2 else 5 for rank in range(size)],
        [0 if rank % 2 == 0 else 5 for rank in range(size)],
        [0] * (size - 1) + [4],
        [0] * size,
        [1] * size,
    ):
        gather(comm, counts, packed(counts), sum(counts), FLOAT)


def gather_displaced(comm: Communicator) -> None:
    """Gaps, reversed and rotated order, a receive buffer longer than needed."""
    size = comm.size
    counts = [rank + 2 for rank in range(size)]
    gaps = [displ + 3 * (rank + 1) for rank, displ in enumerate(packed(counts))]
    gather(comm, counts, gaps, gaps[-1] + counts[-1] + 5, FLOAT)
    length = sum(counts)
    reverse = [length - displ - count for displ, count in zip(packed(counts), counts, strict=True)]
    gather(comm, counts, reverse, length, FLOAT)
    rotated = [(rank + 1) % size * 10 + 1 for rank in range(size)]
    gather(comm, counts, rotated, 10 * size + 10, FLOAT)


def gather_large(comm: Communicator) -> None:
    """Several megabytes from each rank, of different sizes, twice in a row."""
    counts = [400_000 + 1_000 * rank + 1 for rank in range(comm.size)]
    for salt in (1, 2):
        gather(comm, counts, packed(counts), sum(counts), FLOAT, salt)


def gather_dtypes(comm: Communicator, family: str) -> None:
    """All dtypes of one family, with a rank that sends nothing where there are several."""
    counts = [4 + rank for rank in range(comm.size)]
    if comm.size > 1:
        counts[1] = 0
    for name in FAMILIES[family]:
        gather(comm, counts, packed(counts), sum(counts), MOVABLE[name])


def any_shape(comm: Communicator) -> None:
    """Arrays of any shape, read-only senders, zero dimensions: the unit is the element."""
    size = comm.size
    send = contribution(comm.rank, 6, FLOAT).reshape(2, 3)
    send.flags.writeable = False
    recv = np.zeros((size, 3, 2))
    comm.allgatherv(send, recv, [6] * size, [6 * rank for rank in range(size)])
    expected = np.concatenate([contribution(rank, 6, FLOAT) for rank in range(size)])
    expect_same(recv.reshape(-1), expected, "allgatherv of matrices")
    total = np.zeros((3, 2))
    comm.allreduce(send, total, ReduceOp.MAX)
    expect_same(total.reshape(-1), expected.reshape(size, 6).max(axis=0), "allreduce of matrices")
    scalar, result = np.array(float(comm.rank)), np.array(0.0)
    comm.allreduce(scalar, result, ReduceOp.MAX)
    assert result == size - 1, f"allreduce of scalars gave {result}"
    grid = np.full((2, 2), comm.rank)
    if comm.rank == 0:
        grid.flags.writeable = False
    comm.broadcast(grid, 0)
    assert (grid == 0).all(), "broadcast of a matrix from a read-only root"


def fold(parts: list[Buffer], op: ReduceOp) -> Buffer:
    """The definition: from the left, in rank order, one scalar at a time."""
    columns = []
    with np.errstate(all="ignore"):
        for column in zip(*parts, strict=True):
            value = column[0]
            for item in column[1:]:
                if op is ReduceOp.SUM:
                    value = value + item
                elif np.isnan(value) or np.isnan(item):
                    value = value if np.isnan(value) else item
                elif op is ReduceOp.MIN:
                    value = value if value < item else item
                else:
                    value = value if value > item else item
            columns.append(value)
    return np.array(columns, parts[0].dtype)


def reduce_parts(comm: Communicator, parts: list[Buffer], op: ReduceOp, what: str) -> None:
    """One `allreduce` of the given contributions, checked against the definition."""
    recv = np.zeros_like(parts[0])
    comm.allreduce(parts[comm.rank].copy(), recv, op)
    expect_same(recv, fold(parts[: comm.size], op), what)


def reduce_dtypes(comm: Communicator, op: ReduceOp) -> None:
    """All integers and floats; integers wrap around."""
    for name, dtype in REDUCIBLE.items():
        for count in (1, 7):
            parts = [contribution(rank, count, dtype) for rank in range(comm.size)]
            reduce_parts(comm, parts, op, f"allreduce({op.value}) of {count} x {name}")
        if dtype.kind in "iu":
            limits = [np.array([np.iinfo(dtype).max, np.iinfo(dtype).min], dtype) for _ in range(comm.size)]
            reduce_parts(comm, limits, op, f"allreduce({op.value}) at the limits of {name}")


def reduce_special(comm: Communicator, op: ReduceOp) -> None:
    """NaN from each rank in turn, infinities, and zeros of either sign in every order."""
    size = comm.size
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        parts = [np.full(size + 2, float(rank), dtype) for rank in range(size)]
        for rank in range(size):
            parts[rank][rank] = np.nan
            parts[rank][size] = np.inf
            parts[rank][size + 1] = np.inf if rank % 2 else -np.inf
        reduce_parts(comm, parts, op, f"allreduce({op.value}) with NaN and infinities")
        orders = [
            [0.0 if pattern >> rank & 1 else -0.0 for pattern in range(2**size)] for rank in range(size)
        ]
        zeros = [np.array(order, dtype) for order in orders]
        reduce_parts(comm, zeros, op, f"allreduce({op.value}) of signed zeros")


def reduce_in_rank_order(comm: Communicator) -> None:
    """Sums whose value depends on the order of the terms, small and spread over any chunk or slice."""
    terms = [1e16, 1.0, -1e16, 1.0]
    parts = [
        np.array([terms[rank % 4], terms[(rank + 1) % 4], 0.1 * (rank + 1)]) for rank in range(comm.size)
    ]
    reduce_parts(comm, parts, ReduceOp.SUM, "allreduce of terms that cancel")
    for count in (1_000, 600_001):
        values = [contribution(rank, count, FLOAT, salt=count) for rank in range(comm.size)]
        expected = values[0].copy()
        for value in values[1:]:
            expected = expected + value
        recv = np.empty(count)
        comm.allreduce(values[comm.rank], recv, ReduceOp.SUM)
        expect_same(recv, expected, f"allreduce of {count} values")


def broadcast_dtypes(comm: Communicator, family: str) -> None:
    """All dtypes of one family, from the first and the last root; no element, one, several."""
    for name in FAMILIES[family]:
        dtype = MOVABLE[name]
        for root in {0, comm.size - 1}:
            for count in (0, 1, 9):
                buf = contribution(comm.rank, count, dtype)
                comm.broadcast(buf, root)
                expect_same(buf, contribution(root, count, dtype), f"broadcast of {count} {name} from {root}")


def broadcast_large(comm: Communicator) -> None:
    """Several megabytes, from the last root and then the first."""
    for root in (comm.size - 1, 0):
        buf = contribution(comm.rank, 500_001, FLOAT)
        comm.broadcast(buf, root)
        expect_same(buf, contribution(root, 500_001, FLOAT), f"large broadcast from {root}")


def barrier_orders(comm: Communicator, directory: str) -> None:
    """What each rank wrote before a barrier is there for every rank after it."""
    for step in range(5):
        Path(directory, f"{comm.size}-{step}-{comm.rank}").touch()
        comm.barrier()
        for rank in range(comm.size):
            assert Path(directory, f"{comm.size}-{step}-{rank}").exists(), f"rank {rank} had not entered"


def many_barriers(comm: Communicator) -> None:
    """1,000 in a row, then proof that nobody is a step ahead."""
    for _ in range(1_000):
        comm.barrier()
    prove_usable(comm)


def closing(comm: Communicator) -> list[str]:
    """What each collective raises after `close`, which may be called again."""
    prove_usable(comm)
    comm.barrier()
    comm.close()
    comm.close()
    a, b = np.zeros(1), np.zeros(1)
    calls: tuple[Callable[[], None], ...] = (
        lambda: comm.allgatherv(a, b, [1] * comm.size, list(range(comm.size))),
        lambda: comm.allreduce(a, b, ReduceOp.SUM),
        lambda: comm.broadcast(a),
        lambda: comm.barrier(),
    )
    raised = []
    for call in calls:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - its type is the result
            raised.append(type(error).__name__)
        else:
            raised.append("nothing")
    comm.abort("nobody hears this")
    return raised
