"""A dual simplex on the basis kernel, for LPs of hundreds of rows that are too large for a tableau.

Each row of the LP has a logical variable equal to its activity. A row whose logical is basic only defines that
logical, so a basis needs the inverse of its *kernel* alone: of the rows whose logical is nonbasic by the columns
that are basic. With W that inverse, s the nonbasic logicals and N the nonbasic columns,

    x_B = W (s − A_N x_N),        y = Wᵀ c_B,        d_N = c_N − A_Nᵀ y.

W is the part of the simplex tableau that belongs to basic columns and nonbasic logicals, so that every exchange,
whatever enters and leaves, adds multiples of the pivot row to the other rows of W; it may also add or remove a row
and a column of W, whose places are used again. Entries below 1e-12 are rounding of zero and are set to it, which
keeps W sparse: the compiled path walks along its nonzeros, this file computes with zeros, and both get the same
bits. Values and reduced costs that come from W are corrected once by their residual (iterative refinement).

Every answer is proved against the LP's own rows and columns (`proved`); what cannot be proved is left to HiGHS.
`kernel_basis` holds the inverse and the values, this file the simplex steps and the certificate, as
`_native/lp_kernel_simplex.h` does in C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pycobre.solver.api import F64, CutView
from pycobre.solver.reference.kernel_basis import FALLS, RISES, KernelBasis
from pycobre.solver.reference.kernel_lp import OUTSIDE
from pycobre.solver.reference.tableau import AT_LOWER, AT_UPPER, IS_BASIC, PIVOT_SMALLEST, RESIDUAL_LARGEST

__all__ = ["Kernel"]

PIVOT_AGREEMENT = 1e-7  # of a pivot by row and by column: beyond it the inverse has drifted
UPDATES = 200  # exchanges after which the inverse is computed anew
RENEWED_TOLERANCE = 100.0  # times the dual one for reduced costs computed anew: further pivots may mend them


class Candidate(NamedTuple):
    """A variable that may enter: its entry in the pivot row, how far its reduced cost is from zero, and the step that
    takes it there and a tolerance beyond.
    """

    variable: int
    entry: float
    gap: float
    reach: float


class Kernel(KernelBasis):
    """The kernel of one chain, once built: what a `Tableau` can do, for larger LPs."""

    # ---- the dual simplex ----

    def iterate(self, primal: float, dual: float, limit: int) -> bool:
        """Pivot until every basic variable is within its bounds; False when that is not to be had.

        The inverse is computed anew after many exchanges, and before it is believed that there is no other one.
        """
        while (v := self._choose_row(primal)) >= 0:
            if self.pivots >= limit:
                return False
            if self.updates < UPDATES and self._step(v, dual):
                continue
            if self.updates == 0:
                return False
            if not self.renew(self.cuts, dual):
                return False
        return True

    def renew(self, cuts: CutView | None, dual: float) -> bool:
        """Compute the inverse and all values anew; False where the basis is then far from dual feasible."""
        self.refactor(cuts)
        return self.settle(RENEWED_TOLERANCE * dual)

    def _outside_by(self, v: int) -> float:
        """How far a variable is outside its bounds, negative within."""
        return max(self.lo[v] - self.x[v], self.x[v] - self.up[v])

    def _choose_row(self, tolerance: float) -> int:
        """The basic variable that is outside its bounds by the largest square over weight (ties: the first), or −1.

        The compiled path looks at those only whose values have changed.
        """
        best, largest = -1, 0.0
        for v, at in enumerate(self.at):
            if at == IS_BASIC and (outside := self._outside_by(v)) > tolerance:
                merit = outside * outside / self.weight[v]
                if merit > largest:
                    best, largest = v, merit
        return best

    def _step(self, v: int, dual: float) -> bool:
        """Exchange the basic variable v, which is outside its bounds; False where that cannot be done."""
        n, rise = self.p.num_col, self.x[v] < self.lo[v]
        outside = self.lo[v] - self.x[v] if rise else self.x[v] - self.up[v]
        rho = self._solve_row(v)
        alpha: dict[int, float] = {}
        for c in np.flatnonzero(rho).tolist():
            self._subtract_row(alpha, self.krow[c], float(rho[c]))
        if v >= n:
            self._subtract_row(alpha, v - n, -1.0)
        flips: dict[int, float] = {}
        entering, entry = self._choose_column(outside, rise, 0.5 * dual, rho, alpha, flips)
        if flips:
            self._move(self._solve_column(flips), flips, 1.0)
        return entering >= 0 and self._pivot(v, entering, entry, rise, rho, alpha)

    def _candidates(self, rise: bool, tolerance: float, rho: F64, alpha: dict[int, float]) -> list[Candidate]:
        """Variables that can move the row toward its bound."""
        n = self.p.num_col
        logicals = [(n + self.krow[c], float(rho[c])) for c in np.flatnonzero(rho).tolist()]
        found = []
        for v, entry in (*logicals, *alpha.items()):
            ways = RISES if (entry > 0.0) == rise else FALLS
            if abs(entry) > PIVOT_SMALLEST and self.free_to[v] & ways:
                gap = abs(self.d[v])
                found.append(Candidate(v, entry, gap, (gap + tolerance) / abs(entry)))
        return found

    def _near(self, given: list[Candidate], outside: float, tolerance: float) -> int:
        """Bring the candidates of the smallest steps to the front, enough to make the row feasible by flips."""
        near, flips = 0, 0.0
        limit = min(each.reach for each in given)
        while near < len(given) and flips < outside:
            for k in range(near, len(given)):
                v, entry, gap, _ = given[k]
                if not gap > limit * abs(entry):
                    flips += abs(entry) * (self.up[v] - self.lo[v])
                    given[near], given[k] = given[k], given[near]
                    near += 1
            limit = 8.0 * limit + tolerance
        return near

    def _choose_column(
        self,
        outside: float,
        rise: bool,
        tolerance: float,
        rho: F64,
        alpha: dict[int, float],
        flips: dict[int, float],
    ) -> tuple[int, float]:
        """The variable that enters, and its entry, after the bound flips that the ratio test allows; −1 if none."""
        given = self._candidates(rise, tolerance, rho, alpha)
        while given:
            near = left = self._near(given, outside, tolerance)
            while left > 0:
                bound = min(each.reach for each in given[:left])
                best, largest = -1, 0.0
                for k, (_, entry, gap, _) in enumerate(given[:left]):
                    if abs(entry) > largest and gap <= bound * abs(entry):
                        best, largest = k, abs(entry)
                if best < 0:
                    return -1, 0.0  # the reduced costs are no numbers any more
                v, entry, _, _ = given[best]
                width = self.up[v] - self.lo[v]
                if not outside - largest * width > 0.0:
                    return v, entry
                outside -= largest * width
                upwards = self.at[v] == AT_LOWER
                self._scatter(flips, v, width if upwards else -width)
                self.at[v] = AT_UPPER if upwards else AT_LOWER
                self.x[v] = self._bound(v)
                self._set_free(v)
                left -= 1
                given[best], given[left] = given[left], given[best]
            for k in range(near, len(given)):
                given[k - near], given[k] = given[k], given[k - near]
            del given[len(given) - near :]
        return -1, 0.0

    def _move(self, to: F64, work: dict[int, float], step: float) -> None:
        n = self.p.num_col
        for i in np.flatnonzero(to).tolist():
            self.x[self.kcol[i]] += float(to[i]) * step
        for r, value in work.items():
            if self.at[n + r] == IS_BASIC:
                self.x[n + r] += value * step
        self.changed = True

    def _pivot(
        self, leaving: int, entering: int, by_row: float, rise: bool, rho: F64, alpha: dict[int, float]
    ) -> bool:
        """Exchange; False where row and column disagree on the pivot."""
        n = self.p.num_col
        work: dict[int, float] = {}
        self._scatter(work, entering, 1.0)
        col = self._solve_column(work)
        entry = float(col[self.col_pos[leaving]]) if leaving < n else work.get(leaving - n, 0.0)
        agrees = abs(entry - by_row) <= PIVOT_AGREEMENT * (1.0 + abs(by_row))
        if not (agrees and abs(entry) > PIVOT_SMALLEST):
            return False
        bound = self.lo[leaving] if rise else self.up[leaving]
        step = (bound - self.x[leaving]) / entry
        self._move(col, work, step)
        self.x[entering] += step
        self._update_devex_weights(leaving, entering, entry, col, work)
        self._update_reduced_costs(leaving, entering, entry, rho, alpha)
        self.x[leaving] = bound
        self.at[leaving] = AT_LOWER if rise else AT_UPPER
        self.at[entering] = IS_BASIC
        self._set_free(leaving)
        self._set_free(entering)
        out = self.col_pos[leaving] if leaving < n else -1 - (leaving - n)
        into = entering if entering < n else -1 - self.row_pos[entering - n]
        self._exchange(out, into, entry, col, rho)
        self.pivots += 1
        return True

    def _update_devex_weights(
        self, leaving: int, entering: int, entry: float, col: F64, work: dict[int, float]
    ) -> None:
        n = self.p.num_col
        reference = self.weight[leaving] / (entry * entry)
        for i in np.flatnonzero(col).tolist():
            v = self.kcol[i]
            self.weight[v] = max(self.weight[v], float(col[i]) * float(col[i]) * reference)
        for r, value in work.items():
            if self.at[n + r] == IS_BASIC:
                self.weight[n + r] = max(self.weight[n + r], value * value * reference)
        self.weight[entering] = max(reference, 1.0)

    def _update_reduced_costs(
        self, leaving: int, entering: int, entry: float, rho: F64, alpha: dict[int, float]
    ) -> None:
        n = self.p.num_col
        step = self.d[entering] / entry
        if step != 0.0:
            for c in np.flatnonzero(rho).tolist():
                self.d[n + self.krow[c]] -= step * float(rho[c])
            for col, value in alpha.items():
                if self.at[col] != IS_BASIC:
                    self.d[col] -= step * value
        self.d[entering] = 0.0
        self.d[leaving] = step

    # ---- the certificate ----

    def row_dual(self) -> F64:
        """The duals of the base rows, scaled."""
        return np.array(self.row_price)

    def read_columns(self) -> None:
        """Set the values of the columns in `z`."""
        n = self.p.num_col
        self.z[self.p.left] = [self.x[col] for col in self.active]
        for r, col, _, _ in self.steps:
            self.z[col] = self.x[n + r] + self.shift[r]

    def proved(self, cuts: CutView | None, primal: float, dual: float) -> bool:
        """Whether the basis is optimal for the LP itself, after computing all values anew; sets `z` and `dual`."""
        if self.changed:
            self._recompute()
        if any(at != OUTSIDE and self._outside_by(v) > primal for v, at in enumerate(self.at)):
            return False
        self.price()
        nonbasic = [v for v in range(len(self.at)) if self._is_nonbasic(v)]
        if any(self._is_dual_infeasible(v, self.at[v], dual) for v in nonbasic):
            return False
        self.read_columns()
        self._read_duals(cuts)
        return self._certify(cuts)

    def _certify(self, cuts: CutView | None) -> bool:
        """Whether columns and duals satisfy the LP's own rows and columns and give one objective; sets `dual`."""
        p, n, m = self.p, self.p.num_col, self.p.num_row
        z, cost = self.z.tolist(), self.cost.tolist()
        activity, size = [0.0] * m, [0.0] * m
        dual, dual_size, holds = cost[:n], [abs(value) for value in cost[:n]], True
        for col in range(n):
            for r, value in self.whole_column[col]:
                term, priced = value * z[col], value * self.row_price[r]
                activity[r] += term
                size[r] += abs(term)
                dual[col] -= priced
                dual_size[col] += abs(priced)
        primal, bound, terms = 0.0, 0.0, 1.0
        for number in self.live_rows():
            assert cuts is not None
            v = n + m + number
            y, reached, reach = self.d[v], 0.0, 0.0
            slopes = (cuts.slope[self.slot[number]] * p.slope_factor).tolist()
            for col, value in zip([p.theta, *p.outputs.tolist()], [1.0, *slopes], strict=True):
                term = value * z[col]
                reached += term
                reach += abs(term)
                dual[col] -= value * y
                dual_size[col] += abs(value * y)
            value = self.x[v] + self.shift[m + number]
            holds = holds and abs(reached - value) <= RESIDUAL_LARGEST * (1.0 + reach)
            bound += y * value
            terms += abs(y * value)
        for r in range(m):
            equation = self.row_lo[r] == self.row_up[r]
            value = self.row_lo[r] if equation else self.x[n + r] + self.shift[r]
            holds = holds and abs(activity[r] - value) <= RESIDUAL_LARGEST * (1.0 + size[r])
            bound += self.row_price[r] * value
            terms += abs(self.row_price[r] * value)
        for col in range(n):
            moves = p.active_at[col] >= 0
            if moves:
                holds = holds and abs(dual[col] - self.d[col]) <= RESIDUAL_LARGEST * (1.0 + dual_size[col])
            reduced = (self.d[col] if moves else dual[col]) * z[col]
            primal += cost[col] * z[col]
            bound += reduced
            terms += abs(cost[col] * z[col]) + abs(reduced)
        self.dual = np.array(dual)
        return bool(holds and abs(primal - bound) <= RESIDUAL_LARGEST * terms)
