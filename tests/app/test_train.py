"""`pycobre.train` and `pycobre.simulate`: one process or several, the same result, and clear refusals."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from run_helpers import PASSES, asked_to_stop, options, problem, segments, workers_alive
from small_case import one_reservoir

import pycobre
from pycobre.app import workers
from pycobre.app.options import problem_options
from pycobre.errors import (
    BackendNotAvailable,
    CaseError,
    InvalidBackend,
    MissingConfiguration,
    OptionError,
    PolicyError,
    SolverError,
)
from pycobre.events import Event, IterationFinished, TrainingStarted
from pycobre.hydro.examples import EXAMPLES
from pycobre.problem import Graph, Stage, build
from pycobre.sddp import CVaR, RiskMeasure, TrainOptions, Weights
from pycobre.solver import SolverOptions
from pycobre.solver.bundle import read_bundle
from pycobre.testing import run_ranks


@pytest.fixture(scope="module")
def alone() -> pycobre.app.TrainingResult:
    return pycobre.train(problem(), options=options())


def test_one_process_gives_the_whole_result(alone: pycobre.app.TrainingResult) -> None:
    assert alone.workers is None
    assert alone.iterations == 8
    assert alone.termination_reason == "iteration_limit"
    assert alone.convergence_history.num_rows == 8
    bounds = alone.convergence_history["lower_bound"].to_numpy()
    assert alone.final_lower_bound == bounds[-1]
    assert np.all(np.diff(bounds) >= -1e-9)
    assert alone.total_cuts == alone.policy.total_cuts == 8 * PASSES * 5
    assert alone.policy_digest == alone.policy.digest
    assert [clock.rank for clock in alone.timing] == [0]
    assert alone.timing[0].solve_s > 0
    assert alone.timing[0].lp_solves == sum(alone.convergence_history["lp_solves"].to_pylist())


@pytest.mark.parametrize(("backend", "size"), [("shm", 2), ("shm", 3), ("tcp", 2)])
def test_workers_give_the_same_bits(alone: pycobre.app.TrainingResult, backend: str, size: int) -> None:
    shared = pycobre.train(problem(), options=options(), backend=backend, num_workers=size, threads=2)
    assert shared.policy_digest == alone.policy_digest
    assert shared.policy.to_bytes() == alone.policy.to_bytes()
    assert shared.convergence_history.equals(alone.convergence_history)
    assert shared.workers is not None
    assert [(w.rank, w.backend) for w in shared.workers] == [(r, backend) for r in range(size)]
    assert all(w.wall_time_ms > 0 for w in shared.workers)
    assert [clock.rank for clock in shared.timing] == list(range(size))
    assert workers_alive() == {}
    assert segments() == set()


def test_simulated_tables_are_the_same_on_workers(alone: pycobre.app.TrainingResult) -> None:
    one = pycobre.simulate(problem(), alone.policy, 9, record=("thermal",))
    two = pycobre.simulate(problem(), alone.policy, 9, record=("thermal",), num_workers=2)
    assert set(one.tables) == {"paths", "states", "values"}
    for name, table in one.tables.items():
        assert table.equals(two.tables[name])
    assert one.tables["paths"].num_rows == 9 * 6
    assert (one.mean_cost, one.std_cost) == (two.mean_cost, two.std_cost)
    paths = one.tables["paths"].to_pydict()
    totals = np.zeros(9)
    np.add.at(
        totals, paths["scenario_id"], np.array(paths["stage_cost"]) * np.array(paths["discount_factor"])
    )
    assert one.mean_cost == pytest.approx(totals.mean(), rel=1e-12)


def test_events_of_all_workers_reach_the_one_callback_in_order() -> None:
    seen: list[Event] = []
    pycobre.train(problem(), options=options(3), num_workers=2, progress_callback=seen.append)
    assert {event.worker_id for event in seen} == {0, 1}
    for rank in (0, 1):
        own = [event for event in seen if event.worker_id == rank]
        assert isinstance(own[0], TrainingStarted)
        assert [e.iteration for e in own if isinstance(e, IterationFinished)] == [1, 2, 3]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_callback_ends_the_run_after_the_iteration(num_workers: int) -> None:
    def enough(event: Event) -> bool:
        return isinstance(event, IterationFinished) and event.iteration == 3

    result = pycobre.train(problem(), options=options(), num_workers=num_workers, progress_callback=enough)
    assert (result.iterations, result.termination_reason) == (3, "callback")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_callback_that_raises_ends_the_run_cleanly(num_workers: int, tmp_path: Path) -> None:
    def broken(event: Event) -> None:
        if isinstance(event, IterationFinished) and event.iteration == 2:
            raise ZeroDivisionError("in the callback")

    with pytest.raises(ZeroDivisionError, match="in the callback"):
        pycobre.train(
            problem(), options=options(), num_workers=num_workers, progress_callback=broken, output=tmp_path
        )
    assert workers_alive() == {}
    resumed = pycobre.train(problem(), options=options(), output=tmp_path, resume=True)
    assert resumed.policy_digest == pycobre.train(problem(), options=options()).policy_digest


@pytest.mark.parametrize("asked", [0, 1])
def test_all_ranks_simulate_or_none_does(asked: int) -> None:
    """A request to stop reaches the ranks one after the other, or one of them alone: it counts for all."""
    assert run_ranks("threads", 2, asked_to_stop, asked) == [("interrupted", False)] * 2


def test_overrides_replace_options_by_path() -> None:
    result = pycobre.train(problem(), {"forward_passes": 2, "iteration_limit": 3})
    assert (result.iterations, result.total_cuts) == (3, 3 * 2 * 5)


def test_overrides_come_in_groups_too() -> None:
    case = one_reservoir()
    flat = {"training.selection.forward_passes": 2, "training.tree_seed": 9}
    nested = {"training": {"selection": {"forward_passes": 2}, "tree_seed": 9}}
    whole = {"training": {"selection": {"method": "sampled", "forward_passes": 2}, "tree_seed": 9}}
    results = [pycobre.train(case, overrides) for overrides in (flat, nested, whole)]
    assert len({result.policy_digest for result in results}) == 1
    assert results[0].policy_digest != pycobre.train(case).policy_digest
    with pytest.raises(OptionError, match=r"Did you mean 'forward_passes'"):
        pycobre.train(problem(), {"forward_pases": 2})
    with pytest.raises(OptionError, match="primal_tolerance"):
        pycobre.train(problem(), {"solver": {"primal_tolerence": 1e-6}})


def test_a_group_of_a_problems_options_replaces_what_it_names() -> None:
    before = TrainOptions(solver=SolverOptions(primal_tolerance=1e-9, dual_tolerance=1e-8))
    after = problem_options(before, {"solver": {"primal_tolerance": 1e-7}, "seed": 3})
    assert (after.solver.primal_tolerance, after.solver.dual_tolerance, after.seed) == (1e-7, 1e-8, 3)
    assert after == problem_options(before, {"solver.primal_tolerance": 1e-7, "seed": 3})
    measures = {"1": CVaR(0.5)}
    assert problem_options(before, {"risk": measures}).risk == measures


def test_results_show_as_one_line() -> None:
    result = pycobre.train(problem(), options=options(2))
    assert repr(result).startswith("<TrainingResult: 2 iterations (stopped by iteration_limit), lower bound ")
    assert result.policy_digest[:12] in repr(result)
    simulated = pycobre.simulate(problem(), result.policy, 3)
    assert repr(simulated).startswith("<SimulationResult: 3 scenarios, mean cost ")
    assert repr(simulated).endswith(", tables paths, states>")
    assert "\n" not in repr(result) + repr(simulated)


def test_training_works_from_a_thread() -> None:
    results: list[pycobre.app.TrainingResult] = []
    thread = threading.Thread(
        target=lambda: results.append(pycobre.train(problem(), options=options(2), num_workers=2))
    )
    thread.start()
    thread.join(200)
    assert results[0].iterations == 2


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"num_workers": 0}, OptionError, "num_workers: expected at least 1, got 0"),
        ({"num_workers": "2"}, OptionError, "num_workers: expected a whole number of at least 1, got '2'"),
        ({"num_workers": True}, OptionError, "num_workers: expected a whole number of at least 1, got True"),
        ({"num_workers": 1_000_000}, OptionError, "num_workers: expected at most 1024, got 1000000"),
        ({"checkpoint_iterations": 0}, OptionError, "checkpoint_iterations: expected at least 1, got 0"),
        ({"progress_callback": 5}, OptionError, "progress_callback: expected something to call"),
        ({"config_overrides": "x", "num_workers": 2}, OptionError, "expected a mapping of dotted paths"),
        ({"threads": 0}, OptionError, "threads: expected at least 1, got 0"),
        ({"backend": "smh"}, InvalidBackend, "there is no backend 'smh'"),
        ({"backend": "smh", "num_workers": 2}, InvalidBackend, "there is no backend 'smh'"),
        ({"backend": "mpi", "num_workers": 2}, OptionError, "mpiexec -n 2 pycobre run CASE"),
        ({"backend": "local", "num_workers": 2}, OptionError, "expected 1 with the local backend, got 2"),
        (
            {"config_overrides": {"forward_pases": 3}},
            OptionError,
            "forward_pases: .* Did you mean 'forward_passes'",
        ),
        ({"config_overrides": {"solver.primal": 3}}, OptionError, "solver.primal: there is no such option"),
        ({"config_overrides": {"forward_passes": "3"}}, OptionError, "forward_passes: expected int, got '3'"),
        (
            {"config_overrides": {"iteration_limit": "9"}},
            OptionError,
            "iteration_limit: expected int, got '9'",
        ),
        ({"config_overrides": {"time_limit": None}}, OptionError, "time_limit: expected float, got None"),
        (
            {"config_overrides": {"solver": {"primal_tolerance": "x"}}},
            OptionError,
            "solver.primal_tolerance: expected float, got 'x'",
        ),
        ({"config_overrides": {"seed.x": 1}}, OptionError, "expected a group of options at 'seed'"),
        ({"resume": True}, OptionError, "resume: expected the output directory of the earlier run"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(
    arguments: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        pycobre.train(problem(), **arguments)  # type: ignore[arg-type]
    assert workers_alive() == {}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_case_that_makes_no_sense_is_refused_before_workers_begin(
    workers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not as the error of a worker; those that were started meanwhile have gone without a word."""
    case = EXAMPLES["one-reservoir"].build()
    with pytest.raises(CaseError, match="a count is at least 1, got 0"):
        pycobre.train(case, {"training.selection.forward_passes": 0}, num_workers=workers)
    with pytest.raises(CaseError, match="expected a case directory"):
        pycobre.train("no/such/place", num_workers=workers)
    with pytest.raises(OptionError, match="expected a Case, the directory of one or a Problem, got NoneType"):
        pycobre.train(None, num_workers=workers)  # type: ignore[arg-type]
    assert workers_alive() == {}
    assert capfd.readouterr() == ("", "")


def test_simulating_nothing_is_refused() -> None:
    policy = pycobre.train(problem(), options=options(1)).policy
    for wrong in (0, -3, 2.5):
        with pytest.raises(OptionError, match="scenarios: expected"):
            pycobre.simulate(problem(), policy, wrong)  # type: ignore[arg-type]


def test_a_backend_that_cannot_run_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    status = {
        **pycobre.available_backends(),
        "shm": type(pycobre.available_backends()["shm"])(False, "no module"),
    }
    monkeypatch.setattr(workers, "available_backends", lambda: status)
    with pytest.raises(BackendNotAvailable, match=r"'shm' is not available here \(no module\)"):
        workers.choose_backend("shm", 2)
    assert workers.choose_backend("auto", 2, {}) == "tcp"


def test_auto_takes_tcp_where_a_coordinator_is_announced() -> None:
    assert workers.choose_backend("auto", 2, {"COBRE_TCP_COORDINATOR": "here"}) == "tcp"
    assert (
        workers.choose_backend("auto", 2, {"COBRE_TCP_COORDINATOR": "here", "COBRE_TCP_SIZE": "2"}) == "tcp"
    )
    with pytest.raises(
        OptionError, match="expected 1 under a launcher, got 2: OMPI_COMM_WORLD_SIZE announces 3"
    ):
        workers.choose_backend("auto", 2, {"OMPI_COMM_WORLD_SIZE": "3"})
    assert workers.choose_backend("auto", 2, {}) == "shm"


def test_the_backend_of_the_environment_is_that_of_the_workers() -> None:
    assert workers.choose_backend("auto", 2, {"COBRE_COMM_BACKEND": "tcp"}) == "tcp"
    assert workers.choose_backend("auto", 2, {"COBRE_COMM_BACKEND": "auto"}) == "shm"
    assert workers.choose_backend("shm", 2, {"COBRE_COMM_BACKEND": "tcp"}) == "shm"
    with pytest.raises(InvalidBackend, match="there is no backend 'nonsense'"):
        workers.choose_backend("auto", 2, {"COBRE_COMM_BACKEND": "nonsense"})
    with pytest.raises(OptionError, match="expected 1 with the mpi backend, got 2"):
        workers.choose_backend("auto", 2, {"COBRE_COMM_BACKEND": "mpi"})


@pytest.mark.parametrize(
    ("backend", "given", "missing"),
    [
        (
            "tcp",
            {"COBRE_TCP_TOKEN": "secret", "COBRE_TCP_COORDINATOR": "here"},
            ("COBRE_TCP_RANK", "COBRE_TCP_SIZE"),
        ),
        ("tcp", {"COBRE_TCP_RANK": "0"}, ("COBRE_TCP_SIZE",)),
        ("shm", {"COBRE_SHM_SIZE": "2"}, ("COBRE_SHM_NAME", "COBRE_SHM_RANK")),
    ],
)
def test_a_rank_without_all_it_needs_does_not_run_alone(
    backend: str, given: dict[str, str], missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """N hosts would make N whole runs."""
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MissingConfiguration) as raised:
        pycobre.train(problem(), options=options(1), backend=backend)
    assert raised.value.missing_vars == missing


def test_more_workers_than_passes_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="5 workers share 4 forward passes: 1 of them"):
        pycobre.train(problem(), options=options(1), num_workers=5)


class Mine(RiskMeasure):
    def weights(self, probability: np.ndarray, costs: np.ndarray) -> Weights:
        return Weights(np.broadcast_to(probability, costs.shape).copy(), np.zeros(len(costs)))


def test_options_travel_as_data_and_foreign_classes_are_refused() -> None:
    risky = replace(options(3), risk=CVaR(0.5))
    one = pycobre.train(problem(), options=risky)
    assert pycobre.train(problem(), options=risky, num_workers=2).policy_digest == one.policy_digest
    with pytest.raises(OptionError, match=r"options\.risk: expected one of pycobre's own classes, got Mine"):
        pycobre.train(problem(), options=replace(options(3), risk=Mine()), num_workers=2)


def test_a_policy_of_another_problem_is_refused(alone: pycobre.app.TrainingResult) -> None:
    from pycobre.testing.problems import newsvendor

    with pytest.raises(PolicyError, match="expected equal states"):
        pycobre.simulate(newsvendor(), alone.policy, 2)
    with pytest.raises(OptionError, match="scenarios: expected how many to simulate"):
        pycobre.simulate(problem(), alone.policy)


def test_a_warm_start_begins_with_the_earlier_cuts(alone: pycobre.app.TrainingResult, tmp_path: Path) -> None:
    alone.policy.save(tmp_path / "p.cobre")
    warm = pycobre.train(problem(), options=options(1), warm_start=tmp_path / "p.cobre")
    assert warm.final_lower_bound >= alone.final_lower_bound - 1e-9
    assert warm.total_cuts > PASSES * 5


def test_an_lp_that_fails_is_left_in_the_output_directory(tmp_path: Path) -> None:
    def stage(sp: Stage, t: int) -> None:
        stock = sp.state("stock", initial=10, upper=10)
        used = sp.variable("used", upper=4)
        sp.add(stock.out == stock.in_ - used, "balance")
        # Nothing but the stock serves the need, and the first stages leave too little of it for the last.
        sp.add(used >= sp.noise([1, 4]), "need")
        sp.minimise(used)

    dry = build(Graph.linear(3), stage, lower_bound=0)
    with pytest.raises(SolverError) as caught:
        pycobre.train(dry, {"forward_passes": 8, "iteration_limit": 5}, output=tmp_path)
    error = caught.value
    assert error.bundle is not None
    assert Path(error.bundle).parent == tmp_path / "failed"
    assert str(error).endswith(f"Solve it alone with: pycobre replay {error.bundle}")
    last = read_bundle(error.bundle).last_lp()
    assert (last.row_name(0), last.row_name(1)) == ("balance", "need")
