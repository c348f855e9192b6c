"""The contract: what a communicator, a provider of shared memory and a shared region promise.

The public methods here are final, but for shm's native fast path, which leaves every other call to them
(docs/adr/0003-checks-in-python.md). They check the caller's arguments (`checks`), give the collective its
number and call a hook of the same name with a leading underscore; a backend implements the hooks and is
transport only. The hooks may rely on everything the checks establish:

- buffers are C-contiguous, aligned NumPy arrays without Python objects; `recv` is writable and shares no
  memory with `send`; both have the same dtype, in native byte order for `_allreduce`;
- `counts` and `displs` are tuples of `size` Python ints with disjoint ranges inside `recv`;
- `root` is a Python int and a rank; `op` is a `ReduceOp`;
- `sequence` is 1 for the first collective of this communicator, 2 for the next, on every rank alike.

A hook that cannot complete raises `CollectiveFailed`, and from then on the communicator refuses every
collective: ranks that disagree about what was the last one cannot be brought back into step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pycobre.comm import checks
from pycobre.comm.failure import aborted
from pycobre.comm.fold import ReduceOp
from pycobre.comm.misuse import OneUser
from pycobre.errors import CollectiveFailed, CommError, InvalidCommunicator

__all__ = [
    "Backend",
    "Buffer",
    "Communicator",
    "ReduceOp",
    "SharedMemoryProvider",
    "SharedRegion",
]

Buffer = np.ndarray[Any, Any]


class Communicator(ABC):
    """A fixed group of ranks that talk by collectives: every rank makes the same calls in the same order.

    `rank` and `size` are constant and may be read from any thread; the collectives of one communicator are
    called from one thread at a time, in the process that made it: a second thread and a forked child get
    `InvalidCommunicator`, and the communicator goes on. Leaving a `with` block by an exception aborts before it
    closes, so that the peers fail now and not at a timeout.
    """

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._size = size
        self._sequence = 0
        self._closed = False
        self._aborted = False
        # None while collectives are allowed, else what the next one raises: one test for closed and failed.
        self._refusal: CommError | None = None
        self._layouts = checks.Layouts(size)
        self._user = OneUser(rank)

    @property
    def rank(self) -> int:
        """This process's number, from 0 to `size - 1`."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._size

    def allgatherv(self, send: Buffer, recv: Buffer, counts: Sequence[int], displs: Sequence[int]) -> None:
        """Gather every rank's `send` into `recv` on every rank, in rank order.

        Requires: `len(counts) == len(displs) == size`; `send.size == counts[rank]`; `recv.size >=
            max(displs + counts)`; ranges `[displs[r], displs[r] + counts[r])` that do not overlap; the same
            dtype, without Python objects, in separate memory; `counts` and `displs` equal on all ranks. The
            unit of both is elements. Ranks may contribute nothing; gaps and any order of ranges are fine.
        Ensures: `recv[displs[r]:displs[r] + counts[r]]` holds rank r's `send` on every rank; elements outside
            the ranges are untouched; no rank returns before all have contributed.
        On error: `InvalidBufferSize` before any byte moves, communicator unharmed; `CollectiveFailed` when a
            peer failed or called something else; `InvalidCommunicator` after `close`.
        Cost: each rank receives the sum of `counts`. Checking is cheapest when the same two tuples are
            passed again.
        """
        if self._refusal is not None:
            raise self._refuse("allgatherv")
        counts, displs = checks.check_allgatherv(send, recv, counts, displs, self._rank, self._layouts)
        self._user.enter()
        try:
            self._sequence = sequence = self._sequence + 1
            self._allgatherv(sequence, send, recv, counts, displs)
        except CollectiveFailed as failure:
            self._refusal = failure
            raise
        finally:
            self._user.leave()

    def allreduce(self, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        """Combine the ranks' `send` element by element into `recv`, on every rank.

        Requires: equal sizes, at least one element; the same integer or floating dtype in native byte order;
            separate memory; `op` and the size equal on all ranks.
        Ensures: `recv[i] = op(send_0[i], ..., send_{R-1}[i])`, folded from the left in rank order by every
            backend (`fold`), hence the same bits for the same inputs and rank count. Integers wrap around.
            A NaN anywhere gives NaN (its payload is unspecified); of equal extremes (0.0 and -0.0) the last
            one wins.
        On error: as for `allgatherv`; `TypeError` where `op` is not a `ReduceOp`.
        Cost: one round for small payloads; large ones move about twice the payload per rank.
        """
        if self._refusal is not None:
            raise self._refuse("allreduce")
        checks.check_allreduce(send, recv, op)
        self._user.enter()
        try:
            self._sequence = sequence = self._sequence + 1
            self._allreduce(sequence, send, recv, op)
        except CollectiveFailed as failure:
            self._refusal = failure
            raise
        finally:
            self._user.leave()

    def broadcast(self, buf: Buffer, root: int = 0) -> None:
        """Copy root's `buf` into everybody's.

        Requires: `0 <= root < size`; a C-contiguous array without Python objects, writable except on the
            root; size, dtype and root equal on all ranks.
        Ensures: `buf` holds root's values on every rank. The root may return before the others have them.
        On error: `InvalidRoot` or `InvalidBufferSize` before any byte moves, communicator unharmed; else as
            for `allgatherv`.
        Cost: each rank but the root receives the payload once.
        """
        if self._refusal is not None:
            raise self._refuse("broadcast")
        root = checks.check_broadcast(buf, root, self._rank, self._size)
        self._user.enter()
        try:
            self._sequence = sequence = self._sequence + 1
            self._broadcast(sequence, buf, root)
        except CollectiveFailed as failure:
            self._refusal = failure
            raise
        finally:
            self._user.leave()

    def barrier(self) -> None:
        """Wait for every rank to get here.

        Requires: nothing but an open communicator.
        Ensures: no rank returns before every rank has entered; what a rank wrote to shared memory before is
            visible to all after.
        On error: `CollectiveFailed`, `InvalidCommunicator`, as for `allgatherv`.
        Cost: one round without payload.
        """
        if self._refusal is not None:
            raise self._refuse("barrier")
        self._user.enter()
        try:
            self._sequence = sequence = self._sequence + 1
            self._barrier(sequence)
        except CollectiveFailed as failure:
            self._refusal = failure
            raise
        finally:
            self._user.leave()

    def close(self) -> None:
        """Release what the communicator holds; idempotent and not collective.

        Ensures: every later collective raises `InvalidCommunicator` here. A peer that still waits for this
            rank fails with `CollectiveFailed` naming it.
        """
        if not self._closed:
            self._closed = True
            self._refusal = InvalidCommunicator()
            if not self._user.in_forked_child:  # the connections are the parent's
                self._close()

    def abort(self, reason: str) -> None:
        """Tell the peers at once that this rank will not go on; does nothing when closed or aborted already.

        Ensures: peers in a collective, or entering their next one, raise `CollectiveFailed` with this rank
            and `reason` well before any timeout (under MPI the whole job is ended); so does every later
            collective here.
        """
        if not self._closed and not self._aborted:
            self._aborted = True
            if self._refusal is None:
                message = aborted(self._rank, reason)
                self._refusal = CollectiveFailed("abort", 0, message, rank=self._rank)
            if not self._user.in_forked_child:
                self._abort(reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self.abort(f"{type(error).__name__}: {error}")
        finally:
            self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<{type(self).__name__} rank {self._rank} of {self._size}{state}>"

    def _refuse(self, operation: str) -> CommError:
        """The error of a collective that may not start; a fresh one, so that each has its own traceback."""
        refusal = self._refusal
        if isinstance(refusal, CollectiveFailed):
            error = CollectiveFailed(
                operation,
                refusal.mpi_error_code,
                f"this communicator failed earlier, in {refusal.operation}: {refusal.message}",
                rank=refusal.rank,
            )
            error.__cause__ = refusal
            return error
        return InvalidCommunicator()

    def _ensure_usable(self, operation: str) -> None:
        if self._refusal is not None:
            raise self._refuse(operation)
        self._user.check()

    def _next_sequence(self) -> int:
        """The number of a collective that a backend runs for itself, such as making a shared region."""
        self._sequence += 1
        return self._sequence

    # The hooks of a backend. See the module's docstring for what they may rely on.

    @abstractmethod
    def _allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...]
    ) -> None: ...

    @abstractmethod
    def _allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> None: ...

    @abstractmethod
    def _broadcast(self, sequence: int, buf: Buffer, root: int) -> None: ...

    @abstractmethod
    def _barrier(self, sequence: int) -> None: ...

    @abstractmethod
    def _close(self) -> None:
        """Release everything; called once, also after a failure."""

    @abstractmethod
    def _abort(self, reason: str) -> None:
        """Tell the peers; called at most once and never after `_close`."""


class SharedRegion(ABC):
    """One array that the ranks of a node fill and then read: allocate, fill, `fence()`, read.

    A region has its own lifetime, apart from any message. `close` is local; arrays obtained before it stay
    valid for as long as they are referenced, and the memory goes when the last of them does.
    """

    def __init__(self, array: Buffer) -> None:
        self._writable: Buffer | None = array
        # Over a read-only buffer, so that a reader cannot make it writable by its flag either.
        self._readable: Buffer = np.frombuffer(array.view(np.uint8).data.toreadonly(), array.dtype)

    def as_array(self) -> Buffer:
        """The values, read-only and without a copy. Read after `fence`."""
        self._check_open()
        return self._readable

    def as_mut_array(self) -> Buffer:
        """The values, writable and without a copy.

        The leader fills them; for distributed filling any rank writes, each its own part. Where memory is not
        shared every rank is leader of its own copy and fills the whole of it.
        """
        self._check_open()
        assert self._writable is not None
        return self._writable

    def fence(self) -> None:
        """Make all earlier writes visible to all ranks.

        Requires: where memory is shared, every rank of the node calls it (collective).
        Ensures: what any rank wrote before its `fence` is read by every rank after its own.
        On error: `CollectiveFailed` when a peer failed; `InvalidCommunicator` when region or communicator
            is closed.
        Cost: a barrier where memory is shared, else nothing.
        """
        self._check_open()
        self._fence()

    def close(self) -> None:
        """Release this rank's hold; idempotent and not collective. The leader's frees."""
        if self._writable is not None:
            self._writable = None
            del self._readable
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A subclass may have failed before it called our __init__.
        if getattr(self, "_writable", None) is not None:
            self.close()

    def _check_open(self) -> None:
        if self._writable is None:
            raise InvalidCommunicator("the shared region is closed: create a new one to go on")

    @abstractmethod
    def _fence(self) -> None: ...

    @abstractmethod
    def _close(self) -> None:
        """Release; called once. The base class has dropped its own arrays before."""


class SharedMemoryProvider(ABC):
    """Makes shared regions. Every backend is one, so callers never ask whether shared memory exists."""

    @property
    @abstractmethod
    def is_leader(self) -> bool:
        """Whether this rank fills regions: local rank 0 where memory is shared, else every rank."""

    def create_shared_region(self, count: int, dtype: npt.DTypeLike) -> SharedRegion:
        """Allocate `count` elements, zeroed, one copy per node where memory can be shared.

        Requires: `count >= 0`; a dtype without Python objects; where memory is shared, all ranks of the
            node call it with the same arguments (collective).
        Ensures: the space is reserved; touching it later cannot fail.
        On error: `AllocationFailed` when the system refuses, on every rank of the node; `InvalidBufferSize`
            for a bad count or dtype, communicator unharmed; `CollectiveFailed`, `InvalidCommunicator` as
            for collectives.
        Cost: one allocation per node (heap: per rank), and a barrier where memory is shared.
        """
        self._ensure_usable("create_shared_region")
        count, dtype = checks.check_region(count, dtype)
        return self._create_shared_region(count, dtype)

    def split_local(self) -> Backend:
        """A communicator over the ranks that share this node's memory, with regions and splits of its own.

        Collective; closed by the caller.
        """
        self._ensure_usable("split_local")
        return self._split_local()

    @abstractmethod
    def _ensure_usable(self, operation: str) -> None: ...

    @abstractmethod
    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> SharedRegion: ...

    @abstractmethod
    def _split_local(self) -> Backend: ...


class Backend(Communicator, SharedMemoryProvider):
    """Both interfaces in one object: what every backend is, and what a run needs."""
