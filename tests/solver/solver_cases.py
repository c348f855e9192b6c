"""Random LPs for the solver's tests: small integers, hence ties and degenerate vertices in plenty.

Every row has a slack on each side at a high cost, so every patch and every incoming state is feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pycobre.solver import (
    BasisBlock,
    Block,
    CutView,
    Engine,
    LpModel,
    LpTemplate,
    PatchPlan,
    SolveCall,
    Target,
)

INF = np.inf


def template_of(cost, lower, upper, row_lower, row_upper, matrix, offset=0.0, col_names=(), row_names=()):
    """A template from a dense matrix."""
    matrix = np.asarray(matrix, float).reshape(len(row_lower), len(cost))
    cols, rows = np.nonzero(matrix.T)
    starts = np.searchsorted(cols, np.arange(len(cost) + 1))
    return LpTemplate(
        cost,
        lower,
        upper,
        row_lower,
        row_upper,
        starts,
        rows,
        matrix.T[cols, rows],
        offset,
        col_names,
        row_names,
    )


@dataclass(frozen=True)
class Case:
    """Arguments of one `Engine.solve` call."""

    model: LpModel
    x: np.ndarray
    values: np.ndarray
    pool: CutView | None

    def solve(self, engine: Engine, start: BasisBlock | None = None, **more: object) -> Block:
        return engine.solve(SolveCall(self.model, self.x, self.values, self.pool, start=start, **more))


def random_case(
    seed: int,
    *,
    rows: int = 6,
    cols: int = 10,
    states: int = 3,
    chains: int = 4,
    openings: int = 5,
    pool_rows: int = 30,
    kinds: tuple[Target, ...] = (Target.RHS, Target.COL_UPPER, Target.COST),
    gains: bool = False,
) -> Case:
    """`gains`: a few columns have no upper bound and a negative cost, so that the logical basis is no start."""
    rng = np.random.default_rng(seed)
    matrix = rng.choice([-1, 0, 0, 1, 2], (rows, cols))
    before = rng.choice([-1, 0, 1], (rows, states))
    dense = np.hstack([matrix, before, np.eye(rows), -np.eye(rows), np.zeros((rows, 1))])
    n = dense.shape[1]
    cost = np.concatenate([rng.integers(0, 4, cols), np.zeros(states), np.full(2 * rows, 20), [1.0]])
    lower = np.concatenate([np.zeros(cols), np.full(states, -INF), np.zeros(2 * rows), [-5.0]])
    upper = np.concatenate([rng.integers(1, 6, cols), np.full(states, INF), np.full(2 * rows + 1, INF)])
    rhs = rng.integers(-3, 8, rows).astype(float)
    kind = rng.integers(0, 3, rows)
    row_lower = np.where(kind == 1, -INF, rhs)
    row_upper = np.where(kind == 2, INF, rhs)
    if gains:
        gaining = np.arange(0, cols, 2)
        cost[gaining], upper[gaining] = -rng.integers(1, 4, gaining.size), INF
        cap = np.zeros(n)
        cap[gaining] = 1.0
        dense = np.vstack([dense, cap])
        row_lower, row_upper = np.append(row_lower, -INF), np.append(row_upper, 7.0)
    inputs = np.arange(cols, cols + states)
    outputs = rng.choice(cols, states, replace=False)
    plan_kind, plan_row, plan_col = [], [], []
    if Target.RHS in kinds:
        for r in range(rows // 2):
            plan_kind.append(Target.RHS), plan_row.append(r), plan_col.append(-1)
    if Target.COL_UPPER in kinds:
        for c in range(0, cols, 3):
            plan_kind.append(Target.COL_UPPER), plan_row.append(-1), plan_col.append(c)
    if Target.COST in kinds:
        for c in range(1, cols, 4):
            plan_kind.append(Target.COST), plan_row.append(-1), plan_col.append(c)
    if Target.COEFFICIENT in kinds:
        for c in range(0, cols, 4):
            plan_kind.append(Target.COEFFICIENT), plan_row.append(c % rows), plan_col.append(c)
    if Target.OFFSET in kinds:
        plan_kind.append(Target.OFFSET), plan_row.append(-1), plan_col.append(-1)
    model = LpModel(
        template_of(cost, lower, upper, row_lower, row_upper, dense),
        inputs,
        outputs,
        PatchPlan(plan_kind, plan_row, plan_col),
        None,
        n - 1,
    )
    values = rng.integers(0, 6, (openings, len(plan_kind))).astype(float)
    pool = None
    if pool_rows:
        slope = rng.integers(-3, 4, (pool_rows, states)).astype(float)
        pool = CutView(rng.integers(-4, 9, pool_rows).astype(float), slope, pool_rows)
    return Case(model, rng.integers(-2, 6, (chains, states)).astype(float), values, pool)


def bits(block: Block) -> bytes:
    """Everything a block says, as bytes."""
    parts = [
        getattr(block, name)
        for name in (
            "objective",
            "gradient",
            "output",
            "theta",
            "iterations",
            "rounds",
            "retries",
            "by_highs",
        )
    ]
    parts += [p for p in (block.primal, block.col_dual, block.row_dual) if p is not None]
    if block.basis is not None:
        parts += list(vars(block.basis).values())
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
