"""The shm backend beyond the conformance suites: every dtype's bits, chunks, direct reads, regions, views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pycobre.comm import Communicator, ReduceOp, ShmBackend
from pycobre.comm.fold import fold_into
from pycobre.testing import run_ranks

SLOT_BYTES = 256 << 10  # what one round carries at up to 32 ranks


def values(rank: int, count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Random bits of that dtype, hence extremes, infinities, signed zeros, subnormals, but one NaN at most.

    Two NaNs may give either one's payload, so only rank 0 has any, in every seventh place.
    """
    rng = np.random.default_rng(1000 + rank)
    data = rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "f":
        ordinary = rng.choice(np.array([0.0, -0.0, 1.5, -1.5, np.inf, 3e-5], dtype), count)
        data = np.where(np.isfinite(data) & (rng.random(count) < 0.5), data, ordinary).astype(dtype)
        if rank == 0:
            data[::7] = np.nan
        # Infinities of both signs make NaN out of nothing; one sign is enough.
        data[data == -np.inf] = 1.0
    return data


def reduce_all(comm: Communicator, letter: str, count: int) -> list[bytes]:
    dtype = np.dtype(letter)
    recv = np.empty(count, dtype)
    results = []
    for op in ReduceOp:
        comm.allreduce(values(comm.rank, count, dtype), recv, op)
        results.append(recv.tobytes())
    return results


@pytest.mark.parametrize("size", [2, 3])
def test_allreduce_has_the_bits_of_the_fold(size: int) -> None:
    count = 1237
    results = run_ranks("shm", size, reduce_letters, "bBhHiIlLqQefdg", count)
    for i, letter in enumerate("bBhHiIlLqQefdg"):
        dtype = np.dtype(letter)
        for j, op in enumerate(ReduceOp):
            expected = np.empty(count, dtype)
            fold_into(expected, [values(rank, count, dtype) for rank in range(size)], op)
            for rank in range(size):
                found = np.frombuffer(results[rank][i][j], dtype)
                same = (found == expected) & (np.signbit(found) == np.signbit(expected))
                both_nan = (found != found) & (expected != expected)
                assert np.all(same | both_nan), f"{dtype} {op} on rank {rank}"


def reduce_letters(comm: Communicator, letters: str, count: int) -> list[list[bytes]]:
    return [reduce_all(comm, letter, count) for letter in letters]


SIZES = [0, 1, 4, 5, 31, 32, 33, SLOT_BYTES - 1, SLOT_BYTES, SLOT_BYTES + 1, 3 * SLOT_BYTES + 5, 3 << 20]


def move_sizes(comm: Communicator) -> None:
    rank, size = comm.rank, comm.size
    for step, nbytes in enumerate(SIZES):
        # Every rank sends another number of bytes, and the ranges lie in reverse order with gaps.
        counts = tuple(nbytes // (1 + (r + step) % size) for r in range(size))
        displs = tuple(sum(counts[r + 1 :]) + 3 * (size - r) for r in range(size))
        recv = np.full(sum(counts) + 3 * size + 3, 255, np.uint8)
        expected = recv.copy()
        for r in range(size):
            expected[displs[r] : displs[r] + counts[r]] = pattern(r, counts[r])
        comm.allgatherv(pattern(rank, counts[rank]), recv, counts, displs)
        assert np.array_equal(recv, expected), f"allgatherv of {nbytes} bytes"
        root = step % size
        buf = pattern(rank, nbytes)
        comm.broadcast(buf, root)
        assert np.array_equal(buf, pattern(root, nbytes)), f"broadcast of {nbytes} bytes"
        if nbytes >= 8:
            summed = np.empty(nbytes // 8, np.int64)
            comm.allreduce(np.arange(nbytes // 8) * (rank + 1), summed, ReduceOp.SUM)
            factor = size * (size + 1) // 2
            assert np.array_equal(summed, np.arange(nbytes // 8) * factor), f"allreduce of {nbytes} bytes"


def pattern(rank: int, nbytes: int) -> np.ndarray[Any, Any]:
    return ((np.arange(nbytes, dtype=np.int64) * 7 + rank * 31) % 251).astype(np.uint8)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_payloads_around_the_slot_size(size: int) -> None:
    run_ranks("shm", size, move_sizes)


def stream_past_the_caches(comm: Communicator) -> None:
    """Receive buffers so large that they are written with streaming stores, at addresses that suit these badly."""
    counts = tuple((10 << 20) + 4099 * r + 1 for r in range(comm.size))
    displs = tuple(sum(counts[:r]) + 5 * (r + 1) for r in range(comm.size))
    cycle = np.arange(251, dtype=np.uint8)
    recv = np.full(displs[-1] + counts[-1] + 3, 255, np.uint8)
    comm.allgatherv(np.resize(cycle + comm.rank, counts[comm.rank]), recv, counts, displs)
    for r, (start, count) in enumerate(zip(displs, counts, strict=True)):
        assert np.array_equal(recv[start - 5 : start], np.full(5, 255, np.uint8)), f"before rank {r}"
        assert np.array_equal(recv[start : start + count], np.resize(cycle + r, count)), f"rank {r}"
    assert np.array_equal(recv[-3:], np.full(3, 255, np.uint8))


@pytest.mark.parametrize("size", [2, 3])
def test_payloads_beyond_the_caches(size: int) -> None:
    run_ranks("shm", size, stream_past_the_caches)


def move_sizes_staged(comm: Communicator) -> None:
    assert isinstance(comm, ShmBackend)
    comm._channel.start(False, False)
    move_sizes(comm)


def test_payloads_without_direct_reads_and_without_spinning() -> None:
    run_ranks("shm", 2, move_sizes_staged)


def move_dates(comm: Communicator) -> None:
    dtype = np.dtype([("when", "M8[s]"), ("what", "S3")])
    for kind in (np.dtype("M8[D]"), dtype):
        send = np.zeros(2, kind)
        recv = np.zeros(2 * comm.size, kind)
        if kind.names is None:
            send[...] = np.datetime64("2020-01-01") + comm.rank
        else:
            send["when"] = np.datetime64("2020-01-01T00:00:00") + comm.rank
            send["what"] = b"abc"
        comm.allgatherv(send, recv, [2] * comm.size, [2 * r for r in range(comm.size)])
        assert np.array_equal(recv[2 * comm.rank :][:2], send)
        other = send.copy()
        comm.broadcast(other, 1)
        assert np.array_equal(other, recv[2:4])


def test_dtypes_that_have_no_buffer_format() -> None:
    run_ranks("shm", 2, move_dates)


def use_view(comm: Communicator) -> None:
    assert isinstance(comm, ShmBackend)
    view = comm.split_local()
    assert (view.rank, view.size) == (comm.rank, comm.size)
    total = np.empty(1)
    view.allreduce(np.array([comm.rank + 1.0]), total, ReduceOp.SUM)
    assert total[0] == 3.0
    comm.barrier()
    view.barrier()
    with comm.split_local() as other:
        other.broadcast(total, 1)
    view.close()
    comm.barrier()


def test_a_local_view_interleaves_with_its_backend() -> None:
    run_ranks("shm", 2, use_view)
