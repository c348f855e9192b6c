"""Small dense systems and symmetric square roots, in a fixed order of operations.

LAPACK and BLAS choose their kernels by processor, so that the same matrix has other last bits on another machine.
What is computed here decides numbers of a run, so it is written in elementwise operations: each is rounded the
same way everywhere, and their order is fixed.
"""

from __future__ import annotations

import math

import numpy as np

from pycobre._util.arrays import F64

__all__ = ["solve", "symmetric_eigen", "symmetric_square_root"]

_MOST_SWEEPS = 60  # QL iterations per eigenvalue: two or three are usual


def solve(matrix: F64, right: F64) -> F64 | None:
    """The solution of a square system by elimination with partial pivoting; None where the matrix is singular.

    `right` is [n] or [n, m]. Of several pivots of the same size the first is taken.
    """
    n = len(matrix)
    work = np.concatenate([matrix, right.reshape(n, -1)], axis=1).astype(np.float64)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(work[k:, k])))
        if work[pivot, k] == 0.0 or not np.isfinite(work[pivot, k]):
            return None
        if pivot != k:
            work[[k, pivot]] = work[[pivot, k]]
        factor = work[k + 1 :, k] / work[k, k]
        work[k + 1 :, k:] -= factor[:, None] * work[k, k:]
    found = work[:, n:]
    for k in reversed(range(n)):
        found[k] /= work[k, k]
        found[:k] -= work[:k, k, None] * found[k]
    return found.reshape(right.shape).copy()


def symmetric_square_root(matrix: F64) -> F64:
    """V √Λ Vᵀ of a symmetric matrix V Λ Vᵀ; negative eigenvalues are taken as 0."""
    values, vectors = symmetric_eigen(matrix)
    root = np.zeros(matrix.shape)
    term = np.empty_like(root)
    for value, vector in zip(np.sqrt(np.maximum(values, 0.0)).tolist(), vectors, strict=True):
        np.multiply((value * vector)[:, None], vector, out=term)
        root += term
    return root


def symmetric_eigen(matrix: F64) -> tuple[F64, F64]:
    """Eigenvalues, in no particular order, and eigenvectors as rows: Householder's reduction, then implicit QL.

    References: Wilkinson and Reinsch, Handbook for Automatic Computation II (1971), contributions II/2 and II/4;
    Golub and Van Loan, Matrix Computations, chapter 8.
    """
    diagonal, beside, rows = _tridiagonal(matrix)
    _diagonalise(diagonal, beside, rows)
    return np.array(diagonal), rows


def _tridiagonal(matrix: F64) -> tuple[list[float], list[float], F64]:
    """Diagonal, first off-diagonal and Qᵀ with A = Q T Qᵀ."""
    a, n = matrix.astype(np.float64), len(matrix)
    reflections: list[tuple[int, float, F64]] = []
    for k in range(n - 2):
        v = a[k + 1 :, k].copy()
        rest = float((v[1:] * v[1:]).sum())
        if rest == 0.0:
            continue
        size = math.sqrt(float(v[0] * v[0]) + rest)
        alpha = -size if v[0] > 0.0 else size
        v[0] -= alpha
        beta = 2.0 / float((v * v).sum())
        inner = a[k + 1 :, k + 1 :]
        p = beta * (inner * v[:, None]).sum(axis=0)
        w = p - (0.5 * beta * float((p * v).sum())) * v
        inner -= v[:, None] * w + w[:, None] * v
        a[k + 1 :, k] = 0.0
        a[k + 1, k] = alpha
        reflections.append((k + 1, beta, v))
    q = np.eye(n)
    for first, beta, v in reversed(reflections):
        # Q grows from its last rows and columns: what is before `first` is still the identity.
        inner = q[first:, first:]
        inner -= (beta * v)[:, None] * (inner * v[:, None]).sum(axis=0)
    diagonal: list[float] = a.diagonal().tolist()
    beside: list[float] = a.diagonal(-1).tolist()
    return diagonal, beside, np.ascontiguousarray(q.T)


def _diagonalise(d: list[float], e: list[float], rows: F64) -> None:
    """Turn the tridiagonal matrix (d, e) into a diagonal one in place, rotating `rows` along."""
    n = len(d)
    e += [0.0] * (n - len(e))
    turned = np.empty((2, 2, n))
    # What is below the rounding of the whole matrix is zero: eigenvalues near 0 have no digits of their own.
    negligible = 2.0**-53 * max((abs(a) + abs(b) for a, b in zip(d, e, strict=True)), default=0.0)
    for low in range(n):
        for _ in range(_MOST_SWEEPS):
            high = low
            while high < n - 1 and abs(e[high]) > negligible:
                high += 1
            if high == low:
                break
            rotations = _implicit_step(d, e, low, high)
            for i, c, s in rotations:
                pair = rows[i : i + 2]
                np.multiply(np.array([[[c], [-s]], [[s], [c]]]), pair, out=turned)
                np.add(turned[:, 0], turned[:, 1], out=pair)
        else:
            raise ArithmeticError(f"eigenvalue {low} of a {n} × {n} matrix did not converge")


def _implicit_step(d: list[float], e: list[float], low: int, high: int) -> list[tuple[int, float, float]]:
    """One QL step with an implicit shift on rows `low … high`; the rotations (row, cosine, sine) in their order."""
    g = (d[low + 1] - d[low]) / (2.0 * e[low])
    r = math.sqrt(g * g + 1.0)
    g = d[high] - d[low] + e[low] / (g + (r if g >= 0.0 else -r))
    s, c, p = 1.0, 1.0, 0.0
    rotations: list[tuple[int, float, float]] = []
    for i in range(high - 1, low - 1, -1):
        f, b = s * e[i], c * e[i]
        r = math.sqrt(f * f + g * g)
        e[i + 1] = r
        if r == 0.0:
            d[i + 1] -= p
            e[high] = 0.0
            return rotations
        s, c = f / r, g / r
        g = d[i + 1] - p
        r = (d[i] - g) * s + 2.0 * c * b
        p = s * r
        d[i + 1] = g + p
        g = c * r - b
        rotations.append((i, c, s))
    d[low] -= p
    e[low] = g
    e[high] = 0.0
    return rotations
