"""What can be known to be wrong with one node by looking at its arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.solver.api import LpModel, LpTemplate, Target
from pycobre.solver.check import model_findings

if TYPE_CHECKING:
    from pycobre.problem.api import Node, Noise

__all__ = ["PROBABILITY_TOLERANCE", "node_findings"]

PROBABILITY_TOLERANCE = 1e-9
"""How far a sum of probabilities may be from one: rounding of written decimals, not a missing branch."""

FEASIBILITY_TOLERANCE = 1e-7
"""How far, relative to its size, a row may miss its bounds before it counts as impossible."""


def node_findings(node: Node, states: int) -> Iterator[str]:
    """Yield what is wrong with the node; numbers are looked at once the arrays fit together."""
    if not 0.0 < node.discount <= 1.0:
        yield f"discount: expected more than 0 and at most 1, got {node.discount}."
    if not node.template.num_cols:
        yield "columns: expected at least one, got none. Add a variable or a state."
    for what, columns in (("state_in", node.state_in), ("state_out", node.state_out)):
        if len(columns) != states:
            yield f"{what}: expected one column for each of the {states} states, got {len(columns)}."
    found = model_findings(
        LpModel(node.template, node.state_in, node.state_out, node.noise.plan, node.rhs_corrections)
    )
    for clause in found:
        yield f"{clause}."
    yield from _probabilities(node.noise.probability)
    sizes = list(_sizes(node.noise))
    yield from sizes
    if found or sizes or not node.noise.openings:
        return
    numbers = list(_noise_is_finite(node))
    yield from numbers
    if not numbers:
        yield from _crossings(node)
        yield from _impossible_rows(node)


def _sizes(noise: Noise) -> Iterator[str]:
    for what, table, width in (
        ("values", noise.values, len(noise.plan)),
        ("outcomes", noise.outcomes, len(noise.names)),
    ):
        if table.shape != (noise.openings, width):
            got = " × ".join(str(extent) for extent in table.shape)
            yield f"noise {what}: expected {noise.openings} openings × {width}, got {got}."


def _noise_is_finite(node: Node) -> Iterator[str]:
    """Find noise that is not a number; only bounds may be infinite."""
    plan, values = node.noise.plan, node.noise.values
    bounds = np.isin(plan.kind, [Target.COL_LOWER, Target.COL_UPPER, Target.ROW_LOWER, Target.ROW_UPPER])
    wrong = np.isnan(values) | (np.isinf(values) & ~bounds)
    for opening, place in _first_openings(wrong):
        where = describe(node.template, int(plan.kind[place]), int(plan.row[place]), int(plan.col[place]))
        yield (
            f"noise in {where}, opening {opening}: expected a finite number, got {values[opening, place]}."
        )


def describe(lp: LpTemplate, kind: int, row: int, col: int) -> str:
    """Say in words which place of the LP a patch writes to."""
    match Target(kind):
        case Target.RHS:
            return f"the right-hand side of row {lp.row_name(row)!r}"
        case Target.ROW_LOWER:
            return f"the lower side of row {lp.row_name(row)!r}"
        case Target.ROW_UPPER:
            return f"the upper side of row {lp.row_name(row)!r}"
        case Target.COL_LOWER:
            return f"the lower bound of column {lp.col_name(col)!r}"
        case Target.COL_UPPER:
            return f"the upper bound of column {lp.col_name(col)!r}"
        case Target.COST:
            return f"the cost of column {lp.col_name(col)!r}"
        case Target.COEFFICIENT:
            return f"the coefficient of column {lp.col_name(col)!r} in row {lp.row_name(row)!r}"
        case Target.OFFSET:
            return "the objective constant"


def _probabilities(probability: NDArray[np.float64]) -> Iterator[str]:
    if not len(probability):
        yield "noise: expected at least one opening, got none."
    elif not (np.isfinite(probability) & (probability >= 0.0)).all():
        worst = probability[~(np.isfinite(probability) & (probability >= 0.0))][0]
        yield f"noise: expected probabilities from 0 to 1, got {worst}."
    elif abs(probability.sum() - 1.0) > PROBABILITY_TOLERANCE:
        yield (
            f"noise: expected the probabilities of the openings to sum to 1, got {probability.sum():.12g}. "
            "Add what is missing, or scale them."
        )


@frozen(eq=False)
class _Sides:
    """The bounds of every row (or column) in every opening, and which of them the noise touches."""

    low: NDArray[np.float64]  # [opening, row]
    high: NDArray[np.float64]
    noisy: NDArray[np.bool_]

    @classmethod
    def of(cls, node: Node, *, rows: bool) -> _Sides:
        lp, plan, values = node.template, node.noise.plan, node.noise.values
        given = (lp.row_lower, lp.row_upper) if rows else (lp.col_lower, lp.col_upper)
        where = plan.row if rows else plan.col
        kinds = (Target.ROW_LOWER, Target.ROW_UPPER) if rows else (Target.COL_LOWER, Target.COL_UPPER)
        noisy = np.zeros(len(given[0]), dtype=np.bool_)
        sides = []
        for side, kind in zip(given, kinds, strict=True):
            table = np.repeat(side[None, :], len(values), axis=0)
            places = plan.kind == kind
            if rows:
                sided = np.flatnonzero(plan.kind == Target.RHS)
                places[sided[np.isfinite(side[plan.row[sided]])]] = True
            table[:, where[places]] = values[:, places]
            noisy[where[places]] = True
            sides.append(table)
        return cls(sides[0], sides[1], noisy)

    def opening(self, k: int, position: int) -> str:
        """Say which opening, where it matters."""
        return f", opening {k}" if self.noisy[position] else ""


def _first_openings(wrong: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield (opening, position) of the first opening in which each position is wrong."""
    for position in np.flatnonzero(wrong.any(axis=0)).tolist():
        yield int(np.argmax(wrong[:, position])), position


def _crossings(node: Node) -> Iterator[str]:
    """Find openings whose bounds leave no room: the lower above the upper."""
    lp = node.template
    for what, name, rows in (("column", lp.col_name, False), ("row", lp.row_name, True)):
        sides = _Sides.of(node, rows=rows)
        wrong = (sides.low > sides.high) | (sides.low == np.inf) | (sides.high == -np.inf)
        for k, position in _first_openings(wrong & sides.noisy):
            yield (
                f"bounds of {what} {name(position)!r}, opening {k}: expected the lower not above the upper, "
                f"got {sides.low[k, position]} to {sides.high[k, position]}."
            )


def _impossible_rows(node: Node) -> Iterator[str]:
    """Find rows that no values within the columns' bounds satisfy, whatever the incoming state is.

    Columns may take any value that they may take in some opening, and rows with random coefficients or
    floors are left out: this finds the evident only.
    """
    lp, plan = node.template, node.noise.plan
    columns = _Sides.of(node, rows=False)
    low, high = columns.low.min(axis=0), columns.high.max(axis=0)
    low[node.state_in], high[node.state_in] = -np.inf, np.inf
    column = np.repeat(np.arange(lp.num_cols), np.diff(lp.starts))
    used = lp.values != 0.0
    values, row, column = lp.values[used], lp.rows[used], column[used]
    least = np.bincount(row, np.where(values > 0, low[column], high[column]) * values, lp.num_rows)
    most = np.bincount(row, np.where(values > 0, high[column], low[column]) * values, lp.num_rows)
    judged = np.ones(lp.num_rows, dtype=np.bool_)
    judged[plan.row[plan.kind == Target.COEFFICIENT]] = False
    if node.rhs_corrections is not None:
        judged[node.rhs_corrections.effect_row] = False
    rows = _Sides.of(node, rows=True)
    for k, i in _first_openings(judged & (least > rows.high + _slack(rows.high))):
        yield (
            f"row {lp.row_name(i)!r}{rows.opening(k, i)}: expected at most {rows.high[k, i]}, got at least "
            f"{least[i]} whatever is decided. Relax the row or the bounds of its columns."
        )
    for k, i in _first_openings(judged & (most < rows.low - _slack(rows.low))):
        yield (
            f"row {lp.row_name(i)!r}{rows.opening(k, i)}: expected at least {rows.low[k, i]}, got at most "
            f"{most[i]} whatever is decided. Relax the row or the bounds of its columns."
        )


def _slack(side: NDArray[np.float64]) -> NDArray[np.float64]:
    return FEASIBILITY_TOLERANCE * np.maximum(1.0, np.where(np.isfinite(side), np.abs(side), 0.0))
