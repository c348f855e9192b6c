"""Models with an annual term are found again in what they generate, and solve their equations."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.stochastic.annual import AnnualCorrelations
from pycobre.stochastic.fitting import fit_par

SEASONS = 12


def generated(years: int, phi: float, psi: float, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """z_t = 100 + 10·(phi·lag + psi·(mean of the year before) + noise), of standardised values."""
    draw = np.random.default_rng(seed)
    count = years * SEASONS
    z = np.zeros(count + SEASONS)
    z[:SEASONS] = draw.normal(size=SEASONS)
    for t in range(SEASONS, z.size):
        z[t] = phi * z[t - 1] + psi * z[t - SEASONS : t].mean() + draw.normal()
    season = np.arange(count, dtype=np.intp) % SEASONS
    return 100.0 + 10.0 * z[SEASONS:], season


def test_a_long_history_gives_its_own_model_back() -> None:
    values, season = generated(8000, 0.4, 0.5)
    fit = fit_par(values, season, SEASONS, 1, kind=AnnualCorrelations)
    assert fit.annual is not None
    # ψ is of the standardised year: z and A in units of their own deviations.
    in_units = fit.annual.coefficient * fit.std / fit.annual.std
    assert [phi.size for phi in fit.coefficients] == [1] * SEASONS
    assert np.mean([phi[0] for phi in fit.coefficients]) == pytest.approx(0.4, abs=0.02)
    assert in_units.mean() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(fit.annual.mean, values.mean(), rtol=0.01)


def test_the_coefficients_solve_the_extended_equations() -> None:
    """Every correlation counted by hand; years without a whole year before them count as 0."""
    values, season = generated(60, 0.5, 0.2, seed=8)
    fit = fit_par(values, season, SEASONS, 3, kind=AnnualCorrelations)
    assert fit.annual is not None
    z = (values - fit.mean[season]) / fit.std[season]
    for s in range(SEASONS):
        phi = fit.coefficients[s]
        places = [p for p in range(SEASONS, values.size) if season[p] == s]
        year = np.array([values[p - SEASONS : p].mean() for p in places])
        assert fit.annual.mean[s] == pytest.approx(year.mean())
        assert fit.annual.std[s] == pytest.approx(year.std())
        a = (year - year.mean()) / year.std()

        def with_year(lag: int, a: np.ndarray = a, places: list[int] = places) -> float:
            return sum(x * z[p - lag] for x, p in zip(a, places, strict=True)) / 60

        def between(first: int, second: int, s: int = s) -> float:
            """Of the season `first` periods before s with that `second` periods before, first ≤ second."""
            lag = second - first
            own = [p for p in range(values.size) if season[p] == (s - first) % SEASONS and p >= lag]
            return float(np.mean([z[p] * z[p - lag] for p in own])) if lag else 1.0

        for i in range(1, phi.size + 1):
            left = sum(phi[j - 1] * between(min(i, j), max(i, j)) for j in range(1, phi.size + 1))
            left += fit.annual.coefficient[s] * with_year(i)
            assert left == pytest.approx(between(0, i), abs=1e-10)
        left = sum(phi[j - 1] * with_year(j) for j in range(1, phi.size + 1)) + fit.annual.coefficient[s]
        assert left == pytest.approx(with_year(0), abs=1e-10)


def test_what_never_changes_has_no_model() -> None:
    season = np.arange(10 * SEASONS, dtype=np.intp) % SEASONS
    fit = fit_par(np.full(season.size, 5.0), season, SEASONS, 3, kind=AnnualCorrelations)
    assert fit.annual is not None
    assert not fit.annual.coefficient.any()
    assert fit.order == 0
