"""Read a Parquet table of a run piece by piece: what is in memory does not grow with the table.

The pieces are the file's row groups. Threads read and reduce them, and their results come back in the order of the
file, so that no number depends on which thread was first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.errors import OutputError

__all__ = ["Columns", "Comparison", "TableFile"]

Columns = dict[str, NDArray[Any]]
T = TypeVar("T")
THREADS = min(4, os.cpu_count() or 1)


@frozen()
class Comparison:
    """Rows whose column compares so with one of `values` (one of them, except for `in`)."""

    column: str
    op: str
    values: tuple[float, ...]

    def mask(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        value = self.values[0] if self.values else 0.0
        match self.op:
            case "==":
                found = column == value
            case "!=":
                found = column != value
            case "<":
                found = column < value
            case "<=":
                found = column <= value
            case ">":
                found = column > value
            case ">=":
                found = column >= value
            case _:
                found = np.isin(column, np.asarray(self.values))
        return np.asarray(found, dtype=np.bool_)

    def possible(self, low: float, high: float) -> bool:
        """Whether a piece whose column lies between `low` and `high` can hold such a row."""
        value = self.values[0] if self.values else 0.0
        match self.op:
            case "==":
                return low <= value <= high
            case "<":
                return low < value
            case "<=":
                return low <= value
            case ">":
                return high > value
            case ">=":
                return high >= value
            case "in":
                return any(low <= each <= high for each in self.values)
            case _:
                return True


class TableFile:
    """One table on disk."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        self._path = path
        try:
            with parquet.ParquetFile(path) as opened:
                self._metadata = opened.metadata
                self.names: tuple[str, ...] = tuple(opened.schema_arrow.names)
        except FileNotFoundError as cause:
            raise OutputError(f"{path.name}: this run has no such table. Simulate first.") from cause
        except (OSError, pa.ArrowInvalid) as cause:
            raise OutputError(f"{path.name}: cannot read the table: {cause}. Simulate again.") from cause
        self.rows = int(self._metadata.num_rows)

    def span(self, name: str) -> tuple[int, int]:
        """The least and the largest value of a column of whole numbers."""
        found = [self._range(piece, name) for piece in range(self._metadata.num_row_groups)]
        if not found:
            return 0, 0
        if any(each is None for each in found):
            found = list(self.reduced((name,), (), lambda columns: _extent(columns[name])))
        known = [each for each in found if each is not None]
        return int(min(low for low, _ in known)), int(max(high for _, high in known))

    def reduced(
        self, columns: Sequence[str], where: Sequence[Comparison], reduce: Callable[[Columns], T]
    ) -> Iterator[T]:
        """`reduce` of the matching rows of every piece that may have some, in the order of the file."""
        wanted = list(dict.fromkeys([*columns, *(each.column for each in where)]))
        pieces = [
            piece
            for piece in range(self._metadata.num_row_groups)
            if all(
                (span := self._range(piece, each.column)) is None or each.possible(*span) for each in where
            )
        ]
        # One more than threads: one is ready while its predecessors are being used.
        waiting: deque[Future[T]] = deque()
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                for piece in pieces:
                    waiting.append(pool.submit(self._piece, piece, wanted, columns, where, reduce))
                    if len(waiting) > THREADS:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for each in waiting:
                    each.cancel()

    def _piece(
        self,
        piece: int,
        wanted: list[str],
        columns: Sequence[str],
        where: Sequence[Comparison],
        reduce: Callable[[Columns], T],
    ) -> T:
        import pyarrow.parquet as parquet

        with parquet.ParquetFile(self._path, metadata=self._metadata) as opened:
            table = opened.read_row_group(piece, columns=wanted, use_threads=False)
        found: Columns = {name: table[name].to_numpy() for name in wanted}
        keep: NDArray[np.bool_] | None = None
        for each in where:
            mask = each.mask(found[each.column])
            keep = mask if keep is None else keep & mask
        return reduce({name: found[name] if keep is None else found[name][keep] for name in columns})

    def _range(self, piece: int, name: str) -> tuple[float, float] | None:
        column = self._metadata.row_group(piece).column(self.names.index(name))
        statistics = column.statistics
        if statistics is None or not statistics.has_min_max:
            return None
        return float(statistics.min), float(statistics.max)


def _extent(column: NDArray[Any]) -> tuple[float, float] | None:
    return (float(column.min()), float(column.max())) if column.size else None
