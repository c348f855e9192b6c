"""Scale a template once, by powers of two, so that nothing is lost and it can be undone exactly.

With z = C z' and row multipliers R the scaled LP has A' = R A C, b' = R b, bounds l' = l / C and costs c' =
f C c. HiGHS's own scaling stays off: it looks at the rows that happen to be present, so rows added later
would give other bits than rows present from the start.
"""

from __future__ import annotations

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.solver.api import F64, I32, LpTemplate

__all__ = ["Scale", "find_scale", "no_scale"]

PASSES = 4
LARGEST_EXPONENT = 40  # a factor beyond 2^±40 says that the data are wrong, not that they need scaling
LARGEST_COST = 2.0**13  # of the scaled costs, about: dual tolerances are absolute (see `find_scale`)


@frozen(eq=False)
class Scale:
    """Multipliers; all are powers of two."""

    row: F64  #: R
    col: F64  #: C
    cost: float  #: f


def _power_of_two(values: F64) -> F64:
    """The power of two nearest to each value in the logarithm, within the allowed exponents."""
    mantissa, exponent = np.frexp(values)
    exponent = np.where(mantissa > np.sqrt(0.5), exponent, exponent - 1)
    powers: F64 = np.ldexp(1.0, np.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT))
    return powers


def _nearest_power(value: float) -> float:
    return float(_power_of_two(np.array([value]))[0])


def _geometric(size: int, index: I32, magnitude: F64) -> F64:
    """1/√(largest · smallest) of the magnitudes that share an index; 1 where there are none."""
    largest = np.zeros(size)
    smallest = np.full(size, np.inf)
    np.maximum.at(largest, index, magnitude)
    np.minimum.at(smallest, index, magnitude)
    used = largest > 0
    result = np.ones(size)
    result[used] = 1.0 / (np.sqrt(largest[used]) * np.sqrt(smallest[used]))
    return result


def no_scale(template: LpTemplate) -> Scale:
    return Scale(np.ones(template.num_rows), np.ones(template.num_cols), 1.0)


def find_scale(template: LpTemplate, theta_column: int | None = None) -> Scale:
    """Geometric-mean scaling of the matrix, then one factor for the costs.

    The factor puts the smallest and the largest cost around 1, but the largest not above `LARGEST_COST`. Reduced
    costs are differences of numbers as large as the largest cost and are compared with an absolute tolerance of
    1e-9: with a largest cost of 3e5 that asks for the last bit of a double, and simplex runs end as "unknown". A
    single cost of a thousandth beside penalties of 1e8 was enough for that.

    θ is in no row of the template; its factor makes its scaled cost about 1, so that cuts, which the
    engine divides by that factor, measure the future in the units in which the scaled costs measure the
    present.
    """
    column = np.repeat(np.arange(template.num_cols, dtype=np.int32), np.diff(template.starts))
    entry = template.values != 0
    rows, cols, magnitude = template.rows[entry], column[entry], np.abs(template.values[entry])
    row = np.ones(template.num_rows)
    col = np.ones(template.num_cols)
    for _ in range(PASSES):
        row *= _geometric(template.num_rows, rows, magnitude * row[rows] * col[cols])
        col *= _geometric(template.num_cols, cols, magnitude * row[rows] * col[cols])
    row, col = _power_of_two(row), _power_of_two(col)
    costs = np.abs(template.cost) * col
    if theta_column is not None:
        costs[theta_column] = 0.0
    costs = costs[costs > 0]
    cost = 1.0
    if costs.size:
        largest = float(costs.max())
        centred = _nearest_power(1.0 / (np.sqrt(largest) * np.sqrt(costs.min())))
        cost = min(centred, _nearest_power(LARGEST_COST / largest))
    if theta_column is not None and template.cost[theta_column] > 0:
        col[theta_column] = _nearest_power(1.0 / (cost * template.cost[theta_column]))
    return Scale(row, col, cost)
