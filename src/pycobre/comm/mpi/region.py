"""Regions in MPI shared windows: one allocation per node, mapped by all its ranks.

A window is freed by all ranks together, while a region is closed, or collected, by each rank for itself. So a
released window waits in `Windows` until the ranks of the node meet again, which they do when the next region
is made; those that every rank has released by then are freed. What is left goes with the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from pycobre.comm.api import SharedRegion
from pycobre.errors import AllocationFailed

_MADV_POPULATE_WRITE = 23
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_REFUSED_BY_MPI = -1
# Where libraries keep their windows, as long as none has been seen; and what they add to each of them: the
# rounding to whole pages and a control segment.
_DEFAULT_MOUNT = "/dev/shm"
_OVERHEAD_BYTES = 64 << 10


class MpiRegion(SharedRegion):
    """An array in a window that the ranks of a node share; made by `MpiBackend.create_shared_region`."""

    def __init__(self, array: np.ndarray[Any, Any], fence: Callable[[], None]) -> None:
        super().__init__(array)
        self._meet: Callable[[], None] | None = fence

    def _fence(self) -> None:
        assert self._meet is not None
        self._meet()

    def _close(self) -> None:
        # The array's own finaliser reports the release: the caller may still hold views of it.
        self._meet = None


class _Entry:
    """A window, and whether this rank still uses its memory."""

    def __init__(self, window: Any, array: np.ndarray[Any, Any]) -> None:
        self.window = window
        self.released = False
        # Every view of the memory has this array as its base, so it goes when the last of them does.
        weakref.finalize(array, setattr, self, "released", True).atexit = False


class Windows:
    """The windows of one node's ranks, in the same order on each."""

    def __init__(self, mpi: Any, node: Any) -> None:
        self._mpi = mpi
        self._node = node
        self._entries: list[_Entry] = []
        self._mount: str | None = None
        self._probed = False

    def create(self, count: int, dtype: np.dtype[Any]) -> tuple[Any, np.ndarray[Any, Any]]:
        """A new window and its zeroed array, all of its memory reserved; collective over the node."""
        self._free_released()
        requested_bytes = count * dtype.itemsize
        leader = self._node.rank == 0
        if not self._probed:
            self._ask_for_space(_DEFAULT_MOUNT if os.path.isdir(_DEFAULT_MOUNT) else None, _PAGE_BYTES)
            self._mount = self._find_mount()
            self._probed = True
        self._ask_for_space(self._mount, requested_bytes)
        window = memory = None
        refused: Exception | None = None
        try:
            window = self._allocate(requested_bytes)
            memory = window.Shared_query(0)[0]
        except self._mpi.Exception as error:
            refused = error
        verdict = _REFUSED_BY_MPI if memory is None else 0
        if leader and memory is not None:
            verdict = _reserve(memory.address, max(requested_bytes, 1))
        try:
            self._agree(verdict, requested_bytes, refused)
        except AllocationFailed:
            if window is not None:
                window.Free()
            raise
        assert window is not None
        window.Set_errhandler(self._mpi.ERRORS_RETURN)
        # A passive epoch for the whole life of the window: Sync is allowed only inside one.
        window.Lock_all(self._mpi.MODE_NOCHECK)
        array: np.ndarray[Any, Any] = np.ndarray((count,), dtype, memory)
        if leader:
            array.view(np.uint8)[...] = 0
        self._entries.append(_Entry(window, array))
        self.fence(window)
        return window, array

    def fence(self, window: Any) -> None:
        """Complete this rank's accesses, meet the node's ranks, see theirs."""
        window.Sync()
        self._node.Barrier()
        window.Sync()

    def _allocate(self, size: int) -> Any:
        """A window with all of its memory on the leader; never empty, for such may have no address."""
        leader = self._node.rank == 0
        return self._mpi.Win.Allocate_shared(
            max(size, 1) if leader else 0, 1, self._mpi.INFO_NULL, self._node
        )

    def _find_mount(self) -> str | None:
        """Where this library keeps its windows, found by making a small one; None where it is in no file."""
        window = self._allocate(_PAGE_BYTES)
        path = _file_behind(window.Shared_query(0)[0].address)
        window.Free()
        return None if path is None else os.path.dirname(path)

    def _ask_for_space(self, mount: str | None, requested_bytes: int) -> None:
        """Raise `AllocationFailed` on every rank where the mount has too little room.

        Asked before the library is, which ends by SIGBUS on a full mount, or, Open MPI's, leaves the other ranks
        waiting when the leader is refused; and asked when all are there, so that little time is left in which
        others could take the room.
        """
        self._node.Barrier()
        verdict = _check_space(mount, requested_bytes + _OVERHEAD_BYTES) if self._node.rank == 0 else 0
        self._agree(verdict, requested_bytes, None)

    def _agree(self, verdict: int, requested_bytes: int, cause: Exception | None) -> None:
        """Raise `AllocationFailed` on every rank of the node if one was refused: its `verdict` is not 0."""
        verdicts = np.empty(self._node.size, np.int64)
        self._node.Allgather(np.array([verdict], np.int64), verdicts)
        refused = np.flatnonzero(verdicts)
        if not len(refused):
            return
        code = int(verdicts[refused[0]])
        if code == _REFUSED_BY_MPI:
            message = f"MPI refused a shared window on rank {refused[0]} of the node"
        else:
            message = (
                f"{os.strerror(code)} in the node's shared memory ({self._mount or 'the heap'}). Make it "
                "larger (a container's with --shm-size), or use fewer or smaller regions"
            )
        raise AllocationFailed(requested_bytes, message) from cause

    def _free_released(self) -> None:
        if not self._entries:
            return
        mine = np.array([entry.released for entry in self._entries], np.uint8)
        everybodys = np.empty((self._node.size, len(mine)), np.uint8)
        self._node.Allgather(mine, everybodys)
        kept = []
        for index, entry in enumerate(self._entries):
            if everybodys[:, index].all():
                entry.window.Unlock_all()
                entry.window.Free()
            else:
                kept.append(entry)
        self._entries = kept


def _check_space(mount: str | None, size: int) -> int:
    """0, or the number of the error that writing `size` bytes into a file on `mount` would end with."""
    if mount is None:
        return 0
    room = os.statvfs(mount)
    return 0 if size <= room.f_bavail * room.f_frsize else errno.ENOSPC


def _reserve(address: int, size: int) -> int:
    """Make the system commit the pages of a fresh mapping; 0, or the number of its refusal.

    MPI libraries make a file on a memory mount as long as the window, but do not reserve it; where the mount
    is full, a later write would end the process by SIGBUS.
    """
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    start = address - address % _PAGE_BYTES
    if libc.madvise(start, address + size - start, _MADV_POPULATE_WRITE) == 0:
        return 0
    code = ctypes.get_errno()
    if code == errno.EINVAL:
        return 0  # kernels before 5.14 do not know the advice; the check of the free space must do
    return errno.ENOSPC if code == errno.EFAULT else code


def _file_behind(address: int) -> str | None:
    """The file that is mapped at `address`, or None where there is none or the system does not say."""
    if not sys.platform.startswith("linux"):
        return None
    with open("/proc/self/maps") as maps:
        for line in maps:
            bounds, *fields = line.split(maxsplit=5)
            first, last = (int(bound, 16) for bound in bounds.split("-"))
            if first <= address < last:
                return fields[4] if len(fields) == 5 and fields[4].startswith("/") else None
    return None
