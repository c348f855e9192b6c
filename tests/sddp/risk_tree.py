"""The nested risk of a whole tree as one LP: a second opinion that knows nothing of cuts or weights.

Every vertex of the tree has its cost as an expression z; what follows it is combined by the definition of the
measure, with columns and rows of its own:

    worst case   t       with t ≥ z_k
    CVaR_tail    η + Σ_k p_k s_k / tail       with s_k ≥ z_k − η, s_k ≥ 0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pycobre.problem import ROOT, Problem, patched, solve_lp
from pycobre.sddp import ConvexCombination, CVaR, Expectation, RiskMeasure, WorstCase
from pycobre.solver import LpTemplate

INF = math.inf


@dataclass
class Cost:
    """A constant and coefficients of columns."""

    constant: float = 0.0
    terms: dict[int, float] = field(default_factory=dict)

    def add(self, other: Cost, factor: float = 1.0) -> Cost:
        terms = dict(self.terms)
        for col, value in other.terms.items():
            terms[col] = terms.get(col, 0.0) + factor * value
        return Cost(self.constant + factor * other.constant, terms)


class RiskTree:
    """The LP while it grows."""

    def __init__(self, problem: Problem, risk: RiskMeasure | Mapping[str, RiskMeasure]) -> None:
        self._problem, self._risk = problem, risk
        self._bounds: list[tuple[float, float]] = []
        self._rows: list[tuple[Cost, float, float]] = []

    def value(self, root_risk: RiskMeasure) -> float:
        """The minimised value of the problem."""
        start = [Cost(float(value)) for value in self._problem.initial]
        total = self._combine(root_risk, self._outcomes(ROOT, start))
        entries: list[list[tuple[int, float]]] = [[] for _ in self._bounds]
        for i, (row, _, _) in enumerate(self._rows):
            for col, value in row.terms.items():
                entries[col].append((i, value))
        cost = np.zeros(len(self._bounds))
        for col, value in total.terms.items():
            cost[col] = value
        lp = LpTemplate(
            cost,
            [low for low, _ in self._bounds],
            [high for _, high in self._bounds],
            [low - row.constant for row, low, _ in self._rows],
            [high - row.constant for row, _, high in self._rows],
            np.cumsum([0, *(len(column) for column in entries)]),
            [i for column in entries for i, _ in column],
            [value for column in entries for _, value in column],
            total.constant,
        )
        solved = solve_lp(lp)
        assert solved.status == "optimal"
        return float(solved.objective)

    def _column(self, low: float, high: float) -> int:
        self._bounds.append((low, high))
        return len(self._bounds) - 1

    def _outcomes(self, node: int, state: list[Cost]) -> list[tuple[float, Cost]]:
        """Probability and cost of everything that may follow a node, its end included."""
        found = []
        targets, chances = self._problem.shape.successors(node)
        for child, p in zip(targets.tolist(), chances.tolist(), strict=True):
            for k, q in enumerate(self._problem.nodes[child].noise.probability.tolist()):
                if p * q > 0.0:
                    found.append((p * q, self._vertex(child, k, state)))
        rest = 1.0 - float(chances.sum())
        if found and rest > 1e-9:
            found.append((rest, Cost()))
        return found

    def _vertex(self, index: int, opening: int, state: list[Cost]) -> Cost:
        node = self._problem.nodes[index]
        lp = patched(node.template, node.noise.plan, node.noise.values[opening])
        lower, upper = lp.col_lower.copy(), lp.col_upper.copy()
        only_in = np.setdiff1d(node.state_in, node.state_out)
        lower[only_in], upper[only_in] = -INF, INF
        cols = [self._column(low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]
        for col, value in zip(node.state_in.tolist(), state, strict=True):
            self._rows.append((Cost(0.0, {cols[col]: 1.0}).add(value, -1.0), 0.0, 0.0))
        rows: list[dict[int, float]] = [{} for _ in range(lp.num_rows)]
        column = np.repeat(np.arange(lp.num_cols), np.diff(lp.starts))
        for row, col, value in zip(lp.rows.tolist(), column.tolist(), lp.values.tolist(), strict=True):
            rows[row][cols[col]] = value
        for terms, low, high in zip(rows, lp.row_lower.tolist(), lp.row_upper.tolist(), strict=True):
            self._rows.append((Cost(0.0, terms), low, high))
        cost = Cost(lp.offset, {cols[j]: c for j, c in enumerate(lp.cost.tolist()) if c})
        following = self._outcomes(index, [Cost(0.0, {cols[j]: 1.0}) for j in node.state_out.tolist()])
        if not following:
            return cost
        risk = self._risk.get(node.name, Expectation()) if isinstance(self._risk, Mapping) else self._risk
        return cost.add(self._combine(risk, following), node.discount)

    def _combine(self, measure: RiskMeasure, outcomes: list[tuple[float, Cost]]) -> Cost:
        total = Cost()
        if isinstance(measure, ConvexCombination):
            for share, part in measure.parts:
                total = total.add(self._combine(part, outcomes), share)
        elif isinstance(measure, WorstCase):
            total = Cost(0.0, {self._column(-INF, INF): 1.0})
            for _, cost in outcomes:
                self._rows.append((total.add(cost, -1.0), 0.0, INF))
        elif isinstance(measure, CVaR):
            threshold = total = Cost(0.0, {self._column(-INF, INF): 1.0})
            for p, cost in outcomes:
                excess = Cost(0.0, {self._column(0.0, INF): 1.0})
                self._rows.append((excess.add(cost, -1.0).add(threshold), 0.0, INF))
                total = total.add(excess, p / measure.tail)
        else:
            assert isinstance(measure, Expectation)
            for p, cost in outcomes:
                total = total.add(cost, p)
        return total
