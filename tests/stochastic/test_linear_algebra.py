"""Systems and symmetric roots: against LAPACK, by what they must satisfy, and the same bits on any processor."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.sddp.numbers import ordered_exp, ordered_log
from pycobre.stochastic.linear_algebra import solve, symmetric_eigen, symmetric_square_root


def correlation(seed: int, n: int, factors: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, factors))
    matrix = rows @ rows.T
    size = np.sqrt(matrix.diagonal())
    found: np.ndarray = matrix / np.outer(size, size)
    return (found + found.T) / 2.0


@given(st.integers(0, 10**6), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_roots_agree_with_lapack(seed: int, n: int) -> None:
    matrix = correlation(seed, n, 2 * n + 2)
    values, vectors = np.linalg.eigh(matrix)
    expected = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    np.testing.assert_allclose(symmetric_square_root(matrix), expected, rtol=0, atol=1e-12)
    found, rows = symmetric_eigen(matrix)
    np.testing.assert_allclose(np.sort(found), values, rtol=0, atol=1e-13 * n)
    np.testing.assert_allclose(rows @ rows.T, np.eye(n), atol=1e-13 * n)


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(40),
        np.ones((25, 25)),
        np.zeros((3, 3)),
        np.kron(np.eye(9), np.array([[1.0, 0.5], [0.5, 1.0]])),
        correlation(1, 40, 7),
        correlation(2, 152, 300),
        np.diag([1.0, 1e-20, 1.0]) + 1e-18,
        np.array([[4.0]]),
        np.zeros((0, 0)),
    ],
    ids=str,
)
def test_the_square_of_the_root_is_the_matrix(matrix: np.ndarray) -> None:
    root = symmetric_square_root(matrix)
    np.testing.assert_allclose(
        root @ root, matrix, rtol=0, atol=1e-13 * max(1.0, np.abs(matrix).sum(0).max(initial=0))
    )


def test_negative_eigenvalues_are_taken_as_zero() -> None:
    root = symmetric_square_root(np.array([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(root, np.full((2, 2), 0.5), atol=1e-15)


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_systems_agree_with_lapack(seed: int, n: int, columns: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = draw.normal(size=(n, n)) + 3.0 * np.eye(n)
    right = draw.normal(size=(n, columns)) if columns else draw.normal(size=n)
    found = solve(matrix, right)
    assert found is not None
    assert found.shape == right.shape
    np.testing.assert_allclose(matrix @ found, right, atol=1e-9 * np.linalg.cond(matrix))


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), np.ones((3, 3)), np.full((1, 1), np.nan)], ids=str)
def test_a_singular_system_has_no_solution(matrix: np.ndarray) -> None:
    assert solve(matrix, np.ones(len(matrix))) is None


def test_exponentials_and_logarithms() -> None:
    x = -np.concatenate([np.geomspace(1e-20, 700, 4000), [0.0, 745.0, 1e4, np.inf]])
    np.testing.assert_allclose(ordered_exp(x)[:-4], np.exp(x)[:-4], rtol=5e-16)
    assert ordered_exp(x)[-4:].tolist() == [1.0, pytest.approx(0.0, abs=1e-320), 0.0, 0.0]
    y = np.concatenate(
        [np.geomspace(1e-300, 1e300, 4001), [1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)]]
    )
    np.testing.assert_allclose(ordered_log(y), np.log(y), rtol=1e-15)


PROGRAM = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
import numpy as np
from pycobre.comm import LocalBackend
from pycobre.hydro import build_model
from pycobre.hydro.examples import example
from pycobre.sddp import Entropic, IterationLimit, TrainOptions, train
from pycobre.stochastic.annual import AnnualCorrelations
from pycobre.stochastic.correlation import spectral_factor
from pycobre.stochastic.fitting import fit_par, residual_correlation

draw = np.random.default_rng(5)
digest = hashlib.sha256()
season = np.arange(480) % 12
residuals = []
for series in range(12):
    values = 100.0 + np.cumsum(draw.normal(size=480)) + draw.normal(size=480)
    for kind in (None, AnnualCorrelations):
        fit = fit_par(values, season, 12, 6, kind=kind)
        for phi in fit.coefficients:
            digest.update(phi.tobytes())
    residuals.append(fit.residuals(values, season))
digest.update(spectral_factor(residual_correlation(np.array(residuals))).tobytes())
model = build_model(example("four-regions").build())
options = TrainOptions(2, IterationLimit(2), risk=Entropic(1e-9))
digest.update(train(model.problem, LocalBackend(), options).policy.digest.encode())
print(digest.hexdigest())
"""


def digest_with(**environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return run.stdout.strip()


@pytest.mark.parametrize("kernels", ["Prescott", "Nehalem", "Haswell", "Zen", "SkylakeX"])
def test_the_bits_do_not_depend_on_the_kernels_of_blas(kernels: str, plain_digest: str) -> None:
    """OpenBLAS takes the kernels of the processor, or those it is told to take where the processor can run them."""
    assert digest_with(OPENBLAS_CORETYPE=kernels) == plain_digest


def test_the_bits_do_not_depend_on_the_kernels_of_numpy(plain_digest: str) -> None:
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    dispatched = np._core._multiarray_umath.__cpu_dispatch__  # type: ignore[attr-defined]
    present = [name for name in dispatched if features.get(name)]
    assert digest_with(NPY_DISABLE_CPU_FEATURES=" ".join(present)) == plain_digest


@pytest.fixture(scope="module")
def plain_digest() -> str:
    return digest_with()
