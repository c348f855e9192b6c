"""A node from an LP that exists already: a `highspy.Highs` model, or sparse arrays.

HiGHS's own modelling objects cannot carry noise (their arithmetic refuses what is not a number), so the LP is
written with plain numbers first and the noise is put in its places afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pycobre.problem.expression import Amount, Expression, Number, Operand
from pycobre.problem.stage import Column, Row, Stage
from pycobre.solver.api import LpTemplate
from pycobre.solver.highspy_lp import from_highs

if TYPE_CHECKING:
    import highspy

__all__ = ["LoadedLp", "load_lp"]

Reference: TypeAlias = "str | int | Any"  # a name, a position, or what highspy returned (it has an index)


def load_lp(
    sp: Stage,
    lp: LpTemplate | highspy.Highs,
    *,
    states: Mapping[str, tuple[Reference, Reference]],
    initial: Mapping[str, Number] | None = None,
) -> LoadedLp:
    """Make an LP the content of a node and return a handle for its noise.

    `states` gives the incoming and the outgoing column of each state, `initial` what the first node receives.
    A model of highspy brings its own sense; arrays (`LpTemplate`) are minimised.
    """
    template, sense = (lp, "minimise") if isinstance(lp, LpTemplate) else from_highs(lp)
    if sp.columns or sp.rows:
        raise sp.error("LP", "to be the first thing in the node, got variables before it. Load it first")
    loaded = LoadedLp(sp, template)
    for name, (incoming, outgoing) in states.items():
        value = None if initial is None or name not in initial else float(initial[name])
        sp.states[name] = (value, loaded.position(incoming, "column"), loaded.position(outgoing, "column"))
    for j in range(template.num_cols):
        sp.columns.append(
            Column(template.col_name(j), Amount.of(template.col_lower[j]), Amount.of(template.col_upper[j]))
        )
    terms: list[dict[int, Amount]] = [{} for _ in range(template.num_rows)]
    columns = np.repeat(np.arange(template.num_cols), np.diff(template.starts)).tolist()
    for i, j, value in zip(template.rows.tolist(), columns, template.values.tolist(), strict=True):
        terms[i][j] = Amount.of(value)
    for i in range(template.num_rows):
        low = Amount.of(template.row_lower[i])
        equal = template.row_lower[i] == template.row_upper[i]
        sp.rows.append(
            Row(template.row_name(i), terms[i], low, low if equal else Amount.of(template.row_upper[i]))
        )
    objective = Expression(
        sp, {j: Amount.of(c) for j, c in enumerate(template.cost.tolist()) if c}, Amount.of(template.offset)
    )
    if sense == "maximise":
        sp.maximise(objective)
    else:
        sp.minimise(objective)
    return loaded


class LoadedLp:
    """An LP inside a node. Rows and columns go by name, by position or by what highspy returned for them."""

    def __init__(self, sp: Stage, template: LpTemplate) -> None:
        self._sp = sp
        self._template = template
        self._positions = {
            "column": {template.col_name(j): j for j in range(template.num_cols)},
            "row": {template.row_name(i): i for i in range(template.num_rows)},
        }

    def column(self, column: Reference) -> Expression:
        """Return a column, to use in further rows."""
        return Expression(self._sp, {self.position(column, "column"): Amount.of(1.0)}, Amount.of(0.0))

    def set_rhs(self, row: Reference, value: Operand) -> None:
        """Replace the right-hand side of a row that has one.

        Its sign is that of the row as HiGHS keeps it, not as it was written; `fix` has no such trap.
        """
        i = self.position(row, "row")
        old = self._sp.rows[i]
        amount = self._sp.amount(value, f"right-hand side of row {old.name!r}")
        low, high = self._template.row_lower[i], self._template.row_upper[i]
        if math.isinf(low) and math.isinf(high):
            raise self._sp.error(f"row {old.name!r}", "a right-hand side, got a free row")
        if math.isfinite(low) and math.isfinite(high) and low != high:
            raise self._sp.error(
                f"row {old.name!r}",
                f"one right-hand side, got the range {low} to {high}. Use set_row_bounds",
            )
        self._sp.rows[i] = replace(
            old,
            lower=amount if math.isfinite(low) else old.lower,
            upper=amount if math.isfinite(high) else old.upper,
        )

    def set_row_bounds(self, row: Reference, lower: Operand, upper: Operand) -> None:
        """Replace both sides of a row."""
        i = self.position(row, "row")
        where = f"bounds of row {self._sp.rows[i].name!r}"
        self._sp.rows[i] = replace(
            self._sp.rows[i], lower=self._sp.amount(lower, where), upper=self._sp.amount(upper, where)
        )

    def fix(self, column: Reference, value: Operand) -> None:
        """Fix a column to a value: the way to use noise in rows written with highspy's variables."""
        self.set_lower(column, value)
        self.set_upper(column, value)

    def set_lower(self, column: Reference, value: Operand) -> None:
        """Replace the lower bound of a column."""
        j = self.position(column, "column")
        amount = self._sp.amount(value, f"bounds of column {self._sp.columns[j].name!r}")
        self._sp.columns[j] = replace(self._sp.columns[j], lower=amount)

    def set_upper(self, column: Reference, value: Operand) -> None:
        """Replace the upper bound of a column."""
        j = self.position(column, "column")
        amount = self._sp.amount(value, f"bounds of column {self._sp.columns[j].name!r}")
        self._sp.columns[j] = replace(self._sp.columns[j], upper=amount)

    def set_cost(self, column: Reference, value: Operand) -> None:
        """Replace the objective coefficient of a column."""
        j = self.position(column, "column")
        amount = self._sp.amount(value, f"cost of column {self._sp.columns[j].name!r}")
        objective = self._sp.objective
        self._sp.objective = Expression(self._sp, {**objective.terms, j: amount}, objective.constant)

    def set_coefficient(self, row: Reference, column: Reference, value: Operand) -> None:
        """Replace the coefficient of a column in a row."""
        i, j = self.position(row, "row"), self.position(column, "column")
        old = self._sp.rows[i]
        where = f"coefficient of column {self._sp.columns[j].name!r} in row {old.name!r}"
        self._sp.rows[i] = replace(old, terms={**old.terms, j: self._sp.amount(value, where)})

    def position(self, reference: Reference, what: str) -> int:
        """Return the position of a row or column of the LP."""
        known = self._positions[what]
        if isinstance(reference, str):
            if reference not in known:
                raise self._sp.error(f"{what} {reference!r}", f"one of the LP's {what}s: {', '.join(known)}")
            return known[reference]
        index = int(getattr(reference, "index", reference))
        count = self._template.num_cols if what == "column" else self._template.num_rows
        if not 0 <= index < count:
            raise self._sp.error(f"{what} {index}", f"a position from 0 to {count - 1}")
        return index
