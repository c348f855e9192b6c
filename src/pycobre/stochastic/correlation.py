"""Spatial correlation: independent normals become correlated ones, group by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.stochastic.linear_algebra import symmetric_square_root

__all__ = ["CorrelatedGroup", "correlate", "spectral_factor"]


@frozen(eq=False)
class CorrelatedGroup:
    """Positions in the noise vector and the factor that mixes them."""

    positions: NDArray[np.intp]
    factor: F64


def spectral_factor(matrix: F64) -> F64:
    """The symmetric square root V √Λ Vᵀ of a correlation matrix; negative eigenvalues are taken as 0."""
    return symmetric_square_root(matrix)


def correlate(noise: F64, groups: tuple[CorrelatedGroup, ...]) -> F64:
    """Correlated noise; the last axis of `noise` is the noise vector.

    Sums run over the group in its own order, one term after the other, so that the result does not depend on
    how a linear-algebra library splits them.
    """
    out = noise.copy()
    for group in groups:
        picked = noise[..., group.positions]
        mixed = np.zeros_like(picked)
        for k in range(group.positions.size):
            mixed += picked[..., k, None] * group.factor[:, k]
        out[..., group.positions] = mixed
    return out
