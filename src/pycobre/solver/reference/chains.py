"""The chains of a block, solved through highspy.

It performs the same calls on HiGHS, with the same numbers in the same order, as the compiled path in
`_native/lp.c`, and so gives the same bits; it is the readable statement of what that one does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.solver.api import F64, I8, I32, CutView
from pycobre.solver.highs import OptionValue, Status
from pycobre.solver.job import ChainFailure, Job
from pycobre.solver.prepare import DECIDED, OF_CHAIN, OF_OPENING
from pycobre.solver.recovery import recover
from pycobre.solver.reference.certificate import ATTEMPTS, certified
from pycobre.solver.reference.cuts import add_part, best_cuts, cut_values, lanes_dot, newest_stretch
from pycobre.solver.reference.highspy_session import HighspySession
from pycobre.solver.reference.kernel import Kernel
from pycobre.solver.reference.patch import Patch, read_patch
from pycobre.solver.reference.tableau import AT_LOWER, IS_BASIC, PASSES, Tableau

__all__ = ["PythonWorker"]

CUTS_KEPT = 32  # non-binding cuts beyond these leave the tableau before the next opening
SMALLEST_COEFFICIENT = 1e-9  # HiGHS's small_matrix_value


@frozen(eq=False)
class Statuses:
    """A basis by status: columns, then base rows and the cuts present; binding rows it names but lacks."""

    cols: I8
    rows: I8
    missing: int = 0


@dataclass
class Count:
    """What one opening took."""

    iterations: int = 0
    rounds: int = 0
    retries: int = 0
    by_highs: bool = False
    rejected: int = 0
    certified: bool = True


class PythonWorker:
    """One thread's session. It holds one loaded LP and loads another when a job asks for it."""

    def __init__(self, options: dict[str, OptionValue]) -> None:
        self._session = HighspySession(options)

    def solve(self, job: Job, begin: int, end: int) -> ChainFailure | None:
        """Solve the chains `begin ≤ i < end`; stops at the first that fails."""
        for i in range(begin, end):
            chain = _Chain(self._session, job, i)
            for j in range(job.call.values.shape[1]):
                failure = chain.solve(j)
                if failure is not None:
                    self._session.prepared = None
                    return failure
            if chain.spoiled:
                self._session.prepared = None
        return None

    def close(self) -> None:
        self._session = HighspySession(self._session.options)


class _Chain:
    """One chain at work: its cuts, its patches, and the tableau, kernel or HiGHS's LP in which it is solved."""

    def __init__(self, session: HighspySession, job: Job, i: int) -> None:
        self.session, self.job, self.i = session, job, i
        p, cuts = job.prepared, job.call.cuts
        self.x = job.call.x[i]
        self.present = np.empty(0, np.int32)  # cut slots in the LP, in the order of its rows
        self.spoiled = False  # HiGHS has moved matrix entries: its LP must be loaded again
        self.eligible = np.zeros(0, np.bool_)
        self.of_chain: F64 | None = None  # by cut: its value but for states that are known later
        self.of_opening: F64 | None = None
        if cuts is not None:
            self.eligible = np.ones(cuts.count, np.bool_)
            if cuts.active is not None:
                self.eligible = cuts.active[: cuts.count] != 0
            self._first_rows(cuts)
        # Cuts, which are in few variables, cost less than rows of the LP: all of them may take as much again.
        every = p.num_row + (0 if job.call.lazy else self.present.size)
        small = job.fits_tableau and every * p.active.size <= 2 * job.options.tableau_entries
        medium = job.fits_kernel and (job.call.lazy or self.present.size <= CUTS_KEPT)
        self.own: type[Tableau] | type[Kernel] | None = Tableau if small else Kernel if medium else None
        self.tableau: Tableau | Kernel | None = None
        if self.own is not None:
            self._begin_tableau(self._start_statuses())
        else:
            self._sync()

    # ---- cuts ----

    def _first_rows(self, cuts: CutView) -> None:
        job = self.job
        if not job.call.lazy:
            self._mark(np.flatnonzero(self.eligible).astype(np.int32))
            return
        if job.call.start is not None:
            slots = job.call.start.slots(self._start_index())
            slots = slots[slots < cuts.count]
            self._mark(slots[self.eligible[slots]])
        if job.call.trial_point is not None:
            values = cut_values(cuts, job.call.trial_point[self.i])
            self._mark(best_cuts(values, self.eligible, job.cut_counts[1]))

    def _mark(self, slots: I32) -> None:
        self.present = np.concatenate([self.present, slots])
        self.eligible[slots] = False

    def _violated(self, output: F64, theta: float) -> I32:
        """The cuts that the outgoing state violates, the worst few."""
        job = self.job
        if job.call.cuts is None or not job.call.lazy:
            return np.empty(0, np.int32)
        limit = theta + job.options.pool_tolerance * max(1.0, abs(theta))
        values = self._values(job.call.cuts, output)
        eligible = newest_stretch(values, self.eligible, limit)
        return best_cuts(values, eligible, job.cut_counts[0], above=limit)

    def _values(self, cuts: CutView, output: F64) -> F64:
        """The cuts at an outgoing state; what this chain and this opening know of it is added up once for each."""
        if self.of_chain is None:
            self.of_chain = self._add_parts(cuts.intercept[: cuts.count], cuts, output, OF_CHAIN)
        if self.of_opening is None:
            self.of_opening = self._add_parts(self.of_chain, cuts, output, OF_OPENING)
        return self._add_parts(self.of_opening, cuts, output, DECIDED)

    def _add_parts(self, values: F64, cuts: CutView, output: F64, kind: int) -> F64:
        p = self.job.prepared
        for part in np.flatnonzero(p.part_kind == kind).tolist():
            values = add_part(values, cuts, output, int(p.part_starts[part]), int(p.part_starts[part + 1]))
        return values

    # ---- HiGHS's LP ----

    def _sync(self) -> None:
        """Make HiGHS's LP that of this chain: base rows, incoming state, the cuts present."""
        p, session = self.job.prepared, self.session
        if session.prepared is not p:
            session.load(p)
        session.delete_rows_from(p.num_row)
        bounds = self.x[p.input_at] * p.input_factor[p.input_at]
        session.change_col_bounds(p.input_set, bounds, bounds)
        self._add_to_highs(self.present)

    def _add_to_highs(self, slots: I32) -> None:
        p, cuts = self.job.prepared, self.job.call.cuts
        if cuts is None or not slots.size:
            return
        columns = np.concatenate([[p.theta], p.outputs]).astype(np.int32)
        coefficients = np.ones((slots.size, columns.size))
        coefficients[:, 1:] = cuts.slope[slots] * p.slope_factor
        self.session.add_cuts(cuts.intercept[slots] * p.cut_factor, columns, coefficients)

    def _patch_highs(self, patch: Patch) -> None:
        p, session = self.job.prepared, self.session
        session.change_row_bounds(p.row_set, patch.row_lower, patch.row_upper)
        session.change_col_bounds(p.col_set, patch.col_lower, patch.col_upper)
        session.change_costs(p.cost_set, patch.costs)
        for row, col, value in zip(
            p.coef_row.tolist(), p.coef_col.tolist(), patch.coefficients.tolist(), strict=True
        ):
            session.change_coefficient(row, col, value)
            # HiGHS drops entries this small and appends them again later, at another place in the column.
            self.spoiled |= abs(value) <= SMALLEST_COEFFICIENT
        if p.offset_from >= 0:
            session.change_offset(patch.offset)

    def _reset_highs(self, known: Statuses | None) -> None:
        """Forget what HiGHS remembers, then start from the basis at hand, where there is one."""
        self.session.clear()
        if known is None or not known.rows.size:
            return
        cols, theta = known.cols.copy(), self.job.prepared.theta
        # A binding row that is no longer active leaves one basic variable too many; θ can stand in for one.
        if known.missing > 1 or (known.missing == 1 and cols[theta] != IS_BASIC):
            return
        if known.missing == 1:
            cols[theta] = AT_LOWER
        if not self.session.set_basis(cols, known.rows):
            self.session.clear()

    # ---- bases ----

    def _start_index(self) -> int:
        assert self.job.call.start is not None
        return self.i if len(self.job.call.start) > 1 else 0

    def _start_statuses(self) -> Statuses | None:
        start = self.job.call.start
        if start is None or not start.known[self._start_index()]:
            return None
        at = self._start_index()
        binding = np.isin(self.present, start.slots(at))
        rows = np.concatenate([start.row_status[at], np.where(binding, AT_LOWER, IS_BASIC).astype(np.int8)])
        return Statuses(start.col_status[at], rows, start.slots(at).size - int(binding.sum()))

    def _begin_tableau(self, known: Statuses | None) -> None:
        assert self.own is not None
        self.tableau = self.own(self.job.prepared, self.x)
        wanted = None if known is None else np.concatenate([known.cols, known.rows])
        self.tableau.build(self.job.call.cuts, self.present.tolist(), wanted)

    def _keep_basis(self, known: Statuses) -> None:
        parts, base = self.job.basis, self.job.prepared.num_row
        assert parts is not None
        parts.col_status[self.i] = known.cols
        parts.row_status[self.i] = known.rows[:base]
        parts.slots[self.i] = np.sort(self.present[known.rows[base:] != IS_BASIC])
        parts.counts[self.i] = parts.slots[self.i].size

    # ---- one opening ----

    def solve(self, j: int) -> ChainFailure | None:
        job = self.job
        self.of_opening = None
        patch = read_patch(
            job.prepared, self.x, job.call.values[self.i if job.call.values.shape[0] > 1 else 0, j]
        )
        count = Count()
        if self.tableau is not None and self._solve_by_tableau(self.tableau, j, patch, count):
            return None
        return self._solve_by_highs(j, patch, count)

    def _solve_by_tableau(self, tableau: Tableau | Kernel, j: int, patch: Patch, count: Count) -> bool:
        job, p = self.job, self.job.prepared
        primal, dual = job.options.primal_tolerance, job.options.dual_tolerance
        limit = min(50 + 2 * (p.num_row + tableau.cols), job.options.iteration_limit)
        tableau.pivots = 0
        self._thin_out(tableau)
        if not tableau.patch(patch, dual):
            return False
        rebuilt = 0
        while True:
            feasible = tableau.iterate(primal, dual, limit)
            count.iterations = tableau.pivots
            if not feasible:
                return False
            tableau.read_columns()
            found = self._violated(*self._read_state(tableau.z, patch))
            if found.size:
                self._mark(found)
                for slot in found.tolist():
                    assert job.call.cuts is not None
                    tableau.add_row(job.call.cuts, slot)
                count.rounds += 1
                continue
            if self._proved(tableau, primal, dual):
                break
            # The tableau has drifted, or bounds have: build it anew, a few times at most.
            if rebuilt == PASSES:
                return False
            rebuilt += 1
            if not tableau.renew(job.call.cuts, dual):
                return False
        output, theta = self._read_state(tableau.z, patch)
        objective = float(lanes_dot(tableau.cost[None], tableau.z)[0]) + patch.offset
        z = tableau.z[: p.num_col]
        self._write(j, count, objective, theta, output, z, tableau.dual, tableau.row_dual())
        if j == 0 and job.basis is not None:
            self._keep_basis(Statuses(*tableau.statuses()))
        return True

    def _proved(self, tableau: Tableau | Kernel, primal: float, dual: float) -> bool:
        if self.session.reject_next > 0 and isinstance(tableau, Kernel):  # a test asks for it
            self.session.reject_next -= 1
            return False
        return tableau.proved(self.job.call.cuts, primal, dual)

    def _thin_out(self, tableau: Tableau | Kernel) -> None:
        """Non-binding cuts beyond the kept number leave, the oldest first."""
        spare = self.present.size - CUTS_KEPT
        if spare <= 0 or not self.job.call.lazy:
            return
        for number in tableau.live_rows():
            if spare > 0 and not tableau.is_binding(number):
                self.eligible[tableau.slot[number]] = True
                tableau.drop_row(number)
                spare -= 1
        self.present = np.array([slot for slot in tableau.slot if slot >= 0], np.int32)

    def _begin_highs(self, j: int, patch: Patch) -> None:
        if self.own is not None:
            self._sync()
        self._patch_highs(patch)
        if self.tableau is not None:
            self._reset_highs(Statuses(*self.tableau.statuses()))
        elif j == 0:
            self._reset_highs(self._start_statuses())

    def _solve_by_highs(self, j: int, patch: Patch, count: Count) -> ChainFailure | None:
        job, p, session = self.job, self.job.prepared, self.session
        count.by_highs = True
        self._begin_highs(j, patch)
        while True:
            status = session.run()
            count.iterations += session.iterations()
            if status is not Status.OPTIMAL:
                recovered = recover(session, session.options, status)
                count.retries += len(recovered.steps)
                count.iterations += session.iterations()
                if recovered.status is not Status.OPTIMAL:
                    return ChainFailure(self.i, j, recovered.status, recovered.steps, self.present)
            values, col_dual, row_dual = session.solution()
            output, theta = self._read_state(values, patch)
            found = self._violated(output, theta)
            if not found.size:
                if self._accept((values, col_dual, row_dual), patch, count):
                    break
                session.clear()
                continue
            self._mark(found)
            self._add_to_highs(found)
            count.rounds += 1
        self._write(j, count, session.objective(), theta, output, values, col_dual, row_dual[: p.num_row])
        if self.own is not None or (j == 0 and job.basis is not None):
            known = Statuses(*session.basis())
            if self.own is not None:
                self._begin_tableau(known)
            if j == 0 and job.basis is not None:
                self._keep_basis(known)
        return None

    def _accept(self, solution: tuple[F64, F64, F64], patch: Patch, count: Count) -> bool:
        """Whether HiGHS's answer is certified; after the last attempt it is taken as it is, and counted."""
        call, options = self.job.call, self.job.options
        count.certified = certified(
            self.job.prepared,
            self.x,
            patch,
            call.cuts,
            self.present,
            solution,
            self.session.objective(),
            (options.primal_tolerance, options.dual_tolerance),
        )
        if self.session.reject_next > 0:  # a test asks for it
            self.session.reject_next -= 1
            count.certified = False
        if not count.certified:
            count.rejected += 1
        return count.certified or count.rejected > ATTEMPTS

    # ---- results ----

    def _read_state(self, z: F64, patch: Patch) -> tuple[F64, float]:
        """The outgoing state, projected into its bounds, and θ, from scaled column values."""
        p = self.job.prepared
        output = z[p.outputs] * p.output_factor
        lower, upper = patch.output_lower, patch.output_upper
        output = np.where(output < lower, lower, np.where(output > upper, upper, output)) + 0.0
        return output, float((z[p.theta] + 0.0) * p.theta_factor) if p.theta >= 0 else 0.0

    def _write(
        self,
        j: int,
        count: Count,
        objective: float,
        theta: float,
        output: F64,
        z: F64,
        col_dual: F64,
        row_dual: F64,
    ) -> None:
        p, block, i = self.job.prepared, self.job.block, self.i
        inverse_cost = 1.0 / p.cost_scale
        # Zeros lose their sign (+ 0.0): it depends on which zeros a tableau skips.
        block.objective[i, j] = objective * inverse_cost
        block.gradient[i, j] = (col_dual[p.inputs] + 0.0) * p.gradient_factor
        block.output[i, j] = output
        block.theta[i, j] = theta
        block.by_highs[i, j] = count.by_highs
        block.rejected[i, j], block.certified[i, j] = count.rejected, count.certified
        block.iterations[i, j], block.rounds[i, j], block.retries[i, j] = (
            count.iterations,
            count.rounds,
            count.retries,
        )
        if block.primal is not None and block.col_dual is not None and block.row_dual is not None:
            block.primal[i, j] = (z + 0.0) * p.col_scale
            block.col_dual[i, j] = (col_dual + 0.0) * (inverse_cost / p.col_scale)
            block.row_dual[i, j] = (row_dual + 0.0) * (p.row_scale * inverse_cost)
