"""The bodies of `SharedMemoryTests`: each runs on every rank, with that rank's communicator."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from pycobre.comm.api import Backend
from pycobre.errors import AllocationFailed, InvalidBufferSize, InvalidCommunicator
from pycobre.testing.collectives import prove_usable
from pycobre.testing.values import FAMILIES, MOVABLE, contribution, expect_same


def leader_fills_dtypes(comm: Backend, family: str) -> None:
    """The lifecycle of small regions, for all dtypes of one family."""
    for name in FAMILIES[family]:
        leader_fills(comm, MOVABLE[name], 5)


def leader_fills(comm: Backend, dtype: np.dtype[Any], count: int) -> None:
    """Allocate, the leader fills, fence, everybody reads; then once more with other values."""
    with comm.create_shared_region(count, dtype) as region:
        assert region.as_array().shape == (count,), f"shape is {region.as_array().shape}"
        assert region.as_array().dtype == dtype, f"dtype is {region.as_array().dtype}"
        expect_same(region.as_array().copy(), np.zeros(count, dtype), "a new region")
        region.fence()
        for salt in (1, 2):
            if comm.is_leader:
                region.as_mut_array()[...] = contribution(0, count, dtype, salt)
            region.fence()
            expect_same(region.as_array().copy(), contribution(0, count, dtype, salt), "after the fence")
            region.fence()


def all_fill(comm: Backend, shares_memory: bool, count: int) -> None:
    """Distributed filling: each rank its own part, or the whole of its own copy where nothing is shared."""
    dtype = np.dtype(np.float64)
    parts = [contribution(rank, count, dtype) for rank in range(comm.size)]
    with comm.create_shared_region(count * comm.size, dtype) as region:
        for rank in [comm.rank] if shares_memory else range(comm.size):
            region.as_mut_array()[rank * count : (rank + 1) * count] = parts[rank]
        region.fence()
        expect_same(region.as_array().copy(), np.concatenate(parts), "after everybody's filling")


def leaders(comm: Backend) -> bool:
    """Whether this rank is a leader."""
    return comm.is_leader


def views(comm: Backend) -> None:
    """`as_array` refuses writes, cannot be talked into them, and is the same memory as `as_mut_array`."""
    with comm.create_shared_region(8, np.int64) as region:
        readable, writable = region.as_array(), region.as_mut_array()
        assert not readable.flags.writeable, "as_array is writable"
        try:
            readable.flags.writeable = True
        except ValueError:
            pass
        else:
            raise AssertionError("as_array can be made writable by its flag")
        assert writable.flags.writeable, "as_mut_array is read-only"
        assert np.shares_memory(readable, writable), "as_array is a copy"
        if comm.is_leader:
            writable[3] = 11
        region.fence()
        assert readable[3] == 11, "a view does not see what was written later"


def release(comm: Backend) -> None:
    """Close twice, use after close, views that outlive their region, regions dropped without close."""
    region = comm.create_shared_region(1000, np.float64)
    if comm.is_leader:
        region.as_mut_array()[:] = 2.5
    region.fence()
    kept = region.as_array()
    region.close()
    region.close()
    for use in (region.as_array, region.as_mut_array, region.fence):
        try:
            use()
        except InvalidCommunicator:
            continue
        raise AssertionError(f"{use.__name__} after close: expected InvalidCommunicator, got no error")
    assert (kept == 2.5).all(), "a view changed when its region was closed"
    dropped = comm.create_shared_region(1000, np.float64)
    del dropped
    prove_usable(comm)


def several_regions(comm: Backend) -> None:
    """Regions live beside each other, are closed in any order, and can be made again."""
    regions = [comm.create_shared_region(count, np.int32) for count in (1, 0, 70_000)]
    for number, region in enumerate(regions):
        if comm.is_leader:
            region.as_mut_array()[...] = number
        region.fence()
    for number, region in enumerate(regions):
        assert (region.as_array() == number).all(), f"region {number} was overwritten"
    order = regions if comm.rank % 2 else regions[::-1]
    for region in order:
        region.close()
    for _ in range(20):
        comm.create_shared_region(100, np.int8).close()
    prove_usable(comm)


def split(comm: Backend) -> tuple[int, int]:
    """Rank and size among the ranks of this node, after using and closing the split communicator."""
    with comm.split_local() as node:
        place = node.rank, node.size
        prove_usable(node)
        node.barrier()
    prove_usable(comm)
    return place


def split_is_a_provider(comm: Backend) -> None:
    """A split communicator makes regions and splits of its own, apart from those of the whole."""
    with comm.split_local() as node:
        assert node.is_leader == (node.rank == 0), (
            f"rank {node.rank} of the node says leader: {node.is_leader}"
        )
        with (
            node.create_shared_region(3, np.int64) as region,
            comm.create_shared_region(3, np.int64) as other,
        ):
            if node.is_leader:
                region.as_mut_array()[...] = 7
            if comm.is_leader:
                other.as_mut_array()[...] = 8
            region.fence()
            other.fence()
            assert region.as_array().tolist() == [7] * 3
            assert other.as_array().tolist() == [8] * 3
        with node.split_local() as again:
            assert (again.rank, again.size) == (node.rank, node.size)
            prove_usable(again)
        prove_usable(node)
    prove_usable(comm)


def refuse_allocation(comm: Backend) -> int:
    """More than any machine has: an error on every rank, and a communicator that works on."""
    try:
        comm.create_shared_region(2**58, np.float64)
    except AllocationFailed as error:
        prove_usable(comm)
        return error.requested_bytes
    raise AssertionError("expected AllocationFailed, got no error")


def refuse_arguments(comm: Backend) -> None:
    """A negative count, a count that is no number, a dtype with objects: refused, and nothing is harmed."""
    for count, dtype, expected in (
        (-1, np.float64, InvalidBufferSize),
        (1.5, np.float64, TypeError),
        (3, object, InvalidBufferSize),
    ):
        try:
            comm.create_shared_region(cast(int, count), dtype)
        except expected:
            prove_usable(comm)
        else:
            raise AssertionError(f"region of {count} x {dtype}: expected {expected.__name__}, got no error")


def after_close(comm: Backend) -> None:
    """A closed communicator makes no regions and no splits."""
    comm.barrier()
    comm.close()
    for use in (lambda: comm.create_shared_region(1, np.float64), comm.split_local):
        try:
            use()
        except InvalidCommunicator:
            continue
        raise AssertionError("expected InvalidCommunicator, got no error")
