"""One solve as a plain LP, in the caller's numbers: for explanations, replays and second opinions."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.errors import OutputError
from pycobre.solver.api import F64, I32, LpModel, LpTemplate, RowPool, Target

__all__ = ["Conflict", "explicit_lp", "find_conflict", "find_ray", "to_highs", "write_lp"]


def explicit_lp(
    model: LpModel, x: F64, values: F64, pool: RowPool | None = None, slots: I32 | None = None
) -> LpTemplate:
    """The LP of one incoming state and one patch vector, with the pool rows `slots` appended."""
    template = model.template
    cost, offset = template.cost.copy(), template.offset
    col_lower, col_upper = template.col_lower.copy(), template.col_upper.copy()
    row_lower, row_upper = template.row_lower.copy(), template.row_upper.copy()
    entries = _entries(template)
    plan = model.plan
    for kind, row, col, value in zip(
        plan.kind, plan.row.tolist(), plan.col.tolist(), values.tolist(), strict=True
    ):
        target = Target(int(kind))
        if target is Target.ROW_LOWER or (target is Target.RHS and np.isfinite(template.row_lower[row])):
            row_lower[row] = value
        if target is Target.ROW_UPPER or (target is Target.RHS and np.isfinite(template.row_upper[row])):
            row_upper[row] = value
        if target is Target.COL_LOWER:
            col_lower[col] = value
        elif target is Target.COL_UPPER:
            col_upper[col] = value
        elif target is Target.COST:
            cost[col] = value
        elif target is Target.COEFFICIENT:
            entries[col, row] = value
        elif target is Target.OFFSET:
            offset = value
    x = np.where(x < col_lower[model.inputs], col_lower[model.inputs], x)
    x = np.where(x > col_upper[model.inputs], col_upper[model.inputs], x)
    _apply_floors(model, x, row_lower, row_upper)
    col_lower[model.inputs] = col_upper[model.inputs] = x
    row_names = [template.row_name(r) for r in range(template.num_rows)]
    if pool is not None and slots is not None:
        for at, slot in enumerate(slots.tolist()):
            entries[model.pool_head or 0, template.num_rows + at] = 1.0
            for output, slope in zip(model.outputs.tolist(), pool.slope[slot].tolist(), strict=True):
                entries[output, template.num_rows + at] = -slope
            row_names.append(f"pool row {slot}")
        row_lower = np.concatenate([row_lower, pool.intercept[slots]])
        row_upper = np.concatenate([row_upper, np.full(slots.size, np.inf)])
    places = sorted(entries)
    columns = np.array([col for col, _ in places], np.int32)
    return LpTemplate(
        cost,
        col_lower,
        col_upper,
        row_lower,
        row_upper,
        np.searchsorted(columns, np.arange(template.num_cols + 1)).astype(np.int32),
        np.array([row for _, row in places], np.int32),
        np.array([entries[place] for place in places], np.float64),
        offset,
        [template.col_name(c) for c in range(template.num_cols)],
        row_names,
    )


def _entries(template: LpTemplate) -> dict[tuple[int, int], float]:
    column = np.repeat(np.arange(template.num_cols), np.diff(template.starts))
    return dict(
        zip(zip(column.tolist(), template.rows.tolist(), strict=True), template.values.tolist(), strict=True)
    )


def _apply_floors(model: LpModel, x: F64, row_lower: F64, row_upper: F64) -> None:
    floors = model.floors
    if floors is None:
        return
    shortfall = []
    for f, row in enumerate(floors.row.tolist()):
        reached = row_lower[row] if np.isfinite(row_lower[row]) else row_upper[row]
        for e in range(floors.starts[f], floors.starts[f + 1]):
            reached += floors.coef[e] * x[floors.input[e]]
        shortfall.append(max(0.0, floors.limit[f] - reached))
    effects = zip(
        floors.effect_floor.tolist(),
        floors.effect_row.tolist(),
        floors.effect_multiplier.tolist(),
        strict=True,
    )
    for floor, row, multiplier in effects:
        row_lower[row] += multiplier * shortfall[floor]
        row_upper[row] += multiplier * shortfall[floor]


def to_highs(template: LpTemplate) -> Any:
    """A silent `highspy.Highs` that holds the LP under its own names, with HiGHS's default options."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = template.num_cols, template.num_rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = template.cost, template.col_lower, template.col_upper
    lp.row_lower_, lp.row_upper_, lp.offset_ = template.row_lower, template.row_upper, template.offset
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = template.starts, template.rows
    lp.a_matrix_.value_ = template.values
    highs: Any = highspy._core._Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.passModel(lp)
    for kind, names in (("Col", template.col_names), ("Row", template.row_names)):
        for at, name in enumerate(names):
            getattr(highs, f"pass{kind}Name")(at, name.replace(" ", "_"))
    return highs


def write_lp(template: LpTemplate, path: str | os.PathLike[str]) -> None:
    """Write an LP for other programs; the ending of `path` chooses the format (.lp or .mps)."""
    if not str(path).endswith((".lp", ".mps")):
        raise OutputError(f"{path}: expected a name that ends in .lp or .mps. Choose one of the two formats.")
    try:  # HiGHS itself crashes on a path that it cannot open
        Path(path).touch()
    except OSError as cause:
        raise OutputError(f"{path}: cannot write: {cause.strerror}. Choose another directory.") from cause
    to_highs(template).writeModel(str(path))


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
