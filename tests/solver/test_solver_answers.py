"""The numbers an engine returns, against LPs written out in full and solved by HiGHS with its default options."""

from dataclasses import replace

import numpy as np
import pytest
from solver_cases import INF, random_case, template_of

from pycobre.solver import (
    CutView,
    LpModel,
    PatchPlan,
    RhsCorrections,
    SolveCall,
    SolverOptions,
    Target,
    create_engine,
)
from pycobre.solver.explicit import explicit_lp
from pycobre.solver.highspy_lp import to_highs

ALL_KINDS = (Target.RHS, Target.COL_UPPER, Target.COST, Target.COEFFICIENT, Target.OFFSET)


def second_opinion(case, i, j):
    slots = np.arange(case.pool.count, dtype=np.int32) if case.pool is not None else None
    if slots is not None and case.pool.active is not None:
        slots = slots[case.pool.active[: case.pool.count] != 0]
    highs = to_highs(explicit_lp(case.model, case.x[i], case.values[j], case.pool, slots))
    highs.run()
    return highs.getObjectiveValue()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("lazy", [True, False])
def test_objectives_equal_those_of_the_written_out_lps(engine, seed, lazy):
    case = random_case(seed, kinds=ALL_KINDS)
    block = case.solve(engine, lazy=lazy)
    for i in range(case.x.shape[0]):
        for j in range(case.values.shape[0]):
            assert block.objective[i, j] == pytest.approx(second_opinion(case, i, j), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_columns_that_gain_without_a_bound_of_their_own(engine, seed):
    case = random_case(seed, kinds=(Target.RHS, Target.COST), gains=True)
    block = case.solve(engine)
    for i in range(case.x.shape[0]):
        for j in range(case.values.shape[0]):
            assert block.objective[i, j] == pytest.approx(second_opinion(case, i, j), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_gradient_supports_the_optimal_value(engine, seed):
    """The value is convex in x, so value(y) ≥ value(x) + gradient(x)·(y − x) at every other y."""
    case = random_case(seed, chains=6)
    block = case.solve(engine)
    for i in range(6):
        for other in range(6):
            step = case.x[other] - case.x[i]
            support = block.objective[i] + block.gradient[i] @ step
            assert np.all(block.objective[other] >= support - 1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_inactive_pool_rows_do_not_exist(engine, seed):
    case = random_case(seed)
    rng = np.random.default_rng(seed)
    active = rng.integers(0, 2, case.pool.count).astype(np.uint8)
    masked = CutView(case.pool.intercept, case.pool.slope, case.pool.count, active)
    kept = np.flatnonzero(active)
    shorter = CutView(case.pool.intercept[kept], case.pool.slope[kept], kept.size)
    one = engine.solve(SolveCall(case.model, case.x, case.values, masked))
    two = engine.solve(SolveCall(case.model, case.x, case.values, shorter))
    np.testing.assert_array_equal(one.objective, two.objective)


def test_primal_and_duals_are_those_of_the_unscaled_lp(engine):
    case = random_case(3)
    block = case.solve(engine, want_primal=True)
    for i in range(4):
        for j in range(5):
            lp = explicit_lp(case.model, case.x[i], case.values[j])
            column = np.repeat(np.arange(lp.num_cols), np.diff(lp.starts))
            activity = np.zeros(lp.num_rows)
            np.add.at(activity, lp.rows, lp.values * block.primal[i, j][column])
            assert np.all(activity >= lp.row_lower - 1e-8)
            assert np.all(activity <= lp.row_upper + 1e-8)
            assert lp.offset + lp.cost @ block.primal[i, j] == pytest.approx(block.objective[i, j], rel=1e-9)
            priced = lp.cost.copy()
            np.subtract.at(priced, column, lp.values * block.row_dual[i, j][lp.rows])
            inner = np.setdiff1d(np.arange(lp.num_cols), [*case.model.outputs, case.model.theta_column])
            np.testing.assert_allclose(priced[inner], block.col_dual[i, j][inner], atol=1e-8)
            np.testing.assert_array_equal(block.col_dual[i, j][case.model.inputs], block.gradient[i, j])


def test_scaling_changes_no_answer(engine):
    """Rows in other units and costs in cents: the same LP in the solver's own scale, 100 times the objective."""
    case = random_case(5)
    given = case.model.template
    factor = 10.0 ** np.random.default_rng(5).integers(-4, 5, given.num_rows)
    rough = replace(
        given,
        cost=given.cost * 100.0,
        row_lower=given.row_lower * factor,
        row_upper=given.row_upper * factor,
        values=given.values * factor[given.rows],
    )
    models = [
        LpModel(
            template, case.model.inputs, case.model.outputs, PatchPlan.empty(), None, case.model.theta_column
        )
        for template in (given, rough)
    ]
    plain, scaled = (engine.solve(SolveCall(model, case.x, np.zeros((1, 0)), case.pool)) for model in models)
    np.testing.assert_allclose(scaled.objective, 100.0 * plain.objective, rtol=1e-9, atol=1e-7)


def reservoir(price=50.0, theta_lower=0.0):
    """v = v⁻ − h − s + w, h + g = 150; columns v⁻ v g h s θ."""
    template = template_of(
        [0, 0, price, 0, 0, 1],
        [-INF, 0, 0, 0, 0, theta_lower],
        [INF, 200, INF, INF, INF, INF],
        [0, 150],
        [0, 150],
        [[-1, 1, 0, 1, 1, 0], [0, 0, 1, 1, 0, 0]],
        0.0,
        ["v_in", "v", "g", "h", "s", "theta"],
        ["balance", "demand"],
    )
    return LpModel(template, [0], [1], PatchPlan([Target.RHS], [0], [-1]), None, 5)


def test_three_stages_reach_the_published_value(engine):
    """Hydro-thermal problem 1 of the literature list: 25000/3, by a plain cutting-plane loop."""
    models = [reservoir(50.0 * (t + 1)) for t in range(3)]
    noise = np.array([[0.0], [50.0], [100.0]])
    intercept, slope = np.zeros((3, 40)), np.zeros((3, 40, 1))
    rng = np.random.default_rng(0)
    bound = 0.0
    for count in range(30):
        pools = [CutView(intercept[t], slope[t], count) for t in range(3)]
        x, visited = np.array([[200.0]]), []
        for t in range(3):
            visited.append(x)
            x = engine.solve(SolveCall(models[t], x, noise[rng.integers(3)][None], pools[t])).output[:, 0]
        for t in (2, 1):
            newest = CutView(intercept[t], slope[t], count + 1 if t == 1 else 0)
            block = engine.solve(SolveCall(models[t], visited[t], noise, newest))
            slope[t - 1, count] = block.gradient[0].mean(axis=0)
            intercept[t - 1, count] = block.objective[0].mean() - slope[t - 1, count] @ visited[t][0]
        first = CutView(intercept[0], slope[0], count + 1)
        bound = engine.solve(SolveCall(models[0], np.array([[200.0]]), noise, first)).objective.mean()
    assert bound == pytest.approx(25000 / 3, rel=1e-9)


def test_an_incoming_state_is_projected_into_its_columns_bounds(engine):
    model = reservoir()
    template = type(model.template)(
        **{
            **vars(model.template),
            "col_lower": [0, 0, 0, 0, 0, 0],
            "col_upper": [180.0, 200, INF, INF, INF, INF],
        }
    )
    bounded = LpModel(template, [0], [1], model.plan, None, 5)
    block = engine.solve(SolveCall(bounded, np.array([[200.0], [-1e-12]]), np.array([[0.0]])))
    at_bounds = engine.solve(SolveCall(model, np.array([[180.0], [0.0]]), np.array([[0.0]])))
    np.testing.assert_array_equal(block.objective, at_bounds.objective)


def test_the_outgoing_state_lies_within_its_bounds(engine):
    case = random_case(8, cols=14, states=5)
    block = case.solve(engine)
    upper = np.tile(case.model.template.col_upper[case.model.outputs], (5, 1))
    for p, col in enumerate(case.model.plan.col):
        if case.model.plan.kind[p] == Target.COL_UPPER:
            upper[:, case.model.outputs == col] = case.values[:, p : p + 1]
    assert np.all(block.output >= 0)
    assert np.all(block.output <= upper)


def test_an_output_that_is_an_input_passes_through_bit_by_bit(engine):
    model = reservoir()
    both = LpModel(model.template, [0], [1, 0], model.plan, None, 5)
    x = np.array([[100 / 3], [1e-7 / 3]])
    block = engine.solve(SolveCall(both, x, np.array([[150.0], [200.0]])))
    np.testing.assert_array_equal(block.output[:, :, 1], np.repeat(x, 2, axis=1))


def test_floors_raise_right_hand_sides_where_the_state_leaves_them_short(engine):
    """Inflow = w + 0.5 x is kept at 10 or above: the balance gets what is missing, twice over on the demand row."""
    model = reservoir()
    floors = RhsCorrections([10.0], [0], [0, 1], [0], [0.5], [0, 0], [0, 1], [1.0, -2.0])
    floored = LpModel(model.template, [0], [1], model.plan, floors, 5)
    x, noise = np.array([[0.0], [8.0], [40.0]]), np.array([[0.0], [7.0], [20.0]])
    block = engine.solve(SolveCall(floored, x, noise))
    for i in range(3):
        for j in range(3):
            short = max(0.0, 10.0 - (noise[j, 0] + 0.5 * x[i, 0]))
            water = x[i, 0] + noise[j, 0] + short
            assert block.objective[i, j] == pytest.approx(50.0 * max(0.0, 150.0 - 2.0 * short - water))
            lp = to_highs(explicit_lp(floored, x[i], noise[j]))
            lp.run()
            assert block.objective[i, j] == pytest.approx(lp.getObjectiveValue())


def test_each_kind_of_patch_does_what_it_says(engine):
    template = template_of([1, 2], [0, 0], [9, 9], [2], [8], [[1, 1]], 5.0)
    for kind, row, col, value, expected in (
        (Target.ROW_LOWER, 0, -1, 3.0, 8.0),
        (Target.ROW_UPPER, 0, -1, 2.0, 7.0),
        (Target.COL_LOWER, -1, 1, 1.0, 8.0),
        (Target.COL_UPPER, -1, 0, 0.5, 8.5),
        (Target.COST, -1, 0, 3.0, 9.0),
        (Target.COEFFICIENT, 0, 0, 4.0, 5.5),
        (Target.OFFSET, -1, -1, -1.0, 1.0),
    ):
        model = LpModel(template, plan=PatchPlan([kind], [row], [col]))
        block = engine.solve(SolveCall(model, np.zeros((1, 0)), np.array([[value]])))
        assert block.objective[0, 0] == pytest.approx(expected), kind


def test_bases_of_blocks_join_and_split(engine):
    case = random_case(1)
    basis = case.solve(engine, want_basis=True).basis
    parts = type(basis).join([basis.take([i]) for i in range(4)])
    for name, value in vars(basis).items():
        np.testing.assert_array_equal(getattr(parts, name), value)
    again = case.solve(engine, basis, want_basis=True)
    assert again.iterations[:, 0].sum() == 0


def test_a_shared_start_serves_every_chain(engine):
    case = random_case(2)
    basis = case.solve(engine, want_basis=True).basis
    shared = case.solve(engine, basis.take([0]))
    np.testing.assert_allclose(shared.objective, case.solve(engine).objective, rtol=1e-9, atol=1e-9)


def test_a_start_whose_binding_row_went_inactive_is_repaired(engine):
    for seed in range(8):
        case = random_case(seed)
        basis = case.solve(engine, want_basis=True).basis
        active = np.ones(case.pool.count, np.uint8)
        active[basis.cut_slots] = 0
        pool = CutView(case.pool.intercept, case.pool.slope, case.pool.count, active)
        warm = engine.solve(SolveCall(case.model, case.x, case.values, pool, start=basis))
        cold = engine.solve(SolveCall(case.model, case.x, case.values, pool))
        np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-9, atol=1e-9)


def test_seed_points_bring_the_rows_that_are_best_there():
    case = random_case(4, pool_rows=200)
    with create_engine(SolverOptions(native=False, pool_rows_per_round=1)) as engine:
        block = case.solve(engine)
        seeded = case.solve(engine, trial_point=block.output[:, 0])
    assert seeded.rounds.sum() < block.rounds.sum()
    np.testing.assert_allclose(seeded.objective, block.objective, rtol=1e-9, atol=1e-9)


def test_models_without_rows_or_columns_of_state(engine):
    template = template_of([1.0, -1.0], [0, 0], [4, 5], [], [], np.zeros((0, 2)))
    block = engine.solve(SolveCall(LpModel(template), np.zeros((2, 0)), np.zeros((3, 0)), want_basis=True))
    np.testing.assert_array_equal(block.objective, np.full((2, 3), -5.0))
    again = engine.solve(SolveCall(LpModel(template), np.zeros((2, 0)), np.zeros((3, 0)), start=block.basis))
    np.testing.assert_array_equal(again.objective, block.objective)
    nothing = engine.solve(SolveCall(LpModel(template), np.zeros((0, 0)), np.zeros((3, 0)), want_basis=True))
    assert nothing.objective.shape == (0, 3)
