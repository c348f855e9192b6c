"""One rank does something that may fail; all ranks learn what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.error_record import decode_error, encode_error
from pycobre.comm import Communicator
from pycobre.comm.collectives import broadcast_bytes
from pycobre.errors import CobreError, CollectiveFailed, CommError

__all__ = ["from_rank_zero", "gathered", "gathered_tables"]

_DATA, _ERROR = b"\0", b"\1"


def from_rank_zero(comm: Communicator, produce: Callable[[], bytes]) -> bytes:
    """Rank 0's bytes on every rank (collective); its error is raised on all of them.

    Only errors of pycobre travel, as records: one byte says whether the bytes after it are such a record.
    """
    if comm.size == 1:
        return produce()
    message, error = b"", None
    if comm.rank == 0:
        try:
            message = _DATA + produce()
        except CommError:
            raise
        except CobreError as found:
            error = found
            message = _ERROR + encode_error(found)
    message = broadcast_bytes(comm, message)
    if error is not None:
        raise error
    status, data = message[:1], message[1:]
    if status == _ERROR:
        raise decode_error(data, "rank 0")
    if status != _DATA:
        raise CollectiveFailed(
            "broadcast", 0, f"the status byte of rank 0: expected 0 or 1, got {message[:40]!r}", rank=0
        )
    return data


def gathered(comm: Communicator, own: NDArray[Any]) -> NDArray[Any]:
    """Every rank's elements, in rank order, on every rank (collective)."""
    if comm.size == 1:
        return own
    sizes = np.empty(comm.size, np.int64)
    comm.allgatherv(np.array([own.size], np.int64), sizes, (1,) * comm.size, tuple(range(comm.size)))
    counts = tuple(int(size) for size in sizes)
    displs = tuple(sum(counts[:rank]) for rank in range(comm.size))
    everything = np.empty(sum(counts), own.dtype)
    comm.allgatherv(np.ascontiguousarray(own), everything, counts, displs)
    return everything


def gathered_tables(
    comm: Communicator, tables: Mapping[str, Mapping[str, NDArray[Any]]]
) -> dict[str, dict[str, NDArray[Any]]]:
    """The ranks' tables one after the other on rank 0, nothing on the others (collective).

    Column by column, so that no rank but 0 ever holds more than its own tables and one whole column.
    """
    whole: dict[str, dict[str, NDArray[Any]]] = {}
    for name, columns in tables.items():
        for column, values in columns.items():
            found = gathered(comm, values)
            if comm.rank == 0:
                whole.setdefault(name, {})[column] = found
    return whole
