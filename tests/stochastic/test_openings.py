"""Opening trees and correlation."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pycobre.errors import OptionError
from pycobre.stochastic import streams
from pycobre.stochastic.correlation import CorrelatedGroup, correlate, spectral_factor
from pycobre.stochastic.openings import METHODS, draw_openings


@pytest.mark.parametrize("method", METHODS)
def test_openings_are_normal_and_reproducible(method: str) -> None:
    noise = draw_openings(method, 5, 3, 2048, 4)
    assert np.array_equal(noise, draw_openings(method, 5, 3, 2048, 4))
    assert not np.array_equal(noise, draw_openings(method, 5, 4, 2048, 4))
    assert np.isfinite(noise).all()
    assert np.abs(noise.mean(axis=0)).max() < 0.1
    assert np.abs(noise.std(axis=0) - 1.0).max() < 0.1
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.1


def test_latin_hypercube_has_one_opening_in_every_stratum() -> None:
    from scipy.special import ndtr

    noise = draw_openings("lhs", 1, 0, 50, 3)
    strata = np.sort((ndtr(noise) * 50).astype(int), axis=0)
    assert np.array_equal(strata, np.tile(np.arange(50)[:, None], 3))


@pytest.mark.parametrize("method", ["qmc_sobol", "qmc_halton"])
def test_low_discrepancy_openings_integrate_better_than_random_ones(method: str) -> None:
    def error(name: str) -> float:
        tries = [draw_openings(name, seed, 0, 256, 2).mean() for seed in range(10)]
        return float(np.sqrt(np.mean(np.square(tries))))

    assert error(method) < 0.3 * error("saa")


def test_saa_is_one_stream_per_opening() -> None:
    few, many = draw_openings("saa", 9, 2, 3, 6), draw_openings("saa", 9, 2, 30, 6)
    assert np.array_equal(few, many[:3])
    assert np.array_equal(many, streams.opening_normal(9, 30, 2, 6))


def test_a_method_that_does_not_exist_is_refused() -> None:
    with pytest.raises(OptionError, match="sampling method of stage 4: expected one of saa, lhs"):
        draw_openings("antithetic", 1, 4, 10, 2)


def test_without_scipy_the_other_methods_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(OptionError, match=r"needs SciPy.*pip install"):
        draw_openings("lhs", 1, 0, 4, 2)
    assert draw_openings("saa", 1, 0, 4, 2).shape == (4, 2)


def test_spectral_factor_is_the_symmetric_root() -> None:
    matrix = np.array([[1.0, 0.7, 0.2], [0.7, 1.0, -0.1], [0.2, -0.1, 1.0]])
    root = spectral_factor(matrix)
    assert root == pytest.approx(root.T, abs=1e-12)
    assert root @ root == pytest.approx(matrix, abs=1e-12)
    broken = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    assert np.linalg.eigvalsh(broken)[0] < 0.0
    assert np.isfinite(spectral_factor(broken)).all()


def test_correlate_mixes_groups_and_leaves_the_rest() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 20000, 4))
    root = spectral_factor(np.array([[1.0, 0.8], [0.8, 1.0]]))
    mixed = correlate(noise, (CorrelatedGroup(np.array([3, 1]), root),))
    assert np.array_equal(mixed[..., [0, 2]], noise[..., [0, 2]])
    assert np.corrcoef(mixed[0].T)[1, 3] == pytest.approx(0.8, abs=0.02)
    assert mixed[1, 5, 3] == pytest.approx(root[0, 0] * noise[1, 5, 3] + root[0, 1] * noise[1, 5, 1])
