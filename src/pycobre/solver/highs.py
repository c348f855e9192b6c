"""HiGHS as this package uses it: options that make a solve a pure function, and a session through highspy.

A `Session` is one loaded LP. The retry ladder (`ladder.py`) and the chains of the pure-Python path
(`chains.py`) are written against it; the compiled path offers the same few verbs on its own handle.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol

import highspy
import numpy as np

from pycobre.errors import SolverError
from pycobre.solver.api import F64, I8, I32, SolverOptions
from pycobre.solver.prepare import Prepared

__all__ = ["HighspySession", "OptionValue", "Session", "Status", "highs_options", "option_refused"]

OptionValue = bool | int | float | str


class Status(Enum):
    """How a run ended, in the words used in messages."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNBOUNDED_OR_INFEASIBLE = "unbounded or infeasible"
    ITERATION_LIMIT = "iteration limit reached"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, highs_status: int) -> Status:
        """From the number of HiGHS's model status."""
        return _STATUS.get(highs_status, cls.UNKNOWN)


_STATUS = {
    7: Status.OPTIMAL,
    8: Status.INFEASIBLE,
    9: Status.UNBOUNDED_OR_INFEASIBLE,
    10: Status.UNBOUNDED,
    14: Status.ITERATION_LIMIT,
}


def highs_options(options: SolverOptions) -> dict[str, OptionValue]:
    """The options of every solve: measured to be fast, and without anything that remembers or races."""
    return {
        "output_flag": False,
        "solver": "simplex",
        "simplex_strategy": 1,
        "presolve": "off",
        "parallel": "off",
        "threads": 1,
        "simplex_scale_strategy": 0,
        "simplex_dual_edge_weight_strategy": 1,
        "simplex_price_strategy": 1,
        "dual_simplex_cost_perturbation_multiplier": 0.0,
        "no_unnecessary_rebuild_refactor": False,
        "primal_feasibility_tolerance": options.primal_tolerance,
        "dual_feasibility_tolerance": options.dual_tolerance,
        "simplex_iteration_limit": options.iteration_limit,
        "ipm_iteration_limit": 1000,
    }


def option_refused(name: str, value: OptionValue) -> str:
    return (
        f"HiGHS option {name}: the installed HiGHS refuses {value!r}. Install a version that pycobre names."
    )


class Session(Protocol):
    """One loaded LP, as the ladder sees it."""

    def set_options(self, options: dict[str, OptionValue]) -> None: ...

    def clear(self) -> None:
        """Forget basis, factors, weights and everything else that a run leaves behind; keep the LP."""

    def run(self) -> Status: ...

    def keep_basis(self) -> bool:
        """Remember the current basis; False where there is none."""

    def put_basis(self) -> None:
        """Start the next run from the remembered basis."""


class HighspySession:
    """A `highspy.Highs` that holds the base rows of one prepared model, and pool rows after them."""

    def __init__(self, options: dict[str, OptionValue]) -> None:
        self._highs: Any = highspy._core._Highs()  # without the modelling layer: only the solver
        self._kept: Any = None
        self.options = options
        self.prepared: Prepared | None = None
        self.set_options(options)

    def set_options(self, options: dict[str, OptionValue]) -> None:
        for name, value in options.items():
            if self._highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolverError(option_refused(name, value))

    def load(self, prepared: Prepared) -> None:
        """Pass the whole base LP; nothing of an earlier one is left."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = prepared.num_col, prepared.num_row
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = prepared.cost, prepared.col_lower, prepared.col_upper
        lp.row_lower_, lp.row_upper_ = prepared.row_lower, prepared.row_upper
        lp.offset_ = prepared.offset
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = prepared.starts, prepared.rows
        lp.a_matrix_.value_ = prepared.values
        if self._highs.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refuses the LP: its data are not an LP.")
        self.prepared = prepared

    def delete_rows_from(self, first: int) -> None:
        present = self._highs.getNumRow()
        if present > first:
            self._highs.deleteRows(present - first, np.arange(first, present, dtype=np.int32))

    def add_pool_rows(self, lower: F64, columns: I32, coefficients: F64) -> None:
        """Append rows `coefficients[i]·z[columns] ≥ lower[i]`."""
        n, width = coefficients.shape
        starts = np.arange(0, n * width, width, dtype=np.int32)
        self._highs.addRows(
            n, lower, np.full(n, np.inf), n * width, starts, np.tile(columns, n), coefficients.reshape(-1)
        )

    def change_row_bounds(self, rows: I32, lower: F64, upper: F64) -> None:
        if rows.size:
            self._highs.changeRowsBounds(rows.size, rows, lower, upper)

    def change_col_bounds(self, cols: I32, lower: F64, upper: F64) -> None:
        if cols.size:
            self._highs.changeColsBounds(cols.size, cols, lower, upper)

    def change_costs(self, cols: I32, costs: F64) -> None:
        if cols.size:
            self._highs.changeColsCost(cols.size, cols, costs)

    def change_coefficient(self, row: int, col: int, value: float) -> None:
        self._highs.changeCoeff(row, col, value)

    def change_offset(self, offset: float) -> None:
        self._highs.changeObjectiveOffset(offset)

    def set_basis(self, col_status: I8, row_status: I8) -> bool:
        basis = highspy.HighsBasis()
        basis.col_status = [_BASIS_STATUS[s] for s in col_status]
        basis.row_status = [_BASIS_STATUS[s] for s in row_status]
        return bool(self._highs.setBasis(basis) == highspy.HighsStatus.kOk)

    def basis(self) -> tuple[I8, I8]:
        basis = self._highs.getBasis()
        return (
            np.array([int(s) for s in basis.col_status], np.int8),
            np.array([int(s) for s in basis.row_status], np.int8),
        )

    def clear(self) -> None:
        self._highs.clearSolver()

    def run(self) -> Status:
        self._highs.run()
        return Status.of(int(self._highs.getModelStatus()))

    def keep_basis(self) -> bool:
        self._kept = self.basis() if self._highs.getBasis().valid else None
        return self._kept is not None

    def put_basis(self) -> None:
        self.set_basis(*self._kept)

    def iterations(self) -> int:
        return int(self._highs.getInfo().simplex_iteration_count)

    def objective(self) -> float:
        return float(self._highs.getInfo().objective_function_value)

    def solution(self) -> tuple[F64, F64, F64]:
        """Column values, column duals, row duals."""
        solution = self._highs.getSolution()
        return np.array(solution.col_value), np.array(solution.col_dual), np.array(solution.row_dual)


_BASIS_STATUS = [
    highspy.HighsBasisStatus.kLower,
    highspy.HighsBasisStatus.kBasic,
    highspy.HighsBasisStatus.kUpper,
    highspy.HighsBasisStatus.kZero,
    highspy.HighsBasisStatus.kNonbasic,
]
