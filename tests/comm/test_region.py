"""The heap region of backends without shared memory."""

import numpy as np
import pytest

from pycobre.comm import AllocationFailed, HeapRegion, LocalBackend


def test_a_region_is_zeroed_and_its_reader_cannot_write():
    region = LocalBackend().create_shared_region(3, "i2")
    assert isinstance(region, HeapRegion)
    region.as_mut_array()[1] = 5
    region.fence()
    assert region.as_array().tolist() == [0, 5, 0]
    with pytest.raises(ValueError, match="read-only"):
        region.as_array()[0] = 1


@pytest.mark.parametrize("count", [2**50, 2**62, 2**80])
def test_what_the_heap_refuses_is_named_in_bytes(count):
    with pytest.raises(AllocationFailed, match=f"cannot allocate {8 * count} bytes") as caught:
        LocalBackend().create_shared_region(count, np.float64)
    assert caught.value.requested_bytes == 8 * count


def test_split_local_is_a_communicator_of_its_own():
    comm = LocalBackend()
    with comm.split_local() as node:
        assert (node.rank, node.size) == (0, 1)
    comm.barrier()
