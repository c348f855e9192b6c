"""LPs to and from HiGHS through highspy, as they are: for a look, a file, or a single solve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError, SolverError
from pycobre.solver.model import LpTemplate

__all__ = ["Solution", "from_highs", "pass_lp", "silent_highs", "solve_lp", "to_highs"]

TOLERANCE = 1e-10


@frozen(eq=False)
class Solution:
    """How a solve ended: "optimal", "infeasible", "unbounded" or HiGHS's own words."""

    status: str
    objective: float
    primal: NDArray[np.float64]


class LpArrays(Protocol):
    """The arrays of an LP; `LpTemplate` and a prepared model have them."""

    @property
    def cost(self) -> F64: ...

    @property
    def col_lower(self) -> F64: ...

    @property
    def col_upper(self) -> F64: ...

    @property
    def row_lower(self) -> F64: ...

    @property
    def row_upper(self) -> F64: ...

    @property
    def starts(self) -> I32: ...

    @property
    def rows(self) -> I32: ...

    @property
    def values(self) -> F64: ...

    @property
    def offset(self) -> float: ...


def pass_lp(highs: Any, lp: LpArrays, col_names: Sequence[str] = (), row_names: Sequence[str] = ()) -> None:
    """Make `lp` the LP of a highspy object; nothing of an earlier one is left."""
    import highspy

    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = lp.cost.size, lp.row_lower.size
    model.col_cost_, model.col_lower_, model.col_upper_ = lp.cost, lp.col_lower, lp.col_upper
    model.row_lower_, model.row_upper_, model.offset_ = lp.row_lower, lp.row_upper, lp.offset
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = lp.starts, lp.rows
    model.a_matrix_.value_ = lp.values
    model.col_names_, model.row_names_ = list(col_names), list(row_names)
    if highs.passModel(model) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refuses the LP: its data are not an LP.")


def to_highs(lp: LpTemplate) -> Any:
    """Return a silent `highspy.Highs` that holds the LP, to solve, inspect or write to a file."""
    highs = silent_highs()
    pass_lp(highs, lp, lp.col_names, lp.row_names)
    return highs


def silent_highs() -> Any:
    """Return a `highspy.Highs` without an LP and with one thread, for `solve_lp` to use again and again."""
    import highspy

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.silent()
    highs.setOptionValue("threads", 1)
    return highs


def from_highs(highs: Any) -> tuple[LpTemplate, str]:
    """Return the LP that a `highspy.Highs` holds, as its author wrote it, and "minimise" or "maximise"."""
    import highspy

    lp = highs.getLp()
    if any(kind != highspy.HighsVarType.kContinuous for kind in lp.integrality_):
        raise ProblemError("LP from highspy: expected continuous columns, got integer ones. Relax them.")
    columns, rows = lp.num_col_, lp.num_row_
    starts = np.array(lp.a_matrix_.start_, np.int32)
    index, values = np.array(lp.a_matrix_.index_, np.int32), np.array(lp.a_matrix_.value_, np.float64)
    if lp.a_matrix_.format_ != highspy.MatrixFormat.kColwise:
        row = np.repeat(np.arange(rows, dtype=np.int32), np.diff(starts[: rows + 1]))
        order = np.lexsort((row, index))
        starts = np.searchsorted(index[order], np.arange(columns + 1)).astype(np.int32)
        index, values = row[order], values[order]
    template = LpTemplate(
        cost=lp.col_cost_,
        col_lower=lp.col_lower_,
        col_upper=lp.col_upper_,
        row_lower=lp.row_lower_,
        row_upper=lp.row_upper_,
        starts=starts[: columns + 1],
        rows=index,
        values=values,
        offset=lp.offset_,
        col_names=_complete(lp.col_names_, "_c", columns),
        row_names=_complete(lp.row_names_, "_r", rows),
    )
    return template, "maximise" if lp.sense_ == highspy.ObjSense.kMaximize else "minimise"


def _complete(names: list[str], prefix: str, count: int) -> tuple[str, ...]:
    """Return the names, with one made up wherever the author gave none."""
    given = [*names, *[""] * (count - len(names))]
    return tuple(name or f"{prefix}{position}" for position, name in enumerate(given))


def solve_lp(lp: LpTemplate, highs: Any = None) -> Solution:
    """Solve one LP from scratch to tight tolerances, with `highs` if one is given."""
    highs = silent_highs() if highs is None else highs
    pass_lp(highs, lp)
    highs.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
    highs.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("allow_unbounded_or_infeasible", False)
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus()).lower()
    primal = np.array(highs.getSolution().col_value, dtype=np.float64)
    return Solution(status, float(highs.getInfo().objective_function_value), primal)
