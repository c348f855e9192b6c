"""A session through highspy: what the pure-Python path solves with.

Apart from `highs`, so that the compiled path, which drives the library itself, need not load the package.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from pycobre.errors import SolverError
from pycobre.solver.api import F64, I8, I32
from pycobre.solver.highs import OptionValue, Status, option_refused
from pycobre.solver.highspy_lp import pass_lp
from pycobre.solver.prepare import Prepared

__all__ = ["HighspySession"]


class HighspySession:
    """A `highspy.Highs` that holds the base rows of one prepared model, and cuts after them."""

    def __init__(self, options: dict[str, OptionValue]) -> None:
        self._highs: Any = highspy._core._Highs()  # without the modelling layer: only the solver
        self._kept: Any = None
        self.options = options
        self.prepared: Prepared | None = None
        self.reject_next = 0  # answers to reject whatever they are: for tests
        self.set_options(options)

    def set_options(self, options: dict[str, OptionValue]) -> None:
        for name, value in options.items():
            if self._highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolverError(option_refused(name, value))

    def load(self, prepared: Prepared) -> None:
        """Pass the whole base LP; nothing of an earlier one is left."""
        pass_lp(self._highs, prepared)
        self.prepared = prepared

    def delete_rows_from(self, first: int) -> None:
        present = self._highs.getNumRow()
        if present > first:
            self._highs.deleteRows(present - first, np.arange(first, present, dtype=np.int32))

    def add_cuts(self, lower: F64, columns: I32, coefficients: F64) -> None:
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
