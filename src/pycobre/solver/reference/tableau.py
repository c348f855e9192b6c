"""A dense dual simplex for small LPs, so that re-solving one costs microseconds.

HiGHS spends some 50 µs on a small LP before and after the few pivots that a changed right-hand side needs.
Here a chain builds the tableau of its basis once and the openings only pivot in it. What it returns is
proved against the LP's own rows and columns each time (`proved`); whatever it cannot prove or do (no dual
feasible basis, no feasible point, too many pivots) is left to HiGHS.

Each row of the LP has a logical variable equal to its activity. With the m basic variables x_B and the
nonbasic x_N (every one on a bound) the tableau T and the reduced costs d say

    x_B = T x_N,        objective = constant + d · x_N.

Columns that cannot move (inputs, equal bounds) are not in it; they shift the bounds of the logicals.
Exchanging basic r for nonbasic c replaces row r by the solution for x_c and adds multiples of it to the
other rows: elementwise operations, whose bits do not depend on how they are vectorised.
`_native/lp_tableau.h` is this file in C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pycobre.solver.api import F64, I8, I32, CutView
from pycobre.solver.prepare import Prepared
from pycobre.solver.reference.cuts import lanes_dot
from pycobre.solver.reference.patch import Patch

__all__ = ["AT_LOWER", "AT_UPPER", "AT_ZERO", "IS_BASIC", "Tableau"]

PIVOT_SMALLEST = 1e-9  # entries of this size and less are not pivoted on
RESIDUAL_LARGEST = 1e-9  # of a row or column, relative to its terms: beyond it the tableau has drifted
PASSES = 3  # clean-ups of one solve before it is given up
GONE = -(2**31)  # place of a variable that is in no tableau

AT_LOWER, IS_BASIC, AT_UPPER, AT_ZERO = 0, 1, 2, 3


class Tableau:
    """The tableau of one chain, once built. Variables: columns, base rows, cuts in the order they came."""

    def __init__(self, prepared: Prepared, x: F64) -> None:
        p = self.p = prepared
        self.cols = p.active.size
        self.stride = (self.cols + 3) // 4 * 4
        padded = (p.num_col + 3) // 4 * 4
        self.cost, self.z = np.zeros(padded), np.zeros(padded)
        self.cost[: p.num_col] = p.cost
        fixed = p.active_at < 0
        self.z[: p.num_col][fixed] = p.col_lower[fixed]
        self.z[p.inputs] = x * p.input_factor
        self.dual = np.zeros(p.num_col)
        self._column = np.repeat(np.arange(p.num_col), np.diff(p.starts))
        self.pivots = 0
        self.row_lo, self.row_up = p.row_lower.copy(), p.row_upper.copy()  # scaled, as patched
        self.lo, self.up = p.col_lower, p.col_upper

    # ---- rows and basis ----

    def _logical(self) -> None:
        """The tableau of the base rows in which all logicals are basic."""
        p, n, m = self.p, self.p.num_col, self.p.num_row
        self.fresh, self.moved = True, False
        self.t = np.zeros((m, self.stride))
        self.d, self.xn = np.zeros(self.stride), np.zeros(self.stride)
        self.xb, self.weight = np.zeros(m), np.ones(m)
        self.basic = np.arange(n, n + m)
        self.nonbasic = p.active.astype(np.int64)
        self.at = np.full(self.cols, AT_LOWER, np.int8)
        self.place = np.concatenate(
            [np.where(p.active_at < 0, GONE, -1 - p.active_at.astype(np.int64)), np.arange(m)]
        )
        self.slot: list[int] = []
        self.shift = np.zeros(m)
        inside = p.active_at[self._column] >= 0
        self.t[p.rows[inside], p.active_at[self._column[inside]]] = p.values[inside]
        outside = np.flatnonzero(~inside)
        np.add.at(self.shift, p.rows[outside], p.values[outside] * self.z[self._column[outside]])
        self.lo = np.concatenate([self.lo[:n], self.row_lo - self.shift])
        self.up = np.concatenate([self.up[:n], self.row_up - self.shift])

    def _terms(self, cuts: CutView, slot: int) -> list[tuple[int, float]]:
        """The entries of a cut: (column, scaled coefficient), θ first."""
        p = self.p
        values = cuts.slope[slot] * p.slope_factor
        return [(p.theta, 1.0), *zip(p.outputs.tolist(), values.tolist(), strict=True)]

    def add_row(self, cuts: CutView, slot: int) -> None:
        """Append a cut, its logical basic."""
        self._name_row(cuts, slot)
        self._place_row(cuts, len(self.slot) - 1)

    def _name_row(self, cuts: CutView, slot: int) -> None:
        """Take up a cut, without a row in the tableau yet."""
        p, shift = self.p, 0.0
        for col, value in self._terms(cuts, slot):
            if p.active_at[col] < 0:
                shift += value * float(self.z[col])
        self.slot.append(slot)
        self.shift = np.append(self.shift, shift)
        self.lo = np.append(self.lo, cuts.intercept[slot] * p.cut_factor - shift)
        self.up = np.append(self.up, np.inf)
        self.place = np.append(self.place, GONE)

    def _place_rows(self, cuts: CutView | None, which: NDArray[np.bool_]) -> None:
        for number in np.flatnonzero(which).tolist():
            assert cuts is not None
            self._place_row(cuts, number)

    def _place_row(self, cuts: CutView, number: int) -> None:
        """Append the row of a cut in terms of the basis there is, its logical basic."""
        p, variable = self.p, self.p.num_col + self.p.num_row + number
        row = np.zeros(self.stride)
        for col, value in self._terms(cuts, self.slot[number]):
            if p.active_at[col] < 0:
                continue
            if self.place[col] < 0:
                row[-1 - self.place[col]] += value
            else:
                row += value * self.t[self.place[col]]
        self.basic = np.append(self.basic, variable)
        self.weight = np.append(self.weight, 1.0)
        self.place[variable] = self.t.shape[0]
        self.t = np.vstack([self.t, row])
        self.xb = np.append(self.xb, lanes_dot(row[None], self.xn)[0])

    def build(self, cuts: CutView | None, slots: Sequence[int], wanted: I8 | None) -> None:
        """The tableau of these cuts and the basis `wanted` (None: all logicals basic).

        Rows whose logical is basic take no part in bringing columns into the basis: they come last, in terms
        of the basis there is then.
        """
        n, m = self.p.num_col, self.p.num_row
        if wanted is None:
            wanted = np.full(n + m + len(slots), IS_BASIC, np.int8)
            wanted[:n] = AT_LOWER
        self._logical()
        for slot in slots:
            assert cuts is not None
            self._name_row(cuts, slot)
        late = wanted[n + m :] == IS_BASIC
        self._place_rows(cuts, ~late)
        self._install(wanted)
        self._place_rows(cuts, late)
        self.price()

    def drop_row(self, number: int) -> None:
        """Forget a cut whose logical is basic: the last row takes the place of its row."""
        variable = self.p.num_col + self.p.num_row + number
        r, last = int(self.place[variable]), self.t.shape[0] - 1
        if r != last:
            self.t[r], self.xb[r], self.basic[r] = self.t[last], self.xb[last], self.basic[last]
            self.weight[r] = self.weight[last]
            self.place[self.basic[r]] = r
        self.t, self.xb, self.basic = self.t[:last].copy(), self.xb[:last].copy(), self.basic[:last].copy()
        self.weight = self.weight[:last].copy()
        self.place[variable] = GONE
        self.slot[number] = -1

    def live_rows(self) -> list[int]:
        """The cuts that were not dropped, by number."""
        return [number for number, slot in enumerate(self.slot) if slot >= 0]

    def is_binding(self, number: int) -> bool:
        return bool(self.place[self.p.num_col + self.p.num_row + number] < 0)

    def _install(self, wanted: I8) -> None:
        """Bring the columns that `wanted` calls basic into the basis, for logicals that it does not call so."""
        for col in self.p.active.tolist():
            if wanted[col] != IS_BASIC:
                continue
            c = -1 - int(self.place[col])
            entries = np.abs(self.t[:, c])
            leave = (
                (self.basic >= self.p.num_col) & (wanted[self.basic] != IS_BASIC) & (entries > PIVOT_SMALLEST)
            )
            if not leave.any():
                continue
            self._exchange(int(np.argmax(np.where(leave, entries, -1.0))), c)
        self.at = np.where(wanted[self.nonbasic] == AT_UPPER, AT_UPPER, AT_LOWER).astype(np.int8)

    def statuses(self) -> tuple[I8, I8]:
        """The status of every column and of every row, the live cuts after the base rows."""
        n, m = self.p.num_col, self.p.num_row
        variables = [*range(n + m), *(n + m + number for number in self.live_rows())]
        place = self.place[variables]
        inside = np.where(place < 0, -1 - np.maximum(place, -self.cols), 0)
        nonbasic = self.at[inside] if self.cols else np.zeros(place.size, np.int8)
        status = np.where(place == GONE, AT_LOWER, np.where(place < 0, nonbasic, IS_BASIC)).astype(np.int8)
        return status[:n], status[n:]

    def _exchange(self, r: int, c: int) -> None:
        pivot = self.t[r]
        inverse = 1.0 / pivot[c]
        pivot[:] = -(pivot * inverse)
        pivot[c] = inverse
        factors = self.t[:, c].copy()
        factors[r] = 0.0
        touched = np.flatnonzero(factors)
        self.t[touched, c] = 0.0
        self.t[touched] += factors[touched, None] * pivot
        factor = self.d[c]
        if factor != 0.0:
            self.d[c] = 0.0
            self.d += factor * pivot
        leaving, entering = self.basic[r], self.nonbasic[c]
        self.basic[r], self.nonbasic[c] = entering, leaving
        self.place[entering], self.place[leaving] = r, -1 - c

    def patch(self, patch: Patch, tolerance: float) -> bool:
        """Take over one opening's bounds and costs; False where the basis is then not dual feasible."""
        p = self.p
        if np.any(patch.row_lower > patch.row_upper) or np.any(patch.col_lower > patch.col_upper):
            return False
        self.row_lo[p.row_set], self.row_up[p.row_set] = patch.row_lower, patch.row_upper
        if p.cost_set.size:
            self.cost[p.cost_set] = patch.costs
            self.price()
            self.fresh = True
        lower, upper = patch.row_lower - self.shift[p.row_set], patch.row_upper - self.shift[p.row_set]
        for row, lo, up in zip(p.row_set.tolist(), lower.tolist(), upper.tolist(), strict=True):
            if not self._set_bounds(p.num_col + row, lo, up, tolerance):
                return False
        for col, lo, up in zip(
            p.col_set.tolist(), patch.col_lower.tolist(), patch.col_upper.tolist(), strict=True
        ):
            if not self._set_bounds(col, lo, up, tolerance):
                return False
        return self.settle(tolerance) if self.fresh else True

    def _set_bounds(self, variable: int, lo: float, up: float, tolerance: float) -> bool:
        """New bounds for a variable; one that is nonbasic moves. False where no dual feasible bound is left."""
        self.lo[variable], self.up[variable] = lo, up
        if self.fresh or self.place[variable] >= 0:
            return True
        c = -1 - int(self.place[variable])
        right = self._right_bounds(tolerance)
        if self._wrong(right, tolerance)[c]:
            return False
        at = self.at[c] = right[c]
        value = lo if at == AT_LOWER else up if at == AT_UPPER else 0.0
        step = value - float(self.xn[c])
        if step != 0.0:
            self._move(c, step)
        self.xn[c] = value
        return True

    def price(self) -> None:
        """The reduced costs, from the costs."""
        n = self.p.num_col
        self.d = np.zeros(self.stride)
        columns = np.flatnonzero(self.nonbasic < n)
        self.d[columns] = self.cost[self.nonbasic[columns]]
        for r in range(self.t.shape[0]):
            if self.basic[r] < n and self.cost[self.basic[r]] != 0.0:
                self.d += self.cost[self.basic[r]] * self.t[r]

    # ---- the dual simplex ----

    def iterate(self, primal: float, dual: float, limit: int) -> bool:
        """Pivot until every basic variable is within its bounds; False when that is not to be had."""
        while (r := self._choose_row(primal)) >= 0:
            rise = bool(self.xb[r] < self.lo[self.basic[r]])
            c = self._choose_column(r, rise, 0.5 * dual) if self.pivots < limit else -1
            if c < 0:
                return False
            self._pivot(r, c, rise)
        return True

    def proved(self, cuts: CutView | None, primal: float, dual: float) -> bool:
        """Whether the basis is optimal for the LP itself, after computing all values anew; sets `z` and `dual`."""
        if self.moved:
            self._recompute()
        if self._choose_row(primal) >= 0 or bool(self._wrong(self.at, dual).any()):
            return False
        self.read_columns()
        return self._certify(cuts)

    def _recompute(self) -> None:
        self.xb = lanes_dot(self.t, self.xn)
        self.moved = False

    def read_columns(self) -> None:
        """Set the values of the columns in `z`."""
        place = self.place[self.p.active]
        nonbasic, basic = place < 0, place >= 0
        self.z[self.p.active[nonbasic]] = self.xn[-1 - place[nonbasic]]
        self.z[self.p.active[basic]] = self.xb[place[basic]]

    def settle(self, tolerance: float) -> bool:
        """Put every nonbasic variable on the bound that its reduced cost asks for; False where one has none."""
        if self.fresh:
            self.weight = np.ones(self.basic.size)
        self.fresh = False
        at = self._right_bounds(tolerance)
        if self._wrong(at, tolerance).any():
            return False
        self.at = at
        lo, up = self.lo[self.nonbasic], self.up[self.nonbasic]
        self.xn[: self.cols] = np.where(at == AT_LOWER, lo, np.where(at == AT_UPPER, up, 0.0))
        self._recompute()
        return True

    def _right_bounds(self, tolerance: float) -> I8:
        """The bound that each reduced cost asks for, or the one there is where it asks for none."""
        d = self.d[: self.cols]
        has_lo, has_up = np.isfinite(self.lo[self.nonbasic]), np.isfinite(self.up[self.nonbasic])
        at = np.where(d > tolerance, AT_LOWER, np.where(d < -tolerance, AT_UPPER, self.at))
        from_lower = np.where(has_lo, AT_LOWER, np.where(has_up, AT_UPPER, AT_ZERO))
        from_upper = np.where(has_up, AT_UPPER, np.where(has_lo, AT_LOWER, AT_ZERO))
        return np.where(at == AT_UPPER, from_upper, from_lower).astype(np.int8)

    def _wrong(self, at: I8, tolerance: float) -> NDArray[np.bool_]:
        """Which columns at these bounds are not dual feasible."""
        d = self.d[: self.cols]
        moves = self.lo[self.nonbasic] < self.up[self.nonbasic]
        wrong: NDArray[np.bool_] = moves & (
            ((d < -tolerance) & (at != AT_UPPER)) | ((d > tolerance) & (at != AT_LOWER))
        )
        return wrong

    def _choose_row(self, tolerance: float) -> int:
        """The row whose variable is outside its bounds by the largest square over weight (ties: first), or −1."""
        outside = np.maximum(self.lo[self.basic] - self.xb, self.xb - self.up[self.basic])
        merit = np.where(outside > tolerance, outside * outside / self.weight, 0.0)
        return int(np.argmax(merit)) if (merit > 0.0).any() else -1

    def _choose_column(self, r: int, rise: bool, tolerance: float) -> int:
        """The column that enters for row r, which has to rise or fall, after the bound flips that the ratio test
        allows; −1 if none can.
        """
        variable = self.basic[r]
        outside = float(self.lo[variable] - self.xb[r] if rise else self.xb[r] - self.up[variable])
        row = self.t[r, : self.cols]
        toward = row if rise else -row
        lo, up = self.lo[self.nonbasic], self.up[self.nonbasic]
        able = ((toward > PIVOT_SMALLEST) & (self.at != AT_UPPER)) | (
            (toward < -PIVOT_SMALLEST) & (self.at != AT_LOWER)
        )
        candidates = np.flatnonzero(able & (lo < up)).tolist()
        size, cost = np.abs(row), np.abs(self.d[: self.cols])
        while candidates:
            bound = np.min((cost[candidates] + tolerance) / size[candidates])
            near = cost[candidates] / size[candidates] <= bound
            if not near.any():
                return -1  # the reduced costs are no numbers any more
            best = int(np.argmax(np.where(near, size[candidates], 0.0)))
            c = candidates[best]
            reach = float(size[c]) * float(up[c] - lo[c])
            if not outside - reach > 0.0:
                return int(c)
            outside -= reach
            upwards = self.at[c] == AT_LOWER
            self._move(c, float(up[c] - lo[c]) if upwards else -float(up[c] - lo[c]))
            self.at[c] = AT_UPPER if upwards else AT_LOWER
            self.xn[c] = up[c] if upwards else lo[c]
            candidates[best] = candidates[-1]
            candidates.pop()
        return -1

    def _move(self, c: int, step: float) -> None:
        self.xn[c] += step
        self.xb += self.t[:, c] * step
        self.moved = True

    def _pivot(self, r: int, c: int, rise: bool) -> None:
        # The direction is that from before the flips: they may have brought the row to its bound up to rounding,
        # or beyond.
        leaving = self.basic[r]
        bound = self.lo[leaving] if rise else self.up[leaving]
        self._move(c, float((bound - self.xb[r]) / self.t[r, c]))
        entered = self.xn[c]
        self._update_devex_weights(r, c)
        self._exchange(r, c)
        self.xb[r], self.xn[c] = entered, bound
        self.at[c] = AT_LOWER if rise else AT_UPPER
        self.pivots += 1

    def _update_devex_weights(self, r: int, c: int) -> None:
        """Devex: weights grow with the steps that rows take; the exchange of r and c is about to happen."""
        factors = self.t[:, c]
        reference = float(self.weight[r] / (factors[r] * factors[r]))
        weight = np.maximum(self.weight, factors * factors * reference)
        weight[r] = max(reference, 1.0)
        self.weight = weight

    # ---- the certificate ----

    def row_dual(self) -> F64:
        """The duals of the base rows, scaled."""
        return self._logical_duals(np.arange(self.p.num_col, self.p.num_col + self.p.num_row))

    def _logical_duals(self, variables: NDArray[np.int64] | I32) -> F64:
        place = self.place[variables]
        values: F64 = (
            np.where(place < 0, self.d[np.where(place < 0, -1 - place, 0)], 0.0)
            if self.stride
            else np.zeros(place.size)
        )
        return values

    def _value(self, variable: int) -> float:
        place = int(self.place[variable])
        return float(self.xn[-1 - place] if place < 0 else self.xb[place])

    def _certify(self, cuts: CutView | None) -> bool:
        """Whether columns and duals satisfy the LP's own rows and columns; sets `dual`."""
        p, n, m = self.p, self.p.num_col, self.p.num_row
        place = self.place[p.active]
        nonbasic = place < 0
        y = self.row_dual()
        terms, priced = p.values * self.z[self._column], p.values * y[p.rows]
        activity, size = np.zeros(m), np.zeros(m)
        np.add.at(activity, p.rows, terms)
        np.add.at(size, p.rows, np.abs(terms))
        dual, dual_size = self.cost[:n].copy(), np.abs(self.cost[:n])
        np.subtract.at(dual, self._column, priced)
        np.add.at(dual_size, self._column, np.abs(priced))
        self.dual = dual
        for number in self.live_rows():
            assert cuts is not None
            variable = n + m + number
            reached, reach = 0.0, 0.0
            y_row = float(self._logical_duals(np.array([variable]))[0])
            for col, value in self._terms(cuts, self.slot[number]):
                term = value * float(self.z[col])
                reached += term
                reach += abs(term)
                dual[col] -= value * y_row
                dual_size[col] += abs(value * y_row)
            expected = self._value(variable) + float(self.shift[m + number])
            if not abs(reached - expected) <= RESIDUAL_LARGEST * (1.0 + reach):
                return False
        values = np.array([self._value(v) for v in range(n, n + m)]) + self.shift[:m]
        if not np.all(np.abs(activity - values) <= RESIDUAL_LARGEST * (1.0 + size)):
            return False
        expected_dual = (
            np.where(nonbasic, self.d[np.where(nonbasic, -1 - place, 0)], 0.0) if self.cols else place * 0.0
        )
        wrong = np.abs(dual[p.active] - expected_dual)
        return bool(np.all(wrong <= RESIDUAL_LARGEST * (1.0 + dual_size[p.active])))

    def renew(self, cuts: CutView | None, dual: float) -> bool:
        """Build the tableau anew; False where its basis is then not dual feasible."""
        self.refactor(cuts)
        return self.settle(dual)

    def refactor(self, cuts: CutView | None) -> None:
        """Build the tableau anew from the LP, with the basis it has now."""
        wanted = np.concatenate(self.statuses())
        self.build(cuts, [self.slot[number] for number in self.live_rows()], wanted)
