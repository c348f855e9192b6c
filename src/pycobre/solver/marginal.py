"""How the solution of an LP answers one more unit of a row: which variables move, by how much, at what cost.

At an optimal basis B the basic variables are B⁻¹b, so one more unit of row i moves them by B⁻¹eᵢ, and the row's dual
is the cost of that move. Where the vertex is degenerate the row has several duals; this is the one of the basis.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import SolverError
from pycobre.solver.api import CutView
from pycobre.solver.explicit import explicit_lp
from pycobre.solver.highspy_lp import TOLERANCE, pass_lp, silent_highs
from pycobre.solver.model import LpModel, LpTemplate

__all__ = ["Marginal", "marginal", "stage_lp"]

NOTHING = 1e-9
ROUNDS = 50


@frozen(eq=False)
class Marginal:
    """An optimal solution, and what one more unit of one row changes in it."""

    objective: float
    primal: F64
    row_dual: F64
    reduced_cost: F64
    col_basic: NDArray[np.bool_]
    row_basic: NDArray[np.bool_]
    response: F64  #: of every variable to one more unit of the row


def marginal(lp: LpTemplate, row: int) -> Marginal:
    """Solve an LP and the response to one more unit on the right-hand side of `row`."""
    highs = silent_highs()
    pass_lp(highs, lp)
    highs.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
    highs.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
    highs.setOptionValue("presolve", "off")
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus()).lower()
    if status != "optimal":
        raise SolverError(f"LP: expected an optimal solution, got {status}.", status=status)
    solution = highs.getSolution()
    _, basic = highs.getBasicVariables()
    unit = np.zeros(lp.num_rows)
    unit[row] = 1.0
    _, moved = highs.getBasisSolve(unit)
    response = np.zeros(lp.num_cols)
    col_basic, row_basic = np.zeros(lp.num_cols, np.bool_), np.zeros(lp.num_rows, np.bool_)
    for place, variable in enumerate(np.asarray(basic).tolist()):
        if variable >= 0:
            col_basic[variable] = True
            response[variable] = moved[place]
        else:
            row_basic[-variable - 1] = True
    response[np.abs(response) < NOTHING] = 0.0
    return Marginal(
        objective=float(highs.getInfo().objective_function_value),
        primal=np.array(solution.col_value, dtype=np.float64),
        row_dual=np.array(solution.row_dual, dtype=np.float64),
        reduced_cost=np.array(solution.col_dual, dtype=np.float64),
        col_basic=col_basic,
        row_basic=row_basic,
        response=response,
    )


def stage_lp(model: LpModel, x: F64, values: F64, cuts: CutView | None, outgoing: F64) -> LpTemplate:
    """The LP of one incoming state and patch vector, with the cuts that matter for its solution.

    `outgoing` is where the search for them begins: the outgoing state of an earlier solution.
    """
    if cuts is None or model.theta_column is None or not cuts.count:
        return explicit_lp(model, x, values)
    active = np.ones(cuts.count, np.bool_) if cuts.active is None else cuts.active[: cuts.count] != 0
    intercept, slope = cuts.intercept[: cuts.count], cuts.slope[: cuts.count]
    chosen = np.zeros(cuts.count, np.bool_)
    state = outgoing
    for _ in range(ROUNDS):
        height = np.where(active, intercept + slope @ state, -np.inf)
        top = float(height.max(initial=-np.inf))
        near = active & (height >= top - 1e-7 * max(1.0, abs(top)))
        if not (near & ~chosen).any():
            break
        chosen |= near
        lp = explicit_lp(model, x, values, cuts, np.flatnonzero(chosen).astype(np.int32))
        state = _solved(lp)[model.outputs]
    return explicit_lp(model, x, values, cuts, np.flatnonzero(chosen).astype(np.int32))


def _solved(lp: LpTemplate) -> F64:
    highs = silent_highs()
    pass_lp(highs, replace(lp, col_names=(), row_names=()))
    highs.run()
    return np.array(highs.getSolution().col_value, dtype=np.float64)
