"""Whether a periodic model's residuals are noise: whiteness by season, and normality.

Whiteness is the portmanteau test of McLeod (1994) for periodic models. With r_m(k) the correlation of season m's
residuals with those k periods before, over n_k pairs of n years and S seasons,

    Q_m = Σ_{k=1..K} r_m(k)² / var_k,   var_k = n_k / (n (n + 2)) where S divides k, n_k / n² elsewhere

is χ² with K − p degrees of freedom for a season of order p; with one season that is the test of Ljung and Box.
Normality is the test of Jarque and Bera.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen

__all__ = ["SeasonTest", "chi_square_tail", "season_test", "skewness"]


@frozen()
class SeasonTest:
    """The residuals of one series in one season; probabilities are NaN where there is too little to judge by."""

    count: int
    mean: float
    std: float
    skewness: float
    normality: float  #: probability of residuals this far from normal, if they are normal
    portmanteau: float  #: Q of the whiteness test
    whiteness: float  #: probability of a Q this large, if they are white


def season_test(residuals: F64, season: NDArray[np.intp], which: int, lags: int, order: int) -> SeasonTest:
    """Test the residuals [P] of consecutive periods in season `which`; NaN where there is none."""
    places = np.flatnonzero((season == which) & np.isfinite(residuals))
    mine = residuals[places]
    count = places.size
    if count < 2 or not mine.std() > 0.0:
        mean = float(mine.mean()) if count else math.nan
        return SeasonTest(count, mean, 0.0 if count else math.nan, *[math.nan] * 4)
    gap = mine - mine.mean()
    std = float(np.sqrt((gap * gap).mean()))
    skew, excess = skewness(mine), float((gap**4).mean()) / std**4 - 3.0
    normality = math.exp(-count / 6.0 * (skew**2 + excess**2 / 4.0) / 2.0)  # χ² with two degrees of freedom
    statistic, used = _portmanteau(residuals, places, int(season.max()) + 1, lags)
    free = used - order
    white = chi_square_tail(statistic, free) if free > 0 else math.nan
    return SeasonTest(count, float(mine.mean()), std, skew, normality, statistic, white)


def _portmanteau(residuals: F64, places: NDArray[np.intp], seasons: int, lags: int) -> tuple[float, int]:
    """Q, and the lags that there are pairs for."""
    total, count, used = 0.0, places.size, 0
    for lag in range(1, lags + 1):
        now = places[places >= lag]
        now = now[np.isfinite(residuals[now - lag])]
        a, b = residuals[now], residuals[now - lag]
        scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
        if not scale > 0.0:
            continue
        used += 1
        variance = now.size / (count * (count + 2)) if lag % seasons == 0 else now.size / count**2
        total += (float((a * b).sum()) / scale) ** 2 / variance
    return total, used


def skewness(values: F64) -> float:
    """Third central moment over the cubed deviation; NaN for a constant."""
    gap = values - values.mean()
    std = float(np.sqrt((gap * gap).mean()))
    return float((gap**3).mean()) / std**3 if std > 0.0 else math.nan


def chi_square_tail(value: float, degrees: int) -> float:
    """Probability that a χ² variable of so many degrees of freedom is larger: finite sums, by parity."""
    half = value / 2.0
    if degrees % 2:
        total, term = math.erfc(math.sqrt(half)), math.exp(-half) * math.sqrt(half) * 2.0 / math.sqrt(math.pi)
        powers = range(3, degrees + 1, 2)
    else:
        total, term = math.exp(-half), math.exp(-half) * half
        powers = range(4, degrees + 1, 2)
    for power in powers:
        total += term
        term *= value / power
    return min(1.0, total)
