"""Ranks of one machine, without MPI: collectives and regions in shared memory.

Waiting and copying is native (`pycobre._native.shm`); `segment` finds the other ranks, `failure` says what went
wrong. See docs/explanation/backends/shm.md for how it works and why.
"""

from __future__ import annotations

import mmap
import os
from abc import abstractmethod
from typing import Any, NoReturn

import numpy as np

from pycobre._native import shm as native
from pycobre.comm.api import Backend, Buffer, ReduceOp, SharedRegion
from pycobre.comm.config import ShmConfig
from pycobre.comm.fold import REDUCE_CODES, fold_into
from pycobre.comm.shm import segment as shm_segment
from pycobre.comm.shm.failure import ALLREDUCE, BARRIER, FENCE, REGION, VIEW_SEQUENCES, collective_failed
from pycobre.errors import AllocationFailed


class _Regions(Backend):
    """Regions of all ranks of a segment, made by collectives over its channel."""

    _channel: native.Channel

    @property
    def is_leader(self) -> bool:
        """Whether this is rank 0: all ranks share one memory."""
        return self._rank == 0

    @abstractmethod
    def _failed(self, operation: str, failure: native.Failure) -> Exception: ...

    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> ShmRegion:
        """Rank 0 reserves a nameless file; the others open it through rank 0's descriptor, and all map it.

        Two exchanges: where the file is, or why there is none; and whether everybody has it mapped.
        """
        requested = count * dtype.itemsize
        descriptor, refusal = -1, ""
        if self.is_leader:
            try:
                descriptor = shm_segment.reserve(requested)
            except AllocationFailed as error:
                refusal = error.message
            except OSError as error:  # out of descriptors: the others must hear of it too
                refusal = f"rank 0 could not reserve it: {error}"
        memory: mmap.mmap | None = None
        try:
            told = self._exchange_texts(count, dtype, f"{os.getpid()} {descriptor} {refusal}")[0]
            pid, number, refusal = told.split(" ", 2)
            if not refusal:
                try:
                    memory = _map(f"/proc/{pid}/fd/{number}", max(requested, 1))
                except OSError as error:
                    refusal = f"rank {self._rank} could not map it: {error}"
            refusals = [text for text in self._exchange_texts(count, dtype, refusal) if text]
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        if memory is None or refusals:
            raise AllocationFailed(requested, refusals[0])
        return ShmRegion(self, np.frombuffer(memory, np.uint8, requested).view(dtype))

    def _exchange_texts(self, count: int, dtype: np.dtype[Any], text: str) -> list[str]:
        """Every rank's text, by rank; part of making a region of `count` elements of `dtype`."""
        send = np.zeros(_TEXT_BYTES, np.uint8)
        encoded = text.encode("utf-8", "replace")[:_TEXT_BYTES]
        send[: len(encoded)] = np.frombuffer(encoded, np.uint8)
        recv = np.empty((self._size, _TEXT_BYTES), np.uint8)
        tag = _dtype_tag(np.empty(0, dtype))
        shown = min(count, (1 << 64) - 1)
        failure = self._channel.exchange(self._next_sequence(), REGION, 0, tag, shown, send, recv)
        if failure is not None:
            raise self._failed("create_shared_region", failure)
        return [row.tobytes().rstrip(b"\0").decode("utf-8", "replace") for row in recv]

    def _fence(self) -> None:
        self._ensure_usable("fence")
        failure = self._channel.barrier(self._next_sequence(), FENCE)
        if failure is not None:
            raise self._failed("fence", failure)


class ShmBackend(native.FastPathCollectives, _Regions):
    """One rank of a group that meets in the segment `config.name`. Constructing it is collective.

    Calls with contiguous arrays that do not overlap take the native fast path (`FastPathCollectives`) and never reach
    the hooks here.

    Raises `InitializationFailed` when the ranks do not come together within `config.timeout_s`, when one of
    them ends meanwhile, or when the name is taken; `AllocationFailed` when the shared-memory mount is too
    small.
    """

    def __init__(self, config: ShmConfig) -> None:
        super().__init__(config.rank, config.size)
        self._timeout_s = config.timeout_s
        self._views = 0
        self._channel = shm_segment.open_channel(config)

    def _allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...]
    ) -> None:
        try:
            failure = self._channel.allgatherv(sequence, send, recv, counts, displs)
        except BufferError:
            failure = self._channel.allgatherv(sequence, _opaque(send), _opaque(recv), counts, displs)
        if failure is not None:
            raise self._failed("allgatherv", failure)

    def _allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        failure = self._channel.allreduce(sequence, send, recv, op)
        if failure is NotImplemented:
            failure = self._fold_here(sequence, send, recv, op)
        if failure is not None:
            raise self._failed("allreduce", failure)

    def _broadcast(self, sequence: int, buf: Buffer, root: int) -> None:
        try:
            failure = self._channel.broadcast(sequence, buf, root)
        except BufferError:
            failure = self._channel.broadcast(sequence, _opaque(buf), root)
        if failure is not None:
            raise self._failed("broadcast", failure)

    def _barrier(self, sequence: int) -> None:
        failure = self._channel.barrier(sequence, BARRIER)
        if failure is not None:
            raise self._failed("barrier", failure)

    def _close(self) -> None:
        self._channel.close()

    def _abort(self, reason: str) -> None:
        self._channel.abort(reason)

    def _fail(self, operation: str, failure: native.Failure) -> NoReturn:
        """End a collective that had not come through the base class's method."""
        self._refusal = self._failed(operation, failure)
        raise self._refusal

    def _failed(self, operation: str, failure: native.Failure) -> Exception:
        return collective_failed(operation, failure, self._rank, self._timeout_s)

    def _fold_here(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> native.Failure | None:
        """Reduce a dtype for which there is no native kernel: gather everything, fold in Python."""
        parts = np.empty((self._size, send.size), send.dtype)
        tag = _dtype_tag(send)
        failure = self._channel.exchange(sequence, ALLREDUCE, REDUCE_CODES[op], tag, send.size, send, parts)
        if failure is None:
            fold_into(recv, list(parts), op)
        return failure

    def _split_local(self) -> Backend:
        self._views += 1
        return _LocalView(self, self._views)


class ShmRegion(SharedRegion):
    """One copy for all ranks, in a file that never had a name: the kernel frees it with its last mapping."""

    def __init__(self, owner: _Regions, array: Buffer) -> None:
        super().__init__(array)
        self._owner = owner

    def _fence(self) -> None:
        self._owner._fence()

    def _close(self) -> None:
        # The mapping ends with the last array that refers to it; there is nothing else to give back.
        pass


class _LocalView(_Regions):
    """What `split_local` returns: the same ranks over the same channel, with a lifetime of its own.

    Its collectives are numbered apart from the backend's, so mixing the two up is noticed.
    """

    def __init__(self, backend: ShmBackend, number: int) -> None:
        super().__init__(backend.rank, backend.size)
        self._backend = backend
        self._channel = backend._channel
        self._sequence = number * VIEW_SEQUENCES

    def _allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...]
    ) -> None:
        self._backend._ensure_usable("allgatherv")
        self._backend._allgatherv(sequence, send, recv, counts, displs)

    def _allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        self._backend._ensure_usable("allreduce")
        self._backend._allreduce(sequence, send, recv, op)

    def _broadcast(self, sequence: int, buf: Buffer, root: int) -> None:
        self._backend._ensure_usable("broadcast")
        self._backend._broadcast(sequence, buf, root)

    def _barrier(self, sequence: int) -> None:
        self._backend._ensure_usable("barrier")
        self._backend._barrier(sequence)

    def _close(self) -> None:
        pass

    def _abort(self, reason: str) -> None:
        self._backend.abort(reason)

    def _ensure_usable(self, operation: str) -> None:
        super()._ensure_usable(operation)
        self._backend._ensure_usable(operation)

    def _failed(self, operation: str, failure: native.Failure) -> Exception:
        return self._backend._failed(operation, failure)

    def _split_local(self) -> Backend:
        return self._backend._split_local()


_TEXT_BYTES = 512


def _map(path: str, size: int) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


def _opaque(array: Buffer) -> Buffer:
    """The same memory as elements without meaning, for dtypes (dates) that have no buffer format."""
    return array.reshape(-1).view(f"V{array.dtype.itemsize}")


def _dtype_tag(array: Buffer) -> int:
    try:
        return native.dtype_tag(array)
    except BufferError:
        return native.dtype_tag(_opaque(array))
