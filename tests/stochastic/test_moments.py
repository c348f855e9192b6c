"""Exact moments against all paths of a small tree."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from pycobre.stochastic.moments import inflow_moments
from pycobre.stochastic.par import Par


@pytest.mark.parametrize("order", [0, 1, 3])
def test_they_are_those_of_all_paths(order: int) -> None:
    rng, stages, series = np.random.default_rng(order), 4, 2
    par = Par(
        base=rng.normal(50.0, 5.0, (stages, series)),
        psi=rng.uniform(-0.3, 0.7, (stages, order, series)),
        sigma=rng.uniform(1.0, 4.0, (stages, series)),
    )
    par.sigma[2, 1] = 0.0
    openings = [rng.gamma(2.0, 1.0, (count, series)) for count in (2, 3, 2, 3)]
    lags = rng.uniform(30.0, 60.0, (order, series))
    paths = []
    for path in product(*(range(len(stage)) for stage in openings)):
        past, values = list(lags), []
        for t, k in enumerate(path):
            z = par.inflow(t, np.array(past[:order]).reshape(order, series), openings[t][k])
            values.append(z)
            past = [z, *past]
        paths.append(values)
    all_paths = np.array(paths)
    found = inflow_moments(par, lags, openings)
    assert found.mean == pytest.approx(all_paths.mean(axis=0), rel=1e-12)
    assert found.std == pytest.approx(all_paths.std(axis=0), rel=1e-9, abs=1e-12)
    certain = found.std == 0.0
    assert np.array_equal(np.isnan(found.skewness), certain)
    for t, n in zip(*np.nonzero(~certain), strict=True):
        assert found.skewness[t, n] == pytest.approx(stats.skew(all_paths[:, t, n]), rel=1e-8, abs=1e-10)
    for t in range(1, stages):
        for n in range(series):
            if found.std[t, n] > 0.0 and found.std[t - 1, n] > 0.0:
                expected = np.corrcoef(all_paths[:, t, n], all_paths[:, t - 1, n])[0, 1]
                assert found.lag_correlation[t, n] == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert np.isnan(found.lag_correlation[0]).all()
    assert found.noise_mean[1] == pytest.approx(openings[1].mean(axis=0))
    assert found.noise_std[1] == pytest.approx(openings[1].std(axis=0))
