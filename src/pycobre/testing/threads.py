"""The reference backend: every rank is a thread of this process, every message an object in a list.

It is what the contract looks like when nothing is optimised, and it proves the conformance suites before any
real transport exists. Two rendezvous per collective: after the first all contributions are there, after the
second all have been read. A `threading.Barrier` cannot be used for them: aborting it when a rank leaves would
also break the waits of ranks that have already been let through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from pycobre.comm import failure
from pycobre.comm.api import Backend, Buffer, ReduceOp, SharedRegion
from pycobre.comm.fold import fold_into
from pycobre.errors import AllocationFailed, CollectiveFailed


class _Meeting:
    """What the ranks of one group share: a slot per rank, a rendezvous, and the first failure."""

    def __init__(self, size: int, timeout_s: float) -> None:
        self.size = size
        self.timeout_s = timeout_s
        self.slots: list[tuple[str, Any]] = [("", None)] * size
        self._changed = threading.Condition()
        self._arrived: set[int] = set()
        self._generation = 0
        self._failure: tuple[int | None, str] | None = None

    def wait(self, rank: int, operation: str) -> None:
        """Return when all ranks have come; raise when one of them cannot come any more."""
        with self._changed:
            self._raise_failure(operation)
            generation = self._generation
            self._arrived.add(rank)
            if len(self._arrived) == self.size:
                self._arrived.clear()
                self._generation += 1
                self._changed.notify_all()
                return
            self._changed.wait_for(
                lambda: self._generation != generation or self._failure is not None, self.timeout_s
            )
            if self._generation != generation:
                return
            self._raise_failure(operation)
            absent = min(set(range(self.size)) - self._arrived)
            self._failure = absent, failure.silent(f"rank {absent}", self.timeout_s, "timeout_s")
            self._changed.notify_all()
            self._raise_failure(operation)

    def fail(self, rank: int | None, message: str) -> None:
        """Let everybody who waits, or comes later, fail with this message unless there is an earlier one."""
        with self._changed:
            if self._failure is None:
                self._failure = rank, message
                self._changed.notify_all()

    def _raise_failure(self, operation: str) -> None:
        if self._failure is not None:
            rank, message = self._failure
            raise CollectiveFailed(operation, 0, message, rank=rank)


class ThreadRegion(SharedRegion):
    """One array that all ranks of a `ThreadBackend` group see."""

    def __init__(self, array: Buffer, fence: Callable[[], None]) -> None:
        super().__init__(array)
        self._wait = fence

    def _fence(self) -> None:
        self._wait()

    def _close(self) -> None:
        pass


class ThreadBackend(Backend):
    """One rank of a group of threads; make a whole group with `ThreadBackend.group`."""

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        super().__init__(rank, meeting.size)
        self._meeting = meeting

    @classmethod
    def group(cls, size: int, timeout_s: float = 60.0) -> list[ThreadBackend]:
        """All ranks of a new group, in rank order, each for one thread."""
        meeting = _Meeting(size, timeout_s)
        return [cls(meeting, rank) for rank in range(size)]

    @property
    def is_leader(self) -> bool:
        """True on rank 0 alone: threads share their memory."""
        return self._rank == 0

    def _exchange(self, operation: str, signature: str, value: Any) -> list[Any]:
        """Everybody's value, in rank order, once all have shown the same signature."""
        self._meeting.slots[self._rank] = signature, value
        self._meeting.wait(self._rank, operation)
        slots = list(self._meeting.slots)
        for rank, (other, _) in enumerate(slots):
            if other != slots[0][0]:
                message = failure.different_calls(0, slots[0][0], rank, other)
                self._meeting.fail(rank, message)
                raise CollectiveFailed(operation, 0, message, rank=rank)
        return [value for _, value in slots]

    def _allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...]
    ) -> None:
        signature = f"allgatherv(counts={counts}, {send.dtype}) as collective {sequence}"
        flat = recv.reshape(-1)
        parts = self._exchange("allgatherv", signature, send.reshape(-1))
        for part, count, displ in zip(parts, counts, displs, strict=True):
            flat[displ : displ + count] = part
        self._meeting.wait(self._rank, "allgatherv")

    def _allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        signature = f"allreduce({op.value}, {send.size} x {send.dtype}) as collective {sequence}"
        fold_into(recv, self._exchange("allreduce", signature, send), op)
        self._meeting.wait(self._rank, "allreduce")

    def _broadcast(self, sequence: int, buf: Buffer, root: int) -> None:
        signature = f"broadcast(root={root}, {buf.size} x {buf.dtype}) as collective {sequence}"
        source = self._exchange("broadcast", signature, buf)[root]
        if self._rank != root:
            buf.reshape(-1)[...] = source.reshape(-1)
        self._meeting.wait(self._rank, "broadcast")

    def _barrier(self, sequence: int) -> None:
        self._exchange("barrier", f"barrier() as collective {sequence}", None)
        self._meeting.wait(self._rank, "barrier")

    def _close(self) -> None:
        self._meeting.fail(self._rank, failure.left(f"rank {self._rank}"))

    def _abort(self, reason: str) -> None:
        self._meeting.fail(self._rank, failure.aborted(self._rank, reason))

    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> ThreadRegion:
        array: Buffer | AllocationFailed | None = None
        if self._rank == 0:
            try:
                array = np.zeros(count, dtype)
            except (MemoryError, ValueError) as error:
                array = AllocationFailed(count * dtype.itemsize, f"the heap refused it ({error})")
        signature = f"create_shared_region({count}, {dtype}) as collective {self._next_sequence()}"
        shared = self._exchange("create_shared_region", signature, array)[0]
        self._meeting.wait(self._rank, "create_shared_region")
        if isinstance(shared, AllocationFailed):
            raise AllocationFailed(shared.requested_bytes, shared.message)
        return ThreadRegion(shared, self._fence_region)

    def _fence_region(self) -> None:
        self._ensure_usable("fence")
        self._barrier(self._next_sequence())

    def _split_local(self) -> ThreadBackend:
        meeting = _Meeting(self._size, self._meeting.timeout_s) if self._rank == 0 else None
        signature = f"split_local() as collective {self._next_sequence()}"
        shared = self._exchange("split_local", signature, meeting)[0]
        self._meeting.wait(self._rank, "split_local")
        return ThreadBackend(shared, self._rank)
