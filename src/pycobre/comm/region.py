"""The region of backends without shared memory: every rank has its own copy, and is its leader."""

from __future__ import annotations

from typing import Any

import numpy as np

from pycobre.comm.api import SharedRegion
from pycobre.errors import AllocationFailed


class HeapRegion(SharedRegion):
    """`count` zeroed elements on this process's heap; `fence` is a no-op. Used by local and tcp."""

    def __init__(self, count: int, dtype: np.dtype[Any]) -> None:
        requested_bytes = count * dtype.itemsize
        try:
            array = np.zeros(count, dtype)
        except (MemoryError, ValueError, OverflowError) as error:  # NumPy: too large for RAM, or for an index
            raise AllocationFailed(requested_bytes, f"the heap refused it ({error})") from error
        super().__init__(array)

    def _fence(self) -> None:
        pass

    def _close(self) -> None:
        pass
