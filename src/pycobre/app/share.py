"""The tables of all ranks on rank 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from pycobre.comm import Communicator
from pycobre.comm.collectives import gather_arrays

__all__ = ["gathered_tables"]


def gathered_tables(
    comm: Communicator, tables: Mapping[str, Mapping[str, NDArray[Any]]]
) -> dict[str, dict[str, NDArray[Any]]]:
    """The ranks' tables one after the other on rank 0, nothing on the others (collective).

    Column by column, so that no rank but 0 ever holds more than its own tables and one whole column.
    """
    whole: dict[str, dict[str, NDArray[Any]]] = {}
    for name, columns in tables.items():
        for column, values in columns.items():
            found = gather_arrays(comm, values)
            if comm.rank == 0:
                whole.setdefault(name, {})[column] = found
    return whole
