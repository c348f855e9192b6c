"""History independence: a chain's bits do not depend on what was solved before, on threads, or on the path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import bits, random_case

from pycobre.solver import CutView, SolveCall, SolverOptions, Target, create_engine
from pycobre.solver.native import why_not_native

KINDS = (
    (Target.RHS, Target.COL_UPPER, Target.COST),
    (Target.RHS, Target.COEFFICIENT),
    (Target.COL_UPPER, Target.COST, Target.COEFFICIENT, Target.OFFSET),
    (),
)

cases = st.builds(
    random_case,
    st.integers(0, 10**6),
    rows=st.integers(1, 9),
    cols=st.integers(4, 14),
    chains=st.integers(1, 5),
    openings=st.integers(1, 5),
    pool_rows=st.sampled_from([0, 3, 40]),
    kinds=st.sampled_from(KINDS),
    gains=st.booleans(),
)

BY_HIGHS = {"tableau_entries": 0, "kernel_rows": 0}
BY_TABLEAU = {"tableau_entries": 120_000, "kernel_rows": 0}
BY_KERNEL = {"tableau_entries": 0, "kernel_rows": 10_000}
METHODS = [BY_HIGHS, BY_TABLEAU, BY_KERNEL]
methods = st.sampled_from(METHODS)
needs_native = pytest.mark.skipif(
    why_not_native() is not None, reason=f"no compiled path: {why_not_native()}"
)
PATHS = [pytest.param(True, marks=needs_native, id="native"), pytest.param(False, id="python")]


def probe(engine, case):
    """Cold, from its own bases with trial points, and with all cuts at once: everything they say."""
    cold = case.solve(engine, want_basis=True, want_primal=True)
    warm = case.solve(engine, cold.basis, trial_point=cold.output[:, 0], want_basis=True)
    whole = case.solve(engine, warm.basis, lazy=False, want_basis=True, want_primal=True)
    return bits(cold) + bits(warm) + bits(whole)


@pytest.mark.parametrize("native", PATHS)
@settings(max_examples=25, deadline=None)
@given(method=methods, case=cases, others=st.lists(cases, max_size=3))
def test_earlier_solves_change_no_bit(native, method, case, others):
    with create_engine(SolverOptions(native=native, **method)) as fresh:
        expected = probe(fresh, case)
    with create_engine(SolverOptions(native=native, **method)) as used:
        for other in others:
            probe(used, other)
        assert probe(used, case) == expected
        assert probe(used, case) == expected


@pytest.mark.parametrize("native", PATHS)
@settings(max_examples=15, deadline=None)
@given(method=methods, case=cases)
def test_threads_change_no_bit(native, method, case):
    with (
        create_engine(SolverOptions(native=native, **method)) as one,
        create_engine(SolverOptions(native=native, threads=2, **method)) as two,
    ):
        assert probe(one, case) == probe(two, case)


@needs_native
@settings(max_examples=40, deadline=None)
@given(method=methods, case=cases)
def test_both_paths_give_the_same_bits(method, case):
    with (
        create_engine(SolverOptions(native=True, **method)) as native,
        create_engine(SolverOptions(native=False, **method)) as python,
    ):
        assert probe(native, case) == probe(python, case)


@pytest.mark.parametrize("native", PATHS)
@settings(max_examples=15, deadline=None)
@given(method=methods, case=cases, data=st.data())
def test_a_chain_is_the_same_alone_and_in_any_company(native, method, case, data):
    chains = case.x.shape[0]
    order = data.draw(st.permutations(range(chains)))
    with create_engine(SolverOptions(native=native, **method)) as engine:
        whole = case.solve(engine, want_basis=True)
        mixed = engine.solve(
            SolveCall(case.model, case.x[list(order)], case.values, case.pool, want_basis=True)
        )
        for at, i in enumerate(order):
            alone = engine.solve(SolveCall(case.model, case.x[i : i + 1], case.values, case.pool))
            assert (
                alone.objective[0].tobytes() == whole.objective[i].tobytes() == mixed.objective[at].tobytes()
            )
            assert alone.gradient[0].tobytes() == whole.gradient[i].tobytes() == mixed.gradient[at].tobytes()
            assert whole.basis.col_status[i].tobytes() == mixed.basis.col_status[at].tobytes()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("native", PATHS)
def test_values_per_chain_are_the_same_as_shared_ones(native, method):
    case = random_case(11)
    with create_engine(SolverOptions(native=native, **method)) as engine:
        shared = case.solve(engine, want_basis=True)
        repeated = np.repeat(case.values[None], 4, axis=0)
        apart = engine.solve(SolveCall(case.model, case.x, repeated, case.pool, want_basis=True))
    assert bits(shared) == bits(apart)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("native", PATHS)
def test_rows_beyond_the_count_and_inactive_rows_leave_no_trace(native, method):
    case = random_case(12)
    roomy = CutView(
        np.concatenate([case.pool.intercept, np.full(50, 1e6)]),
        np.concatenate([case.pool.slope, np.ones((50, 3))]),
        case.pool.count,
    )
    masked = CutView(
        roomy.intercept, roomy.slope, case.pool.count + 50, np.arange(case.pool.count + 50) < case.pool.count
    )
    with create_engine(SolverOptions(native=native, **method)) as engine:
        expected = bits(case.solve(engine, want_basis=True))
        for pool in (roomy, CutView(*list(vars(masked).values())[:3], masked.active.astype(np.uint8))):
            assert (
                bits(engine.solve(SolveCall(case.model, case.x, case.values, pool, want_basis=True)))
                == expected
            )


@needs_native
@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(method=methods, case=cases, others=st.lists(cases, max_size=2))
def test_both_paths_after_any_history_at_length(method, case, others):
    with (
        create_engine(SolverOptions(threads=2, **method)) as native,
        create_engine(SolverOptions(native=False, **method)) as python,
    ):
        for other in others:
            probe(native, other)
        assert probe(native, case) == probe(python, case)
