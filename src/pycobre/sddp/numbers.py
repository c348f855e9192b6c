"""Sums whose bits depend on the order of the terms and on nothing else.

NumPy's own reductions and BLAS choose their summation tree by length, stride and processor. Wherever a sum
decides a published number it is taken here: strictly from left to right, without fused operations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pycobre._util.arrays import F64

__all__ = ["Spread", "cut_values", "ordered_dot", "ordered_sum", "spread"]


def ordered_sum(terms: F64) -> F64:
    """Sum over the last axis from left to right."""
    if terms.shape[-1] == 0:
        return np.zeros(terms.shape[:-1])
    total: F64 = np.add.accumulate(terms, axis=-1)[..., -1]
    return total


def ordered_dot(left: F64, right: F64) -> F64:
    """Σ left·right over the last axis, from left to right."""
    return ordered_sum(left * right)


def cut_values(intercept: F64, slope: F64, points: F64) -> F64:
    """Value of every cut at every point, [points, cuts]: intercept + Σ_k slope_k · point_k."""
    total = np.zeros((len(points), len(intercept)))
    term = np.empty_like(total)
    by_component = np.ascontiguousarray(slope.T)
    for k in range(points.shape[1]):
        np.multiply(points[:, k, None], by_component[k], out=term)
        total += term
    total += intercept
    return total


class Spread(NamedTuple):
    """What a sample of costs says of their mean."""

    mean: float
    std: float  #: sample standard deviation
    half_width: float  #: half width of the 95 % interval of the mean


def spread(costs: F64) -> Spread:
    """Statistics of per-scenario costs, summed in scenario order; `std` of one scenario is 0, of none NaN."""
    count = len(costs)
    if not count:
        return Spread(math.nan, math.nan, math.nan)
    mean = float(ordered_sum(costs)) / count
    std = 0.0
    if count > 1:
        std = math.sqrt(float(ordered_sum((costs - mean) ** 2)) / (count - 1))
    return Spread(mean, std, 1.96 * std / math.sqrt(count))
