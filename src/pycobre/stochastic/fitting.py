"""Fitting PAR(p) models to history: order by partial autocorrelation, coefficients by periodic Yule–Walker.

For season m and order p the standardised coefficients φ solve, with ρ_m(k) the correlation of season m
with the season k periods before it,

    Σ_j φ_j ρ_{m−i}(j − i) = ρ_m(i),   i = 1 … p,     ρ_m(0) = 1

and the last one of order k is the partial autocorrelation of lag k. The order is the largest lag whose
partial autocorrelation leaves the 95 % band ±1.96/√n. A model whose past inflows would act with the wrong
sign, directly or through the seasons between, is refitted with a smaller order until none does. A season in
which one value makes up more than half of the observations is constant: its deviation, its order and its
correlations are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.stochastic.linear_algebra import solve

__all__ = ["Annual", "Correlations", "SeasonalFit", "fit_par", "residual_correlation"]

Ints = NDArray[np.intp]

BAND = 1.96


@frozen(eq=False)
class Annual:
    """The annual term of every season: coefficient · standardised mean of the twelve periods before."""

    coefficient: F64  #: [S]
    mean: F64  #: [S]
    std: F64  #: [S]


@frozen(eq=False)
class SeasonalFit:
    """Statistics and coefficients of every season; a season without history has NaN and no coefficients."""

    mean: F64  #: [S]
    std: F64  #: [S]
    coefficients: tuple[F64, ...]  #: [S] arrays, lag 1 first
    annual: Annual | None = None

    @property
    def order(self) -> int:
        return max((phi.size for phi in self.coefficients), default=0)

    def residuals(self, values: F64, season: Ints) -> F64:
        """What the lags leave of each period's standardised value; NaN where one is missing."""
        z = _standardised(values, season, self.mean, self.std)
        left = z.copy()
        for p in range(values.size):
            phi = self.coefficients[season[p]]
            if p < phi.size:
                left[p] = np.nan
            else:
                left[p] -= float((phi * z[p - phi.size : p][::-1]).sum()) if phi.size else 0.0
        return left


def fit_par(
    values: F64,
    season: Ints,
    seasons: int,
    max_order: int,
    max_magnitude: float | None = None,
    kind: type[Correlations] | None = None,
) -> SeasonalFit:
    """Fit a model to the inflows of consecutive periods.

    `season[p]` is the season of period p, 0 to `seasons` − 1, one after the other. A model with a coefficient
    beyond `max_magnitude` is dropped: that season has order 0. `kind` says which equations a season's
    coefficients solve: those above, unless given.
    """
    mean, std = np.full(seasons, np.nan), np.full(seasons, np.nan)
    for s in range(seasons):
        mine = values[season == s]
        if mine.size:
            mean[s] = mine.mean()
            std[s] = 0.0 if _constant(mine) else float(np.sqrt(((mine - mean[s]) ** 2).mean()))
    correlations = (kind or Correlations)(values, season, seasons, mean, std)
    limit = np.full(seasons, max_order)
    phi = [correlations.fit(s, max_order) for s in range(seasons)]
    for s in range(seasons):
        wild = max_magnitude is not None and phi[s].size and np.abs(phi[s]).max() > max_magnitude
        if wild or _starts_negative(phi[s]):
            phi[s] = np.zeros(0)
    _reduce(correlations, phi, limit, std)
    return SeasonalFit(mean, std, tuple(phi), correlations.annual())


def _constant(values: F64) -> bool:
    """Whether one value makes up more than half of the observations: such a season has no noise and no memory."""
    return bool(2 * np.unique(values, return_counts=True)[1].max() > values.size)


def residual_correlation(residuals: F64) -> F64:
    """Correlation matrix [N, N] of residuals [N, P], over the periods where both series have one."""
    series = residuals.shape[0]
    matrix = np.eye(series)
    for i in range(series):
        for j in range(i + 1, series):
            both = np.isfinite(residuals[i]) & np.isfinite(residuals[j])
            if both.sum() < 2:
                continue
            a, b = residuals[i, both], residuals[j, both]
            a, b = a - a.mean(), b - b.mean()
            scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
            if scale > 0.0:
                matrix[i, j] = matrix[j, i] = np.clip(float((a * b).sum()) / scale, -1.0, 1.0)
    return matrix


class Correlations:
    """ρ_m(k): correlation of season m with what came k periods before it, and the fit that follows from it."""

    def __init__(self, values: F64, season: Ints, seasons: int, mean: F64, std: F64) -> None:
        self.z = _standardised(values, season, mean, std)
        self._places = [np.flatnonzero(season == s) for s in range(seasons)]
        self._seasons, self._std = seasons, std
        self.count = [place.size for place in self._places]
        self._known: dict[tuple[int, int], float] = {}

    def usable(self, s: int) -> bool:
        return self.count[s] >= 2 and self._std[s] > 0.0

    def at(self, s: int, lag: int) -> float:
        s %= self._seasons
        if lag == 0:
            return 1.0
        if (s, lag) not in self._known:
            now = self._places[s][self._places[s] >= lag]
            value = float((self.z[now] * self.z[now - lag]).mean()) if now.size else 0.0
            self._known[s, lag] = min(1.0, max(-1.0, value))
        return self._known[s, lag]

    def solve(self, s: int, order: int) -> F64 | None:
        """The coefficients of season `s` at a given order; None where the equations are singular."""
        matrix = np.array(
            [[self.at(s - min(i, j), abs(i - j)) for j in range(1, order + 1)] for i in range(1, order + 1)]
        )
        right = np.array([self.at(s, i) for i in range(1, order + 1)])
        found = solve(matrix, right)
        return found if found is not None and np.isfinite(found).all() else None

    def fit(self, s: int, max_order: int) -> F64:
        """Coefficients of the largest order whose last one, the partial autocorrelation, leaves the band."""
        if not self.usable(s):
            return np.zeros(0)
        found = np.zeros(0)
        band = BAND / np.sqrt(self.count[s])
        for order in range(1, max_order + 1):
            phi = self.solve(s, order)
            if phi is None:
                break
            if abs(phi[-1]) > band:
                found = phi
        return found

    def annual(self) -> Annual | None:
        """What the fits so far say about an annual term; here there is none."""
        return None


def _reduce(correlations: Correlations, phi: list[F64], limit: NDArray[np.int_], std: F64) -> None:
    """Lower the orders of seasons where a past inflow acts negatively, until none is left."""
    while True:
        failing = [s for s in range(len(phi)) if phi[s].size and _acts_negatively(phi, std, s)]
        if not failing:
            return
        for s in failing:
            limit[s] -= 1
            phi[s] = correlations.fit(s, int(limit[s]))
            if _starts_negative(phi[s]):
                phi[s] = correlations.fit(s, 0)


def _acts_negatively(phi: list[F64], std: F64, s: int) -> bool:
    """Whether some past inflow lowers this season's, counting its effect through the seasons between."""
    seasons, order = len(phi), phi[s].size

    def direct(season: int, lag: int) -> float:
        season %= seasons
        before = std[(season - lag) % seasons]
        if lag > phi[season].size or not before > 0.0:
            return 0.0
        return float(phi[season][lag - 1] * std[season] / before)

    row = [direct(s, lag) for lag in range(1, order + 1)]
    effects = [row[0]]
    for i in range(1, order):
        row = [row[0] * direct(s - i, j + 1) + row[j + 1] for j in range(order - i)]
        effects.append(row[0])
    return min(effects) < 0.0


def _starts_negative(phi: F64) -> bool:
    return bool(phi.size and phi[0] < 0.0)


def _standardised(values: F64, season: Ints, mean: F64, std: F64) -> F64:
    gap, scale = values - mean[season], std[season]
    result: F64 = np.divide(gap, scale, out=np.zeros_like(gap), where=scale > 0.0)
    return result
