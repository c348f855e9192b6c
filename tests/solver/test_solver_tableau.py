"""The dense tableau: what it solves, what it hands over, and that it notices when it has drifted."""

from dataclasses import replace

import numpy as np
import pytest
from solver_cases import bits, random_case, template_of

from pycobre.solver import CutView, LpModel, PatchPlan, SolveCall, SolverOptions, Target, create_engine
from pycobre.solver.native import why_not_native
from pycobre.solver.prepare import prepare
from pycobre.solver.reference.patch import read_patch
from pycobre.solver.reference.tableau import IS_BASIC, Tableau

TOLERANCE = 1e-9


def fresh(case, i=0, j=0):
    prepared = prepare(case.model, True)
    tableau = Tableau(prepared, case.x[i])
    tableau.build(None, [], None)
    assert tableau.patch(read_patch(prepared, case.x[i], case.values[j]), TOLERANCE)
    return tableau


@pytest.mark.parametrize("seed", range(10))
def test_the_tableau_stays_the_inverse_of_its_basis(seed):
    """After any number of pivots x_B = T x_N holds for the LP's own matrix [A −I]."""
    case = random_case(seed, rows=8, cols=12, pool_rows=0)
    tableau = fresh(case)
    assert tableau.iterate(TOLERANCE, TOLERANCE, 500)
    p = tableau.p
    matrix = np.zeros((p.num_row, p.num_col + p.num_row))
    column = np.repeat(np.arange(p.num_col), np.diff(p.starts))
    matrix[p.rows, column] = p.values
    matrix[:, p.num_col :] = -np.eye(p.num_row)
    basis, others = matrix[:, tableau.basic], matrix[:, tableau.nonbasic]
    np.testing.assert_allclose(tableau.t[:, : tableau.cols], -np.linalg.solve(basis, others), atol=1e-9)
    cost = np.concatenate([tableau.cost[: p.num_col], np.zeros(p.num_row)])
    reduced = cost[tableau.nonbasic] + cost[tableau.basic] @ tableau.t[:, : tableau.cols]
    np.testing.assert_allclose(tableau.d[: tableau.cols], reduced, atol=1e-9)
    assert tableau.proved(None, TOLERANCE, TOLERANCE)


def test_drift_is_noticed_and_mended_by_building_anew():
    case = random_case(4, rows=8, cols=12, pool_rows=0)
    tableau = fresh(case)
    assert tableau.iterate(TOLERANCE, TOLERANCE, 500)
    before = tableau.statuses()
    tableau.t[0] *= 1.0 + 1e-5
    tableau.moved = True
    assert not tableau.proved(None, TOLERANCE, TOLERANCE)
    tableau.refactor(None)
    assert tableau.settle(TOLERANCE)
    assert tableau.iterate(TOLERANCE, TOLERANCE, 500)
    assert tableau.proved(None, TOLERANCE, TOLERANCE)
    for was, now in zip(before, tableau.statuses(), strict=True):
        np.testing.assert_array_equal(was == IS_BASIC, now == IS_BASIC)


def test_a_wrong_dual_is_noticed():
    case = random_case(4, rows=8, cols=12, pool_rows=0)
    tableau = fresh(case)
    assert tableau.iterate(TOLERANCE, TOLERANCE, 500)
    tableau.d[: tableau.cols] *= 1.0 + 1e-5
    assert not tableau.proved(None, TOLERANCE, TOLERANCE)


@pytest.mark.parametrize("native", [True, False])
def test_a_start_that_is_not_dual_feasible_goes_through_highs_once(native):
    if native and why_not_native() is not None:
        pytest.skip("no compiled path")
    case = random_case(2, kinds=(Target.RHS,), gains=True)
    with create_engine(SolverOptions(native=native)) as engine:
        block = case.solve(engine, want_basis=True)
        warm = case.solve(engine, block.basis)
    assert block.by_highs[:, 0].all()
    assert not block.by_highs[:, 1:].any()
    assert not warm.by_highs.any()


@pytest.mark.parametrize("native", [True, False])
def test_large_lps_and_patched_coefficients_go_to_highs(native):
    if native and why_not_native() is not None:
        pytest.skip("no compiled path")
    small = random_case(2, kinds=(Target.RHS, Target.COL_UPPER))
    patched = random_case(2, kinds=(Target.COEFFICIENT,))
    with create_engine(SolverOptions(native=native)) as engine:
        assert not small.solve(engine).by_highs.any()
        assert patched.solve(engine).by_highs.all()
        assert not small.solve(engine, lazy=False).by_highs.any()
    enough = small.model.template.num_rows * small.model.template.num_cols
    with create_engine(SolverOptions(native=native, tableau_entries=enough, kernel_rows=0)) as engine:
        assert not small.solve(engine).by_highs.any()
        assert small.solve(engine, lazy=False).by_highs.all()  # with all its cuts it is a large one
    with create_engine(SolverOptions(native=native, tableau_entries=50, kernel_rows=0)) as engine:
        assert small.solve(engine).by_highs.all()


@pytest.mark.parametrize(
    ("seed", "chains", "openings"),
    [(0, 1, 80), *(pytest.param(seed, 2, 150, marks=pytest.mark.ci) for seed in range(3))],
)
def test_both_methods_agree_on_long_chains(seed, chains, openings):
    """Hundreds of pivots in one tableau, thousands of cuts: the same optimal values as HiGHS."""
    kinds = (Target.RHS, Target.COL_UPPER)
    case = random_case(
        seed, rows=12, cols=20, states=6, openings=openings, chains=chains, pool_rows=3000, kinds=kinds
    )
    with (
        create_engine(SolverOptions()) as engine,
        create_engine(SolverOptions(tableau_entries=0, kernel_rows=0)) as highs,
    ):
        ours, theirs = case.solve(engine), case.solve(highs)
        whole = case.solve(engine, lazy=False)
    assert not ours.by_highs.any()
    assert not whole.by_highs.any()
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.objective, theirs.objective, rtol=1e-9, atol=1e-9)


def test_pool_rows_that_left_come_back_when_they_are_violated():
    """More rows bind over a chain than a tableau keeps; both paths drop and take back the same ones."""
    rng = np.random.default_rng(7)
    case = random_case(7, rows=6, cols=14, states=5, openings=60, chains=2, kinds=(Target.RHS,))
    points = rng.uniform(0.0, 5.0, (2500, 5))
    slope = 4.0 * (points - 2.5)  # tangents of a paraboloid: each is the best one somewhere
    pool = CutView(2.0 * ((points - 2.5) ** 2).sum(axis=1) - (slope * points).sum(axis=1), slope, 2500)
    case = replace(case, pool=pool)
    blocks = []
    for native in (True, False):
        if native and why_not_native() is not None:
            pytest.skip("no compiled path")
        with create_engine(SolverOptions(native=native, pool_rows_per_round=5)) as engine:
            blocks.append(case.solve(engine, want_basis=True, want_primal=True))
    assert blocks[0].rounds.sum() * 5 > 64
    assert bits(blocks[0]) == bits(blocks[1])


@pytest.mark.parametrize("native", [True, False])
def test_flips_that_reach_the_bound_by_rounding_do_not_turn_the_pivot_round(native):
    """0.1 + 0.2 meets the bound, yet of 0.1 + 0.2 − 0.1 − 0.2 something is left: a third column enters for it."""
    if native and why_not_native() is not None:
        pytest.skip("no compiled path")
    need = 0.1 + 0.2
    assert need - 0.1 - 0.2 > 0.0
    template = template_of(
        [1.0, 3.0, 50.0], [0.0] * 3, [1.0, 1.0, np.inf], [0.0], [np.inf], [[0.1, 0.2, 1.0]]
    )
    model = LpModel(template, plan=PatchPlan([Target.ROW_LOWER], [0], [-1]))
    with create_engine(SolverOptions(native=native, scale=False)) as engine:
        block = engine.solve(SolveCall(model, np.zeros((1, 0)), np.array([[0.0], [need], [0.25]])))
    assert not block.by_highs.any()
    assert block.objective[0] == pytest.approx([0.0, 4.0, 1.0 + 3.0 * 0.75])
    assert block.iterations[0].tolist() == [0, 1, 1]
