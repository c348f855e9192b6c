"""One process, no transport: rank 0 of 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from pycobre.comm.api import Backend, Buffer, ReduceOp
from pycobre.comm.region import HeapRegion


class LocalBackend(Backend):
    """Rank 0 of 1. Needs nothing, is always available, and a valid call on it cannot fail.

    `allgatherv` and `allreduce` are identity copies from `send` into `recv`; `broadcast` and `barrier` do
    nothing.
    """

    def __init__(self) -> None:
        super().__init__(rank=0, size=1)

    @property
    def is_leader(self) -> bool:
        """True: the only rank fills its own copy."""
        return True

    def _allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...]
    ) -> None:
        start = displs[0]
        recv.reshape(-1)[start : start + counts[0]] = send.reshape(-1)

    def _allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        try:
            # Sizes are equal, so what broadcasts has the same elements in the same order.
            recv[...] = send
        except ValueError:
            recv.reshape(-1)[...] = send.reshape(-1)

    def _broadcast(self, sequence: int, buf: Buffer, root: int) -> None:
        pass

    def _barrier(self, sequence: int) -> None:
        pass

    def _close(self) -> None:
        pass

    def _abort(self, reason: str) -> None:
        pass

    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> HeapRegion:
        return HeapRegion(count, dtype)

    def _split_local(self) -> LocalBackend:
        return LocalBackend()
