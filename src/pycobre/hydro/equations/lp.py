"""Writing an LP piece by piece, with a name for every row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre._util.arrays import F64, I32
from pycobre.solver.api import LpTemplate

__all__ = ["Lp"]


class Lp:
    """Collects columns, rows and entries; `template()` makes the LP of them.

    Blocks of columns and rows have a shape (entity, block of hours, …) and are returned as index arrays of
    that shape, so that equations are written on whole arrays.
    """

    def __init__(self) -> None:
        self._cost: list[F64] = []
        self._col_lower: list[F64] = []
        self._col_upper: list[F64] = []
        self._col_names: list[str] = []
        self._row_lower: list[F64] = []
        self._row_upper: list[F64] = []
        self._row_names: list[str] = []
        self._entries: list[tuple[NDArray[np.int64], NDArray[np.int64], F64]] = []

    def columns(
        self,
        kind: str,
        labels: Sequence[Sequence[str]],
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        cost: ArrayLike = 0.0,
    ) -> I32:
        """Add the product of `labels` as columns named `kind[a,b,…]`."""
        shape = tuple(len(axis) for axis in labels)
        index = np.arange(len(self._col_names), len(self._col_names) + int(np.prod(shape))).reshape(shape)
        self._col_names += _names(kind, labels)
        self._col_lower.append(_fill(lower, shape))
        self._col_upper.append(_fill(upper, shape))
        self._cost.append(_fill(cost, shape))
        return index.astype(np.int32)

    def rows(self, kind: str, labels: Sequence[Sequence[str]], lower: ArrayLike, upper: ArrayLike) -> I32:
        """Add the product of `labels` as rows named `kind[a,b,…]`."""
        shape = tuple(len(axis) for axis in labels)
        index = np.arange(len(self._row_names), len(self._row_names) + int(np.prod(shape))).reshape(shape)
        self._row_names += _names(kind, labels)
        self._row_lower.append(_fill(lower, shape))
        self._row_upper.append(_fill(upper, shape))
        return index.astype(np.int32)

    def add(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> None:
        """Add entries; the three broadcast against each other, and entries at one place are summed."""
        shape = np.broadcast(rows, cols, values).shape
        self._entries.append(
            (_fill(rows, shape, np.int64), _fill(cols, shape, np.int64), _fill(values, shape))
        )

    def template(self, offset: float = 0.0) -> LpTemplate:
        n_rows, n_cols = len(self._row_names), len(self._col_names)
        if self._entries:
            rows, cols, values = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        else:
            rows = cols = np.zeros(0, dtype=np.int64)
            values = np.zeros(0)
        place, inverse = np.unique(cols * max(1, n_rows) + rows, return_inverse=True)
        total = np.zeros(place.size)
        np.add.at(total, inverse, values)
        place, total = place[total != 0.0], total[total != 0.0]
        starts = np.zeros(n_cols + 1, dtype=np.int32)
        np.cumsum(np.bincount(place // max(1, n_rows), minlength=n_cols), out=starts[1:])
        return LpTemplate(
            cost=_join(self._cost),
            col_lower=_join(self._col_lower),
            col_upper=_join(self._col_upper),
            row_lower=_join(self._row_lower),
            row_upper=_join(self._row_upper),
            starts=starts,
            rows=(place % max(1, n_rows)).astype(np.int32),
            values=total,
            offset=offset,
            col_names=tuple(self._col_names),
            row_names=tuple(self._row_names),
        )


def _names(kind: str, labels: Sequence[Sequence[str]]) -> list[str]:
    names = [""]
    for axis in labels:
        names = [f"{name},{label}" if name else label for name in names for label in axis]
    return [f"{kind}[{name}]" for name in names] if labels else [kind]


def _fill(values: ArrayLike, shape: tuple[int, ...], kind: type[np.generic] = np.float64) -> NDArray[Any]:
    """`values` in a flat array of that shape; an assignment costs a fraction of what `broadcast_to` does."""
    filled = np.empty(shape, kind)
    filled[...] = values
    return filled.reshape(-1)


def _join(parts: list[F64]) -> F64:
    return np.concatenate(parts) if parts else np.zeros(0)
