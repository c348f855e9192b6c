"""Shared regions of the shm backend beyond the conformance suite: one copy, and all ranks fail together."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from pycobre.comm import (
    AllocationFailed,
    CollectiveFailed,
    Communicator,
    HeapRegion,
    InvalidCommunicator,
    SharedRegion,
    ShmBackend,
)
from pycobre.testing import run_ranks


def proportional_share(array: np.ndarray[Any, Any]) -> int:
    """PSS in bytes of the mappings that hold an array: each page counted once over all processes."""
    first, share, inside = array.ctypes.data, 0, False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            head = line.split(maxsplit=1)[0]
            if "-" in head and not head.endswith(":"):
                low, high = (int(end, 16) for end in head.split("-"))
                inside = low < first + array.nbytes and high > first
            elif inside and head == "Pss:":
                share += int(line.split()[1]) * 1024
    return share


def measure(comm: Communicator, nbytes: int, kind: str) -> int:
    region: SharedRegion
    if kind == "shm":
        assert isinstance(comm, ShmBackend)
        region = comm.create_shared_region(nbytes // 8, np.float64)
    else:
        region = HeapRegion(nbytes // 8, np.dtype(np.float64))
    if kind == "heap" or comm.rank == 0:
        region.as_mut_array()[:] = 1.5
    comm.barrier()
    assert region.as_array()[:: 4096 // 8].sum() == 1.5 * (nbytes // 4096)
    comm.barrier()  # everybody has mapped every page
    share = proportional_share(region.as_array())
    comm.barrier()
    region.close()
    return share


def test_four_ranks_hold_one_copy() -> None:
    nbytes = 200_000_000 // 4096 * 4096
    shared = sum(run_ranks("shm", 4, measure, nbytes, "shm"))
    copies = sum(run_ranks("shm", 4, measure, nbytes, "heap"))
    print(f"{nbytes / 1e6:.0f} MB on 4 ranks: shm {shared / 1e6:.0f} MB, heap {copies / 1e6:.0f} MB")
    assert shared < 1.05 * nbytes
    assert copies > 3.95 * nbytes


def use_after_backend(comm: Communicator) -> None:
    assert isinstance(comm, ShmBackend)
    region = comm.create_shared_region(10, np.int32)
    view = comm.split_local()
    comm.barrier()
    comm.close()
    region.as_array()
    for use in (region.fence, view.barrier, lambda: view.broadcast(np.ones(1))):
        with pytest.raises(InvalidCommunicator):
            use()
    region.close()


def test_a_region_and_a_view_without_their_backend() -> None:
    run_ranks("shm", 2, use_after_backend)


def disagree_about_region(comm: Communicator) -> str:
    assert isinstance(comm, ShmBackend)
    with pytest.raises(CollectiveFailed) as caught:
        comm.create_shared_region(10 + comm.rank, np.float32)
    return str(caught.value)


def test_ranks_that_ask_for_different_regions() -> None:
    text, _ = run_ranks("shm", 2, disagree_about_region)
    assert "rank 0 calls create_shared_region(10 of float32)" in text
    assert "rank 1 calls create_shared_region(11 of float32)" in text


def region_that_a_follower_cannot_map(comm: Communicator) -> str:
    from pycobre.comm.shm import backend as shm

    assert isinstance(comm, ShmBackend)
    if comm.rank == 1:
        shm._map = lambda path, size: os.open("/nonexistent", 0)  # type: ignore[assignment, return-value]
    try:
        comm.create_shared_region(10, np.float32)
    except AllocationFailed as error:
        comm.barrier()
        return str(error)
    raise AssertionError("expected AllocationFailed")


def test_a_region_that_one_rank_cannot_map_fails_on_all() -> None:
    texts = run_ranks("shm", 2, region_that_a_follower_cannot_map)
    assert texts[0] == texts[1]
    assert "cannot allocate 40 bytes: rank 1 could not map it: [Errno 2]" in texts[0]


def huge_region(comm: Communicator) -> int:
    assert isinstance(comm, ShmBackend)
    with pytest.raises(AllocationFailed) as caught:
        comm.create_shared_region(1 << 70, np.int8)
    comm.barrier()
    return caught.value.requested_bytes


def test_a_region_beyond_any_address_space() -> None:
    assert run_ranks("shm", 2, huge_region) == [1 << 70] * 2
