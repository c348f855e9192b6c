"""Tests of residuals against textbook forms, and what they say of series that are and are not noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pycobre.stochastic.residual_tests import chi_square_tail, season_test, skewness


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 14, 15])
def test_the_chi_square_tail_is_the_distributions(degrees: int) -> None:
    for value in (0.0, 0.3, 2.0, 11.5, 60.0, 400.0):
        assert chi_square_tail(value, degrees) == pytest.approx(stats.chi2.sf(value, degrees), rel=1e-12)


def test_with_one_season_it_is_the_test_of_ljung_and_box() -> None:
    noise = np.random.default_rng(5).standard_normal(300)
    found = season_test(noise, np.zeros(300, np.intp), 0, 10, 2)
    n, total = noise.size, float((noise * noise).sum())
    r = [float((noise[k:] * noise[:-k]).sum()) / total for k in range(1, 11)]
    # McLeod's correlation is scaled by the two stretches, Ljung and Box's by the whole series.
    scale = [total / np.sqrt((noise[k:] ** 2).sum() * (noise[:-k] ** 2).sum()) for k in range(1, 11)]
    expected = (
        n * (n + 2) * sum((a * b) ** 2 / (n - k) for k, (a, b) in enumerate(zip(r, scale, strict=True), 1))
    )
    assert found.portmanteau == pytest.approx(expected, rel=1e-12)
    assert found.whiteness == pytest.approx(stats.chi2.sf(expected, 8), rel=1e-12)
    assert found.normality == pytest.approx(stats.jarque_bera(noise).pvalue, rel=1e-10)
    assert found.skewness == pytest.approx(stats.skew(noise), rel=1e-12)


def test_probabilities_of_noise_are_uniform_and_those_of_memory_are_not() -> None:
    """200 series of 80 years with four seasons; the lag of one season only is left in the others' residuals."""
    rng, season = np.random.default_rng(1), np.tile(np.arange(4), 80)
    white, remembering = [], []
    for _ in range(200):
        noise = rng.standard_normal(320)
        white.append(season_test(noise, season, 1, 15, 0).whiteness)
        left = noise.copy()
        now = np.flatnonzero(season == 1)
        left[now] += 0.6 * noise[now - 1]
        assert season_test(left, season, 3, 15, 0).count == 80
        remembering.append(season_test(left, season, 1, 15, 0).whiteness)
    assert 0.01 <= np.mean(np.array(white) < 0.05) <= 0.10
    assert stats.kstest(white, "uniform").pvalue > 0.001
    assert np.mean(np.array(remembering) < 0.05) > 0.9


def test_constants_and_gaps_are_no_noise() -> None:
    season = np.tile(np.arange(2), 10)
    nothing = season_test(np.full(20, np.nan), season, 0, 5, 0)
    assert (nothing.count, np.isnan(nothing.mean), np.isnan(nothing.whiteness)) == (0, True, True)
    constant = season_test(np.full(20, 3.0), season, 0, 5, 0)
    assert (constant.count, constant.mean, constant.std) == (10, 3.0, 0.0)
    assert np.isnan(constant.whiteness)
    assert np.isnan(skewness(np.ones(4)))
    gap = np.random.default_rng(2).standard_normal(20)
    gap[4] = np.nan
    assert season_test(gap, season, 0, 5, 0).count == 9
    assert np.isnan(season_test(gap, season, 0, 2, 2).whiteness), "no degree of freedom is left"
