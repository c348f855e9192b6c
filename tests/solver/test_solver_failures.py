"""What an engine says, writes and survives when an LP cannot be solved."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from solver_cases import INF, bits, random_case, template_of

from pycobre.errors import OptionError, ProblemError, SolverError
from pycobre.solver import CutView, LpModel, PatchPlan, SolveCall, SolverOptions, Target, create_engine
from pycobre.solver.bundle import read_bundle
from pycobre.solver.native import why_not_native

PATHS = [
    pytest.param(
        True, marks=pytest.mark.skipif(why_not_native() is not None, reason="no compiled path"), id="native"
    ),
    pytest.param(False, id="python"),
]


def tank(theta_lower=0.0):
    """v = v_in − h + w with 0 ≤ v ≤ 200, 0 ≤ h ≤ 150."""
    template = template_of(
        [0, 0, -1, 1],
        [-INF, 0, 0, theta_lower],
        [INF, 200, 150, INF],
        [0],
        [0],
        [[-1, 1, 1, 0]],
        0.0,
        ["v_in", "v", "h", "theta"],
        ["balance"],
    )
    return LpModel(template, [0], [1], PatchPlan([Target.RHS], [0], [-1]), None, 3)


STATES = np.array([[100.0], [20.0], [50.0], [10.0]])
NOISE = np.array([[0.0], [50.0], [-30.0], [3.0]])


@pytest.mark.parametrize("native", PATHS)
@pytest.mark.parametrize("threads", [1, 2])
def test_an_infeasible_opening_in_the_middle_is_named_with_its_rows(native, threads, tmp_path):
    pool = CutView(np.array([5.0]), np.array([[-1.0]]), 1)
    options = SolverOptions(native=native, threads=threads, bundles=str(tmp_path))
    with create_engine(options) as engine:
        before = bits(engine.solve(SolveCall(tank(), STATES[:1], NOISE, pool)))
        with pytest.raises(SolverError) as caught:
            engine.solve(SolveCall(tank(), STATES, NOISE, pool))
        error = caught.value
        assert (error.chain, error.opening, error.status) == (1, 2, "infeasible")
        assert str(error).startswith(
            "LP of chain 1, opening 2: infeasible. These rows cannot hold together: balance, with the bounds of "
        )
        assert "Incoming state: v_in = 20." in str(error)
        assert "a slack column with a penalty cost" in str(error)
        assert str(error).endswith(f"Solve it alone with: pycobre replay {error.bundle}")
        assert bits(engine.solve(SolveCall(tank(), STATES[:1], NOISE, pool))) == before
    assert pickle.loads(pickle.dumps(error)).bundle == error.bundle


@pytest.mark.parametrize("native", PATHS)
def test_the_bundle_fails_alone_in_the_same_way(native, tmp_path):
    pool = CutView(np.array([5.0, 7.0, 1e9]), np.array([[-1.0], [-0.5], [0.0]]), 2)
    with create_engine(SolverOptions(native=native, bundles=str(tmp_path))) as engine:
        start = engine.solve(SolveCall(tank(), STATES[:2], NOISE[:1], pool, want_basis=True))
        with pytest.raises(SolverError) as caught:
            engine.solve(
                SolveCall(tank(), STATES[:2], NOISE, pool, start=start.basis, trial_point=start.output[:, 0])
            )
    bundle = read_bundle(caught.value.bundle)
    assert bundle.call.values.shape == (3, 1)
    assert bundle.call.cuts.count == 2
    with create_engine(replace(bundle.options, bundles=None)) as engine, pytest.raises(SolverError) as again:
        bundle.solve(engine)
    assert (again.value.chain, again.value.opening, again.value.status) == (0, 2, "infeasible")
    healthy = replace(bundle, call=replace(bundle.call, values=bundle.call.values[:2]))
    with create_engine(SolverOptions(native=native)) as engine:
        alone = healthy.solve(engine)
        chain = engine.solve(
            SolveCall(
                tank(),
                STATES[1:2],
                NOISE[:2],
                pool,
                start=start.basis.take([1]),
                trial_point=start.output[1:, 0],
            )
        )
    assert alone.objective.tobytes() == chain.objective.tobytes()


def test_equal_failures_write_equal_files(tmp_path):
    names = set()
    for _ in range(2):
        with create_engine(SolverOptions(bundles=str(tmp_path))) as engine, pytest.raises(SolverError):
            engine.solve(SolveCall(tank(), STATES, NOISE))
        names.add(tuple(sorted(path.name for path in tmp_path.iterdir())))
    assert len(names) == 1
    assert len(next(iter(names))) == 1


def test_without_a_directory_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with create_engine() as engine, pytest.raises(SolverError) as caught:
        engine.solve(SolveCall(tank(), STATES, NOISE))
    assert caught.value.bundle is None
    assert "replay" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_bundle_that_cannot_be_written_does_not_hide_the_failure(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("not a directory")
    with create_engine(SolverOptions(bundles=str(taken))) as engine, pytest.raises(SolverError) as caught:
        engine.solve(SolveCall(tank(), STATES, NOISE))
    assert caught.value.bundle is None
    assert "infeasible" in str(caught.value)
    assert "Its bundle could not be written: " in str(caught.value)
    assert taken.read_text() == "not a directory"


def test_a_torn_bundle_is_refused(tmp_path):
    with create_engine(SolverOptions(bundles=str(tmp_path))) as engine, pytest.raises(SolverError) as caught:
        engine.solve(SolveCall(tank(), STATES, NOISE))
    torn = tmp_path / "torn.cobre"
    whole = (tmp_path / caught.value.bundle).read_bytes()
    torn.write_bytes(whole[:-40])
    with pytest.raises(SolverError, match=r"torn\.cobre: checksum mismatch"):
        read_bundle(torn)
    with pytest.raises(SolverError, match="cannot read the lp bundle file"):
        read_bundle(tmp_path / "absent.cobre")


@pytest.mark.parametrize("native", PATHS)
def test_an_unbounded_cost_to_go_is_recognised(native):
    with create_engine(SolverOptions(native=native)) as engine:
        with pytest.raises(
            SolverError, match=r"unbounded\. The cost falls without end along theta\. Probable cause: no "
        ):
            engine.solve(SolveCall(tank(theta_lower=-INF), STATES, NOISE[:1]))
        free = template_of([-1.0], [0.0], [INF], [], [], np.zeros((0, 1)), 0.0, ["greed"])
        with pytest.raises(
            SolverError, match=r"along greed\. Probable cause: a missing bound or a cost of the wrong"
        ):
            engine.solve(SolveCall(LpModel(free), np.zeros((1, 0)), np.zeros((1, 0))))


@pytest.mark.parametrize("native", PATHS)
def test_crossed_patched_bounds_are_named(native):
    template = template_of([1.0], [0.0], [5.0], [0.0], [INF], [[1.0]], 0.0, ["flow"], ["row"])
    model = LpModel(template, plan=PatchPlan([Target.COL_LOWER], [-1], [0]))
    with (
        create_engine(SolverOptions(native=native)) as engine,
        pytest.raises(SolverError, match=r"Patched bounds contradict each other: flow in \[6, 5\]"),
    ):
        engine.solve(SolveCall(model, np.zeros((1, 0)), np.array([[6.0]])))


@pytest.mark.parametrize("native", PATHS)
def test_recovery_solves_runs_that_reach_their_iteration_limit(native):
    """One simplex iteration is too few; presolve solves these LPs by itself and its basis needs none."""
    case = random_case(3, rows=4, cols=6, pool_rows=0)
    with (
        create_engine(SolverOptions(native=native)) as usual,
        create_engine(SolverOptions(native=native, iteration_limit=1)) as short,
    ):
        expected, mended = case.solve(usual), case.solve(short)
    assert mended.retries.sum() > 0
    np.testing.assert_allclose(mended.objective, expected.objective, rtol=1e-9, atol=1e-9)


def test_both_paths_recover_alike():
    if why_not_native() is not None:
        pytest.skip("no compiled path")
    for seed in range(6):
        case = random_case(seed, rows=5, cols=8, pool_rows=10)
        said = []
        for native in (True, False):
            with create_engine(SolverOptions(native=native, iteration_limit=2)) as engine:
                try:
                    block = case.solve(engine, want_basis=True)
                    said.append((bits(block), block.retries.tobytes()))
                except SolverError as error:
                    said.append((str(error), b""))
        assert said[0] == said[1]


@pytest.mark.parametrize("native", PATHS)
def test_wrong_arguments_are_refused_before_anything_is_solved(native):
    case = random_case(1)
    good = {"model": case.model, "x": case.x, "values": case.values, "cuts": case.pool}
    basis_of = random_case(2, cols=12)
    with create_engine(SolverOptions(native=native)) as engine:
        other = basis_of.solve(engine, want_basis=True).basis
        for change, text in (
            ({"x": case.x[:, :2]}, r"incoming states: expected shape \(chains, 3\), got \(4, 2\)\."),
            (
                {"values": case.values[:, :1]},
                r"patch values: expected shape \(\[1 or 4,\] openings, 10\), got",
            ),
            ({"x": case.x * np.nan}, "expected numbers, got NaN or an infinite state"),
            (
                {"cuts": CutView(case.pool.intercept, case.pool.slope[:, :2], 3)},
                r"cuts: expected slopes of shape",
            ),
            (
                {"cuts": CutView(case.pool.intercept, case.pool.slope, 99)},
                r"and a count within, got \(30, 3\) and 99",
            ),
            (
                {
                    "model": LpModel(
                        case.model.template, case.model.inputs, case.model.outputs, case.model.plan
                    )
                },
                "theta_column",
            ),
            ({"start": other}, r"starting bases: expected 1 or 4 of \(26, 6\) columns and rows"),
            ({"trial_point": case.x[:1]}, r"trial points: expected shape \(4, 3\), got \(1, 3\)"),
        ):
            with pytest.raises(ProblemError, match=text):
                engine.solve(SolveCall(**{**good, **change}))


def test_an_engine_without_threads_or_path_is_refused(monkeypatch):
    with pytest.raises(OptionError, match="threads: expected a whole number from 1 to 64, got 0"):
        create_engine(SolverOptions(threads=0))
    monkeypatch.setattr("pycobre.solver.engine.why_not_native", lambda: "there is no compiler")
    with pytest.raises(SolverError, match="the compiled path was asked for, but there is no compiler"):
        create_engine(SolverOptions(native=True))
    with create_engine() as engine:
        assert not engine.native
