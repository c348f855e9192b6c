"""One rank does something that may fail; all ranks learn what came of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre.comm import Communicator
from pycobre.errors import CobreError, CommError

__all__ = ["from_rank_zero", "gathered", "gathered_tables"]


def from_rank_zero(comm: Communicator, produce: Callable[[], bytes]) -> bytes:
    """Rank 0's bytes on every rank (collective); its error is raised on all of them.

    Only errors of pycobre travel, and only between ranks of one run, which trust each other.
    """
    if comm.size == 1:
        return produce()
    data, error = b"", None
    if comm.rank == 0:
        try:
            data = produce()
        except CommError:
            raise
        except CobreError as found:
            error = found
            data = pickle.dumps(found)
    header = np.array([error is not None, len(data)], np.int64)
    comm.broadcast(header, root=0)
    payload = np.frombuffer(data, np.uint8).copy() if comm.rank == 0 else np.empty(int(header[1]), np.uint8)
    if payload.size:
        comm.broadcast(payload, root=0)
    if header[0]:
        raise error if error is not None else pickle.loads(payload.tobytes())
    return payload.tobytes()


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
