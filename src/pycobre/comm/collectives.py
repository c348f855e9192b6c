"""What programs build of the four collectives: rows of all ranks, bytes of one rank, an error that all ranks raise.

All of it is collective: every rank calls the same function in the same order. Whatever another rank announces is
checked before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.error_record import decode_error, encode_error, mark_origin
from pycobre.comm.api import Communicator
from pycobre.errors import CobreError, CollectiveFailed, CommError

__all__ = [
    "broadcast_bytes",
    "broadcast_error",
    "broadcast_result",
    "displacements",
    "gather_arrays",
    "gather_rows",
]

PIECE_BYTES = 64 << 20
"""Bytes are sent in pieces: what a rank allocates grows with what has arrived, not with what was announced."""

_DATA, _ERROR = b"\0", b"\1"


@lru_cache(maxsize=256)
def displacements(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Where each rank's part begins if the parts follow one another in rank order."""
    return tuple(accumulate(counts[:-1], initial=0)) if counts else ()


def gather_rows(comm: Communicator, own: NDArray[Any], counts: tuple[int, ...]) -> NDArray[Any]:
    """The rows of every rank in rank order, `counts` of them per rank; any dtype, any further axes."""
    width = math.prod(own.shape[1:])
    sizes = tuple(count * width for count in counts)
    everything = np.empty((sum(counts), *own.shape[1:]), own.dtype)
    comm.allgatherv(np.ascontiguousarray(own), everything, sizes, displacements(sizes))
    return everything


def gather_arrays(comm: Communicator, own: NDArray[Any]) -> NDArray[Any]:
    """The elements of every rank in rank order, where no rank knows how many the others have."""
    if comm.size == 1:
        return own
    sizes = gather_rows(comm, np.array([own.size], np.int64), (1,) * comm.size).tolist()
    for rank, size in enumerate(sizes):
        if size < 0:
            raise _announced(rank, "elements", size, "allgatherv")
    return gather_rows(comm, own.reshape(-1), tuple(sizes))


def broadcast_bytes(comm: Communicator, data: bytes, root: int = 0) -> bytes:
    """The `data` of rank `root`, on every rank; what the others pass is ignored."""
    if comm.size == 1:
        return data
    length = np.array([len(data)], np.int64)
    comm.broadcast(length, root=root)
    remaining = int(length[0])
    if remaining < 0:
        raise _announced(root, "bytes", remaining, "broadcast")
    if comm.rank == root:
        for at in range(0, len(data), PIECE_BYTES):
            comm.broadcast(np.frombuffer(data, np.uint8)[at : at + PIECE_BYTES].copy(), root=root)
        return data
    pieces = []
    while remaining:
        piece = np.empty(min(remaining, PIECE_BYTES), np.uint8)
        comm.broadcast(piece, root=root)
        pieces.append(piece.tobytes())
        remaining -= piece.size
    return b"".join(pieces)


def broadcast_error(comm: Communicator, error: Exception | None, root: int) -> Exception:
    """The error that rank `root` has, on every rank; the others pass None."""
    record = broadcast_bytes(comm, b"" if error is None else encode_error(error), root)
    return error if error is not None else mark_origin(decode_error(record, f"rank {root}"), root)


def broadcast_result(comm: Communicator, produce: Callable[[], bytes]) -> bytes:
    """What `produce` returns on rank 0, on every rank; an error of pycobre that it raises is raised on all.

    One byte says whether the bytes after it are the result or the record of an error.
    """
    if comm.size == 1:
        return produce()
    message, error = b"", None
    if comm.rank == 0:
        try:
            message = _DATA + produce()
        except CommError:
            raise  # the ranks cannot talk: there is no telling them
        except CobreError as found:
            error = found
            message = _ERROR + encode_error(found)
    message = broadcast_bytes(comm, message)
    if error is not None:
        raise error
    status, data = message[:1], message[1:]
    if status == _ERROR:
        raise mark_origin(decode_error(data, "rank 0"), 0)
    if status != _DATA:
        raise CollectiveFailed(
            "broadcast", 0, f"the status byte of rank 0: expected 0 or 1, got {message[:40]!r}", rank=0
        )
    return data


def _announced(rank: int, what: str, number: int, operation: str) -> CollectiveFailed:
    message = f"the length that rank {rank} announced: expected 0 {what} or more, got {number}"
    return CollectiveFailed(operation, 0, message, rank=rank)
