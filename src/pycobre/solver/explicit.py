"""One solve as a plain LP, in the caller's numbers: for explanations, replays and second opinions."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.errors import OutputError
from pycobre.solver.api import F64, I32, CutView, LpModel, LpTemplate, RhsCorrections
from pycobre.solver.highspy_lp import to_highs
from pycobre.solver.patch import patched

__all__ = ["Conflict", "explicit_lp", "find_conflict", "find_ray", "write_lp"]


def explicit_lp(
    model: LpModel, x: F64, values: F64, cuts: CutView | None = None, slots: I32 | None = None
) -> LpTemplate:
    """The LP of one incoming state and one patch vector, with the cuts `slots` appended."""
    lp = patched(model.template, model.plan, values)
    col_lower, col_upper = lp.col_lower.copy(), lp.col_upper.copy()
    row_lower, row_upper = lp.row_lower.copy(), lp.row_upper.copy()
    x = np.where(x < col_lower[model.inputs], col_lower[model.inputs], x)
    x = np.where(x > col_upper[model.inputs], col_upper[model.inputs], x)
    _correct(model.rhs_corrections, x, row_lower, row_upper)
    col_lower[model.inputs] = col_upper[model.inputs] = x
    lp = replace(
        lp,
        col_lower=col_lower,
        col_upper=col_upper,
        row_lower=row_lower,
        row_upper=row_upper,
        col_names=[lp.col_name(c) for c in range(lp.num_cols)],
        row_names=[lp.row_name(r) for r in range(lp.num_rows)],
    )
    if cuts is None or slots is None or model.theta_column is None:
        return lp
    return _with_cuts(lp, np.array([model.theta_column, *model.outputs.tolist()]), cuts, slots)


def _with_cuts(lp: LpTemplate, columns: NDArray[np.int64], cuts: CutView, slots: I32) -> LpTemplate:
    """Append the rows θ − slope·y ≥ intercept; `columns` are those of θ and y."""
    number, width = slots.size, columns.size
    row = np.concatenate([lp.rows, np.repeat(lp.num_rows + np.arange(number), width)])
    col = np.concatenate([np.repeat(np.arange(lp.num_cols), np.diff(lp.starts)), np.tile(columns, number)])
    terms = np.concatenate([np.ones((number, 1)), -cuts.slope[slots]], axis=1)
    order = np.lexsort((row, col))
    return replace(
        lp,
        row_lower=np.concatenate([lp.row_lower, cuts.intercept[slots]]),
        row_upper=np.concatenate([lp.row_upper, np.full(number, np.inf)]),
        starts=np.searchsorted(col[order], np.arange(lp.num_cols + 1)).astype(np.int32),
        rows=row[order].astype(np.int32),
        values=np.concatenate([lp.values, terms.reshape(-1)])[order],
        row_names=[*lp.row_names, *(f"cut {slot}" for slot in slots.tolist())],
    )


def _correct(corrections: RhsCorrections | None, x: F64, row_lower: F64, row_upper: F64) -> None:
    """Apply the corrections of right-hand sides in place."""
    if corrections is None:
        return
    shortfall = []
    for f, row in enumerate(corrections.row.tolist()):
        reached = row_lower[row] if np.isfinite(row_lower[row]) else row_upper[row]
        for e in range(corrections.starts[f], corrections.starts[f + 1]):
            reached += corrections.coef[e] * x[corrections.input[e]]
        shortfall.append(max(0.0, corrections.limit[f] - reached))
    effects = zip(
        corrections.effect_floor.tolist(),
        corrections.effect_row.tolist(),
        corrections.effect_multiplier.tolist(),
        strict=True,
    )
    for floor, row, multiplier in effects:
        row_lower[row] += multiplier * shortfall[floor]
        row_upper[row] += multiplier * shortfall[floor]


def write_lp(template: LpTemplate, path: str | os.PathLike[str]) -> None:
    """Write an LP for other programs; the ending of `path` chooses the format (.lp or .mps)."""
    if not str(path).endswith((".lp", ".mps")):
        raise OutputError(f"{path}: expected a name that ends in .lp or .mps. Choose one of the two formats.")
    try:  # HiGHS itself crashes on a path that it cannot open
        Path(path).touch()
    except OSError as cause:
        raise OutputError(f"{path}: cannot write: {cause.strerror}. Choose another directory.") from cause
    plain = replace(
        template,
        col_names=[name.replace(" ", "_") for name in template.col_names],
        row_names=[name.replace(" ", "_") for name in template.row_names],
    )
    to_highs(plain).writeModel(str(path))


@frozen()
class Conflict:
    """Rows and column bounds that cannot hold together; `irreducible` when none of them could be left out."""

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    irreducible: bool


def find_conflict(template: LpTemplate) -> Conflict | None:
    """The irreducible infeasible subsystem that HiGHS finds; None where it finds none."""
    highs = to_highs(template)
    highs.setOptionValue("presolve", "off")
    highs.setOptionValue("iis_strategy", 1 + 2 + 4)  # dual ray, else elastic LP; then reduce
    highs.run()
    _, iis = highs.getIis()
    if not iis.valid_ or not (len(iis.row_index_) or len(iis.col_index_)):
        return None
    return Conflict(
        tuple(template.row_name(r) for r in iis.row_index_),
        tuple(
            template.col_name(c) for c, bound in zip(iis.col_index_, iis.col_bound_, strict=True) if bound > 1
        ),
        irreducible=all(status == 1 for status in iis.row_status_ if status != -1),
    )


def find_ray(template: LpTemplate) -> tuple[str, ...]:
    """Columns along which an unbounded LP falls for ever; empty where HiGHS has no ray."""
    highs = to_highs(replace(template, offset=0.0))
    highs.setOptionValue("presolve", "off")
    highs.run()
    _, has_ray, ray = highs.getPrimalRay()
    if has_ray:
        along = np.abs(np.asarray(ray)) > 1e-9
    else:  # HiGHS gives no ray for columns that are in no row at all
        falls = np.where(template.cost < 0, template.col_upper == np.inf, template.col_lower == -np.inf)
        along = (np.diff(template.starts) == 0) & (template.cost != 0) & falls
    return tuple(template.col_name(int(c)) for c in np.flatnonzero(along))
