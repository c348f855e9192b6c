"""Opening trees and correlation."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pycobre.errors import OptionError
from pycobre.stochastic import streams
from pycobre.stochastic.correlation import CorrelatedGroup, correlate, spectral_factor
from pycobre.stochastic.openings import METHODS, draw_openings
from pycobre.stochastic.stratified import moro_quantile


@pytest.mark.parametrize("method", METHODS)
def test_openings_are_normal_and_reproducible(method: str) -> None:
    noise = draw_openings(method, 5, 3, 2048, 4)
    assert np.array_equal(noise, draw_openings(method, 5, 3, 2048, 4))
    assert not np.array_equal(noise, draw_openings(method, 5, 4, 2048, 4))
    assert np.isfinite(noise).all()
    assert np.abs(noise.mean(axis=0)).max() < 0.1
    assert np.abs(noise.std(axis=0) - 1.0).max() < 0.1
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.1


#: Openings [4, 3] of stage 1 with tree seed 7, as Cobre 0.18.0 exports them.
PEER = {
    "lhs": [
        [0.29950416060195584, -1.0309519767953872, -0.6558342480327038],
        [-0.9828197281398389, 0.29500244693180866, -1.3845466358072156],
        [-0.3163083126317725, -0.46144349712278177, 0.24817649162287808],
        [2.0534611618214003, 1.509569754413252, 1.803952477684385],
    ],
    "qmc_sobol": [
        [-1.979990844818894, -0.7866695574380257, -1.0180807805917471],
        [0.05982446126586561, 0.5702256358670889, 0.39700953149287493],
        [0.7515936852838798, -0.08598878694332227, -0.24218145090650184],
        [-0.6012033427687565, 1.8215409364055055, 1.3065651663512794],
    ],
}


@pytest.mark.parametrize("method", PEER)
def test_openings_are_those_of_the_peer(method: str) -> None:
    assert draw_openings(method, 7, 1, 4, 3).tolist() == PEER[method]


def test_the_quantile_is_nearly_exact_and_has_ends() -> None:
    from scipy.special import ndtri

    p = np.linspace(1e-6, 1.0 - 1e-6, 5001)
    assert np.abs(moro_quantile(p) - ndtri(p)).max() < 4e-9
    assert moro_quantile(np.array([0.0, 0.5, 1.0])) == pytest.approx([-8.21, 0.0, 8.13], abs=0.01)


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
        draw_openings("qmc_sobol", 1, 0, 4, 13)  # a dimension that no other test has left in memory
    for method in ("saa", "lhs"):
        assert draw_openings(method, 1, 0, 4, 2).shape == (4, 2)


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
