"""Numerical conditioning report: ranges of an LP's data before and after scaling, and what to do about them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.solver.api import F64, LpModel, LpTemplate
from pycobre.solver.prepare import Prepared, prepare

__all__ = ["NumericalReport", "Range", "numerical_report", "report_of"]

WIDE = 1e8  # largest over smallest magnitude of one kind of number beyond which double precision runs short
HUGE = 1e10  # magnitudes beyond which absolute tolerances mean nothing
INFINITE = 1e20  # finite bounds this large were meant to be infinite


@frozen()
class Range:
    """Smallest and largest nonzero magnitude, and where they are; both 0 where there is no nonzero."""

    smallest: float
    largest: float
    smallest_at: str = ""
    largest_at: str = ""

    @property
    def ratio(self) -> float:
        return self.largest / self.smallest if self.smallest else 1.0

    def __str__(self) -> str:
        return f"[{self.smallest:.1e}, {self.largest:.1e}]" if self.smallest else "none"


@frozen()
class NumericalReport:
    """Ranges of a template as given and as solved, with a warning for each that may cost accuracy."""

    matrix: Range
    cost: Range
    bounds: Range
    rhs: Range
    scaled_matrix: Range
    scaled_cost: Range
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"matrix {self.matrix} (scaled {self.scaled_matrix})",
            f"cost {self.cost} (scaled {self.scaled_cost})",
            f"column bounds {self.bounds}",
            f"right-hand sides {self.rhs}",
        ]
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])


def numerical_report(model: LpModel, *, scale: bool = True) -> NumericalReport:
    """Look at a model's numbers before solving; raises `ProblemError` where the model is not sound at all."""
    return report_of(prepare(model, scale))


def report_of(prepared: Prepared) -> NumericalReport:
    """The report on a model that has been made ready for solving."""
    template = prepared.model.template
    column = np.repeat(np.arange(template.num_cols), np.diff(template.starts))

    def entry(e: int) -> str:
        return f"({template.row_name(int(template.rows[e]))}, {template.col_name(int(column[e]))})"

    def col(c: int) -> str:
        return template.col_name(c % max(1, template.num_cols))

    def row(r: int) -> str:
        return template.row_name(r % max(1, template.num_rows))

    matrix = _range(template.values, entry)
    cost = _range(template.cost, col)
    bounds = _range(np.concatenate([template.col_lower, template.col_upper]), col)
    rhs = _range(np.concatenate([template.row_lower, template.row_upper]), row)
    scaled_matrix = _range(prepared.values, entry)
    scaled_cost = _range(prepared.cost, col)
    warnings = []
    for what, found in (("matrix coefficients", scaled_matrix), ("costs", scaled_cost)):
        if found.ratio > WIDE:
            warnings.append(
                f"{what} still span {found.ratio:.0e} after scaling, from {found.smallest_at} "
                f"to {found.largest_at}: measure them in other units, or drop the smallest"
            )
    for what, found in (("column bounds", bounds), ("right-hand sides", rhs)):
        if HUGE < found.largest < INFINITE:
            warnings.append(f"{what} reach {found.largest:.0e} ({found.largest_at}): measure in larger units")
        if found.largest >= INFINITE:
            warnings.append(f"{what} reach {found.largest:.0e} ({found.largest_at}): write inf for no bound")
    warnings += _tiny(template)
    return NumericalReport(matrix, cost, bounds, rhs, scaled_matrix, scaled_cost, tuple(warnings))


def _range(values: F64, name: Callable[[int], str]) -> Range:
    magnitude = np.abs(values)
    used = np.flatnonzero(np.isfinite(magnitude) & (magnitude > 0))
    if not used.size:
        return Range(0.0, 0.0)
    low, high = used[np.argmin(magnitude[used])], used[np.argmax(magnitude[used])]
    return Range(float(magnitude[low]), float(magnitude[high]), name(int(low)), name(int(high)))


def _tiny(template: LpTemplate) -> list[str]:
    """HiGHS ignores coefficients of 1e-9 and less, silently."""
    tiny = int(np.count_nonzero((template.values != 0) & (np.abs(template.values) <= 1e-9)))
    return (
        [f"{tiny} matrix coefficients are 1e-9 or less and may be ignored: scale or drop them"]
        if tiny
        else []
    )
