"""One patch vector written into an LP: what a solve does in place, as a new template."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pycobre.solver.model import LpTemplate, PatchPlan, Target

__all__ = ["patched"]


def patched(lp: LpTemplate, plan: PatchPlan, values: NDArray[np.float64]) -> LpTemplate:
    """Return the template with `values` written to the places of `plan`."""
    if not len(plan):
        return lp
    cost, offset, matrix = lp.cost.copy(), lp.offset, lp.values.copy()
    col_lower, col_upper = lp.col_lower.copy(), lp.col_upper.copy()
    row_lower, row_upper = lp.row_lower.copy(), lp.row_upper.copy()
    missing: list[tuple[int, int, float]] = []
    for kind, row, col, value in zip(
        plan.kind.tolist(), plan.row.tolist(), plan.col.tolist(), values.tolist(), strict=True
    ):
        match Target(kind):
            case Target.RHS:
                if np.isfinite(lp.row_lower[row]):
                    row_lower[row] = value
                if np.isfinite(lp.row_upper[row]):
                    row_upper[row] = value
            case Target.ROW_LOWER:
                row_lower[row] = value
            case Target.ROW_UPPER:
                row_upper[row] = value
            case Target.COL_LOWER:
                col_lower[col] = value
            case Target.COL_UPPER:
                col_upper[col] = value
            case Target.COST:
                cost[col] = value
            case Target.COEFFICIENT:
                span = slice(lp.starts[col], lp.starts[col + 1])
                position = np.flatnonzero(lp.rows[span] == row)
                if len(position):
                    matrix[span.start + position[0]] = value
                else:
                    missing.append((col, row, value))
            case Target.OFFSET:
                offset = value
    changed = replace(
        lp,
        cost=cost,
        offset=offset,
        values=matrix,
        col_lower=col_lower,
        col_upper=col_upper,
        row_lower=row_lower,
        row_upper=row_upper,
    )
    return _with_entries(changed, missing) if missing else changed


def _with_entries(lp: LpTemplate, entries: list[tuple[int, int, float]]) -> LpTemplate:
    """Insert matrix entries that the template does not have yet, at the end of their columns."""
    ordered = sorted(entries)
    at = [lp.starts[col + 1] for col, _, _ in ordered]
    counts = np.bincount([col for col, _, _ in ordered], minlength=lp.num_cols)
    return replace(
        lp,
        starts=lp.starts + np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        rows=np.insert(lp.rows, at, [row for _, row, _ in ordered]),
        values=np.insert(lp.values, at, [value for _, _, value in ordered]),
    )
