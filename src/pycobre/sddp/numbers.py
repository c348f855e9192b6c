"""Sums whose bits depend on the order of the terms and on nothing else.

NumPy's own reductions and BLAS choose their summation tree by length, stride and processor. Wherever a sum
decides a published number it is taken here: strictly from left to right, without fused operations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pycobre._util.arrays import F64

__all__ = [
    "Spread",
    "cut_values",
    "ordered_dot",
    "ordered_exp",
    "ordered_log",
    "ordered_sum",
    "spread",
    "weighted",
]


# ln 2 in two parts; multiples of the first up to 2^20 are exact.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")


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


def ordered_exp(x: F64) -> F64:
    """e^x for x ≤ 0, within two units of the last place; NumPy's own depends on the processor."""
    k = np.rint(x * (1.0 / math.log(2.0)))
    k = np.maximum(k, -1080.0)  # smaller is 0 anyhow
    r = np.maximum((x - k * _LN2_HIGH) - k * _LN2_LOW, -1.0)
    total = np.ones_like(r)
    for n in range(13, 0, -1):
        total = 1.0 + r * total / n
    result: F64 = np.ldexp(total, k.astype(np.int32))
    return result


def ordered_log(x: F64) -> F64:
    """Natural logarithm of positive numbers, within a few units of the last place, the same on every processor."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < math.sqrt(0.5)
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    k = (exponent - small).astype(np.float64)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    total = np.zeros_like(f)
    for n in range(23, 0, -2):
        total = 1.0 / n + square * total
    result: F64 = k * _LN2_HIGH + (2.0 * f * total + k * _LN2_LOW)
    return result


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


def weighted(costs: F64, probability: F64) -> Spread:
    """Mean and deviation of all outcomes there are, by their probabilities; there is no interval."""
    mean = float(ordered_sum(probability * costs))
    variance = float(ordered_sum(probability * (costs - mean) ** 2))
    return Spread(mean, math.sqrt(variance), 0.0)
