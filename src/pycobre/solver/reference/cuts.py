"""Cuts at a point: the one definition of their value and of which ones a solve takes in.

The value of a row decides what enters an LP, so its bits are part of the contract. The sum over the state
is taken in four interleaved partial sums, each from the first component to the last, without fused
operations:

    p_j = Σ_{k ≡ j mod 4} slope_k · y_k        value = intercept + ((p_0 + p_1) + (p_2 + p_3))

A state may have stretches that a chain or an opening knows before anything is decided (`Prepared.part_kind`): lags
of inflows, for instance. Their shares are added to the intercept first, once for each, then those of the decided
stretches, each in four partial sums of its own. So a search reads the decided components alone.

The compiled path computes the same four sums with vector instructions; this one is its mirror in NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre.solver.api import F64, I32, CutView

__all__ = ["add_part", "best_cuts", "cut_values", "lanes_dot", "newest_stretch"]

STRETCH = 1024  # rows


def cut_values(cuts: CutView, point: F64) -> F64:
    """`intercept + slope·point` of the first `count` rows, active or not."""
    slope = cuts.slope[: cuts.count]
    partial = np.zeros((4, cuts.count))
    for k in range(slope.shape[1]):
        partial[k & 3] += slope[:, k] * point[k]
    values: F64 = cuts.intercept[: cuts.count] + ((partial[0] + partial[1]) + (partial[2] + partial[3]))
    return values


def add_part(values: F64, cuts: CutView, point: F64, first: int, end: int) -> F64:
    """`values` plus the share of the components from `first` to `end`, in four partial sums of their own."""
    partial = np.zeros((4, cuts.count))
    for k in range(first, end):
        partial[(k - first) & 3] += cuts.slope[: cuts.count, k] * point[k]
    sums: F64 = values + ((partial[0] + partial[1]) + (partial[2] + partial[3]))
    return sums


def lanes_dot(rows: F64, vector: F64) -> F64:
    """`rows @ vector` in the same four partial sums; the width is a multiple of four."""
    partial = np.zeros((rows.shape[0], 4))
    for k in range(0, vector.size, 4):
        partial += rows[:, k : k + 4] * vector[k : k + 4]
    sums: F64 = (partial[:, 0] + partial[:, 1]) + (partial[:, 2] + partial[:, 3])
    return sums


def newest_stretch(values: F64, eligible: NDArray[np.bool_], above: float) -> NDArray[np.bool_]:
    """The eligible rows of the first stretch, from the newest, that has one above `above`; none where none has.

    Newer rows tend to be the better ones, so most searches end there; only the last one of a solve, which
    finds nothing, goes through the whole table.
    """
    hits = np.flatnonzero(eligible & (values > above))
    if not hits.size:
        return np.zeros_like(eligible)
    first = int(hits[-1]) // STRETCH * STRETCH
    inside: NDArray[np.bool_] = eligible & (np.arange(eligible.size) >= first)
    return inside


def best_cuts(values: F64, eligible: NDArray[np.bool_], number: int, above: float = -np.inf) -> I32:
    """The slots of the `number` largest eligible values above `above` (ties: lowest slot), ascending."""
    candidates = np.flatnonzero(eligible & (values > above)).astype(np.int32)
    order = np.argsort(-values[candidates], kind="stable")[:number]
    return np.sort(candidates[order])
