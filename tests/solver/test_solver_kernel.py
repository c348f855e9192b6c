"""The dual simplex on the basis kernel: LPs of some hundred rows, against HiGHS and against convexity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import INF, Case, bits, random_case, template_of

from pycobre.errors import SolverError
from pycobre.solver import (
    CutView,
    LpModel,
    PatchPlan,
    SolveCall,
    SolverOptions,
    Target,
    create_engine,
)
from pycobre.solver.native import why_not_native
from pycobre.solver.reference import kernel as reference
from pycobre.solver.reference.tableau import PASSES

BY_KERNEL = {"tableau_entries": 0, "kernel_rows": 10_000}
BY_HIGHS = {"tableau_entries": 0, "kernel_rows": 0}
needs_native = pytest.mark.skipif(
    why_not_native() is not None, reason=f"no compiled path: {why_not_native()}"
)
PATHS = [pytest.param(True, marks=needs_native, id="native"), pytest.param(False, id="python")]


def network(seed: int, reservoirs: int, openings: int = 6, chains: int = 3, cuts: int = 60) -> Case:
    """Reservoirs in a line, plants, a market with steps: rows of few entries, equations, degenerate duals.

    Columns per reservoir: volume in, volume out, turbined, spilled, and a shortage; then the steps of supply, θ.
    """
    rng = np.random.default_rng(seed)
    steps, per = 8, 5
    n, m = reservoirs * per + steps + 1, 2 * reservoirs + 1
    matrix = np.zeros((m, n))
    cost, lower, upper = np.zeros(n), np.zeros(n), np.full(n, INF)
    row_lower, row_upper = np.zeros(m), np.zeros(m)
    for k in range(reservoirs):
        at = k * per
        matrix[k, at : at + 5] = [-1.0, 1.0, 1.0, 1.0, -1.0]
        if k and rng.random() < 0.7:
            matrix[k, at - per + 2 : at - per + 4] = -1.0
        lower[at], upper[at] = -INF, INF
        upper[at + 1], upper[at + 2] = rng.integers(20, 60), rng.integers(3, 9)
        cost[at + 3], cost[at + 4] = 0.01, 500.0
        matrix[m - 1, at + 2] = rng.integers(1, 5) / 2
        matrix[reservoirs + k, at + 1 : at + 3] = [1.0, float(rng.integers(0, 3))]
        row_lower[reservoirs + k], row_upper[reservoirs + k] = -INF, rng.integers(30, 60)
    supply = reservoirs * per
    cost[supply : supply + steps] = 10.0 * 2.0 ** np.arange(steps)
    upper[supply : supply + steps - 1] = reservoirs
    matrix[m - 1, supply : supply + steps] = 1.0
    row_lower[m - 1] = row_upper[m - 1] = 6.0 * reservoirs
    cost[n - 1] = 1.0
    inputs, outputs = np.arange(reservoirs) * per, np.arange(reservoirs) * per + 1
    plan = PatchPlan(
        [Target.RHS] * (reservoirs + 1),
        [*range(reservoirs), m - 1],
        [-1] * (reservoirs + 1),
    )
    model = LpModel(
        template_of(cost, lower, upper, row_lower, row_upper, matrix), inputs, outputs, plan, None, n - 1
    )
    values = np.hstack(
        [
            rng.integers(0, 8, (openings, reservoirs)),
            rng.integers(3, 9, (openings, 1)) * reservoirs,
        ]
    ).astype(float)
    slope = -rng.random((cuts, reservoirs)) * 20.0
    pool = CutView(rng.random(cuts) * 400.0 * reservoirs, slope, cuts)
    return Case(model, rng.uniform(0.0, 30.0, (chains, reservoirs)), values, pool)


@pytest.mark.parametrize("native", PATHS)
@pytest.mark.parametrize("seed", range(3))
def test_objectives_are_those_of_highs(native, seed):
    case = network(seed, 60 if native else 14)
    with (
        create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine,
        create_engine(SolverOptions(native=native, **BY_HIGHS)) as highs,
    ):
        ours, theirs = case.solve(engine), case.solve(highs)
    assert not ours.by_highs.any()
    assert ours.certified.all()
    assert theirs.by_highs.all()
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9)


@needs_native
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_subgradients(seed):
    """The optimal value is convex in the incoming state: no chain lies below the tangent of another."""
    case = network(seed, 40, chains=8)
    with create_engine(SolverOptions(**BY_KERNEL)) as engine:
        block = case.solve(engine)
    for a in range(8):
        step = case.x - case.x[a]
        tangent = block.objective[a] + step @ block.gradient[a].T
        assert np.all(block.objective >= tangent - 1e-8 * np.abs(tangent))


@needs_native
def test_unique_duals_are_those_of_highs():
    """Random costs and right-hand sides: one optimal basis, so that primal values and duals must agree."""
    rng = np.random.default_rng(5)
    case = network(5, 30)
    template = case.model.template
    cost = template.cost * rng.uniform(0.9, 1.1, template.num_cols)
    model = LpModel(
        template_of(
            cost,
            template.col_lower,
            template.col_upper,
            template.row_lower,
            template.row_upper,
            _dense(template),
        ),
        case.model.inputs,
        case.model.outputs,
        case.model.plan,
        None,
        case.model.theta_column,
    )
    values = case.values + rng.uniform(0.0, 0.5, case.values.shape)
    call = SolveCall(model, case.x, values, case.pool, want_primal=True)
    with (
        create_engine(SolverOptions(**BY_KERNEL)) as engine,
        create_engine(SolverOptions(**BY_HIGHS)) as highs,
    ):
        ours, theirs = engine.solve(call), highs.solve(call)
    for name in ("objective", "gradient", "output", "theta", "primal", "col_dual", "row_dual"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-7, err_msg=name
        )


def _dense(template) -> np.ndarray:
    matrix = np.zeros((template.num_rows, template.num_cols))
    for col in range(template.num_cols):
        span = slice(template.starts[col], template.starts[col + 1])
        matrix[template.rows[span], col] = template.values[span]
    return matrix


@needs_native
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), reservoirs=st.integers(1, 12), openings=st.integers(1, 8))
def test_the_reference_has_the_same_bits(seed, reservoirs, openings):
    case = network(seed, reservoirs, openings, chains=2)
    found = []
    for native in (True, False):
        with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
            cold = case.solve(engine, want_basis=True, want_primal=True)
            warm = case.solve(engine, cold.basis, trial_point=cold.output[:, 0], want_basis=True)
            found.append(bits(cold) + bits(warm))
    assert found[0] == found[1]


@needs_native
@pytest.mark.slow
def test_an_inverse_that_is_computed_anew_is_the_same_in_both(monkeypatch):
    """More exchanges in one chain than an inverse is kept for."""
    case = network(2, 12, openings=240, chains=1)
    kept = []
    refactor = reference.Kernel.refactor

    def counted(self, cuts):
        kept.append(self.updates)
        return refactor(self, cuts)

    monkeypatch.setattr(reference.Kernel, "refactor", counted)
    found = []
    for native in (True, False):
        with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
            found.append(bits(case.solve(engine)))
    assert found[0] == found[1]
    assert max(kept) == reference.UPDATES


@pytest.mark.parametrize("native", PATHS)
def test_no_answer_is_taken_without_its_certificate(native):
    """Rejected answers are computed anew, and left to HiGHS where that does not help."""
    case = network(1, 8, chains=1)
    with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
        truth = case.solve(engine)
        _reject(engine, 1)
        once = case.solve(engine)
        _reject(engine, PASSES + 1)
        always = case.solve(engine)
    assert not once.by_highs.any()
    assert always.by_highs.ravel()[:2].tolist() == [1, 0]
    for block in (once, always):
        np.testing.assert_allclose(block.objective, truth.objective, rtol=1e-9)


def _reject(engine, number: int) -> None:
    worker = engine._workers[0]
    if engine.native:
        worker.session.reject_answers(number)
    else:
        worker._session.reject_next = number


@pytest.mark.parametrize("fault", ["x", "d"])
def test_a_damaged_value_fails_the_certificate(monkeypatch, fault):
    """A value or a reduced cost that is wrong by 1e-6 after everything was computed: HiGHS solves the LP."""
    case = network(3, 6, openings=1, chains=1)
    certify = reference.Kernel._certify

    def damaged(self, cuts):
        values = getattr(self, fault)
        at = next(v for v in self.active if self.col_pos[v] >= 0)
        values[at] += 1e-6 * (1.0 + abs(values[at]))
        self.read_columns()
        return certify(self, cuts)

    with create_engine(SolverOptions(native=False, **BY_KERNEL)) as engine:
        truth = case.solve(engine)
        monkeypatch.setattr(reference.Kernel, "_certify", damaged)
        block = case.solve(engine)
    assert not truth.by_highs.any()
    assert block.by_highs.all()
    np.testing.assert_allclose(block.objective, truth.objective, rtol=1e-9)


@pytest.mark.parametrize("native", PATHS)
def test_infeasible_and_unbounded_lps_are_reported(native):
    def solve(upper: float, cost: float) -> str:
        template = template_of([1.0, cost], [0, 0], [upper, INF], [5.0], [INF], [[1.0, 0.0]])
        with create_engine(SolverOptions(native=native, **BY_KERNEL)) as engine:
            model = LpModel(template, plan=PatchPlan([Target.ROW_LOWER], [0], [-1]))
            engine.solve(SolveCall(model, np.zeros((1, 0)), np.array([[1.0], [5.0]])))
        return "optimal"

    assert solve(9.0, 1.0) == "optimal"
    with pytest.raises(SolverError) as infeasible:
        solve(3.0, 1.0)
    assert (infeasible.value.status, infeasible.value.opening) == ("infeasible", 1)
    with pytest.raises(SolverError) as unbounded:
        solve(9.0, -1.0)
    assert unbounded.value.status == "unbounded"


@needs_native
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 25), cols=st.integers(8, 60), gains=st.booleans())
def test_degenerate_lps_agree_with_highs(seed, rows, cols, gains):
    """Small whole numbers: ties everywhere, parallel rows, empty columns."""
    case = random_case(seed, rows=rows, cols=cols, gains=gains)
    with (
        create_engine(SolverOptions(**BY_KERNEL)) as engine,
        create_engine(SolverOptions(**BY_HIGHS)) as highs,
    ):
        ours, theirs = case.solve(engine), case.solve(highs)
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9, atol=1e-9)


@needs_native
def test_the_size_decides_who_solves():
    case = network(4, 8)
    rows = case.model.template.num_rows
    for options, by_highs in (({"kernel_rows": rows}, False), ({"kernel_rows": rows - 1}, True)):
        with create_engine(SolverOptions(tableau_entries=0, **options)) as engine:
            assert case.solve(engine).by_highs.all() == by_highs
    with create_engine(SolverOptions(tableau_entries=0, kernel_rows=rows)) as engine:
        assert case.solve(engine, lazy=False).by_highs.all()  # 60 cuts at once are too many
