"""Columns that an equation defines: found once per model, and taken out of the LP that the basis kernel works on.

An equation row r with a column e says  e = (b − Σ_k A_rk z_k) / A_re.  Put into every other row, it leaves an LP
without the column, in which row r only keeps e within its bounds: its logical *is* e, but for the constant. Where e
is basic, which such columns nearly always are, the basis kernel has one row less, and so have all rows of its inverse
one entry less. Two kinds of columns are taken out:

- **Known columns**: of an equation whose other columns are all fixed or known (an incoming state is fixed). They are
  functions of the incoming state and of the opening alone, whatever is decided: the inflow of a stage, the outgoing
  lags of an autoregressive process. Cut rows lose their entries too; what these add is part of the right-hand side.
- **Columns that cost nothing**, are no outgoing state and give little fill-in: an evaporation that follows a volume.

The steps are done one after the other, each on the matrix that the earlier ones left, and undone in reverse. Nothing
is lost: the solver restores values, reduced costs, duals and statuses of the whole LP, and proves them there.
"""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen

__all__ = ["Definitions", "find_definitions"]

SMALLEST_PIVOT = 1e-3  # of a scaled matrix, also relative to the other entries of the equation
MOST_FILL = 8  # entries that one column may add to the other rows


@frozen(eq=False)
class Definitions:
    """The steps in order, and the matrix (column-wise) and columns that they leave.

    In that matrix the row of a step holds −A_rk / A_re: its activity is the value of the column, but for a constant.
    Step d changed row `effect_row[e]` by `effect_value[e]` times its column, e in [`starts[d]`, `starts[d + 1]`).
    """

    row: I32
    col: I32
    pivot: F64
    starts: I32
    effect_row: I32
    effect_value: F64
    left_starts: I32
    left_rows: I32
    left_values: F64
    left: I32  #: columns that can move, ascending


def find_definitions(
    matrix: tuple[I32, I32, F64],
    cost: F64,
    moving: NDArray[np.bool_],
    equation: NDArray[np.bool_],
    kept: NDArray[np.bool_],
) -> Definitions:
    """The definitions of a scaled LP (`matrix`: starts, rows, values) whose columns `moving` are not fixed.

    `equation` marks rows that are equations under every patch, `kept` columns that may only leave when known.
    """
    elimination = _Elimination(matrix, moving)
    elimination.take_known(np.flatnonzero(equation).tolist())
    elimination.take_free(np.flatnonzero(equation).tolist(), (cost == 0.0) & ~kept)
    return elimination.result(cost.size)


class _Elimination:
    """The matrix by row and by column while columns leave it."""

    def __init__(self, matrix: tuple[I32, I32, F64], moving: NDArray[np.bool_]) -> None:
        starts, rows, values = matrix
        self.by_col: dict[int, dict[int, float]] = {}
        self.by_row: dict[int, dict[int, float]] = {}
        for col in np.flatnonzero(moving).tolist():
            span = slice(starts[col], starts[col + 1])
            entries = zip(rows[span].tolist(), values[span].tolist(), strict=True)
            self.by_col[col] = {r: value for r, value in entries if value != 0.0}
            for r, value in self.by_col[col].items():
                self.by_row.setdefault(r, {})[col] = value
        self.steps: list[tuple[int, int, float, list[tuple[int, float]]]] = []
        self.used: set[int] = set()

    def take_known(self, equations: list[int]) -> None:
        """Equations with one column left, again and again."""
        waiting, equation = deque(equations), set(equations)
        while waiting:
            r = waiting.popleft()
            entries = self.by_row.get(r, {})
            if r in self.used or len(entries) != 1:
                continue
            [(col, pivot)] = entries.items()
            if abs(pivot) >= SMALLEST_PIVOT:
                touched = [row for row in self.by_col[col] if row != r and row in equation]
                self._take(r, col)
                waiting.extend(touched)

    def take_free(self, equations: list[int], may: NDArray[np.bool_]) -> None:
        """Pairs of an equation and a column, the one first that adds the least to other rows (ties: the first)."""
        waiting: list[tuple[int, int, int]] = []
        for r in equations:
            for col in self.by_row.get(r, {}):
                self._offer(waiting, r, col, may)
        while waiting:
            fill, r, col = heapq.heappop(waiting)
            if r in self.used or col not in self.by_row[r]:
                continue
            if self._fill(r, col) > fill or not self._is_sound(r, col):  # after the steps since
                self._offer(waiting, r, col, may)
            else:
                self._take(r, col)

    def _fill(self, r: int, col: int) -> int:
        return (len(self.by_col[col]) - 1) * (len(self.by_row[r]) - 1)

    def _offer(self, waiting: list[tuple[int, int, int]], r: int, col: int, may: NDArray[np.bool_]) -> None:
        if may[col] and r not in self.used and self._fill(r, col) <= MOST_FILL and self._is_sound(r, col):
            heapq.heappush(waiting, (self._fill(r, col), r, col))

    def _is_sound(self, r: int, col: int) -> bool:
        entries = self.by_row[r]
        return abs(entries[col]) >= max(SMALLEST_PIVOT, 0.1 * max(abs(value) for value in entries.values()))

    def _take(self, r: int, col: int) -> None:
        column, row = self.by_col.pop(col), self.by_row[r]
        pivot = column.pop(r)
        del row[col]
        self.used.add(r)
        effects = sorted(column.items())
        self.steps.append((r, col, pivot, effects))
        for other in row:
            row[other] = self.by_col[other][r] = -(row[other] / pivot)
        for j, value in effects:
            del self.by_row[j][col]
            for other, share in row.items():
                entry = self.by_row[j].get(other, 0.0) + value * share
                self.by_row[j][other] = self.by_col[other][j] = entry

    def result(self, columns: int) -> Definitions:
        steps = self.steps
        counts = [len(effects) for _, _, _, effects in steps]
        entries = [sorted(self.by_col.get(col, {}).items()) for col in range(columns)]
        return Definitions(
            row=np.array([r for r, _, _, _ in steps], np.int32),
            col=np.array([col for _, col, _, _ in steps], np.int32),
            pivot=np.array([pivot for _, _, pivot, _ in steps], np.float64),
            starts=_starts(counts),
            effect_row=np.array([j for step in steps for j, _ in step[3]], np.int32),
            effect_value=np.array([value for step in steps for _, value in step[3]], np.float64),
            left_starts=_starts([len(each) for each in entries]),
            left_rows=np.array([r for each in entries for r, _ in each], np.int32),
            left_values=np.array([value for each in entries for _, value in each], np.float64),
            left=np.array(sorted(self.by_col), np.int32),
        )


def _starts(counts: list[int]) -> I32:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32)
