"""A second, small SDDP on highspy alone: all cuts in the LP, cold starts, no cleverness.

It shares nothing with the package but the problem's data, so that agreement means something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import highspy
import numpy as np

from pycobre.problem import Problem
from pycobre.solver.api import Target


@dataclass
class Trace:
    lower: list[float]
    upper: list[float]


class StageSolver:
    def __init__(self, node, last: bool) -> None:
        self.node, self.last = node, last
        t = node.template
        self.h = highspy.Highs()
        self.h.setOptionValue("output_flag", False)
        # HiGHS keeps the first number of threads that a process asks for, and the engine asks for one.
        self.h.setOptionValue("threads", 1)
        self.h.setOptionValue("primal_feasibility_tolerance", 1e-9)
        self.h.setOptionValue("dual_feasibility_tolerance", 1e-9)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = t.num_cols + 1, t.num_rows
        inf = highspy.kHighsInf
        lp.col_cost_ = np.append(t.cost, 0.0 if last else node.discount)
        lp.col_lower_ = np.append(t.col_lower, 0.0 if last else node.theta_lower)
        lp.col_upper_ = np.append(t.col_upper, 0.0 if last else inf)
        lp.row_lower_, lp.row_upper_ = t.row_lower, t.row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.append(t.starts, t.starts[-1])
        lp.a_matrix_.index_, lp.a_matrix_.value_ = t.rows, t.values
        lp.offset_ = t.offset
        self.h.passModel(lp)

    def solve(self, x: np.ndarray, patch: np.ndarray):
        node, h = self.node, self.h
        rhs: dict[int, float] = {}
        for kind, row, col, value in zip(
            node.noise.plan.kind, node.noise.plan.row, node.noise.plan.col, patch, strict=True
        ):
            if kind == Target.RHS:
                rhs[int(row)] = float(value)
            elif kind == Target.COL_UPPER:
                h.changeColBounds(int(col), h.getLp().col_lower_[int(col)], float(value))
            else:
                assert kind == Target.COL_LOWER
                h.changeColBounds(int(col), float(value), h.getLp().col_upper_[int(col)])
        f = node.rhs_corrections
        if f is not None:
            short = []
            for i in range(len(f)):
                seen = rhs[int(f.row[i])] + sum(
                    f.coef[e] * x[f.input[e]] for e in range(f.starts[i], f.starts[i + 1])
                )
                short.append(max(0.0, f.limit[i] - seen))
            for i, row, m in zip(f.effect_floor, f.effect_row, f.effect_multiplier, strict=True):
                rhs[int(row)] += m * short[i]
        for row, value in rhs.items():
            h.changeRowBounds(row, value, value)
        for col, value in zip(node.state_in, x, strict=True):
            h.changeColBounds(int(col), float(value), float(value))
        h.run()
        if (
            h.getModelStatus() != highspy.HighsModelStatus.kOptimal
        ):  # numerically hard: once more, from nothing
            h.clearSolver()
            h.setOptionValue("primal_feasibility_tolerance", 1e-7)
            h.setOptionValue("dual_feasibility_tolerance", 1e-7)
            h.run()
        if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            h.setOptionValue("solver", "ipm")
            h.run()
        assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal, h.getModelStatus()
        solution = h.getSolution()
        z, d = np.array(solution.col_value), np.array(solution.col_dual)
        value = h.getInfo().objective_function_value
        theta = 0.0 if self.last else z[-1]
        return value, d[node.state_in], z[node.state_out], value - node.discount * theta, z

    def add_cut(self, alpha: float, beta: np.ndarray) -> None:
        index = np.append(self.node.state_out, self.node.template.num_cols).astype(np.int32)
        self.h.addRow(alpha, highspy.kHighsInf, index.size, index, np.append(-beta, 1.0))


def cvar_weights(values: np.ndarray, alpha: float, lam: float) -> np.ndarray:
    p = np.full(values.size, 1.0 / values.size)
    nu, left = np.zeros(values.size), 1.0
    for i in np.argsort(-values, kind="stable"):
        nu[i] = min(p[i] / alpha, left)
        left -= nu[i]
    return (1.0 - lam) * p + lam * nu


def run(
    problem: Problem,
    iterations: int,
    passes: int,
    choose: Callable[[int, int, int], np.ndarray],
    risk: tuple[float, float] | None = None,
) -> Trace:
    """`choose(iteration, scenario, t)` is the patch vector of a forward draw."""
    n = len(problem.nodes)
    solvers = [StageSolver(node, t == n - 1) for t, node in enumerate(problem.nodes)]
    trace = Trace([], [])

    def weigh(values: np.ndarray) -> np.ndarray:
        if risk is None:
            return np.full(values.size, 1.0 / values.size)
        return cvar_weights(values, *risk)

    for iteration in range(1, iterations + 1):
        visited, costs = [], []
        for m in range(passes):
            x, total, factor, path = problem.initial, 0.0, 1.0, []
            for t, solver in enumerate(solvers):
                _, _, x, cost, _ = solver.solve(x, choose(iteration, m, t))
                total += factor * cost
                factor *= problem.nodes[t].discount
                path.append(x)
            visited.append(path)
            costs.append(total)
        for t in range(n - 1, 0, -1):
            cuts = []
            for path in visited:
                x = path[t - 1]
                results = [solvers[t].solve(x, v) for v in problem.nodes[t].noise.values]
                q, g = np.array([r[0] for r in results]), np.array([r[1] for r in results])
                w = weigh(q)
                beta = w @ g
                cuts.append((float(w @ q - beta @ x), beta))
            for alpha, beta in cuts:
                solvers[t - 1].add_cut(alpha, beta)
        q = np.array([solvers[0].solve(problem.initial, v)[0] for v in problem.nodes[0].noise.values])
        trace.lower.append(float(weigh(q) @ q))
        trace.upper.append(float(np.mean(costs)))
    return trace
