"""Ranks under an MPI launcher, on mpi4py and whatever MPI library is there.

allgatherv, broadcast and barrier are MPI's own. allreduce is not: MPI leaves the order of its terms to the
library, so here the contributions are moved by MPI and folded by us, in rank order. Regions are MPI shared
windows. See `runtime` for the start, `job` for the end, `errors` for the errors, `watch` and `failure_monitor` for
lost ranks.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from pycobre._util.pidfd import pidfds_work
from pycobre.comm.api import Backend, Buffer, ReduceOp
from pycobre.comm.config import mpi_timeout_s
from pycobre.comm.mpi import job as mpi_job
from pycobre.comm.mpi import runtime as mpi_runtime
from pycobre.comm.mpi.errors import translate
from pycobre.comm.mpi.fold import fold_gathered
from pycobre.comm.mpi.region import MpiRegion, Windows
from pycobre.comm.mpi.watch import PEER_INFO_BYTES, PeerInfo, PeerWatch, departure
from pycobre.errors import CollectiveFailed, CommError, InitializationFailed, InvalidCommunicator

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["MpiBackend", "MpiRegion"]

# Libraries before MPI 4 count elements in a C int.
_MOST_ELEMENTS = 2**31 - 1
_PIECE_BYTES = 1 << 30
# Up to this size of all contributions together every rank gathers and folds them; above it each rank folds a
# slice, which moves and computes less but takes two steps. Measured with 2 and 4 ranks on both libraries.
_GATHER_BYTES = 256 << 10
# Large reductions go in rounds of this size, so that the memory they need does not grow with the payload.
_ROUND_BYTES = 1 << 20


class MpiBackend(Backend):
    """The ranks of an MPI communicator: the world's, or those of `comm`, of which a duplicate is used.

    Collective over those ranks. Initialises MPI, with MPI_THREAD_SERIALIZED, unless that was done before, and
    finalises at the end of the process what it initialised. From then on an uncaught exception on any rank
    ends the job. Raises `BackendNotAvailable` without mpi4py, and `InitializationFailed` where no library can
    be loaded, where the launcher belongs to another MPI, and where MPI refuses.
    """

    def __init__(self, comm: MPI.Comm | None = None) -> None:
        self._mpi = mpi = mpi_runtime.start()
        whole_world = comm is None
        if comm is None:
            mpi_runtime.refuse_lonely_world(mpi)
            comm = mpi.COMM_WORLD
        if not isinstance(comm, mpi.Intracomm) or comm == mpi.COMM_NULL:
            got = "MPI_COMM_NULL" if isinstance(comm, mpi.Comm) and not comm else type(comm).__name__
            raise InvalidCommunicator(
                f"MpiBackend: expected an MPI intracommunicator, got {got}. Pass MPI.COMM_WORLD or a part."
            )
        super().__init__(comm.rank, comm.size)
        try:
            self._comm = comm.Dup()
            self._comm.Set_errhandler(mpi.ERRORS_RETURN)
            self._node = node_communicator(mpi, self._comm)
            self._node.Set_errhandler(mpi.ERRORS_RETURN)
            self._watch: PeerWatch | None = None
            if self._size > 1:
                mpi_job.install_abort_hooks(mpi)
                self._watch = self._watch_peers()
                if whole_world:
                    mpi_job.start_monitor(mpi, self._node, self._rank)
        except mpi.Exception as error:
            raise InitializationFailed("mpi", f"MPI refused a communicator of its own: {error}") from error
        self._is_leader: bool = self._node.rank == 0
        self._windows = Windows(mpi, self._node)
        self._is_finalised = mpi.Is_finalized
        self._types: dict[np.dtype[Any], tuple[Any, bool]] = {}
        self._derived: dict[int, Any] = {}
        self._scratch = np.empty(0, np.uint8)
        self._gathered: Buffer = np.empty(0)
        self._layout = _Layout((), ())

    @property
    def is_leader(self) -> bool:
        """Whether this is the first rank of its node."""
        return self._is_leader

    def _allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...]
    ) -> None:
        self._enter("allgatherv", sequence)
        if self._size == 1:
            recv.reshape(-1)[displs[0] : displs[0] + counts[0]] = send.reshape(-1)
            return
        layout = self._layout
        if layout.counts is not counts or layout.displs is not displs:
            self._layout = layout = _Layout(counts, displs)
        datatype, plain = self._types.get(send.dtype) or self._describe(send.dtype)
        if not plain:
            send, recv = _as_bytes(send), _as_bytes(recv)
        try:
            if layout.uniform:
                self._comm.Allgather((send, datatype), (recv, counts[0], datatype))
            elif layout.end <= _MOST_ELEMENTS:
                if layout.some_empty:
                    self._comm.Barrier()  # MPI need not wait for a rank that gives nothing; the contract does
                self._comm.Allgatherv((send, datatype), (recv, counts, displs, datatype))
            else:
                self._allgatherv_in_pieces(send, recv, layout, datatype)
        except self._mpi.Exception as error:
            raise self._failure(error, "allgatherv") from error

    def _allgatherv_in_pieces(self, send: Buffer, recv: Buffer, layout: _Layout, datatype: Any) -> None:
        """Every rank's block as a broadcast from it, for positions beyond the reach of a C int."""
        unit = datatype.size // recv.itemsize  # array elements per element of the collective
        flat = recv.reshape(-1)
        own = layout.displs[self._rank] * unit
        flat[own : own + send.size] = send.reshape(-1)
        self._comm.Barrier()
        for root, (count, displ) in enumerate(zip(layout.counts, layout.displs, strict=True)):
            self._broadcast_in_pieces(flat[displ * unit : (displ + count) * unit], root, datatype)

    def _allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        self._enter("allreduce", sequence)
        if self._size == 1:
            recv.reshape(-1)[...] = send.reshape(-1)
            return
        try:
            if self._size * send.nbytes <= _GATHER_BYTES:
                self._gather_and_fold(send, recv, op)
            else:
                self._fold_slices(send.reshape(-1), recv.reshape(-1), op)
        except self._mpi.Exception as error:
            raise self._failure(error, "allreduce") from error

    def _gather_and_fold(self, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        """Everybody gets all contributions and folds them."""
        datatype, _ = self._types.get(send.dtype) or self._describe(send.dtype)
        count, gathered = send.size, self._gathered
        if gathered.size != self._size * count or gathered.dtype is not send.dtype:
            self._gathered = gathered = self._borrow(self._size * count, send.dtype)
        self._comm.Allgather((send, datatype), (gathered, count, datatype))
        fold_gathered(recv, gathered, self._size, op)

    def _fold_slices(self, send: Buffer, recv: Buffer, op: ReduceOp) -> None:
        """Rank q gets everybody's q-th slice and folds it; then everybody gets the folded slices.

        An element's terms are folded in rank order whichever rank does it, so the bits are those of
        `_gather_and_fold`.
        """
        ranks = self._size
        datatype, _ = self._types.get(send.dtype) or self._describe(send.dtype)
        rest = send.size % ranks
        whole = send.size - rest
        slice_size = max(1, _ROUND_BYTES // (send.itemsize * ranks))
        received = self._borrow(min(slice_size * ranks, whole), send.dtype)
        for start in range(0, whole, slice_size * ranks):
            end = min(start + slice_size * ranks, whole)
            each = (end - start) // ranks
            parts = received[: end - start]
            self._comm.Alltoall((send[start:end], each, datatype), (parts, each, datatype))
            folded = parts[:each]
            fold_gathered(folded, parts, ranks, op)
            self._comm.Allgather((folded, datatype), (recv[start:end], each, datatype))
        if rest:
            self._gather_and_fold(send[whole:], recv[whole:], op)

    def _broadcast(self, sequence: int, buf: Buffer, root: int) -> None:
        self._enter("broadcast", sequence)
        if self._size == 1:
            return
        datatype, plain = self._types.get(buf.dtype) or self._describe(buf.dtype)
        count = buf.size
        if not plain:
            buf = _as_bytes(buf)
        try:
            if count <= _MOST_ELEMENTS:
                self._comm.Bcast((buf, count, datatype), root)
            else:
                self._broadcast_in_pieces(buf.reshape(-1), root, datatype)
        except self._mpi.Exception as error:
            raise self._failure(error, "broadcast", root) from error

    def _broadcast_in_pieces(self, flat: Buffer, root: int, datatype: Any) -> None:
        unit = datatype.size // flat.itemsize
        step = max(1, _PIECE_BYTES // datatype.size) * unit
        for start in range(0, flat.size, step):
            self._comm.Bcast((flat[start : start + step], datatype), root)

    def _barrier(self, sequence: int) -> None:
        self._enter("barrier", sequence)
        try:
            self._comm.Barrier()
        except self._mpi.Exception as error:
            raise self._failure(error, "barrier") from error

    def _close(self) -> None:
        if self._watch is not None:
            mpi_job.forget_before_finalise(self._leave)
            self._leave()
        if not self._is_finalised():
            for handle in (*self._derived.values(), self._node, self._comm):
                handle.Free()

    def _abort(self, reason: str) -> None:
        error = sys.exc_info()[1]
        code = 1
        if isinstance(error, SystemExit):
            if not error.code:
                return  # an orderly end by sys.exit() inside a `with` block
            if isinstance(error.code, int):
                code = error.code & 0xFF or 1  # as much of it as a process can report
        elif isinstance(error, KeyboardInterrupt):
            code = 128 + signal.SIGINT
        if self._size > 1 and not self._is_finalised():
            mpi_job.print_current_exception()
            mpi_job.end_job(self._mpi, f"rank {self._rank} of {self._size} aborted: {reason}", code)

    def _create_shared_region(self, count: int, dtype: np.dtype[Any]) -> MpiRegion:
        self._enter("create_shared_region", self._next_sequence())
        requested_bytes = count * dtype.itemsize
        try:
            window, array = self._windows.create(count, dtype)
        except self._mpi.Exception as error:
            failure = self._failure(error, "create_shared_region", requested_bytes=requested_bytes)
            raise failure from error
        return MpiRegion(array, functools.partial(self._fence, window))

    def _fence(self, window: Any) -> None:
        self._ensure_usable("fence")
        self._enter("fence", self._next_sequence())
        try:
            self._windows.fence(window)
        except self._mpi.Exception as error:
            failure = self._failure(error, "fence")
            self._refusal = failure
            raise failure from error

    def _split_local(self) -> MpiBackend:
        self._enter("split_local", self._next_sequence())
        return MpiBackend(self._node)

    def _enter(self, operation: str, sequence: int) -> None:
        """What every collective does first: MPI calls after MPI_Finalize would end the process."""
        if self._is_finalised():
            raise InvalidCommunicator(mpi_runtime.FINALISED)
        watch = self._watch
        if watch is not None:
            watch.latest = operation, sequence
            if watch.departed and (lost := watch.lost_for(sequence)):
                raise CollectiveFailed(
                    operation, 0, departure(self._rank, operation, sequence, *lost), rank=lost[0]
                )

    def _failure(
        self, error: Any, operation: str, root: int = 0, requested_bytes: int | None = None
    ) -> CommError:
        failure = translate(
            self._mpi,
            error,
            operation,
            rank=self._rank,
            size=self._size,
            root=root,
            requested_bytes=requested_bytes,
        )
        if isinstance(failure, CollectiveFailed):
            mpi_job.distrust()
        return failure

    def _describe(self, dtype: np.dtype[Any]) -> tuple[Any, bool]:
        """The MPI type that moves one element, and whether mpi4py can take such an array as it is."""
        mpi, size = self._mpi, dtype.itemsize
        datatype = {1: mpi.BYTE, 2: mpi.INT16_T, 4: mpi.INT32_T, 8: mpi.INT64_T}.get(size)
        if datatype is None:
            datatype = self._derived.get(size)
        if datatype is None:
            datatype = self._derived[size] = mpi.BYTE.Create_contiguous(size).Commit()
        # Structured, string and time dtypes have costly buffer descriptions, or none.
        described = self._types[dtype] = datatype, dtype.kind in "biufc"
        return described

    def _borrow(self, count: int, dtype: np.dtype[Any]) -> Buffer:
        """An array in memory that is kept from one collective to the next."""
        needed = count * dtype.itemsize
        if self._scratch.nbytes < needed:
            self._scratch = np.empty(needed, np.uint8)
        return self._scratch[:needed].view(dtype)

    def _watch_peers(self) -> PeerWatch | None:
        """Let the ranks of this node exchange what they need to notice each other's end."""
        watch = None
        info = PeerInfo(self._rank, os.getpid(), 0, b"")
        if pidfds_work():
            end_job = functools.partial(mpi_job.end_job, self._mpi)
            watch = PeerWatch(self._rank, end_job, mpi_timeout_s(os.environ))
            info = watch.own_info()
        gathered = np.empty((self._node.size, PEER_INFO_BYTES), np.uint8)
        self._node.Allgather(np.frombuffer(info.pack(), np.uint8), gathered)
        peers = [PeerInfo.unpack(row.tobytes()) for row in gathered]
        if watch is not None:
            watch.start(peers)
            mpi_job.add_watch(watch)
            mpi_job.before_finalise(self._mpi, self._leave)
        return watch

    def _leave(self) -> None:
        if self._watch is not None:
            mpi_job.drop_watch(self._watch)
            self._watch.leave(self._sequence)
            self._watch = None


class _Layout:
    """What is worth knowing of the counts and displs of an allgatherv, once per pair of tuples."""

    __slots__ = ("counts", "displs", "end", "some_empty", "uniform")

    def __init__(self, counts: tuple[int, ...], displs: tuple[int, ...]) -> None:
        self.counts = counts
        self.displs = displs
        self.end = max((displ + count for displ, count in zip(displs, counts, strict=True)), default=0)
        self.some_empty = 0 in counts
        # Equal blocks, one after the other: MPI has a faster call for that.
        self.uniform = (
            0 < self.end <= _MOST_ELEMENTS
            and not self.some_empty
            and all(displ == rank * counts[0] for rank, displ in enumerate(displs))
            and len(set(counts)) == 1
        )


def node_communicator(mpi: Any, comm: Any) -> Any:
    """The ranks of `comm` that can share memory with this one, in their order."""
    return comm.Split_type(mpi.COMM_TYPE_SHARED, comm.rank)


def _as_bytes(array: Buffer) -> Buffer:
    return array.reshape(-1).view(np.uint8)
