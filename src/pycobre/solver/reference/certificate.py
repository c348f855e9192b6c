"""Whether an answer of HiGHS is optimal: checked against the LP's own numbers, entry by entry.

A run that starts from a given basis may be called optimal and still be a little too dear, so what HiGHS says is
not believed but computed. With the column values z and the row duals y that it returns, the activities of the rows
a = A z and the reduced costs d = c − Aᵀ y are summed anew, and the answer is certified where

    columns and rows are within their bounds,                                  primal feasible
    d is the vector that HiGHS returned, and points to a finite bound,          dual feasible
    Σ |d_j| · (distance of z_j to the bound that d_j asks for)
      + Σ |y_i| · (distance of a_i to the bound that y_i asks for) ≈ 0,         primal and dual objective agree
    c · z is the objective that HiGHS returned

all relative to the size of the terms. The sum is the difference of the primal and the dual objective, hence a
bound on how much too dear the answer is. Scaling is by powers of two, so that the scaled numbers are the LP's own.
`_native/lp_certificate.h` is this file in C: the sums are taken in the same order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32
from pycobre.solver.api import CutView
from pycobre.solver.prepare import Prepared
from pycobre.solver.reference.patch import Patch

__all__ = ["ATTEMPTS", "certified"]

RESIDUAL_LARGEST = 1e-9  # relative to the terms of a sum
SMALLEST_COEFFICIENT = 1e-9  # HiGHS drops entries of this size and less
ATTEMPTS = 2  # cold solves after an answer was rejected; the last one is taken as it is


def certified(
    p: Prepared,
    x: F64,
    patch: Patch,
    cuts: CutView | None,
    present: I32,
    solution: tuple[F64, F64, F64],
    objective: float,
    tolerances: tuple[float, float],
) -> bool:
    """Whether (column values, column duals, row duals) solve the LP with the cuts `present`; all scaled."""
    z, col_dual, y = solution
    primal, dual = tolerances
    m, k = p.num_row, present.size
    column, row, value = _entries(p, patch, cuts, present)
    terms, priced = value * z[column], value * y[row]
    activity, size = np.zeros(m + k), np.zeros(m + k)
    np.add.at(activity, row, terms)
    np.add.at(size, row, np.abs(terms))
    cost = p.cost.copy()
    cost[p.cost_set] = patch.costs
    reduced, reduced_size = cost.copy(), np.abs(cost)
    np.subtract.at(reduced, column, priced)
    np.add.at(reduced_size, column, np.abs(priced))
    lower, upper = p.col_lower.copy(), p.col_upper.copy()
    lower[p.col_set], upper[p.col_set] = patch.col_lower, patch.col_upper
    lower[p.inputs] = upper[p.inputs] = x * p.input_factor
    row_lower = np.concatenate([p.row_lower, np.zeros(k)])
    row_upper = np.concatenate([p.row_upper, np.full(k, np.inf)])
    row_lower[p.row_set], row_upper[p.row_set] = patch.row_lower, patch.row_upper
    if cuts is not None:
        row_lower[m:] = cuts.intercept[present] * p.cut_factor
    # Every test is written so that a NaN fails it.
    if not _within(z, lower, upper, primal + RESIDUAL_LARGEST * np.abs(z)):
        return False
    if not _within(activity, row_lower, row_upper, primal + RESIDUAL_LARGEST * size):
        return False
    if not np.all(np.abs(reduced - col_dual) <= RESIDUAL_LARGEST * (1.0 + reduced_size)):
        return False
    spent = _sum(1.0 + abs(patch.offset), np.abs(cost * z))
    if not abs(_sum(patch.offset, cost * z) - objective) <= RESIDUAL_LARGEST * spent:
        return False
    gap = 0.0
    for force, at, low, high, largest in (
        (reduced, z, lower, upper, dual + RESIDUAL_LARGEST * reduced_size),
        (y, activity, row_lower, row_upper, np.full(m + k, dual)),
    ):
        bound = np.where(force > 0.0, low, high)
        pays = np.isfinite(bound) & (force != 0.0)
        if not np.all(pays | (np.abs(force) <= largest)):
            return False
        gap = _sum(gap, np.where(pays, np.abs(force) * np.abs(at - np.where(pays, bound, 0.0)), 0.0))
    return gap <= RESIDUAL_LARGEST * spent


def _within(values: F64, lower: F64, upper: F64, slack: F64) -> bool:
    return bool(np.all((lower - values <= slack) & (values - upper <= slack)))


def _sum(start: float, terms: F64) -> float:
    """`start` plus the terms, one after the other."""
    return float(np.add.accumulate(np.concatenate([[start], terms]))[-1])


def _entries(
    p: Prepared, patch: Patch, cuts: CutView | None, present: I32
) -> tuple[NDArray[np.int64], NDArray[np.int64], F64]:
    """Columns, rows and values: the template's, the difference that each patched coefficient makes, the cuts'."""
    column = np.repeat(np.arange(p.num_col), np.diff(p.starts))
    row = p.rows.astype(np.int64)
    parts = [(column, row, _kept(p.values))]
    for at, (r, c) in enumerate(zip(p.coef_row.tolist(), p.coef_col.tolist(), strict=True)):
        span = slice(int(p.starts[c]), int(p.starts[c + 1]))
        old = _kept(p.values[span][p.rows[span] == r])
        new = _kept(patch.coefficients[at : at + 1])
        parts.append((np.array([c]), np.array([r]), new - (old if old.size else 0.0)))
    if cuts is not None and present.size:
        columns = np.concatenate([[p.theta], p.outputs]).astype(np.int64)
        terms = np.ones((present.size, columns.size))
        terms[:, 1:] = cuts.slope[present] * p.slope_factor
        rows = np.repeat(p.num_row + np.arange(present.size), columns.size)
        parts.append((np.tile(columns, present.size), rows, _kept(terms.reshape(-1))))
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )


def _kept(values: F64) -> F64:
    kept: F64 = np.where(np.abs(values) <= SMALLEST_COEFFICIENT, 0.0, values)
    return kept
