"""Periodic autoregressive inflow models: PAR(p).

With standardised coefficients φ, the inflow of stage t is

    z_t = mean_t + Σ_l φ_{t,l} · std_t / std_{t−l} · (z_{t−l} − mean_{t−l}) + std_t · r_t · η_t,   η_t ~
    N(0, 1)

that is z_t = base_t + Σ_l psi_{t,l} z_{t−l} + sigma_t η_t. The residual ratio r_t is what the coefficients
leave of a unit variance: r_t² = 1 − φ_t' R_t φ_t with R_t the correlations of the lags, which the
recursion itself gives.
"""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen

__all__ = ["Par", "periodic_residual_ratio", "precompute", "residual_ratio"]


MOST_YEARS = 400  # until a repeating year has settled; strong memory of a whole year takes longest


@frozen(eq=False)
class Par:
    """A model in the units of the LP, for T stages, L lags and N series."""

    base: F64  #: [T, N]
    psi: F64  #: [T, L, N]
    sigma: F64  #: [T, N]

    @property
    def order(self) -> int:
        return int(self.psi.shape[1])

    def inflow(self, stage: int, lags: F64, noise: F64) -> F64:
        """Inflows of one stage; `lags` is [..., L, N] with lag 1 first, `noise` is [..., N]."""
        history = (self.psi[stage] * lags).sum(axis=-2) if self.order else 0.0
        result: F64 = self.base[stage] + history + self.sigma[stage] * noise
        return result

    def noise(self, stage: int, lags: F64, inflow: F64) -> F64:
        """The noise that gives `inflow`; 0 where the model has none."""
        gap = inflow - self.inflow(stage, lags, np.zeros(()))
        sigma = np.broadcast_to(self.sigma[stage], gap.shape)
        result: F64 = np.divide(gap, sigma, out=np.zeros_like(gap), where=sigma > 0.0)
        return result


def precompute(
    coefficients: F64, mean: F64, std: F64, lag_mean: F64, lag_std: F64, ratio: F64 | None = None
) -> Par:
    """Turn standardised coefficients [T, L, N] into LP units.

    `lag_mean[t, l]` and `lag_std[t, l]` are the statistics of stage t − l − 1; a lag without deviation has no
    coefficient. `ratio` is derived from the coefficients unless given.
    """
    if ratio is None:
        ratio = residual_ratio(coefficients)
    scaled = coefficients * std[:, None, :]
    psi = np.divide(scaled, lag_std, out=np.zeros_like(scaled), where=lag_std > 0.0)
    base = mean - (psi * lag_mean).sum(axis=1)
    return Par(base, psi, std * ratio)


def residual_ratio(coefficients: F64) -> F64:
    """Standard deviation of the residuals relative to the series', [T, N].

    Lags before the first stage count as uncorrelated, since nothing is known of their own past.
    """
    return _recursion(coefficients, _uncorrelated(coefficients))[0]


def periodic_residual_ratio(coefficients: F64) -> F64:
    """The same for a year of S seasons that repeats for ever, [S, N]: its lags have the year before behind them."""
    ratio, correlation = _recursion(coefficients, _uncorrelated(coefficients))
    for _ in range(MOST_YEARS):
        following, correlation = _recursion(coefficients, correlation)
        settled = np.array_equal(following, ratio)
        ratio = following
        if settled:
            break
    return ratio


def _uncorrelated(coefficients: F64) -> F64:
    lags, series = coefficients.shape[1:]
    return np.broadcast_to(np.eye(lags)[:, :, None], (lags, lags, series)).copy()


def _recursion(coefficients: F64, correlation: F64) -> tuple[F64, F64]:
    """Ratios of the stages after lags of this correlation [L, L, N], and the correlation after them."""
    stages, lags, series = coefficients.shape
    ratio = np.ones((stages, series))
    if lags == 0:
        return ratio, correlation
    for t in range(stages):
        phi = coefficients[t]
        with_lags = (phi[:, None, :] * correlation).sum(axis=0)
        ratio[t] = np.sqrt(np.maximum(0.0, 1.0 - (phi * with_lags).sum(axis=0)))
        shifted = np.empty_like(correlation)
        shifted[1:, 1:] = correlation[:-1, :-1]
        shifted[0, 0] = 1.0
        shifted[0, 1:] = shifted[1:, 0] = with_lags[:-1]
        correlation = shifted
    return ratio, correlation
