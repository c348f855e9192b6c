"""The basis of the dual simplex on the basis kernel (`kernel` explains it): the inverse, values, bounds.

`_native/lp_kernel.h` and `lp_kernel_basis.h` are this file in C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pycobre.solver.api import F64, I8, CutView
from pycobre.solver.prepare import Prepared
from pycobre.solver.reference.kernel_lp import OUTSIDE, KernelLp
from pycobre.solver.reference.patch import Patch
from pycobre.solver.reference.tableau import (
    AT_LOWER,
    AT_UPPER,
    AT_ZERO,
    IS_BASIC,
    PIVOT_SMALLEST,
)

__all__ = ["FALLS", "RISES", "KernelBasis"]

INVERSE_SMALLEST = 1e-12  # entries of the inverse below this are rounding of zero
RISES, FALLS = 1, 2  # where a nonbasic variable can move


class KernelBasis(KernelLp):
    """The kernel of one chain, once built."""

    def __init__(self, prepared: Prepared, x: F64) -> None:
        super().__init__(prepared, x)
        self.pivots = self.updates = 0
        self.fresh = True  # weights are not set
        self.changed = False  # values were updated since they were computed
        self._logical()

    # ---- cuts ----

    def _logical(self) -> None:
        """All logicals of the base rows basic, no cuts."""
        p, n = self.p, self.p.num_col
        size = n + p.num_row
        self.w = np.zeros((0, 0))
        self.kcol: list[int] = []  # column by row of the inverse, −1 = free
        self.krow: list[int] = []  # row by column of the inverse
        self.free: list[tuple[int, int]] = []  # free rows and columns, the last is taken first
        self.updates = 0
        self.slot, self.cut = [], []
        for array in (self.lo, self.up, self.x, self.d, self.weight, self.at, self.free_to):
            del array[size:]
        for array in (self.shift, self.fixed):
            del array[p.num_row :]
        self.row_pos = [-1] * p.num_row
        self.col_pos = [-1] * n
        self.at[n:] = [IS_BASIC] * p.num_row
        for col in range(n):
            self.at[col] = OUTSIDE if p.left_at[col] < 0 else AT_LOWER
            self.x[col] = self.d[col] = 0.0

    def _name_row(self, cuts: CutView, slot: int) -> None:
        p, shift, values = self.p, 0.0, [0.0] * len(self.cut_columns)
        slopes = (cuts.slope[slot] * p.slope_factor).tolist()
        for col, value in zip([p.theta, *p.outputs.tolist()], [1.0, *slopes], strict=True):
            if p.active_at[col] < 0:
                shift += value * float(self.z[col])
            elif p.left_at[col] >= 0:
                values[self.cut_at[col]] += value
        self.slot.append(slot)
        self.cut.append(values)
        self.fixed.append(shift)
        self.shift.append(0.0)
        self.row_pos.append(-1)
        self.lo.append(0.0)
        self._bound_row(cuts, len(self.slot) - 1)
        self.up.append(math.inf)
        self.at.append(IS_BASIC)
        self.weight.append(1.0)
        self.free_to.append(0)
        self.x.append(0.0)
        self.d.append(0.0)

    def add_row(self, cuts: CutView, slot: int) -> None:
        """Take in a cut during a solve, its logical basic."""
        self._name_row(cuts, slot)
        value = 0.0
        for col, entry in zip(self.cut_columns, self.cut[-1], strict=True):
            value += entry * self.x[col]
        self.x[-1] = value

    def drop_row(self, number: int) -> None:
        """Forget a cut whose logical is basic."""
        variable = self.p.num_col + self.p.num_row + number
        self.slot[number], self.at[variable] = -1, OUTSIDE
        self.lo[variable], self.up[variable], self.x[variable] = -math.inf, math.inf, 0.0

    def is_binding(self, number: int) -> bool:
        return self.row_pos[self.p.num_row + number] >= 0

    def statuses(self) -> tuple[I8, I8]:
        """The status of every column and of every row, the live cuts after the base rows."""
        n, m = self.p.num_col, self.p.num_row
        cols = [AT_LOWER if at == OUTSIDE else at for at in self.at[:n]]
        rows = [*self.at[n : n + m], *(self.at[n + m + number] for number in self.live_rows())]
        for r, col, _, _ in self.steps:
            cols[col], rows[r] = rows[r], AT_LOWER
        return np.array(cols, np.int8), np.array(rows, np.int8)

    # ---- rows and columns of the tableau ----

    def _scatter(self, work: dict[int, float], variable: int, step: float) -> None:
        """What a step of a nonbasic variable adds to the rows: a column itself, or minus one for a logical."""
        n = self.p.num_col
        if variable >= n:
            work[variable - n] = work.get(variable - n, 0.0) + -step
            return
        for r, value in self._entries(variable):
            work[r] = work.get(r, 0.0) + value * step

    def _solve_column(self, work: dict[int, float]) -> F64:
        """From what nonbasic variables add to the rows to what the basic ones do in return: columns of the kernel
        as the result, basic logicals in `work`.
        """
        to = np.zeros(len(self.kcol))
        for r, given in list(work.items()):
            c = self.row_pos[r]
            if c >= 0 and given != 0.0:
                to += -given * self.w[:, c]
        to[np.abs(to) < INVERSE_SMALLEST] = 0.0
        for i in np.flatnonzero(to).tolist():
            for r, value in self._entries(self.kcol[i]):
                work[r] = work.get(r, 0.0) + value * float(to[i])
        return to

    def _solve_row(self, variable: int) -> F64:
        """The row of the inverse that belongs to a basic variable."""
        n, m = self.p.num_col, self.p.num_row
        rho = np.zeros(len(self.krow))
        if variable < n:
            rho += 1.0 * self.w[self.col_pos[variable]]
        elif variable < n + m:
            for col, value in self.row[variable - n]:
                if self.col_pos[col] >= 0:
                    rho += value * self.w[self.col_pos[col]]
        else:
            for col, value in zip(self.cut_columns, self.cut[variable - n - m], strict=True):
                if self.col_pos[col] >= 0 and value != 0.0:
                    rho += value * self.w[self.col_pos[col]]
        rho[np.abs(rho) < INVERSE_SMALLEST] = 0.0
        return rho

    def _subtract_row(self, alpha: dict[int, float], r: int, factor: float) -> None:
        """Subtract `factor` times row r from the entries of the columns that can move."""
        m = self.p.num_row
        terms = self.row[r] if r < m else zip(self.cut_columns, self.cut[r - m], strict=True)
        for col, value in terms:
            if self.free_to[col]:
                alpha[col] = alpha.get(col, 0.0) + -(value * factor)

    # ---- the exchange ----

    def _exchange(self, leaving: int, entering: int, entry: float, col: F64, rho: F64) -> None:
        """`leaving` is the row of the inverse of a column, or −1 − the row of a logical; `entering` is a column, or
        −1 − the inverse's column of a logical.
        """
        inverse, w = 1.0 / entry, self.w
        i, c = (leaving if leaving >= 0 else -1), (-1 - entering if entering < 0 else -1)
        self.updates += 1
        touched = np.flatnonzero(rho)
        touched = touched[touched != c]
        for hit in np.flatnonzero(col).tolist():
            if hit != i:
                total = w[hit, touched] + -(col[hit] / entry) * rho[touched]
                w[hit, touched] = np.where(np.abs(total) < INVERSE_SMALLEST, 0.0, total)
        if i >= 0:
            self.col_pos[self.kcol[i]] = -1
        if c >= 0:
            self.row_pos[self.krow[c]] = -1
        if i >= 0 and c >= 0:
            w[i], w[:, c] = 0.0, 0.0
            self.kcol[i] = self.krow[c] = -1
            self.free.append((i, c))
            return
        if i >= 0:
            w[i] *= -inverse
        elif c >= 0:
            w[:, c] *= inverse
        else:
            i, c = self._more()
            w = self.w
            w[: col.size, c] = col * inverse
            w[i, : rho.size] = rho * -inverse
            w[i, c] = inverse
        if entering >= 0:
            self.kcol[i], self.col_pos[entering] = entering, i
        if leaving < 0:
            self.krow[c], self.row_pos[-1 - leaving] = -1 - leaving, c

    def _more(self) -> tuple[int, int]:
        """Places for another row and column of the inverse."""
        if self.free:
            return self.free.pop()
        k = len(self.kcol)
        larger = np.zeros((k + 1, k + 1))
        larger[:k, :k] = self.w
        self.w = larger
        self.kcol.append(-1)
        self.krow.append(-1)
        return k, k

    # ---- building ----

    def build(self, cuts: CutView | None, slots: Sequence[int], wanted: I8 | None) -> None:
        """The kernel of these cuts and the basis `wanted` (None: all logicals basic)."""
        n, m = self.p.num_col, self.p.num_row
        self.cuts = cuts
        basis = [AT_LOWER] * n + [IS_BASIC] * (m + len(slots)) if wanted is None else wanted.tolist()
        for r, col, _, _ in self.steps:
            basis[n + r] = IS_BASIC if wanted is None else basis[col]
        self._logical()
        for slot in slots:
            assert cuts is not None
            self._name_row(cuts, slot)
        self._install(basis)
        self.updates = 0
        self.price()

    def refactor(self, cuts: CutView | None) -> None:
        """Compute the inverse anew, with the basis there is now; dropped cuts are forgotten."""
        wanted = np.concatenate(self.statuses())
        self.build(cuts, [self.slot[number] for number in self.live_rows()], wanted)

    def _may_join(self, wanted: list[int], r: int) -> bool:
        return self.row_pos[r] < 0 and wanted[self.p.num_col + r] != IS_BASIC

    def _join(self, wanted: list[int], col: int) -> int:
        """Bring a column into the basis, for the logical of the row with the largest entry; that row, or −1."""
        n, best, largest = self.p.num_col, -1, PIVOT_SMALLEST
        work: dict[int, float] = {}
        self._scatter(work, col, 1.0)
        solved = self._solve_column(work)
        for r, value in work.items():
            size = abs(value)
            if self._may_join(wanted, r) and (size > largest or (size == largest and r < best)):
                best, largest = r, size
        if best < 0:
            return -1
        self._exchange(-1 - best, col, work[best], solved, self._solve_row(n + best))
        self.at[col], self.at[n + best] = IS_BASIC, AT_LOWER
        return best

    def _install(self, wanted: list[int]) -> None:
        """First columns that have one row left, again and again, so that the inverse grows without fill-in; then
        the others. A column that finds no row stays nonbasic.
        """
        m = self.p.num_row
        columns = [col for col in self.active if wanted[col] == IS_BASIC]
        count = {col: sum(self._may_join(wanted, r) for r, _ in self._entries(col)) for col in columns}
        queue = [col for col in columns if count[col] == 1]
        for col in queue:
            r = self._join(wanted, col)
            if r < 0:
                continue
            for other in self.cut_columns if r >= m else [each for each, _ in self.row[r]]:
                if wanted[other] == IS_BASIC and self.col_pos[other] < 0:
                    count[other] -= 1
                    if count[other] == 1:
                        queue.append(other)
        for col in columns:
            if self.col_pos[col] < 0:
                self._join(wanted, col)
        for v in range(len(self.at)):
            if self._is_nonbasic(v):
                self.at[v] = AT_UPPER if wanted[v] == AT_UPPER else AT_LOWER

    # ---- values ----

    def _column_dot(self, col: int) -> float:
        n, m, total = self.p.num_col, self.p.num_row, 0.0
        for r, value in self._entries(col):
            if r < m or self.row_pos[r] >= 0:
                total += value * self.d[n + r]
        return total

    def price(self) -> None:
        """The reduced costs of the nonbasic variables, from the costs; those of basic ones are 0."""
        n = self.p.num_col
        y = np.zeros(len(self.krow))
        self.d[n:] = [0.0] * (len(self.d) - n)
        for correction in (False, True):
            left = [
                0.0
                if col < 0
                else float(self.cost[col]) - self._column_dot(col)
                if correction
                else float(self.cost[col])
                for col in self.kcol
            ]
            for i, value in enumerate(left):
                if value != 0.0:
                    y += value * self.w[i]
            for c, r in enumerate(self.krow):
                if r >= 0:
                    self.d[n + r] = float(y[c])
        for col in self.active:
            self.d[col] = 0.0 if self.col_pos[col] >= 0 else float(self.cost[col]) - self._column_dot(col)

    def _add_columns(self, basic: bool) -> list[float]:
        """By row, what the basic or the nonbasic columns add up to."""
        g = [0.0] * len(self.row_pos)
        for col in self.active:
            if (self.col_pos[col] >= 0) == basic and self.x[col] != 0.0:
                for r, value in self._entries(col):
                    g[r] += value * self.x[col]
        return g

    def _recompute(self) -> None:
        """The values of the basic variables, from those of the nonbasic ones."""
        n = self.p.num_col
        fixed, g = self._add_columns(False), [0.0] * len(self.row_pos)
        col = np.zeros(len(self.kcol))
        for _ in range(2):
            for c, r in enumerate(self.krow):
                missing = 0.0 if r < 0 else self.x[n + r] - fixed[r] - g[r]
                if missing != 0.0:
                    col += missing * self.w[:, c]
            for i, each in enumerate(self.kcol):
                if each >= 0:
                    self.x[each] = float(col[i])
            g = self._add_columns(True)
        for r in range(len(self.row_pos)):
            if self.at[n + r] == IS_BASIC:
                self.x[n + r] = fixed[r] + g[r]
        self.changed = False

    # ---- bounds ----

    def _is_nonbasic(self, v: int) -> bool:
        return self.at[v] not in (IS_BASIC, OUTSIDE)

    def _dual_feasible_bound(self, v: int, tolerance: float) -> int:
        """The bound that the reduced cost asks for, or the one there is where it asks for none."""
        has_lo, has_up = math.isfinite(self.lo[v]), math.isfinite(self.up[v])
        at = AT_LOWER if self.at[v] == AT_ZERO else self.at[v]
        if self.d[v] > tolerance:
            at = AT_LOWER
        elif self.d[v] < -tolerance:
            at = AT_UPPER
        if at == AT_LOWER:
            return AT_LOWER if has_lo else AT_UPPER if has_up else AT_ZERO
        return AT_UPPER if has_up else AT_LOWER if has_lo else AT_ZERO

    def _is_dual_infeasible(self, v: int, at: int, tolerance: float) -> bool:
        too_low = self.d[v] < -tolerance and at != AT_UPPER
        too_high = self.d[v] > tolerance and at != AT_LOWER
        return (too_low or too_high) and self.lo[v] < self.up[v]

    def _set_free(self, v: int) -> None:
        ways = {AT_LOWER: RISES, AT_UPPER: FALLS, AT_ZERO: RISES | FALLS}.get(self.at[v], 0)
        self.free_to[v] = ways if self.lo[v] < self.up[v] else 0

    def _bound(self, v: int) -> float:
        return self.lo[v] if self.at[v] == AT_LOWER else self.up[v] if self.at[v] == AT_UPPER else 0.0

    def settle(self, tolerance: float) -> bool:
        """Put every nonbasic variable on the bound that its reduced cost asks for; False where one has none."""
        if self.fresh:
            self.weight = [1.0] * len(self.at)
        self.fresh = False
        for v in range(len(self.at)):
            if self._is_nonbasic(v):
                at = self._dual_feasible_bound(v, tolerance)
                if self._is_dual_infeasible(v, at, tolerance):
                    return False
                self.at[v] = at
                self.x[v] = self._bound(v)
            self._set_free(v)
        self._recompute()
        return True

    def patch(self, patch: Patch, tolerance: float) -> bool:
        """Take over one opening's bounds and costs; False where the basis is then not dual feasible."""
        p = self.p
        if np.any(patch.row_lower > patch.row_upper) or np.any(patch.col_lower > patch.col_upper):
            return False
        for k, r in enumerate(p.row_set.tolist()):
            self.row_lo[r], self.row_up[r] = float(patch.row_lower[k]), float(patch.row_upper[k])
        for k, col in enumerate(p.col_set.tolist()):
            self.lo[col], self.up[col] = float(patch.col_lower[k]), float(patch.col_upper[k])
        if p.cost_set.size:
            self.cost[p.cost_set] = patch.costs
            self.price()
            self.fresh = True
        self._define(self.cuts)
        return self.settle(tolerance)
