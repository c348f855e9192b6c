"""From blocks to stages, from plants to totals, from scenarios to mean and quantiles: one rule per unit.

Power, flows, prices and water values of a stage are means over its hours; money and hours are sums; storage is that
of the end of the stage (of its beginning, where the name says so). A total keeps what can be added up: MW, hm3, money
and incremental inflow; prices of several buses are weighted by their load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.app.results.schemas import Column

__all__ = ["Columns", "by_stage", "over_scenarios", "totals"]

Columns = dict[str, NDArray[np.generic]]
_ADDED = ("$", "$/unit", "h")
#: Which differ from scenario to scenario; where nodes are stages they say nothing new.
_OF_SCENARIO = ("scenario_id", "node_id", "opening")
_ADDABLE = ("MW", "hm3", "$")


@frozen(eq=False)
class _Groups:
    """Rows in groups of equal keys, the groups in the order of the keys."""

    keys: Columns
    order: NDArray[np.int64]  #: rows by group, and as they were within one
    starts: NDArray[np.int64]  #: in `order`
    of_row: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Columns, keys: Sequence[str]) -> _Groups:
        rows = len(next(iter(columns.values())))
        if not keys:
            zero = np.zeros(rows, np.int64)
            return cls({}, np.arange(rows), np.zeros(min(rows, 1), np.int64), zero)
        order = np.lexsort([columns[key] for key in reversed(keys)]).astype(np.int64)
        new = np.zeros(rows, np.bool_)
        new[:1] = True
        for key in keys:
            ordered = columns[key][order]
            new[1:] |= ordered[1:] != ordered[:-1]
        starts = np.flatnonzero(new).astype(np.int64)
        of_row = np.empty(rows, np.int64)
        of_row[order] = np.cumsum(new) - 1
        return cls({key: columns[key][order[starts]] for key in keys}, order, starts, of_row)

    def sums(self, values: F64) -> F64:
        """Sums by group, in the order of the rows."""
        return np.bincount(self.of_row, values, len(self.starts)).astype(np.float64, copy=False)

    def mean(self, values: F64, weights: F64) -> F64:
        """Weighted means; plain ones in groups without any weight."""
        total = self.sums(weights)
        plain = self.sums(values) / np.maximum(self.sums(np.ones_like(values)), 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            weighted = self.sums(values * weights) / total
        return np.where(total > 0.0, weighted, plain)

    def first(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        found: NDArray[np.generic] = values[self.order[self.starts]]
        return found

    def last(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        ends = np.append(self.starts[1:], len(self.order))[: len(self.starts)] - 1
        found: NDArray[np.generic] = values[self.order[ends]]
        return found


def by_stage(columns: Columns, described: Mapping[str, Column]) -> Columns:
    """Blocks of a stage as one row; a table without blocks as it is."""
    if "block_id" not in columns:
        return columns
    keys = [name for name in columns if _is_key(described[name]) and name != "block_id"]
    # Within a stage the blocks follow each other by their ids.
    order = np.argsort(columns["block_id"], kind="stable")
    sorted_columns = {name: values[order] for name, values in columns.items()}
    groups = _Groups.of(sorted_columns, keys)
    hours = sorted_columns["hours"].astype(np.float64)
    found: Columns = dict(groups.keys)
    for name, values in sorted_columns.items():
        if name in keys or name == "block_id":
            continue
        column = described[name]
        amounts = values.astype(np.float64)
        if column.unit in _ADDED:
            found[name] = groups.sums(amounts)
        elif name == "storage_initial_hm3":
            found[name] = groups.first(values)
        elif column.unit == "hm3":
            found[name] = groups.last(values)
        else:
            found[name] = groups.mean(amounts, hours)
    return found


def totals(
    columns: Columns, described: Mapping[str, Column], kept: Sequence[str], dropped: Sequence[str]
) -> Columns:
    """Sums over the ids in `dropped`, by `kept` (stages, scenarios, and what one has put there)."""
    groups = _Groups.of(columns, kept)
    found: Columns = dict(groups.keys)
    for name, values in columns.items():
        if name in kept or name in dropped:
            continue
        column = described[name]
        amounts = values.astype(np.float64)
        if name == "hours":
            found[name] = groups.first(values)
        elif column.unit in _ADDABLE or name == "inflow_m3s":
            found[name] = groups.sums(amounts)
        elif name == "marginal_cost":
            found[name] = groups.mean(amounts, columns["load_mw"].astype(np.float64))
    return found


def over_scenarios(
    columns: Columns,
    described: Mapping[str, Column],
    quantiles: Sequence[float],
    probability: Mapping[int, float] | None,
) -> tuple[Columns, list[str]]:
    """Mean and quantiles over the scenarios: the columns, and which statistic each row is.

    Without `probability` scenarios are equally likely, and a quantile lies between two values where its level does.
    With it, a quantile is the least value that is not exceeded with at least that probability.
    """
    keys = [
        name
        for name in columns
        if (name not in described or _is_key(described[name])) and name not in _OF_SCENARIO
    ]
    groups = _Groups.of(columns, keys)
    scenario = columns["scenario_id"].astype(np.int64)
    weights = None
    if probability is not None:
        weights = np.array([probability.get(each, 0.0) for each in scenario.tolist()])
    parts: list[Columns] = []
    for q in (None, *quantiles):
        part: Columns = dict(groups.keys)
        for name, values in columns.items():
            if name in keys or name in _OF_SCENARIO:
                continue
            amounts = values.astype(np.float64)
            if q is None:
                part[name] = groups.mean(amounts, np.ones_like(amounts) if weights is None else weights)
            else:
                part[name] = _quantile(groups, amounts, q, weights)
        parts.append(part)
    words = ["mean", *(f"p{100.0 * q:g}" for q in quantiles)]
    # Statistics of one group stand together, in the order of the groups.
    count = len(groups.starts)
    order = np.arange(count * len(parts)).reshape(len(parts), count).T.reshape(-1)
    joined = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
    return joined, words * count


def _quantile(groups: _Groups, values: F64, q: float, weights: F64 | None) -> F64:
    order = np.lexsort((values, groups.of_row))
    ordered = values[order]
    sizes = np.diff(np.append(groups.starts, len(values)))
    if weights is None:
        level = q * (sizes - 1)
        below = np.floor(level).astype(np.int64)
        above = np.ceil(level).astype(np.int64)
        low, high = ordered[groups.starts + below], ordered[groups.starts + above]
        return np.asarray(low + (high - low) * (level - below))
    found = np.empty(len(sizes))
    for place, (start, size) in enumerate(zip(groups.starts.tolist(), sizes.tolist(), strict=True)):
        share = np.cumsum(weights[order[start : start + size]])
        at = int(np.searchsorted(share, q * share[-1] * (1.0 - 1e-12)))
        found[place] = ordered[start + min(at, size - 1)]
    return found


def _is_key(column: Column) -> bool:
    return column.dtype in ("int32", "int64")
