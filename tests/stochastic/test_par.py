"""PAR models: algebra against definitions, and fits against series whose model is known."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.stochastic.fitting import fit_par, residual_correlation
from pycobre.stochastic.par import periodic_residual_ratio, precompute, residual_ratio


def unrolled_ratio(phi: np.ndarray) -> np.ndarray:
    """The same ratio from the covariance of the whole path, built term by term from independent shocks."""
    stages, lags = phi.shape
    ratio, loading = [], list(np.eye(lags + stages)[:lags])  # unit shocks before the study
    for t in range(stages):
        carried = sum(phi[t, lag] * loading[-1 - lag] for lag in range(lags))
        left = np.sqrt(max(0.0, 1.0 - float((carried**2).sum())))
        ratio.append(left)
        shock = np.zeros(lags + stages)
        shock[lags + t] = left
        loading.append(carried + shock)
    return np.array(ratio)


def test_residual_ratio_of_order_one_is_what_the_coefficient_leaves() -> None:
    phi = np.full((4, 1, 1), 0.6)
    assert residual_ratio(phi) == pytest.approx(0.8)


def test_residual_ratio_equals_that_of_the_unrolled_recursion() -> None:
    rng = np.random.default_rng(2)
    phi = rng.uniform(-0.3, 0.4, size=(9, 3, 5))
    found = residual_ratio(phi)
    for series in range(5):
        assert found[:, series] == pytest.approx(unrolled_ratio(phi[:, :, series]), abs=1e-12)
    assert (
        residual_ratio(np.full((3, 2, 1), 0.9))[2, 0] == 0.0
    )  # more than all variance is explained: none is left


def test_units_of_the_lp_and_back() -> None:
    rng = np.random.default_rng(3)
    stages, lags, series = 5, 2, 3
    phi = rng.uniform(0.0, 0.4, size=(stages, lags, series))
    mean, std = rng.uniform(10, 20, (stages, series)), rng.uniform(1, 3, (stages, series))
    lag_mean, lag_std = rng.uniform(10, 20, (stages, lags, series)), rng.uniform(1, 3, (stages, lags, series))
    par = precompute(phi, mean, std, lag_mean, lag_std)
    past, eta = rng.uniform(5, 25, (4, lags, series)), rng.normal(size=(4, series))
    z = (past - lag_mean[2]) / lag_std[2]
    expected = mean[2] + std[2] * ((phi[2] * z).sum(axis=1) + residual_ratio(phi)[2] * eta)
    assert par.inflow(2, past, eta) == pytest.approx(expected, rel=1e-12)
    assert par.noise(2, past, par.inflow(2, past, eta)) == pytest.approx(eta, abs=1e-9)


def test_a_lag_without_deviation_has_no_coefficient() -> None:
    par = precompute(
        np.full((1, 1, 1), 0.5),
        np.array([[10.0]]),
        np.array([[2.0]]),
        np.array([[[9.0]]]),
        np.array([[[0.0]]]),
    )
    assert par.psi[0, 0, 0] == 0.0
    assert par.base[0, 0] == 10.0


def periodic_series(phi: list[list[float]], years: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised series of a periodic model with unit variance shocks scaled to what it leaves, then coloured."""
    seasons = len(phi)
    rng = np.random.default_rng(seed)
    z = np.zeros(years * seasons)
    season = np.arange(z.size) % seasons
    for p in range(z.size):
        coefficients = phi[season[p]]
        carried = sum(c * z[p - 1 - i] for i, c in enumerate(coefficients) if p > i)
        z[p] = carried + rng.normal() * 0.7
    mean, std = 100 + 10 * np.arange(seasons), 5.0 + np.arange(seasons)
    return mean[season] + std[season] * z, season


def test_a_long_series_gives_back_its_coefficients() -> None:
    phi = [[0.6], [0.3, 0.4], [0.5]]
    values, season = periodic_series(phi, 20000, seed=1)
    fit = fit_par(values, season, 3, max_order=4)
    assert [c.size >= len(p) for c, p in zip(fit.coefficients, phi, strict=True)] == [True] * 3
    # In units of the series the coefficients are those it was made with.
    for s, given in enumerate(phi):
        natural = [c * fit.std[s] / fit.std[(s - 1 - i) % 3] for i, c in enumerate(fit.coefficients[s])]
        scale = [(5 + s) / (5 + (s - 1 - i) % 3) for i in range(len(given))]
        expected = np.array(given) * scale
        assert natural[: len(given)] == pytest.approx(expected, abs=0.03)
        assert np.abs(natural[len(given) :]).max(initial=0.0) < 0.03


def test_white_noise_has_order_zero() -> None:
    rng = np.random.default_rng(4)
    values, season = rng.normal(100, 10, 4000), np.arange(4000) % 4
    orders = [c.size for c in fit_par(values, season, 4, max_order=1).coefficients]
    assert orders.count(0) >= 3


def test_yule_walker_of_order_two_by_hand() -> None:
    rng = np.random.default_rng(8)
    z = np.zeros(600)
    for p in range(2, z.size):
        z[p] = 0.5 * z[p - 1] + 0.4 * z[p - 2] + rng.normal()
    season = np.zeros(z.size, dtype=np.intp)
    fit = fit_par(z, season, 1, max_order=2)
    u = (z - z.mean()) / z.std()
    r1, r2 = (u[1:] * u[:-1]).mean(), (u[2:] * u[:-2]).mean()
    expected = np.linalg.solve([[1.0, r1], [r1, 1.0]], [r1, r2])
    assert fit.coefficients[0] == pytest.approx(expected, rel=1e-10)


def test_models_that_would_act_negatively_are_reduced() -> None:
    values, season = periodic_series([[-0.7], [-0.7]], 400, seed=5)
    assert all(c.size == 0 for c in fit_par(values, season, 2, max_order=3).coefficients)
    values, season = periodic_series([[0.9], [0.8]], 400, seed=6)
    assert all(c.size for c in fit_par(values, season, 2, max_order=3).coefficients)
    tamed = fit_par(values, season, 2, max_order=3, max_magnitude=0.1)
    assert all(c.size == 0 for c in tamed.coefficients)


def test_residuals_are_what_the_model_does_not_explain() -> None:
    values, season = periodic_series([[0.6], [0.3, 0.4]], 3000, seed=7)
    fit = fit_par(values, season, 2, max_order=3)
    left = fit.residuals(values, season)
    known = np.isfinite(left)
    assert known.sum() >= values.size - 3
    assert abs(np.corrcoef(left[known][1:], left[known][:-1])[0, 1]) < 0.05
    pair = np.stack([left, left * 2.0, np.roll(left, 1)])
    matrix = residual_correlation(pair)
    assert matrix[0, 1] == pytest.approx(1.0)
    assert abs(matrix[0, 2]) < 0.05


def test_a_year_that_repeats_is_the_end_of_many_years() -> None:
    rng = np.random.default_rng(4)
    phi = rng.uniform(-0.2, 0.4, size=(12, 2, 3))
    found = periodic_residual_ratio(phi)
    for series in range(3):
        many = unrolled_ratio(np.tile(phi[:, :, series], (30, 1)))
        assert found[:, series] == pytest.approx(many[-12:], abs=1e-12)
    # Stationary AR(2): rho1 = a / (1 - b), rho2 = a·rho1 + b, residual variance 1 - a·rho1 - b·rho2.
    a, b = 0.5, 0.15
    rho1 = a / (1.0 - b)
    expected = np.sqrt(1.0 - a * rho1 - b * (a * rho1 + b))
    assert periodic_residual_ratio(np.tile([[[a], [b]]], (12, 1, 1))) == pytest.approx(expected, rel=1e-12)


def test_a_season_with_one_value_in_most_years_is_constant() -> None:
    draw = np.random.default_rng(8)
    season = np.tile(np.arange(2), 40)
    values = draw.uniform(5.0, 9.0, 80)
    values[season == 1] = np.where(np.arange(40) < 21, 3.0, values[season == 1])
    fit = fit_par(values, season, 2, max_order=2)
    assert fit.std[0] > 0.0
    assert fit.std[1] == 0.0
    assert fit.coefficients[1].size == 0
    assert fit.mean[1] == pytest.approx(values[season == 1].mean())
    left = np.stack([fit.residuals(values, season), draw.normal(size=80)])
    assert residual_correlation(left[:, season == 1])[0, 1] == 0.0
    half = values.copy()
    half[np.flatnonzero(season == 1)[20]] = 4.0  # 20 of 40 are not more than half
    assert fit_par(half, season, 2, max_order=2).std[1] > 0.0
