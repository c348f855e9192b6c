"""From an `LpModel` to what an engine executes: checked once, scaled once, and patches as a small programme.

Every opening replaces the same places, so the places are sorted into one list per call of the solver (row
bounds, column bounds, costs, single coefficients) here, and an opening only fills numbers in.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.solver.api import F64, I8, I32, LpModel, RhsCorrections, Target
from pycobre.solver.check import model_findings
from pycobre.solver.definitions import find_definitions
from pycobre.solver.scale import find_scale, no_scale

__all__ = ["Prepared", "prepare"]

LOWER, UPPER = 1, 2  # sides of a row or column that a patch writes
OF_CHAIN, OF_OPENING, DECIDED = 0, 1, 2  # who knows an outgoing state


@frozen(eq=False)
class Prepared:
    """A scaled model and its patch programme; immutable and shared by all threads of an engine.

    Patch p of a row bound writes the value at `row_from[p]` of the patch vector to the sides `row_sides[p]`
    of position `row_at[p]` in `row_set`, in the caller's numbers; the whole set is then multiplied by
    `row_set_factor`. Column bounds alike. The names and the order of the arrays are those of
    `_native/lp_model.h`.
    """

    # the scaled template and its multipliers
    cost: F64
    col_lower: F64
    col_upper: F64
    row_lower: F64
    row_upper: F64
    starts: I32
    rows: I32
    values: F64
    row_scale: F64
    col_scale: F64
    # patches of row bounds, column bounds, costs and coefficients
    row_set: I32
    row_set_lower: F64
    row_set_upper: F64
    row_set_factor: F64
    row_from: I32
    row_at: I32
    row_sides: I8
    col_set: I32
    col_set_lower: F64
    col_set_upper: F64
    col_set_factor: F64
    col_from: I32
    col_at: I32
    col_sides: I8
    cost_set: I32
    cost_from: I32
    cost_factor: F64
    coef_row: I32
    coef_col: I32
    coef_from: I32
    coef_factor: F64
    # incoming state: columns in x order; the same ascending, with their positions in x
    inputs: I32
    input_set: I32
    input_at: I32
    input_factor: F64  #: from x to scaled bounds, in x order
    gradient_factor: F64  #: from scaled reduced costs to the gradient
    # outgoing state: columns, factors from scaled values, bounds to project into, and where those are patched
    outputs: I32
    output_factor: F64
    output_lower: F64
    output_upper: F64
    output_col_at: I32  #: position in col_set, −1 = not patched
    output_input_at: I32  #: position in x, −1 = not an input
    slope_factor: F64  #: from a cut's slope to the scaled coefficient, the sign included
    # corrections of right-hand sides (the limit of one is a floor), in the caller's numbers; rows as positions
    # in row_set
    floor_limit: F64
    floor_at: I32
    floor_starts: I32
    floor_input: I32
    floor_coef: F64
    effect_floor: I32
    effect_at: I32
    effect_multiplier: F64
    # columns that a tableau holds: all but the inputs and those whose bounds are equal and never patched
    active: I32
    active_at: I32  #: position in `active` of every column, −1 = fixed
    # the LP that the basis kernel works on: columns that equations define are taken out (`Definitions`)
    defined_row: I32
    defined_col: I32
    defined_pivot: F64
    defined_starts: I32
    defined_effect_row: I32
    defined_effect_value: F64
    left_starts: I32
    left_rows: I32
    left_values: F64
    left: I32
    left_at: I32  #: position in `left` of every column, −1 = fixed or defined
    # the outgoing state in stretches of one kind: known to a chain, known to an opening, or decided
    part_kind: I8
    part_starts: I32
    # numbers
    num_col: int
    num_row: int
    offset_from: int  #: −1 = the offset is not patched
    theta: int  #: column θ, −1 = none
    offset: float
    cost_scale: float
    theta_factor: float  #: from scaled θ to θ
    cut_factor: float  #: from an intercept to the scaled right-hand side
    model: LpModel

    def project(self, x: F64) -> F64:
        """Incoming states within the bounds of their columns."""
        lower, upper = self._input_bounds
        if lower is None or upper is None:
            return x
        return np.where(x < lower, lower, np.where(x > upper, upper, x))

    @cached_property
    def _input_bounds(self) -> tuple[F64 | None, F64 | None]:
        template = self.model.template
        lower, upper = template.col_lower[self.inputs], template.col_upper[self.inputs]
        if np.all(np.isneginf(lower)) and np.all(np.isposinf(upper)):
            return None, None
        return lower, upper

    @cached_property
    def native(self) -> Any:
        """This model for the compiled path."""
        from pycobre._native import lp

        values = [getattr(self, f.name) for f in fields(self)][:-1]
        arrays = tuple(value for value in values if isinstance(value, np.ndarray))
        return lp.Model(arrays, *values[len(arrays) :])


def _parts(fixed: NDArray[np.bool_], defined: NDArray[np.bool_]) -> tuple[I8, I32]:
    """The kinds and starts of stretches of outputs; a defined output is known, since others stay in the LP."""
    kind = np.where(fixed, OF_CHAIN, np.where(defined, OF_OPENING, DECIDED)).astype(np.int8)
    first = np.flatnonzero(np.diff(kind, prepend=-1))
    return kind[first], np.append(first, kind.size).astype(np.int32)


def _no_corrections() -> RhsCorrections:
    none, index = np.empty(0), np.empty(0, np.int32)
    return RhsCorrections(none, index, np.zeros(1, np.int32), index, none, index, index, none)


def _position(where: I32, of: I32) -> I32:
    """The position in `where` (ascending) of each of `of`, −1 for those that are not there."""
    if not where.size:
        return np.full(of.size, -1, np.int32)
    at = np.minimum(np.searchsorted(where, of), where.size - 1)
    return np.where(where[at] == of, at, -1).astype(np.int32)


def prepare(model: LpModel, scaled: bool) -> Prepared:
    """Check, scale and sort; raises `ProblemError` with every finding."""
    findings = model_findings(model)
    if findings:
        raise ProblemError("the LP cannot be solved as it is: " + "; ".join(findings) + ".")
    template, plan, inputs, outputs = model.template, model.plan, model.inputs, model.outputs
    scale = find_scale(template, model.theta_column) if scaled else no_scale(template)
    column = np.repeat(np.arange(template.num_cols), np.diff(template.starts))
    corrections = model.rhs_corrections if model.rhs_corrections is not None else _no_corrections()

    def of(*kinds: Target) -> I32:
        return np.flatnonzero(np.isin(plan.kind, kinds)).astype(np.int32)

    row_from = of(Target.RHS, Target.ROW_LOWER, Target.ROW_UPPER)
    row_set = np.unique(np.concatenate([plan.row[row_from], corrections.row, corrections.effect_row])).astype(
        np.int32
    )
    finite = LOWER * np.isfinite(template.row_lower) + UPPER * np.isfinite(template.row_upper)
    row_kind = plan.kind[row_from]
    one_side = np.where(row_kind == Target.ROW_LOWER, LOWER, UPPER)
    col_from = of(Target.COL_LOWER, Target.COL_UPPER)
    col_set = np.unique(plan.col[col_from]).astype(np.int32)
    cost_from = of(Target.COST)
    cost_from = cost_from[np.argsort(plan.col[cost_from])]
    coef_from = of(Target.COEFFICIENT)
    offset_from = of(Target.OFFSET)
    input_at = np.argsort(inputs, kind="stable").astype(np.int32)
    fixed = template.col_lower == template.col_upper
    fixed[col_set] = False
    fixed[inputs] = True
    active = np.flatnonzero(~fixed).astype(np.int32)
    input_order = _position(inputs[input_at], outputs)
    theta = -1 if model.theta_column is None else model.theta_column
    theta_factor = 1.0 if theta < 0 else float(scale.col[theta])
    cost = template.cost * scale.col * scale.cost
    values = template.values * scale.row[template.rows] * scale.col[column]
    equation = (finite == LOWER + UPPER) & (template.row_lower == template.row_upper)
    equation[plan.row[row_from][row_kind != Target.RHS]] = False
    kept = np.zeros(template.num_cols, np.bool_)
    kept[outputs] = kept[plan.col[cost_from]] = kept[theta if theta >= 0 else slice(0, 0)] = True
    if coef_from.size:
        equation[:] = False  # such models are not for the kernel
    defined = find_definitions((template.starts, template.rows, values), cost, ~fixed, equation, kept)
    part_kind, part_starts = _parts(fixed[outputs], np.isin(outputs, defined.col))
    return Prepared(
        cost=cost,
        col_lower=template.col_lower / scale.col,
        col_upper=template.col_upper / scale.col,
        row_lower=template.row_lower * scale.row,
        row_upper=template.row_upper * scale.row,
        starts=template.starts,
        rows=template.rows,
        values=values,
        row_scale=scale.row,
        col_scale=scale.col,
        row_set=row_set,
        row_set_lower=template.row_lower[row_set],
        row_set_upper=template.row_upper[row_set],
        row_set_factor=scale.row[row_set],
        row_from=row_from,
        row_at=_position(row_set, plan.row[row_from]),
        row_sides=np.where(row_kind == Target.RHS, finite[plan.row[row_from]], one_side).astype(np.int8),
        col_set=col_set,
        col_set_lower=template.col_lower[col_set],
        col_set_upper=template.col_upper[col_set],
        col_set_factor=1.0 / scale.col[col_set],
        col_from=col_from,
        col_at=_position(col_set, plan.col[col_from]),
        col_sides=np.where(plan.kind[col_from] == Target.COL_LOWER, LOWER, UPPER).astype(np.int8),
        cost_set=plan.col[cost_from],
        cost_from=cost_from,
        cost_factor=scale.col[plan.col[cost_from]] * scale.cost,
        coef_row=plan.row[coef_from],
        coef_col=plan.col[coef_from],
        coef_from=coef_from,
        coef_factor=scale.row[plan.row[coef_from]] * scale.col[plan.col[coef_from]],
        inputs=inputs,
        input_set=inputs[input_at],
        input_at=input_at,
        input_factor=1.0 / scale.col[inputs],
        gradient_factor=1.0 / (scale.cost * scale.col[inputs]),
        outputs=outputs,
        output_factor=scale.col[outputs],
        output_lower=template.col_lower[outputs],
        output_upper=template.col_upper[outputs],
        output_col_at=_position(col_set, outputs),
        output_input_at=np.where(input_order >= 0, input_at[input_order], -1).astype(np.int32)
        if inputs.size
        else np.full(outputs.size, -1, np.int32),
        slope_factor=-scale.col[outputs] / theta_factor,
        floor_limit=corrections.limit,
        floor_at=_position(row_set, corrections.row),
        floor_starts=corrections.starts,
        floor_input=corrections.input,
        floor_coef=corrections.coef,
        effect_floor=corrections.effect_floor,
        effect_at=_position(row_set, corrections.effect_row),
        effect_multiplier=corrections.effect_multiplier,
        active=active,
        active_at=_position(active, np.arange(template.num_cols, dtype=np.int32)),
        defined_row=defined.row,
        defined_col=defined.col,
        defined_pivot=defined.pivot,
        defined_starts=defined.starts,
        defined_effect_row=defined.effect_row,
        defined_effect_value=defined.effect_value,
        left_starts=defined.left_starts,
        left_rows=defined.left_rows,
        left_values=defined.left_values,
        left=defined.left,
        left_at=_position(defined.left, np.arange(template.num_cols, dtype=np.int32)),
        part_kind=part_kind,
        part_starts=part_starts,
        num_col=template.num_cols,
        num_row=template.num_rows,
        offset_from=int(offset_from[0]) if offset_from.size else -1,
        theta=theta,
        offset=template.offset * scale.cost,
        cost_scale=scale.cost,
        theta_factor=theta_factor,
        cut_factor=1.0 / theta_factor,
        model=model,
    )
