"""`status.json` while a run goes on: the stage of the pass, the ranks, the simulation."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_helpers import options, problem

import pycobre
from pycobre.app import run_log
from pycobre.app.results.status import RunStatus, read_status
from pycobre.events import Event, IterationFinished, SimulationProgress, StageFinished


@pytest.fixture(autouse=True)
def written_at_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "SHARE", 0.0)
    monkeypatch.setattr(run_log, "LIVE_S", 0.0)


def seen(directory: Path) -> RunStatus:
    status = read_status(directory)
    assert status is not None
    return status


def test_the_stage_of_the_pass_is_in_the_status_and_only_there(tmp_path: Path) -> None:
    found: list[tuple[object, ...]] = []
    kinds: set[str] = set()

    def watch(event: Event) -> None:
        kinds.add(event.kind)
        status = seen(tmp_path)
        if isinstance(event, StageFinished):
            assert (status.stage,) == event.nodes
            found.append((status.pass_name, status.stage, status.stage_number, status.stages))
        if isinstance(event, IterationFinished):
            assert (status.pass_name, status.stage) == (None, None)

    pycobre.train(problem(), options=options(1), output=tmp_path, progress_callback=watch)
    stages = len(problem().nodes)
    expected = [("backward", str(number), number, stages) for number in range(stages - 1, 0, -1)]
    assert found == expected
    assert not kinds & {"pass_progress", "ranks_measured"}
    assert not any(event["kind"] == "pass_progress" for event in pycobre.open_results(tmp_path).events())


def test_what_a_person_who_watches_wants_to_know_is_there(tmp_path: Path) -> None:
    def watch(event: Event) -> None:
        if not isinstance(event, IterationFinished) or event.worker_id:
            return
        status = seen(tmp_path)
        assert (status.iteration, status.sense) == (event.iteration, event.sense)
        assert (status.half_width, status.cuts) == (event.half_width, event.cuts_active)
        assert status.iteration_s is not None
        assert status.lps_per_s is not None
        assert status.iteration_s > 0
        assert status.lps_per_s > 0
        assert status.eta_s == pytest.approx(status.iteration_s * (4 - event.iteration))
        assert status.seconds_per_rank is not None
        assert sum(rank["lp_solves"] for rank in status.seconds_per_rank) == status.lp_solves
        assert status.memory_per_rank is not None
        assert min(status.memory_per_rank) > 1e7

    pycobre.train(problem(), options=options(4), output=tmp_path, progress_callback=watch)
    status = seen(tmp_path)
    assert status.checkpoint_at is not None
    assert status.checkpoint_at >= status.started
    assert status.retries == 0


def test_the_simulation_is_told_as_a_share_of_all_scenarios(tmp_path: Path) -> None:
    policy = pycobre.train(problem(), options=options(1)).policy
    done: list[int] = []

    def watch(event: Event) -> None:
        if isinstance(event, SimulationProgress):
            status = seen(tmp_path)
            done.append(status.scenarios_done)
            assert (status.phase, status.scenarios, status.pass_name) == ("simulating", 600, "simulation")
            assert (status.stage_number, status.eta_s is not None) == (status.stages, True)

    pycobre.simulate(problem(), policy, 600, output=tmp_path, progress_callback=watch)
    assert done == [256, 512, 600]
    assert (seen(tmp_path).scenarios_done, seen(tmp_path).pass_name) == (600, None)
