"""Latin hypercubes and Sobol points on Cobre's streams, bit for bit: one generator makes all openings of a stage.

Uniform points become normals through the approximation of Beasley, Springer and Moro (Moro, "The full Monte",
Risk 8, 1995), which is within 4e-9 of the exact quantile and is what Cobre uses.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, U64
from pycobre.stochastic.generators import bit_generator

__all__ = [
    "latin_normals",
    "latin_points",
    "latin_strata",
    "moro_quantile",
    "sobol_normals",
    "sobol_points",
]


_LOW = np.uint64(0xFFFFFFFF)
_TINY, _ALMOST_ONE = np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).eps

# Moro's coefficients: a rational function of (p − 1/2)² in the middle, a polynomial of ln(−ln p) in the tails.
_MIDDLE = 0.42
_ABOVE = (2.50662823884, -18.61500062529, 41.39119773534, -25.44106049637)
_BELOW = (1.0, -8.47351093090, 23.08336743743, -21.06224101826, 3.13082909833)
_TAIL = (
    0.3374754822726147,
    0.9761690190917186,
    0.1607979714918209,
    0.0276438810333863,
    0.0038405729373609,
    0.0003951896511349,
    0.0000321767881768,
    0.0000002888167364,
    0.0000003960315187,
)
_EXTREME, _MOST = 1e-20, 8.21


def latin_normals(seed: int, openings: int, dimension: int) -> F64:
    """Normals [openings, dimension]: in every dimension one point in each of `openings` equally likely parts."""
    bits = _Bits(seed)
    points = np.empty((openings, dimension))
    for d in range(dimension):
        strata = (np.arange(openings) + bits.uniform(openings)) / openings
        points[bits.permutation(openings), d] = strata
    return moro_quantile(points)


def sobol_normals(seed: int, openings: int, dimension: int) -> F64:
    """Normals [openings, dimension]: SciPy's Sobol sequence, every dimension scrambled by x → a·x + b mod 2³²."""
    return _scrambled(seed, _sobol(max(0, (openings - 1).bit_length()), dimension)[:openings])


def sobol_points(seed: int, scenarios: NDArray[np.int64], dimension: int) -> F64:
    """Normals [scenarios, dimension] of single points of the same sequence in its natural order.

    SciPy's n-th point is the natural order's point n XOR n/2 (its Gray code).
    """
    bits = int(scenarios.max(initial=0)).bit_length()
    place = scenarios.copy()
    for shift in range(1, bits):
        place ^= scenarios >> shift
    return _scrambled(seed, _sobol(bits, dimension)[place])


def latin_strata(seed: int, scenarios: int, dimension: int) -> NDArray[np.uint32]:
    """The part [scenarios, dimension] of every dimension that each scenario of a hypercube has for itself."""
    bits = _Bits(seed)
    return np.stack([bits.permutation(scenarios) for _ in range(dimension)], axis=1).astype(np.uint32)


def latin_points(strata: NDArray[np.uint32], inside: F64, scenarios: int) -> F64:
    """Normals of hypercube points: their parts, of `scenarios`, and where they are inside them, in [0, 1)."""
    return moro_quantile((strata + inside) / scenarios)


@lru_cache(maxsize=8)
def _sobol(bits: int, dimension: int) -> U64:
    """2^bits points as 32-bit integers; SciPy warns about the balance of any other number of them."""
    from scipy.stats import qmc

    drawn = qmc.Sobol(dimension, scramble=False, bits=32).random_base2(bits)
    points: U64 = (drawn * 2.0**32).astype(np.uint64)
    points.flags.writeable = False
    return points


def _scrambled(seed: int, plain: U64) -> F64:
    dimension = plain.shape[1]
    pairs = _Bits(seed).take(2 * dimension).reshape(dimension, 2) & _LOW
    scrambled = (plain * (pairs[:, 0] | np.uint64(1)) + pairs[:, 1]) & _LOW
    return moro_quantile(scrambled.astype(np.float64) * 2.0**-32)


def moro_quantile(points: F64) -> F64:
    """The standard normal quantile of numbers in [0, 1]; the ends are taken a hair inside."""
    p = np.clip(points, _TINY, _ALMOST_ONE)
    y = p - 0.5
    square = y * y
    middle = y * _horner(_ABOVE, square) / _horner(_BELOW, square)
    result = np.where(p <= _EXTREME, -_MOST, middle)
    outer = (np.abs(y) >= _MIDDLE) & (p > _EXTREME)
    # The C library's logarithm, so that every machine gets the same numbers.
    nearer = np.where(y[outer] <= 0.0, p[outer], 1.0 - p[outer]).tolist()
    inner = np.array([math.log(-math.log(q)) for q in nearer])
    result[outer] = np.where(y[outer] <= 0.0, -1.0, 1.0) * _horner(_TAIL, inner)
    found: F64 = result
    return found


def _horner(coefficients: tuple[float, ...], x: F64) -> F64:
    value = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


class _Bits:
    """The 64-bit numbers of one generator, in their order."""

    def __init__(self, seed: int) -> None:
        self._generator = bit_generator(seed)

    def take(self, count: int) -> U64:
        drawn: U64 = self._generator.random_raw(count)
        return drawn

    def uniform(self, count: int) -> F64:
        """Numbers in [0, 1) of 52 bits each."""
        return (self.take(count) >> np.uint64(12)).astype(np.float64) * 2.0**-52

    def permutation(self, count: int) -> NDArray[np.intp]:
        """0 … count − 1, shuffled from the end: entry i changes places with one of the first i + 1."""
        state = self._generator.state
        many = np.arange(count, 1, -1, dtype=np.uint64)  # places to choose among, from the last entry on
        product = (self.take(count - 1) & _LOW) * many
        if ((product & _LOW) > (np.uint64(1 << 32) - many)).any():
            # Rare: some draw needs a second number, which moves all that follow.
            self._generator.state = state
            places = [self._below(n) for n in range(count, 1, -1)]
        else:
            places = (product >> np.uint64(32)).tolist()
        order = list(range(count))
        for i, j in zip(range(count - 1, 0, -1), places, strict=True):
            order[i], order[j] = order[j], order[i]
        return np.array(order, dtype=np.intp)

    def _below(self, n: int) -> int:
        """An index below `n`: 32-bit widening multiplication with one correction of its bias."""
        product = (self._generator.random_raw() & 0xFFFFFFFF) * n
        index, fraction = product >> 32, product & 0xFFFFFFFF
        if fraction > (1 << 32) - n:
            more = ((self._generator.random_raw() & 0xFFFFFFFF) * n) >> 32
            index += (fraction + more) >> 32
        return int(index)
