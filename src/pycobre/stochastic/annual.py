"""Fitting PAR(p)-A models: lags and the mean of the year before, together.

With A the standardised mean of the twelve periods before a period of season m, the coefficients φ of the lags and ψ
of A solve the Yule–Walker equations in which A is one more variable. The order is the largest lag whose correlation
with the season, given A and the lags between, leaves the 95 % band; at least 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.stochastic.fitting import BAND, Annual, Correlations
from pycobre.stochastic.linear_algebra import solve

__all__ = ["AnnualCorrelations"]

Ints = NDArray[np.intp]

YEAR = 12


class AnnualCorrelations(Correlations):
    """Remembers ψ of the last fit of every season."""

    def __init__(self, values: F64, season: Ints, seasons: int, mean: F64, std: F64) -> None:
        super().__init__(values, season, seasons, mean, std)
        past = np.concatenate([[0.0], np.cumsum(values)])
        year = np.full(values.size, np.nan)
        year[YEAR:] = (past[YEAR:-1] - past[: -YEAR - 1]) / YEAR
        self._psi, self._mean, self._std = np.zeros((3, seasons))
        self._year: list[
            tuple[Ints, F64]
        ] = []  # by season: where there is a year before, and it standardised
        for s in range(seasons):
            places = np.flatnonzero((season == s) & np.isfinite(year))
            seen = year[places]
            if seen.size:
                self._mean[s] = seen.mean()
                self._std[s] = float(np.sqrt(((seen - self._mean[s]) ** 2).mean()))
            scale = self._std[s] if self._std[s] > 0.0 else np.inf
            self._year.append((places, (seen - self._mean[s]) / scale))

    def annual(self) -> Annual:
        return Annual(self._psi.copy(), self._mean, self._std)

    def fit(self, s: int, max_order: int) -> F64:
        """φ of the chosen order, at most `max_order`; ψ goes with it."""
        if not self.usable(s) or not self._std[s] > 0.0:
            self._psi[s] = 0.0
            return np.zeros(0)
        band = BAND / np.sqrt(self.count[s])
        partial = [self._partial(s, lag) for lag in range(1, max_order + 1)]
        order = 0
        if partial and partial[0] != 0.0:
            order = max([1, *(lag for lag, value in enumerate(partial, start=1) if abs(value) > band)])
        joint = self._joint(s, order)
        found = solve(joint[1:, 1:], joint[1:, 0])
        if found is None:
            found = np.zeros(1)
        self._psi[s] = found[-1]
        return found[:-1]

    def _with_year(self, s: int, lag: int) -> float:
        """Correlation of A with what came `lag` periods before its season; years without A count as 0."""
        places, year = self._year[s]
        count = max(places.size, self.count[(s - lag) % len(self.count)])
        value = float((year * self.z[places - lag]).sum()) / count if count else 0.0
        return min(1.0, max(-1.0, value))

    def _joint(self, s: int, order: int) -> F64:
        """Correlations of the season, its lags 1 … `order`, and A."""
        lags = range(order + 1)
        matrix = np.eye(order + 2)
        matrix[:-1, :-1] = [[self.at(s - min(i, j), abs(i - j)) for j in lags] for i in lags]
        matrix[-1, :-1] = matrix[:-1, -1] = [self._with_year(s, lag) for lag in lags]
        return matrix

    def _partial(self, s: int, lag: int) -> float:
        """Correlation of the season with its lag, given the lags between and A."""
        joint, given = self._joint(s, lag), [*range(1, lag), lag + 1]
        pair = [0, lag]
        across = joint[np.ix_(pair, given)]
        explained = solve(joint[np.ix_(given, given)], across.T)
        if explained is None:
            return 0.0
        left = joint[np.ix_(pair, pair)] - (across[:, :, None] * explained).sum(axis=1)
        if not (left[0, 0] > 0.0 and left[1, 1] > 0.0):
            return 0.0
        return float(np.clip(left[0, 1] / np.sqrt(left[0, 0] * left[1, 1]), -1.0, 1.0))
