"""Columns that equations define: found where they may be, taken out, and restored to the last value and dual."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import INF, Case, bits, template_of

from pycobre.solver import (
    CutView,
    LpModel,
    PatchPlan,
    RhsCorrections,
    SolveCall,
    SolverOptions,
    Target,
    create_engine,
    prepare,
)
from pycobre.solver.definitions import Definitions, find_definitions
from pycobre.solver.native import why_not_native

BY_KERNEL = {"tableau_entries": 0, "kernel_rows": 10_000}
BY_HIGHS = {"tableau_entries": 0, "kernel_rows": 0}
needs_native = pytest.mark.skipif(
    why_not_native() is not None, reason=f"no compiled path: {why_not_native()}"
)
COLUMNS = 12  # per reservoir, in this order:
V_IN, V_OUT, TURBINED, SPILLED, SHORT, LAG1, LAG2, INFLOW, LOSS, OVER, UNDER, SHARE = range(COLUMNS)
ROWS = 4  # per reservoir:
BALANCE, INFLOW_IS, LOSS_IS, SHARE_IS = range(ROWS)


def river(seed: int, reservoirs: int, openings: int = 5, chains: int = 3, cuts: int = 20) -> Case:
    """Reservoirs in a line with autoregressive inflows of two lags, corrected where they would be negative.

    Known before the decision: the inflow, a share of it that does not come back (a chain of two equations), and the
    outgoing lags, of which the second is the incoming first. The loss follows the volume at no cost of its own.
    """
    rng = np.random.default_rng(seed)
    n, m = reservoirs * COLUMNS + 3, reservoirs * ROWS + 1
    matrix = np.zeros((m, n))
    cost, lower, upper = np.zeros(n), np.zeros(n), np.full(n, INF)
    right = np.zeros(m)
    terms = np.empty((reservoirs, 2))
    for k in range(reservoirs):
        c, r = k * COLUMNS, k * ROWS
        terms[k] = rng.choice([-0.25, 0.0, 0.5, 0.75], 2)
        matrix[r + BALANCE, [c + V_IN, c + INFLOW, c + SHORT]] = -1.0
        matrix[r + BALANCE, [c + V_OUT, c + TURBINED, c + SPILLED, c + LOSS, c + SHARE]] = 1.0
        if k and rng.random() < 0.7:
            matrix[r + BALANCE, [c - COLUMNS + TURBINED, c - COLUMNS + SPILLED]] = -1.0
        matrix[r + INFLOW_IS, [c + INFLOW, c + LAG1, c + LAG2]] = 1.0, *-terms[k]
        matrix[r + LOSS_IS, [c + LOSS, c + V_OUT, c + OVER, c + UNDER]] = 1.0, -0.1, -1.0, 1.0
        matrix[r + SHARE_IS, [c + SHARE, c + INFLOW]] = 2.0, -0.5
        matrix[m - 1, c + TURBINED] = rng.integers(1, 5) / 2
        for each in (V_IN, LAG1, LAG2, INFLOW, SHARE):
            lower[c + each], upper[c + each] = -INF, INF
        upper[c + V_OUT], upper[c + TURBINED] = rng.integers(20, 60), rng.integers(3, 9)
        lower[c + LOSS], upper[c + LOSS] = -1.5, 0.3 + rng.integers(2, 5)
        cost[[c + TURBINED, c + SPILLED, c + SHORT]] = rng.uniform([0.0, 0.1, 400.0], [0.1, 0.5, 500.0])
        cost[[c + OVER, c + UNDER]] = rng.uniform(20.0, 30.0, 2)
        right[r + LOSS_IS] = rng.integers(-1, 2)
    matrix[m - 1, n - 3 : n - 1] = 1.0
    cost[n - 3 :], upper[n - 3] = [10.0, 80.0, 1.0], reservoirs
    right[m - 1] = 6.0 * reservoirs
    at = np.arange(reservoirs)
    inputs = np.concatenate([at * COLUMNS + each for each in (V_IN, LAG1, LAG2)])
    outputs = np.concatenate([at * COLUMNS + each for each in (V_OUT, INFLOW, LAG1)])
    if seed % 2:  # stretches of states that are decided and known, one or two long
        outputs = rng.permutation(outputs)
    patched = [*(at * ROWS + INFLOW_IS).tolist(), m - 1]
    plan = PatchPlan([Target.RHS] * len(patched), patched, [-1] * len(patched))
    corrections = RhsCorrections(
        limit=np.zeros(reservoirs),
        row=at * ROWS + INFLOW_IS,
        starts=2 * np.arange(reservoirs + 1),
        input=np.column_stack([reservoirs + at, 2 * reservoirs + at]).reshape(-1),
        coef=terms.reshape(-1),
        effect_floor=at,
        effect_row=at * ROWS + INFLOW_IS,
        effect_multiplier=np.ones(reservoirs),
    )
    template = template_of(cost, lower, upper, right, right.copy(), matrix)
    model = LpModel(template, inputs, outputs, plan, corrections, n - 1)
    noise = rng.uniform(-3.0, 6.0, (openings, reservoirs))
    values = np.hstack([noise, rng.uniform(3.0, 9.0, (openings, 1)) * reservoirs])
    slope = -rng.random((cuts, 3 * reservoirs)) * 20.0
    pool = CutView(rng.random(cuts) * 400.0 * reservoirs, slope, cuts)
    x = rng.uniform(0.0, 30.0, (chains, 3 * reservoirs))
    return Case(model, x, values, pool)


def without_definitions(matrix, cost, moving, equation, kept) -> Definitions:
    return find_definitions(matrix, cost, moving, np.zeros_like(equation), kept)


def test_what_is_known_and_what_is_free_leaves_the_lp():
    case = river(1, 3)
    prepared = prepare.prepare(case.model, True)
    steps = list(zip(prepared.defined_row.tolist(), prepared.defined_col.tolist(), strict=True))
    expected = []
    for k in range(3):
        expected += [(k * ROWS + row, k * COLUMNS + col) for row, col in ((1, INFLOW), (2, LOSS), (3, SHARE))]
    assert sorted(steps) == expected
    assert steps.index((1, INFLOW)) < steps.index((3, SHARE)) < steps.index((2, LOSS))  # known ones first
    left = set(prepared.left.tolist())
    assert left == set(prepared.active.tolist()) - {col for _, col in steps}


@pytest.mark.parametrize(
    ("kind", "leaves"), [(Target.RHS, True), (Target.ROW_LOWER, False), (Target.ROW_UPPER, False)]
)
def test_a_row_that_a_patch_may_open_defines_nothing(kind, leaves):
    template = template_of([1.0, 0.0], [0, 0], [9, 9], [3.0], [3.0], [[1.0, 1.0]])
    model = LpModel(template, plan=PatchPlan([kind], [0], [-1]))
    assert (prepare.prepare(model, True).defined_col.tolist() == [1]) == leaves


def test_a_column_stays_where_it_costs_is_handed_on_or_would_fill_the_matrix():
    """One equation per reason; the last has a column that may leave."""
    matrix = np.zeros((4 + 9, 12))
    matrix[0, [0, 1]] = 1.0  # both cost
    matrix[1, [2, 3]] = 1.0  # one is an outgoing state, one costs
    matrix[2, 4:8] = 1.0  # 3 others in 9 rows more
    matrix[4:13, 4:8] = 1.0
    matrix[3, [8, 9]] = 1.0
    right = np.concatenate([np.ones(4), np.full(9, -INF)])
    cost = np.array([1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0.0])
    template = template_of(
        cost, np.zeros(12), np.full(12, 5.0), right, np.where(right == 1.0, 1.0, 50.0), matrix
    )
    prepared = prepare.prepare(LpModel(template, outputs=[2]), True)
    assert prepared.defined_col.tolist() == [9]


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_native), False])
@pytest.mark.parametrize("seed", range(3))
def test_every_number_is_that_of_the_whole_lp(native, seed, monkeypatch):
    """Values, duals and slopes at the same state and opening: with definitions, without them, and by HiGHS."""
    case = river(seed, 12 if native else 4)
    call = SolveCall(case.model, case.x, case.values, case.pool, want_primal=True)
    with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
        ours = engine.solve(call)
    with create_engine(SolverOptions(native=native, **BY_HIGHS)) as engine:
        highs = engine.solve(call)
    with monkeypatch.context() as patched:
        patched.setattr(prepare, "find_definitions", without_definitions)
        with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
            whole = engine.solve(call)
    assert not ours.by_highs.any()
    assert ours.certified.all()
    for other in (highs, whole):
        for name in ("objective", "gradient", "output", "theta", "primal", "col_dual", "row_dual"):
            np.testing.assert_allclose(
                getattr(ours, name), getattr(other, name), rtol=1e-9, atol=1e-8, err_msg=name
            )


@needs_native
def test_slopes_of_lags_are_differences_of_values():
    """The chain rule through inflow, share and binding cuts, against a small step of every incoming lag."""
    case = river(7, 6, openings=3, chains=1)
    step, size = 1e-5, case.x.shape[1]
    x = np.vstack([case.x, case.x + step * np.eye(size), case.x - step * np.eye(size)])
    with create_engine(SolverOptions(**BY_KERNEL)) as engine:
        block = engine.solve(SolveCall(case.model, x, case.values, case.pool))
    values = block.objective
    corrected = case.values[:, :6] + (case.x[0, 6:] * _terms(case)).reshape(2, 6).sum(axis=0) < 0.0
    for j in range(3):
        difference = (values[1 : 1 + size, j] - values[1 + size :, j]) / (2 * step)
        smooth = np.ones(size, np.bool_)
        smooth[6:] = ~np.tile(corrected[j], 2)  # corrections count as constants in the slope
        np.testing.assert_allclose(block.gradient[0, j, smooth], difference[smooth], rtol=1e-5, atol=1e-4)
        assert smooth[6:].any()


def _terms(case: Case) -> np.ndarray:
    corrections = case.model.rhs_corrections
    assert corrections is not None
    return corrections.coef.reshape(-1, 2).T.reshape(-1)


@needs_native
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), reservoirs=st.integers(1, 8))
def test_the_reference_has_the_same_bits(seed, reservoirs):
    compare(seed, reservoirs)


@needs_native
@pytest.mark.slow
def test_a_thousand_systems():
    for seed in range(1000):
        compare(seed, 1 + seed % 7)


def compare(seed: int, reservoirs: int) -> None:
    """The compiled path and the reference: the same bytes, cold and warm; HiGHS: the same objectives."""
    case = river(seed, reservoirs, openings=4, chains=2)
    found = []
    for native in (True, False):
        with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
            cold = case.solve(engine, want_basis=True, want_primal=True)
            warm = case.solve(engine, cold.basis, trial_point=cold.output[:, 0], want_basis=True)
            found.append(bits(cold) + bits(warm))
    assert found[0] == found[1]
    assert not cold.by_highs.any()
    with create_engine(SolverOptions(**BY_HIGHS)) as engine:
        highs = case.solve(engine)
    np.testing.assert_allclose(cold.objective, highs.objective, rtol=1e-9)
    np.testing.assert_allclose(warm.objective, highs.objective, rtol=1e-9)


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_native), False])
@pytest.mark.parametrize("method", [BY_KERNEL, BY_HIGHS, {"tableau_entries": 10**6}])
@pytest.mark.parametrize("seed", [2, 3])
def test_cuts_are_searched_by_what_is_decided(native, method, seed):
    """Whatever a chain and an opening know of the state beforehand: the answer is that with every cut in the LP."""
    case = river(seed, 3, cuts=300)
    prepared = prepare.prepare(case.model, True)
    kinds = {prepare.OF_CHAIN, prepare.OF_OPENING, prepare.DECIDED}
    assert set(prepared.part_kind.tolist()) == kinds
    assert (prepared.part_kind.size > 3) == bool(seed % 2)
    with create_engine(SolverOptions(native=native, **method)) as engine:
        lazy = case.solve(engine)
        full = case.solve(engine, lazy=False)
    np.testing.assert_allclose(lazy.objective, full.objective, rtol=1e-9)
    assert lazy.rounds.any()


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_native), False])
def test_a_state_that_is_known_as_a_whole_needs_no_search(native):
    """No decided component at all: what a cut is worth is known before the LP is solved."""
    template = template_of([1.0, 1.0], [-INF, -9.0], [INF, INF], np.zeros(0), np.zeros(0), np.zeros((0, 2)))
    model = LpModel(template, inputs=[0], outputs=[0], theta_column=1)
    pool = CutView(np.array([1.0, 4.0, 2.0]), np.array([[1.0], [-1.0], [0.5]]), 3)
    x = np.array([[-3.0], [0.0], [5.0]])
    with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
        block = engine.solve(SolveCall(model, x, np.zeros((1, 0)), pool))
    assert block.theta[:, 0].tolist() == [7.0, 4.0, 6.0]
    assert block.gradient[:, 0, 0].tolist() == [0.0, 0.0, 2.0]


@needs_native
def test_a_basis_of_highs_is_a_start():
    """A defined column and its row may both be nonbasic there, or both basic: the chain starts, and is right."""
    case = river(4, 6)
    with create_engine(SolverOptions(**BY_HIGHS)) as engine:
        highs = case.solve(engine, want_basis=True)
    assert highs.basis is not None
    turned = highs.basis.row_status.copy()
    turned[:, INFLOW_IS::ROWS] = 1
    start = type(highs.basis)(highs.basis.known, highs.basis.col_status, turned, *highs.basis.arrays[3:])
    with create_engine(SolverOptions(**BY_KERNEL)) as engine:
        for basis in (highs.basis, start):
            np.testing.assert_allclose(case.solve(engine, basis).objective, highs.objective, rtol=1e-9)


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_native), False])
def test_bounds_of_a_defined_column_hold(native):
    """A known column that leaves its bounds makes the LP infeasible, as it does in HiGHS."""
    from pycobre.errors import SolverError

    template = template_of([1.0, 1.0], [0, 0], [4.0, INF], [2.0, 1.0], [2.0, INF], [[1.0, 0.0], [1.0, 1.0]])
    model = LpModel(template, plan=PatchPlan([Target.RHS], [0], [-1]))
    with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
        block = engine.solve(SolveCall(model, np.zeros((1, 0)), np.array([[3.0], [4.0]]), want_primal=True))
        assert block.objective.tolist() == [[3.0, 4.0]]
        assert block.primal is not None
        assert block.primal[0, :, 0].tolist() == [3.0, 4.0]
        with pytest.raises(SolverError) as error:
            engine.solve(SolveCall(model, np.zeros((1, 0)), np.array([[5.0]])))
    assert error.value.status == "infeasible"
