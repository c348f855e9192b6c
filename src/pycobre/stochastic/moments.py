"""Exact moments of the inflows that a PAR model makes of given openings.

A stage's inflow is linear in the noise of all stages so far, z_t = m_t + Σ_s w_{t,s} σ_s η_s, and stages are drawn
independently, so cumulants add up: no sampling. Negative inflows are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.stochastic.par import Par

__all__ = ["InflowMoments", "inflow_moments"]


@frozen(eq=False)
class InflowMoments:
    """By stage and series, [T, N]; the correlation is with the stage before, NaN where one of them is certain."""

    mean: F64
    std: F64
    skewness: F64
    lag_correlation: F64
    noise_mean: F64  #: of the openings themselves
    noise_std: F64


def inflow_moments(par: Par, lags: F64, openings: Sequence[F64]) -> InflowMoments:
    """Moments over all equally likely paths of openings [K, N] by stage, from the observed `lags` [L, N]."""
    stages, series = par.base.shape
    noise_mean = np.array([stage.mean(axis=0) for stage in openings])
    gaps = [stage - mean for stage, mean in zip(openings, noise_mean, strict=True)]
    second = np.array([(gap**2).mean(axis=0) for gap in gaps]) * par.sigma**2
    third = np.array([(gap**3).mean(axis=0) for gap in gaps]) * par.sigma**3
    mean, variance, skew, covariance = (np.zeros((stages, series)) for _ in range(4))
    # What the last L stages are made of, newest first: [stages, series] each.
    weights = [np.zeros((stages, series)) for _ in range(max(1, par.order))]
    past = [*lags]
    for t in range(stages):
        now = np.zeros((stages, series))
        now[t] = 1.0
        mean[t] = par.base[t] + par.sigma[t] * noise_mean[t]
        for lag in range(par.order):
            mean[t] += par.psi[t, lag] * past[lag]
            now += par.psi[t, lag] * weights[lag]
        variance[t] = (now**2 * second).sum(axis=0)
        skew[t] = (now**3 * third).sum(axis=0)
        covariance[t] = (now * weights[0] * second).sum(axis=0)
        weights = [now, *weights[:-1]]
        past = [mean[t], *past[:-1]] if past else past
    std = np.sqrt(variance)
    before = np.concatenate([np.zeros((1, series)), std[:-1]])
    return InflowMoments(
        mean,
        std,
        _ratio(skew, std**3),
        _ratio(covariance, std * before),
        noise_mean,
        np.array([np.sqrt((gap**2).mean(axis=0)) for gap in gaps]),
    )


def _ratio(above: F64, below: F64) -> F64:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0.0)
