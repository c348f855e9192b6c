"""Every precondition of the contract, once, for all backends.

A check runs before any byte moves and raises on the calling rank only; the communicator is unharmed. These
functions are on the path of every collective, some of which take half a microsecond, so each begins with one
test that plain arrays pass (the fast path), made of as few attribute reads as possible; what fails it goes to a
function that looks closely and explains.

The very first test is native where the native modules are built (a third of a microsecond less); it answers yes
or leaves the question to the rest, which is complete without it.

Two plain arrays are: different objects of the very class ndarray, contiguous, aligned,
writable, each the owner of its memory (so they cannot overlap), with one dtype object. `flags.num` tells all
of that but the dtype in one read.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from numpy import ndarray

from pycobre.comm.fold import ReduceOp
from pycobre.errors import InvalidBufferSize, InvalidRoot

try:
    from pycobre._native.buffers import fits_allgatherv, fits_allreduce, fits_broadcast
except ImportError:

    def fits_allgatherv(send: object, recv: object, count: int, needed: int, /) -> bool:
        return False

    def fits_allreduce(send: object, recv: object, /) -> bool:
        return False

    def fits_broadcast(buf: object, writable: bool, /) -> bool:
        return False


Buffer = np.ndarray[Any, Any]

_READABLE = 0x0001 | 0x0100  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
_WRITABLE = _READABLE | 0x0400  # | NPY_ARRAY_WRITEABLE
_OWNER = 0x0004  # NPY_ARRAY_OWNDATA
_PLAIN = _WRITABLE | _OWNER

# Letters are NumPy's type characters: the integers, the floats; then bool and the complex numbers.
_REDUCIBLE = frozenset(np.dtype(letter) for letter in "bBhHiIlLqQefdg")
_SIMPLE = _REDUCIBLE | frozenset(np.dtype(letter) for letter in "?FDG")

_LAYOUTS_KEPT = 256


class Layouts:
    """The (counts, displs) pairs that one communicator has validated already.

    The last pair is recognised by identity, which is safe for tuples; others by value, after conversion to
    ints (1.0 and True equal 1 as dictionary keys, and must not get in that way).
    """

    __slots__ = ("_last", "_size", "_valid")

    def __init__(self, size: int) -> None:
        self._size = size
        self._valid: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self._last: tuple[object, object, tuple[tuple[int, ...], tuple[int, ...], int]] | None = None

    def resolve(
        self, counts: Sequence[int], displs: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Both as tuples of ints, and the number of elements `recv` must have."""
        last = self._last
        if last is not None and last[0] is counts and last[1] is displs:
            return last[2]
        plain = tuple(map(index, counts)), tuple(map(index, displs))
        needed = self._valid.get(plain)
        if needed is None:
            needed = _check_layout(*plain, self._size)
            if len(self._valid) >= _LAYOUTS_KEPT:
                self._valid.clear()
            self._valid[plain] = needed
        if type(counts) is tuple and type(displs) is tuple:
            self._last = counts, displs, (*plain, needed)
        return *plain, needed


def check_allgatherv(
    send: Buffer, recv: Buffer, counts: Sequence[int], displs: Sequence[int], rank: int, layouts: Layouts
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Refuse an `allgatherv` that cannot work; return `counts` and `displs` as tuples of ints."""
    plain_counts, plain_displs, needed = layouts.resolve(counts, displs)
    if fits_allgatherv(send, recv, plain_counts[rank], needed):
        return plain_counts, plain_displs
    if (
        send.__class__ is not ndarray
        or recv.__class__ is not ndarray
        or send.flags.num & recv.flags.num & _PLAIN != _PLAIN
        or send is recv
        or (dtype := send.dtype) is not recv.dtype
    ):
        dtype = _check_buffers("allgatherv", send, recv)
    if dtype not in _SIMPLE:
        _check_movable("allgatherv", dtype)
    if send.size != plain_counts[rank]:
        wanted = f"send to have counts[{rank}] = {plain_counts[rank]} elements"
        raise _misfit("allgatherv", wanted, plain_counts[rank], send.size)
    if recv.size < needed:
        wanted = f"recv to have at least max(displs + counts) = {needed} elements"
        raise _misfit("allgatherv", wanted, needed, recv.size)
    return plain_counts, plain_displs


def check_allreduce(send: Buffer, recv: Buffer, op: ReduceOp) -> None:
    """Refuse an `allreduce` that cannot work."""
    if fits_allreduce(send, recv) and op.__class__ is ReduceOp:
        return
    if (
        send.__class__ is not ndarray
        or recv.__class__ is not ndarray
        or send.flags.num & recv.flags.num & _PLAIN != _PLAIN
        or send is recv
        or (dtype := send.dtype) is not recv.dtype
    ):
        dtype = _check_buffers("allreduce", send, recv)
    if dtype not in _REDUCIBLE:
        expected = "an integer or floating dtype in native byte order"
        raise InvalidBufferSize("allreduce", expected, f"dtype {dtype}")
    size = send.size
    if not size:
        raise _misfit("allreduce", "at least one element", 1, 0)
    if size != recv.size:
        raise _misfit("allreduce", f"recv to have send's {size} elements", size, recv.size)
    if op.__class__ is not ReduceOp:
        raise TypeError(f"allreduce: expected op to be a ReduceOp, got {op!r}. Use ReduceOp.SUM, MIN or MAX.")


def check_broadcast(buf: Buffer, root: int, rank: int, size: int) -> int:
    """Refuse a `broadcast` that cannot work; return `root` as an int."""
    root = index(root)
    if not 0 <= root < size:
        raise InvalidRoot(root, size)
    if fits_broadcast(buf, rank != root):
        return root
    wanted = _READABLE if rank == root else _WRITABLE
    if not isinstance(buf, ndarray) or buf.flags.num & wanted != wanted:
        _refuse_array("broadcast", "buf", buf)
    if buf.dtype not in _SIMPLE:
        _check_movable("broadcast", buf.dtype)
    return root


def check_region(count: int, dtype: npt.DTypeLike) -> tuple[int, np.dtype[Any]]:
    """Refuse a shared region that makes no sense; return `count` and `dtype` in their plain form."""
    count = index(count)
    if count < 0:
        raise _misfit("create_shared_region", "a count of 0 or more", 0, count)
    plain = np.dtype(dtype)
    _check_movable("create_shared_region", plain)
    return count, plain


def _check_buffers(operation: str, send: Buffer, recv: Buffer) -> np.dtype[Any]:
    """Two usable arrays of one dtype in separate memory; returns the dtype."""
    if not isinstance(send, ndarray) or send.flags.num & _READABLE != _READABLE:
        _refuse_array(operation, "send", send)
    if not isinstance(recv, ndarray) or recv.flags.num & _WRITABLE != _WRITABLE:
        _refuse_array(operation, "recv", recv)
    # Contiguous arrays are their bounds, so comparing bounds is exact.
    if np.may_share_memory(send, recv):
        expected = "send and recv in separate memory"
        raise InvalidBufferSize(operation, expected, "arrays that overlap: copy one of them first")
    dtype: np.dtype[Any] = send.dtype
    if dtype != recv.dtype:
        raise _misfit(operation, f"recv to have send's dtype {dtype}", dtype, recv.dtype)
    return dtype


def _check_layout(counts: tuple[int, ...], displs: tuple[int, ...], size: int) -> int:
    """Refuse counts and displs that do not describe disjoint ranges; return the length they span."""
    for name, values in (("counts", counts), ("displs", displs)):
        if len(values) != size:
            raise _misfit("allgatherv", f"{name} to have one entry per rank = {size}", size, len(values))
        for rank, value in enumerate(values):
            if value < 0:
                raise _misfit("allgatherv", f"{name}[{rank}] to be 0 or more", 0, value)
    end = 0
    owner = -1
    for start, rank in sorted((displs[rank], rank) for rank in range(size) if counts[rank]):
        if start < end:
            wanted = f"ranges that do not overlap: rank {rank} to start at {end} or later"
            raise _misfit("allgatherv", wanted, end, start, f", inside the range of rank {owner}")
        end, owner = start + counts[rank], rank
    return max(displ + count for displ, count in zip(displs, counts, strict=True))


def _check_movable(operation: str, dtype: np.dtype[Any]) -> None:
    """Refuse a dtype whose bytes mean nothing in another process, or that has none."""
    if dtype.hasobject or dtype.itemsize == 0:
        expected = "a dtype without Python objects and with a size"
        raise InvalidBufferSize(operation, expected, f"dtype {dtype}")


def _misfit(
    operation: str, wanted: str, expected: object, actual: object, where: str = ""
) -> InvalidBufferSize:
    """The error of two things that should fit: it carries both of them, and says in words what they are."""
    return InvalidBufferSize(operation, expected, actual, f"expected {wanted}, got {actual}{where}")


def _refuse_array(operation: str, name: str, value: object) -> NoReturn:
    """Explain what is wrong with an argument that is no array, or not one to read from or write into."""
    if not isinstance(value, ndarray):
        raise InvalidBufferSize(operation, f"{name} to be a NumPy array", f"a {type(value).__name__}")
    if not value.flags.c_contiguous:
        advice = "use numpy.ascontiguousarray, or a contiguous slice"
        got = f"shape {value.shape} with strides {value.strides}: {advice}"
        raise InvalidBufferSize(operation, f"{name} to be C-contiguous", got)
    if not value.flags.aligned:
        raise InvalidBufferSize(operation, f"{name} to be aligned", "an unaligned array: pass a copy of it")
    raise InvalidBufferSize(operation, f"{name} to be writable", "a read-only array")
