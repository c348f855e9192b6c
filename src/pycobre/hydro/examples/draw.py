"""Random numbers for synthetic systems."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64

__all__ = ["Draw"]


class Draw:
    """Random numbers that stay the same: only uniform ones are drawn, and what is kept is rounded."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def even(self, low: float, high: float, count: int) -> F64:
        return low + (high - low) * self._generator.random(count)

    def log(self, low: float, high: float, count: int) -> F64:
        """Evenly spread in the logarithm: many small, few large."""
        grown: F64 = low * (high / low) ** self._generator.random(count)
        return grown

    def choice(self, options: int, count: int) -> NDArray[np.int64]:
        return np.minimum((self._generator.random(count) * options).astype(np.int64), options - 1)

    @staticmethod
    def rounded(values: F64) -> F64:
        return np.round(values, 3)
