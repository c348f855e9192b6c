"""The LP that the basis kernel of one chain works on: without fixed columns, and without those that equations define.

`Definitions` says which columns leave and what the matrix is then; here is what that makes of numbers. A row's
activity in this LP is its activity in the whole one but for a `shift`: what fixed columns add, which a chain
computes once, and what defined columns add, which depends on the opening. A row that defines a column has the
bounds of that column, its logical is the column, and its own dual follows from the column's reduced cost.
`_native/lp_kernel_definitions.h` is this file in C.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from pycobre.solver.api import F64, I32, CutView
from pycobre.solver.prepare import Prepared

__all__ = ["OUTSIDE", "KernelLp"]

OUTSIDE = 4  # the status of a variable that is not in this LP, or was dropped


class KernelLp:
    """Variables: columns, base rows, cuts in the order they came."""

    def __init__(self, prepared: Prepared, x: F64) -> None:
        p = self.p = prepared
        self.cols = p.active.size
        padded = (p.num_col + 3) // 4 * 4
        self.cost, self.z = np.zeros(padded), np.zeros(padded)
        self.cost[: p.num_col] = p.cost
        fixed = p.active_at < 0
        self.z[: p.num_col][fixed] = p.col_lower[fixed]
        self.z[p.inputs] = x * p.input_factor
        self.dual = np.zeros(p.num_col)
        self.active: list[int] = p.left.tolist()
        self.whole_column = _columns(p.starts, p.rows, p.values)
        self.column = _columns(p.left_starts, p.left_rows, p.left_values)
        self.row: list[list[tuple[int, float]]] = [[] for _ in range(p.num_row)]
        for col in self.active:
            for r, value in self.column[col]:
                self.row[r].append((col, value))
        cut_columns = [] if p.theta < 0 else [p.theta, *p.outputs.tolist()]
        self.cut_columns = [col for col in dict.fromkeys(cut_columns) if p.left_at[col] >= 0]
        self.cut_at = {col: at for at, col in enumerate(self.cut_columns)}
        size = p.num_col + p.num_row
        outputs, defined_cols = p.outputs.tolist(), p.defined_col.tolist()
        defined = set(defined_cols)
        self.known = [k for k, col in enumerate(outputs) if col in defined]
        effects = list(zip(p.defined_effect_row.tolist(), p.defined_effect_value.tolist(), strict=True))
        spans = [effects[a:b] for a, b in pairwise(p.defined_starts.tolist())]
        self.steps = list(
            zip(p.defined_row.tolist(), defined_cols, p.defined_pivot.tolist(), spans, strict=True)
        )
        self.row_lo, self.row_up = p.row_lower.tolist(), p.row_upper.tolist()
        self.row_price: list[float] = []  # duals of the LP's own base rows
        self.lo: list[float] = [*p.col_lower.tolist(), *p.row_lower.tolist()]
        self.up: list[float] = [*p.col_upper.tolist(), *p.row_upper.tolist()]
        self.x: list[float] = [0.0] * size
        self.d, self.weight = [0.0] * size, [1.0] * size
        self.at, self.free_to = [OUTSIDE] * size, [0] * size
        self.cuts: CutView | None = None
        self.slot: list[int] = []  # by cut, −1 = dropped
        self.cut: list[list[float]] = []  # the coefficients of each, in `cut_columns`
        self.shift = [0.0] * p.num_row  # what a row's activity is without the columns that are left
        self.fixed = [0.0] * p.num_row  # and what of it the fixed columns add
        for col in np.flatnonzero(fixed).tolist():
            for r, value in self.whole_column[col]:
                self.fixed[r] += value * float(self.z[col])

    def live_rows(self) -> list[int]:
        """The cuts that were not dropped, by number."""
        return [number for number, slot in enumerate(self.slot) if slot >= 0]

    def _entries(self, col: int) -> Iterable[tuple[int, float]]:
        """Rows and values of a column, those of live cuts included."""
        yield from self.column[col]
        at = self.cut_at.get(col, -1)
        for number in self.live_rows() if at >= 0 else ():
            yield self.p.num_row + number, self.cut[number][at]

    def _define(self, cuts: CutView | None) -> None:
        """What is not left adds to every row, and bounds of all rows, from those of the LP's own rows and columns.

        The row that defines a column has the column's bounds.
        """
        n, m = self.p.num_col, self.p.num_row
        self.shift[:m] = self.fixed[:m]
        for r, _, pivot, effects in self.steps:
            constant = (self.row_lo[r] - self.shift[r]) / pivot
            for j, value in effects:
                self.shift[j] += value * constant
            self.shift[r] = constant
        for r in range(m):
            self.lo[n + r] = self.row_lo[r] - self.shift[r]
            self.up[n + r] = self.row_up[r] - self.shift[r]
        for r, col, _, _ in self.steps:
            self.lo[n + r] = self.lo[col] - self.shift[r]
            self.up[n + r] = self.up[col] - self.shift[r]
            self.z[col] = self.shift[r]
        for number in self.live_rows():
            assert cuts is not None
            self._bound_row(cuts, number)

    def _bound_row(self, cuts: CutView, number: int) -> None:
        """What columns that are not left add to a cut, and its bound, in this opening."""
        p, r, slot = self.p, self.p.num_row + number, self.slot[number]
        shift = self.fixed[r]
        for k in self.known:
            col = int(p.outputs[k])
            shift += float(cuts.slope[slot, k]) * float(p.slope_factor[k]) * float(self.z[col])
        self.shift[r] = shift
        self.lo[p.num_col + r] = float(cuts.intercept[slot]) * p.cut_factor - shift

    def _read_duals(self, cuts: CutView | None) -> None:
        """Set the duals of the LP's own base rows, and the reduced costs of defined columns: those of their rows.

        A defining row's dual is what makes its column's reduced cost right: the steps in reverse.
        """
        p, n, m = self.p, self.p.num_col, self.p.num_row
        price = self.d[n : n + m]
        rest = {col: float(self.cost[col]) for _, col, _, _ in self.steps}
        for number in self.live_rows():
            assert cuts is not None
            y = self.d[n + m + number]
            if y != 0.0:
                for k in self.known:
                    slope = float(cuts.slope[self.slot[number], k]) * float(p.slope_factor[k])
                    rest[int(p.outputs[k])] -= slope * y
        for r, col, pivot, effects in reversed(self.steps):
            left = rest[col]
            for j, value in effects:
                left -= value * price[j]
            self.d[col] = price[r]
            price[r] = (left - self.d[col]) / pivot
        self.row_price = price


def _columns(starts: I32, rows: I32, values: F64) -> list[list[tuple[int, float]]]:
    """The entries of a matrix by column."""
    entries = list(zip(rows.tolist(), values.tolist(), strict=True))
    return [entries[a:b] for a, b in pairwise(starts.tolist())]
