"""What stays the same over many solves: an LP, the columns of the state, the places that are patched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen

__all__ = ["I8", "LpModel", "LpTemplate", "PatchPlan", "RhsCorrections", "Target"]

I8 = NDArray[np.int8]


def _to_vectors(made: Any, dtype: DTypeLike, *names: str) -> None:
    """While `made` is constructed: turn these fields into contiguous vectors of one type."""
    own = vars(made)
    for name in names:
        own[name] = np.ascontiguousarray(own[name], dtype=dtype).reshape(-1)


@frozen(eq=False)
class LpTemplate:
    """One LP: minimise `offset + cost·z` with `col_lower ≤ z ≤ col_upper`, `row_lower ≤ A z ≤ row_upper`.

    `A` is column-wise (CSC): the entries of column j are `rows[starts[j]:starts[j+1]]` and `values[…]`, at
    most one per row. Missing bounds are ±inf. Names are optional, and all or none.
    """

    cost: F64
    col_lower: F64
    col_upper: F64
    row_lower: F64
    row_upper: F64
    starts: I32
    rows: I32
    values: F64
    offset: float = 0.0
    col_names: Sequence[str] = ()
    row_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        _to_vectors(self, np.float64, "cost", "col_lower", "col_upper", "row_lower", "row_upper", "values")
        _to_vectors(self, np.int32, "starts", "rows")
        vars(self).update(
            offset=float(self.offset), col_names=tuple(self.col_names), row_names=tuple(self.row_names)
        )

    @property
    def num_cols(self) -> int:
        return self.cost.size

    @property
    def num_rows(self) -> int:
        return self.row_lower.size

    def col_name(self, col: int) -> str:
        return self.col_names[col] if self.col_names else f"column {col}"

    def row_name(self, row: int) -> str:
        return self.row_names[row] if self.row_names else f"row {row}"


class Target(IntEnum):
    """What one number of a patch vector replaces."""

    RHS = 0  #: every finite side of `row` (an equation stays one); refused for rows with two different sides
    ROW_LOWER = 1
    ROW_UPPER = 2
    COL_LOWER = 3
    COL_UPPER = 4
    COST = 5  #: the objective coefficient of `col`
    COEFFICIENT = 6  #: the matrix entry at (`row`, `col`)
    OFFSET = 7  #: the objective's constant


@frozen(eq=False)
class PatchPlan:
    """The places that every solve patches; a solve supplies one value per place, in this order.

    `row` and `col` are read where the kind needs them and are −1 elsewhere. A place is named at most once.
    """

    kind: I8
    row: I32
    col: I32

    def __post_init__(self) -> None:
        _to_vectors(self, np.int8, "kind")
        _to_vectors(self, np.int32, "row", "col")

    @classmethod
    def empty(cls) -> PatchPlan:
        return cls(np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int32))

    def __len__(self) -> int:
        return self.kind.size


@frozen(eq=False)
class RhsCorrections:
    """Corrections of right-hand sides that depend on the incoming state x, applied after the patches.

        shortfall_f = max(0, limit_f − (rhs[row_f] + Σ_e coef_e · x[input_e])),  e in [starts_f, starts_{f+1})
        rhs[effect_row_e] += effect_multiplier_e · shortfall[effect_floor_e]

    `rhs` of a row is its finite side, as patched; every shortfall is computed before any effect is applied.
    The gradient treats the corrections as constants. Rows named here must not be range rows.
    """

    limit: F64
    row: I32
    starts: I32
    input: I32  #: positions in `LpModel.inputs`
    coef: F64
    effect_floor: I32
    effect_row: I32
    effect_multiplier: F64

    def __post_init__(self) -> None:
        _to_vectors(self, np.float64, "limit", "coef", "effect_multiplier")
        _to_vectors(self, np.int32, "row", "starts", "input", "effect_floor", "effect_row")

    def __len__(self) -> int:
        return self.limit.size


@frozen(eq=False)
class LpModel:
    """A template with its moving parts named. Immutable; share one among engines and threads.

    `inputs` are columns that a solve fixes (both bounds) to the incoming state x: their reduced costs are the
    gradient of the optimal value in x. `outputs` are the columns whose values are the outgoing state; one
    may be an input as well. `theta_column` is the column θ of the cuts, None where there are none.
    """

    template: LpTemplate
    inputs: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    outputs: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    plan: PatchPlan = field(default_factory=PatchPlan.empty)
    rhs_corrections: RhsCorrections | None = None
    theta_column: int | None = None

    def __post_init__(self) -> None:
        _to_vectors(self, np.int32, "inputs", "outputs")
