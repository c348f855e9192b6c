"""Answers of HiGHS are certified against the LP's own numbers; one that fails is solved again, cold."""

from __future__ import annotations

import numpy as np
import pytest
from solver_cases import INF, bits, random_case, template_of

from pycobre.solver import LpModel, PatchPlan, SolveCall, SolverOptions, Target, create_engine
from pycobre.solver.native import why_not_native
from pycobre.solver.prepare import prepare
from pycobre.solver.reference.certificate import ATTEMPTS, certified
from pycobre.solver.reference.highspy_session import HighspySession
from pycobre.solver.reference.patch import read_patch

KINDS = (Target.RHS, Target.COL_UPPER, Target.COST, Target.COEFFICIENT, Target.OFFSET)
TOLERANCES = (1e-9, 1e-9)
EXCESS = 1e-7
NATIVE = [
    False,
    pytest.param(True, marks=pytest.mark.skipif(why_not_native() is not None, reason="no compiled path")),
]


def two_suppliers() -> LpModel:
    """minimise a + (1 + EXCESS) b with a + b = 100: buying from b is a vertex, and too dear by 1e-7."""
    template = template_of([1.0, 1.0 + EXCESS], [0, 0], [200, 200], [100], [100], [[1, 1]])
    return LpModel(template, plan=PatchPlan([Target.RHS], [0], [-1]))


CHEAP = (np.array([100.0, 0.0]), np.array([0.0, EXCESS]), np.array([1.0]))
DEAR = (np.array([0.0, 100.0]), np.array([-EXCESS, 0.0]), np.array([1.0 + EXCESS]))


def judge(model: LpModel, solution: tuple[np.ndarray, ...], objective: float) -> bool:
    prepared = prepare(model, scaled=False)
    patch = read_patch(prepared, np.zeros(0), np.array([100.0]))
    none = np.empty(0, np.int32)
    return certified(prepared, np.zeros(0), patch, None, none, solution, objective, TOLERANCES)


def test_the_optimal_vertex_is_certified_and_one_that_is_too_dear_is_not():
    assert judge(two_suppliers(), CHEAP, 100.0)
    assert not judge(two_suppliers(), DEAR, 100.0 * (1.0 + EXCESS))


@pytest.mark.parametrize(
    ("solution", "objective"),
    [
        ((np.array([100.1, 0.0]), CHEAP[1], CHEAP[2]), 100.1),  # the row does not hold
        ((np.array([101.0, -1.0]), CHEAP[1], CHEAP[2]), 100.0),  # a column is below its bound
        ((CHEAP[0], np.array([0.0, 1e-3]), CHEAP[2]), 100.0),  # the reduced costs are not those of the duals
        (
            (CHEAP[0], np.array([0.5, 0.5 + EXCESS]), np.array([0.5])),
            100.0,
        ),  # feasible duals of another vertex
        (CHEAP, 100.0 + 1e-5),  # another objective
        ((CHEAP[0] * np.nan, CHEAP[1], CHEAP[2]), 100.0),
        ((CHEAP[0], CHEAP[1], CHEAP[2] * np.nan), 100.0),
        (CHEAP, float("nan")),
    ],
)
def test_what_is_wrong_with_an_answer_is_noticed(solution, objective):
    assert not judge(two_suppliers(), solution, objective)


def test_duals_that_point_to_no_bound_are_refused():
    template = template_of([1.0, 1.0 + EXCESS], [0, 0], [INF, INF], [100], [100], [[1, 1]])
    model = LpModel(template, plan=PatchPlan([Target.RHS], [0], [-1]))
    assert judge(model, CHEAP, 100.0)
    assert not judge(model, DEAR, 100.0 * (1.0 + EXCESS))


def test_an_answer_that_is_too_dear_is_solved_again(monkeypatch):
    """A hot start that HiGHS calls optimal and that is not: simulated by returning the wrong vertex once."""
    honest, lies = HighspySession.solution, [DEAR]
    monkeypatch.setattr(HighspySession, "solution", lambda self: lies.pop() if lies else honest(self))
    options = SolverOptions(native=False, tableau_entries=0, kernel_rows=0, scale=False)
    with create_engine(options) as engine:
        block = engine.solve(SolveCall(two_suppliers(), np.zeros((1, 0)), np.array([[100.0], [50.0]])))
    assert block.objective.tolist() == [[100.0, 50.0]]
    assert block.rejected.tolist() == [[1, 0]]
    assert block.certified.tolist() == [[1, 1]]


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("entries", [0, 220_000])
def test_honest_answers_are_certified_at_once(native, entries):
    for seed in range(6):
        case = random_case(seed, kinds=KINDS, pool_rows=20)
        with create_engine(SolverOptions(native=native, tableau_entries=entries, kernel_rows=0)) as engine:
            for lazy in (True, False):
                block = case.solve(engine, lazy=lazy)
                assert block.certified.all()
                assert not block.rejected.any()


def _reject(engine, number: int) -> None:
    worker = engine._workers[0]
    if engine.native:
        worker.session.reject_answers(number)
    else:
        worker._session.reject_next = number


@pytest.mark.parametrize("native", NATIVE)
def test_rejected_answers_are_counted_and_the_last_attempt_is_taken(native):
    case = random_case(3, kinds=KINDS, chains=1)
    with create_engine(SolverOptions(native=native, tableau_entries=0, kernel_rows=0)) as engine:
        truth = case.solve(engine)
        _reject(engine, 1)
        once = case.solve(engine)
        _reject(engine, ATTEMPTS + 1)
        always = case.solve(engine)
    assert once.rejected.ravel()[:2].tolist() == [1, 0]
    assert once.certified.all()
    assert always.rejected.ravel()[:2].tolist() == [ATTEMPTS + 1, 0]
    assert always.certified.ravel()[:2].tolist() == [0, 1]
    for block in (once, always):
        np.testing.assert_allclose(block.objective, truth.objective, rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(why_not_native() is not None, reason="no compiled path")
def test_both_paths_solve_rejected_answers_alike():
    for seed in range(4):
        case = random_case(seed, kinds=KINDS, pool_rows=25)
        found = []
        for native in (True, False):
            with create_engine(SolverOptions(native=native, tableau_entries=0, kernel_rows=0)) as engine:
                _reject(engine, 2)
                found.append(bits(case.solve(engine, want_basis=True, want_primal=True)))
        assert found[0] == found[1]
