"""Many PCG64 generators advanced side by side, and what is drawn from them.

Lane i of a `Generators` object is one PCG64 (XSL-RR 128/64) generator of its own. A draw takes one number
from each lane in a few array operations; lanes that reject a candidate draw again alone, exactly as they
would have done without company.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, U64

__all__ = ["Generators", "bit_generator"]


_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MULTIPLIER_HIGH = 0x2360ED051FC65DA4
_MULTIPLIER_LOW = 0x4385DF649FCCF645
_SEED_MULTIPLIER = np.uint64(6364136223846793005)
_SEED_INCREMENT = np.uint64(11634580027462260723)

_ZIGGURAT_R = 3.6541528853610088
_ZIGGURAT_AREA = (
    0.00492867323399  # the published tables use this rounded area; the exact one moves values by 1e-11
)


class Generators:
    """One PCG64 generator per 64-bit seed."""

    def __init__(self, seeds: U64) -> None:
        seeds = np.atleast_1d(np.asarray(seeds, dtype=np.uint64)).reshape(-1)
        words = _expand(seeds)
        self._high, self._low = words[1], words[0]
        self._inc_high, self._inc_low = words[3], words[2] | np.uint64(1)
        self._high, self._low = _add(self._high, self._low, self._inc_high, self._inc_low)
        self._step(slice(None))

    def __len__(self) -> int:
        return int(self._high.size)

    def next_u64(self, lanes: NDArray[np.intp] | slice = slice(None)) -> U64:
        """The next 64 bits of the chosen lanes; the others do not move."""
        self._step(lanes)
        high, low = self._high[lanes], self._low[lanes]
        rotation: U64 = high >> np.uint64(58)
        folded: U64 = high ^ low
        out: U64 = (folded >> rotation) | (folded << ((np.uint64(64) - rotation) & np.uint64(63)))
        return out

    def uniform_index(self, n: int) -> NDArray[np.int64]:
        """One index below `n` per lane: 32-bit widening multiplication with one correction of its bias."""
        if not 0 < n <= 0xFFFFFFFF:
            raise ValueError(f"uniform_index: expected 1 <= n < 2**32, got {n}.")
        size = np.uint64(n)
        product: U64 = (self.next_u64() & _LOW) * size
        index: U64 = product >> _32
        fraction: U64 = product & _LOW
        biased = np.flatnonzero(fraction > np.uint64((1 << 32) - n))
        if biased.size:
            correction = ((self.next_u64(biased) & _LOW) * size) >> _32
            index[biased] += (fraction[biased] + correction) >> _32
        return index.astype(np.int64)

    def uniform(self, count: int) -> F64:
        """`count` numbers in [0, 1) of 52 bits per lane, shape (lanes, count)."""
        drawn = [(self.next_u64() >> np.uint64(12)).astype(np.float64) * 2.0**-52 for _ in range(count)]
        return np.stack(drawn, axis=1) if drawn else np.empty((len(self), 0))

    def normal(self, count: int) -> F64:
        """`count` standard normals per lane, shape (lanes, count), by the 256-layer ziggurat."""
        out = np.empty((len(self), count))
        for k in range(count):
            out[:, k] = self._normal()
        return out

    def _normal(self) -> F64:
        x_table, f_table = _ziggurat()
        out = np.empty(len(self))
        lanes: NDArray[np.intp] = np.arange(len(self), dtype=np.intp)
        while lanes.size:
            bits = self.next_u64(lanes)
            layer = (bits & np.uint64(0xFF)).astype(np.intp)
            u = ((bits >> np.uint64(12)) | np.uint64(0x4000000000000000)).view(np.float64) - 3.0
            x = u * x_table[layer]
            accepted = np.abs(x) < x_table[layer + 1]
            out[lanes[accepted]] = x[accepted]
            tail = np.flatnonzero(~accepted & (layer == 0))
            for i in tail:
                out[lanes[i]] = self._tail(lanes[i : i + 1], bool(u[i] < 0.0))
            wedge = np.flatnonzero(~accepted & (layer != 0))
            if wedge.size:
                below, above = f_table[layer[wedge]], f_table[layer[wedge] + 1]
                y = above + (below - above) * _unit(self.next_u64(lanes[wedge]))
                inside = y < _each(math.exp, -x[wedge] * x[wedge] / 2.0)
                out[lanes[wedge[inside]]] = x[wedge[inside]]
                lanes = lanes[wedge[~inside]]
            else:
                lanes = lanes[:0]
        return out

    def _tail(self, lane: NDArray[np.intp], negative: bool) -> float:
        while True:
            x = math.log(_open_unit(self.next_u64(lane))[0]) / _ZIGGURAT_R
            y = math.log(_open_unit(self.next_u64(lane))[0])
            if -2.0 * y >= x * x:
                return x - _ZIGGURAT_R if negative else _ZIGGURAT_R - x

    def _step(self, lanes: NDArray[np.intp] | slice) -> None:
        high, low = _multiply(self._high[lanes], self._low[lanes])
        self._high[lanes], self._low[lanes] = _add(high, low, self._inc_high[lanes], self._inc_low[lanes])


def bit_generator(seed: int) -> np.random.PCG64:
    """NumPy's PCG64 in the state of the generator of one seed: the same numbers, fast one after the other."""
    lane = Generators(np.array([seed], dtype=np.uint64))
    found = np.random.PCG64()
    found.state = {
        "bit_generator": "PCG64",
        "state": {
            "state": (int(lane._high[0]) << 64) | int(lane._low[0]),
            "inc": (int(lane._inc_high[0]) << 64) | int(lane._inc_low[0]),
        },
        "has_uint32": 0,
        "uinteger": 0,
    }
    return found


def _expand(seeds: U64) -> list[U64]:
    """Four 64-bit words per seed, made of eight outputs of a PCG32 that starts there."""
    state = seeds.copy()
    halves: list[U64] = []
    for _ in range(8):
        state = state * _SEED_MULTIPLIER + _SEED_INCREMENT
        shifted = (((state >> np.uint64(18)) ^ state) >> np.uint64(27)) & _LOW
        rotation = state >> np.uint64(59)
        halves.append(((shifted >> rotation) | (shifted << ((_32 - rotation) & np.uint64(31)))) & _LOW)
    return [halves[2 * i] | (halves[2 * i + 1] << _32) for i in range(4)]


def _add(a_high: U64, a_low: U64, b_high: U64, b_low: U64) -> tuple[U64, U64]:
    low = a_low + b_low
    return a_high + b_high + (low < a_low).astype(np.uint64), low


def _multiply(high: U64, low: U64) -> tuple[U64, U64]:
    """(high, low)·multiplier mod 2^128, by 32-bit limbs."""
    m_high, m_low = np.uint64(_MULTIPLIER_HIGH), np.uint64(_MULTIPLIER_LOW)
    m1, m0 = np.uint64(_MULTIPLIER_LOW >> 32), np.uint64(_MULTIPLIER_LOW & 0xFFFFFFFF)
    a1, a0 = low >> _32, low & _LOW
    p00, p01, p10, p11 = a0 * m0, a0 * m1, a1 * m0, a1 * m1
    middle = (p00 >> _32) + (p01 & _LOW) + (p10 & _LOW)
    carry = p11 + (p01 >> _32) + (p10 >> _32) + (middle >> _32)
    return carry + high * m_low + low * m_high, low * m_low


def _unit(bits: U64) -> F64:
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _open_unit(bits: U64) -> F64:
    exact = ((bits >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64)
    return exact - (1.0 - 2.0**-53)


def _each(function: Callable[[float], float], values: F64) -> F64:
    """`function` of the C library on the few values that need it.

    NumPy picks its exp and log by the processor it runs on, and they differ in the last bit; the ~1 % of
    draws that need them take the C library's, so that every machine gets the same numbers.
    """
    return np.fromiter(map(function, values.tolist()), dtype=np.float64, count=values.size)


@cache
def _ziggurat() -> tuple[F64, F64]:
    """Layer edges x[0..256] and densities f(x[i]) of 256 layers of equal area under exp(−x²/2)."""

    def density(x: float) -> float:
        return math.exp(-x * x / 2.0)

    x = [_ZIGGURAT_AREA / density(_ZIGGURAT_R), _ZIGGURAT_R]
    for _ in range(2, 256):
        x.append(math.sqrt(-2.0 * math.log(_ZIGGURAT_AREA / x[-1] + density(x[-1]))))
    x.append(0.0)
    edges = np.array(x)
    densities = np.array([density(value) for value in x])
    edges.flags.writeable = densities.flags.writeable = False
    return edges, densities
