"""What can be known to be wrong with an LP before it is solved."""

from __future__ import annotations

import numpy as np

from pycobre.solver.api import LpModel, LpTemplate, PatchPlan, RhsCorrections, Target

__all__ = ["model_findings", "template_findings"]


def template_findings(template: LpTemplate) -> list[str]:
    """Everything wrong with a template by itself, as clauses; empty when it is sound."""
    n, m = template.num_cols, template.num_rows
    found = []
    for name, size in (("col_lower", n), ("col_upper", n), ("row_upper", m), ("starts", n + 1)):
        got = getattr(template, name).size
        if got != size:
            found.append(f"{name} has {got} entries where {size} are expected")
    if template.rows.size != template.values.size:
        found.append(f"the matrix has {template.rows.size} row indices for {template.values.size} values")
    for kind, names, size in (("column", template.col_names, n), ("row", template.row_names, m)):
        if names and len(names) != size:
            found.append(f"there are {len(names)} {kind} names for {size} {kind}s")
        elif len(set(names)) != len(names):
            twice = sorted({name for name in names if list(names).count(name) > 1})
            found.append(f"{kind}s are named twice: {', '.join(twice[:5])}")
    if found:
        return found
    starts = template.starts
    if starts[0] != 0 or np.any(np.diff(starts) < 0) or starts[-1] != template.values.size:
        return ["the starts of the matrix columns are not a rising list from 0 to the number of entries"]
    if template.rows.size and (template.rows.min() < 0 or template.rows.max() >= m):
        return [f"the matrix has a row index outside 0..{m - 1}"]
    column = np.repeat(np.arange(n, dtype=np.int64), np.diff(starts))
    place, number = np.unique(column * max(m, 1) + template.rows, return_counts=True)
    for where in place[number > 1][:5]:
        col, row = divmod(int(where), max(m, 1))
        found.append(f"the entry at ({template.row_name(row)}, {template.col_name(col)}) is given twice")
    found += _non_finite_numbers(template, column)
    return found


def _non_finite_numbers(template: LpTemplate, column: np.ndarray) -> list[str]:
    found = []
    if not np.isfinite(template.offset):
        found.append(f"the objective's constant is {template.offset}")
    for j in np.flatnonzero(~np.isfinite(template.cost))[:5]:
        found.append(f"the cost of {template.col_name(j)} is {template.cost[j]}")
    for e in np.flatnonzero(~np.isfinite(template.values))[:5]:
        where = f"({template.row_name(template.rows[e])}, {template.col_name(int(column[e]))})"
        found.append(f"the coefficient at {where} is {template.values[e]}")
    bounds = (
        ("column", template.col_name, template.col_lower, template.col_upper),
        ("row", template.row_name, template.row_lower, template.row_upper),
    )
    for _, name, lower, upper in bounds:
        bad = np.isnan(lower) | np.isnan(upper) | (lower == np.inf) | (upper == -np.inf) | (lower > upper)
        for i in np.flatnonzero(bad)[:5]:
            found.append(f"the bounds of {name(int(i))} are [{lower[i]}, {upper[i]}]")
    return found


def model_findings(model: LpModel) -> list[str]:
    """Everything wrong with a model: its template, the columns it names, its patches and its corrections."""
    found = template_findings(model.template)
    if found:
        return found
    n = model.template.num_cols
    for name, cols in (("input", model.inputs), ("output", model.outputs)):
        if cols.size and (cols.min() < 0 or cols.max() >= n):
            found.append(f"an {name} column is outside 0..{n - 1}")
        elif np.unique(cols).size != cols.size:
            found.append(f"an {name} column is named twice")
    theta = model.theta_column
    if theta is not None:
        if not 0 <= theta < n:
            found.append(f"the column of theta is {theta}, outside 0..{n - 1}")
        elif theta in model.inputs or theta in model.outputs:
            found.append("the column of theta is also an input or output column")
    if found:
        return found
    found += _plan_findings(model.template, model.plan, set(model.inputs.tolist()))
    if model.rhs_corrections is not None:
        found += _correction_findings(model, model.rhs_corrections)
    return found


def _plan_findings(template: LpTemplate, plan: PatchPlan, inputs: set[int]) -> list[str]:
    if not plan.kind.size == plan.row.size == plan.col.size:
        return [
            f"the patch plan has {plan.kind.size} kinds, {plan.row.size} rows and {plan.col.size} columns"
        ]
    found: list[str] = []
    seen: set[tuple[str, int, int]] = set()
    for kind, row, col in zip(plan.kind.tolist(), plan.row.tolist(), plan.col.tolist(), strict=True):
        if kind not in Target._value2member_map_:
            found.append(f"patch kind {kind} does not exist")
            continue
        target = Target(kind)
        needs_row = target in (Target.RHS, Target.ROW_LOWER, Target.ROW_UPPER, Target.COEFFICIENT)
        needs_col = target in (Target.COL_LOWER, Target.COL_UPPER, Target.COST, Target.COEFFICIENT)
        if needs_row and not 0 <= row < template.num_rows:
            found.append(f"a {target.name} patch names row {row}, outside 0..{template.num_rows - 1}")
            continue
        if needs_col and not 0 <= col < template.num_cols:
            found.append(f"a {target.name} patch names column {col}, outside 0..{template.num_cols - 1}")
            continue
        if target is Target.RHS:
            found += _rhs_findings(template, row, "patch")
        if target in (Target.COL_LOWER, Target.COL_UPPER) and col in inputs:
            found.append(f"a {target.name} patch names the input column {template.col_name(col)}")
        if target is Target.RHS:
            places = [(Target.ROW_LOWER.name, row, -1), (Target.ROW_UPPER.name, row, -1)]
        else:
            places = [(target.name, row if needs_row else -1, col if needs_col else -1)]
        if any(place in seen for place in places):
            found.append(f"a {target.name} patch repeats a place that is patched already")
        seen.update(places)
    return found


def _rhs_findings(template: LpTemplate, row: int, what: str) -> list[str]:
    lower, upper = template.row_lower[row], template.row_upper[row]
    if np.isfinite(lower) and np.isfinite(upper) and lower != upper:
        sides = f"{template.row_name(row)} has two sides, [{lower}, {upper}]"
        return [f"{sides}: a right-hand-side {what} is ambiguous"]
    if not np.isfinite(lower) and not np.isfinite(upper):
        return [f"{template.row_name(row)} has no finite side for a right-hand-side {what}"]
    return []


def _correction_findings(model: LpModel, corrections: RhsCorrections) -> list[str]:
    n, e, m = len(corrections), corrections.effect_floor.size, model.template.num_rows
    sizes_fit = (
        corrections.row.size == n
        and corrections.starts.size == n + 1
        and corrections.input.size == corrections.coef.size
        and corrections.effect_row.size == corrections.effect_multiplier.size == e
    )
    if not sizes_fit or corrections.starts[0] != 0 or corrections.starts[-1] != corrections.coef.size:
        return ["the arrays of the right-hand-side corrections do not fit together"]
    found = []
    for name, index, size in (
        ("row", corrections.row, m),
        ("effect row", corrections.effect_row, m),
        ("input", corrections.input, model.inputs.size),
        ("effect", corrections.effect_floor, n),
    ):
        if index.size and (index.min() < 0 or index.max() >= size):
            found.append(f"the {name} of a right-hand-side correction is outside 0..{size - 1}")
    if not found:
        for row in sorted({*corrections.row.tolist(), *corrections.effect_row.tolist()}):
            found += _rhs_findings(model.template, row, "correction")
    return found
