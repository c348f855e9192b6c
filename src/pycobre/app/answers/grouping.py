"""Aggregates by group, piece by piece: sums, means, extremes, deviations, exact quantiles.

Groups are cells of a dense grid over the keys, which are whole numbers of small ranges (ids, stages, scenarios). The
partial results of the pieces are joined in the order of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.app.answers.table_scan import Columns, Comparison, TableFile
from pycobre.errors import OptionError

__all__ = ["FUNCTIONS", "Measure", "grouped", "sums"]

FUNCTIONS = ("mean", "sum", "min", "max", "count", "std", "quantile")
LARGEST_GRID = 1 << 21
MOST_COLLECTED = 8_000_000
"""Values of which an exact quantile is taken; of more, the question has to be narrowed."""


@frozen()
class Measure:
    """One column of the answer; `weight` multiplies the column first, such as hours."""

    function: str
    column: str = ""
    q: float = 0.5
    weight: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name in (self.column, self.weight) if name)

    def values(self, columns: Columns) -> F64:
        values = columns[self.column].astype(np.float64, copy=False)
        return values * columns[self.weight] if self.weight else values


@frozen(eq=False)
class _Partial:
    count: NDArray[np.int64]
    parts: list[tuple[F64, ...]]
    rows: int


def grouped(
    table: TableFile, keys: Sequence[str], measures: Sequence[Measure], where: Sequence[Comparison]
) -> tuple[Columns, list[F64], int]:
    """Key columns and measures of every group that has rows, in the order of the keys; and the rows read."""
    spans = [table.span(key) for key in keys]
    sizes = [high - low + 1 for low, high in spans]
    cells = int(np.prod([float(size) for size in sizes])) if sizes else 1
    if cells > LARGEST_GRID:
        raise OptionError(
            f"group_by {', '.join(keys)}: expected at most {LARGEST_GRID:,} groups, got up to {cells:,}. "
            "Group by fewer columns."
        )
    needed = tuple(dict.fromkeys([*keys, *(name for each in measures for name in each.inputs)]))

    def reduce(columns: Columns) -> _Partial:
        rows = len(columns[needed[0]])
        at = np.zeros(rows, np.int64)
        for key, (low, _), size in zip(keys, spans, sizes, strict=True):
            at = at * size + (columns[key].astype(np.int64) - low)
        count = np.bincount(at, minlength=cells)
        return _Partial(count, [_reduce(each, columns, at, count) for each in measures], rows)

    if not needed:  # only a count, of everything
        needed = (table.names[0],)
    total: _Partial | None = None
    collected: list[list[tuple[F64, ...]]] = [[] for _ in measures]
    rows = 0
    for found in table.reduced(needed, where, reduce):
        rows += found.rows
        for place, each in enumerate(measures):
            if each.function == "quantile":
                collected[place].append(found.parts[place])
        if any(each.function == "quantile" for each in measures) and rows > MOST_COLLECTED:
            raise OptionError(
                f"quantile: expected at most {MOST_COLLECTED:,} rows, got more. Add filters, such as one plant."
            )
        total = found if total is None else _join(measures, total, found)
    if total is None:
        return {key: np.zeros(0, np.int64) for key in keys}, [np.zeros(0) for _ in measures], 0
    there = np.flatnonzero(total.count)
    places = np.unravel_index(there, sizes) if sizes else ()
    found_keys: Columns = {key: place + low for key, place, (low, _) in zip(keys, places, spans, strict=True)}
    values = [_finished(each, total, place, there, collected[place]) for place, each in enumerate(measures)]
    return found_keys, values, rows


def sums(at: NDArray[np.int64], values: F64, cells: int) -> F64:
    """Sums by cell, in the order of the values."""
    return np.bincount(at, values, cells).astype(np.float64, copy=False)


def _reduce(
    measure: Measure, columns: Columns, at: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[F64, ...]:
    if measure.function == "count":
        return ()
    values, cells = measure.values(columns), len(count)
    if measure.function == "quantile":
        return at.astype(np.float64), values
    if measure.function in ("min", "max"):
        extreme = np.full(cells, np.inf if measure.function == "min" else -np.inf)
        (np.minimum if measure.function == "min" else np.maximum).at(extreme, at, values)
        return (extreme,)
    total = sums(at, values, cells)
    if measure.function != "std":
        return (total,)
    mean = total / np.maximum(count, 1)
    return mean, sums(at, (values - mean[at]) ** 2, cells)


def _join(measures: Sequence[Measure], one: _Partial, other: _Partial) -> _Partial:
    count = one.count + other.count
    parts: list[tuple[F64, ...]] = []
    for measure, a, b in zip(measures, one.parts, other.parts, strict=True):
        match measure.function:
            case "mean" | "sum":
                parts.append((a[0] + b[0],))
            case "min":
                parts.append((np.minimum(a[0], b[0]),))
            case "max":
                parts.append((np.maximum(a[0], b[0]),))
            case "std":  # Chan, Golub and LeVeque: two samples as one
                whole = np.maximum(count, 1)
                apart = b[0] - a[0]
                mean = a[0] + apart * other.count / whole
                parts.append((mean, a[1] + b[1] + apart**2 * one.count * other.count / whole))
            case _:
                parts.append(())
    return _Partial(count, parts, one.rows + other.rows)


def _finished(
    measure: Measure, total: _Partial, place: int, there: NDArray[np.int64], collected: list[tuple[F64, ...]]
) -> F64:
    count = total.count[there].astype(np.float64)
    part: Any = total.parts[place]
    match measure.function:
        case "count":
            return count
        case "mean":
            return np.asarray(part[0][there] / count)
        case "std":
            with np.errstate(invalid="ignore"):
                return np.asarray(
                    np.where(count > 1, np.sqrt(part[1][there] / np.maximum(count - 1, 1)), np.nan)
                )
        case "quantile":
            at = np.concatenate([each[0] for each in collected]).astype(np.int64)
            values = np.concatenate([each[1] for each in collected])
            return _quantiles(at, values, there, measure.q)
        case _:
            return np.asarray(part[0][there])


def _quantiles(at: NDArray[np.int64], values: F64, groups: NDArray[np.int64], q: float) -> F64:
    """Exact quantiles by group, between two values where the level falls between them."""
    order = np.lexsort((values, at))
    ordered, cells = values[order], at[order]
    first = np.searchsorted(cells, groups)
    level = q * (np.searchsorted(cells, groups, side="right") - first - 1)
    below = np.floor(level).astype(np.int64)
    above = np.ceil(level).astype(np.int64)
    low, high = ordered[first + below], ordered[first + above]
    return np.asarray(low + (high - low) * (level - below))
