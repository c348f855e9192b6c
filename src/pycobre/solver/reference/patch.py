"""One opening's numbers, read from its patch vector: what changes in the LP, scaled."""

from __future__ import annotations

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.solver.api import F64, I8, I32
from pycobre.solver.prepare import LOWER, UPPER, Prepared

__all__ = ["Patch", "read_patch"]


@frozen(eq=False)
class Patch:
    """Scaled numbers for the sets of a `Prepared` model, and the unscaled bounds of the outputs under them."""

    row_lower: F64
    row_upper: F64
    col_lower: F64
    col_upper: F64
    costs: F64
    coefficients: F64
    offset: float
    output_lower: F64
    output_upper: F64


def read_patch(p: Prepared, x: F64, values: F64) -> Patch:
    """The patch of one vector `values` for the incoming state `x`, floors included."""
    row_lower, row_upper = p.row_set_lower.copy(), p.row_set_upper.copy()
    _write(row_lower, row_upper, p.row_at, p.row_sides, values[p.row_from])
    _raise_to_floors(p, x, row_lower, row_upper)
    col_lower, col_upper = p.col_set_lower.copy(), p.col_set_upper.copy()
    _write(col_lower, col_upper, p.col_at, p.col_sides, values[p.col_from])
    output_lower, output_upper = p.output_lower.copy(), p.output_upper.copy()
    patched, given = p.output_col_at >= 0, p.output_input_at >= 0
    output_lower[patched] = col_lower[p.output_col_at[patched]]
    output_upper[patched] = col_upper[p.output_col_at[patched]]
    output_lower[given] = output_upper[given] = x[p.output_input_at[given]]
    return Patch(
        row_lower=row_lower * p.row_set_factor,
        row_upper=row_upper * p.row_set_factor,
        col_lower=col_lower * p.col_set_factor,
        col_upper=col_upper * p.col_set_factor,
        costs=values[p.cost_from] * p.cost_factor,
        coefficients=values[p.coef_from] * p.coef_factor,
        offset=float(values[p.offset_from]) * p.cost_scale if p.offset_from >= 0 else p.offset,
        output_lower=output_lower,
        output_upper=output_upper,
    )


def _write(lower: F64, upper: F64, at: I32, sides: I8, values: F64) -> None:
    low, high = (sides & LOWER) != 0, (sides & UPPER) != 0
    lower[at[low]] = values[low]
    upper[at[high]] = values[high]


def _raise_to_floors(p: Prepared, x: F64, lower: F64, upper: F64) -> None:
    shortfall = np.zeros(p.floor_limit.size)
    for f in range(p.floor_limit.size):
        at = p.floor_at[f]
        reached = lower[at] if np.isfinite(lower[at]) else upper[at]
        for e in range(p.floor_starts[f], p.floor_starts[f + 1]):
            reached += p.floor_coef[e] * x[p.floor_input[e]]
        shortfall[f] = max(0.0, p.floor_limit[f] - reached)
    for e in range(p.effect_floor.size):
        add = p.effect_multiplier[e] * shortfall[p.effect_floor[e]]
        lower[p.effect_at[e]] += add  # an infinite side stays infinite
        upper[p.effect_at[e]] += add
