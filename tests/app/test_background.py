"""A run as an object: watched, asked, stopped, awaited, from this process and from others, with the same bits."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from run_helpers import options, problem, segments, workers_alive

import pycobre
from pycobre.app.results.control import ControlFile, ControlRequest, send_request
from pycobre.app.results.event_log import read_events
from pycobre.app.results.status import read_status
from pycobre.app.steering import with_limit
from pycobre.errors import CaseError, OptionError, OutputError, WorkerError
from pycobre.sddp import AllOf, AnyOf, BoundStalling, IterationLimit, StoppingRule, TimeLimit

LONG = 100_000


def until(condition, patience_s: float = 240.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kinds(directory: Path) -> list[str]:
    return [event["kind"] for event, _ in read_events(directory)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_started_run_gives_what_train_and_simulate_give(workers: int, tmp_path: Path) -> None:
    run = pycobre.start(problem(), options=options(5), output=tmp_path, scenarios=4, num_workers=workers)
    seen = [event["kind"] for event in run.events()]
    assert seen[0] == "training_started"
    assert seen[-1] == "run_finished"
    assert seen.count("iteration_finished") == 5
    results = run.result()
    whole = pycobre.train(problem(), options=options(5))
    assert results.metadata["policy_digest"] == whole.policy_digest
    simulated = pycobre.simulate(problem(), whole.policy, 4)
    assert results.metadata["simulation"]["mean"] == simulated.mean_cost
    assert results.simulation("paths").equals(simulated.tables["paths"])
    assert run.status().state == "finished"
    assert not run.running
    assert pycobre.Run.attach(tmp_path).result().metadata == results.metadata
    assert workers_alive() == {}


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_run_that_is_asked_gives_the_same_bits_on_any_number_of_ranks(workers: int, tmp_path: Path) -> None:
    """The limit is raised before the run begins to look, so every number of ranks does the same."""
    run = pycobre.start(problem(), options=options(LONG), output=tmp_path, num_workers=workers)
    other = pycobre.Run.attach(tmp_path)
    other.checkpoint()
    until(lambda: "control_applied" in kinds(tmp_path))
    now = run.status().iteration
    other.set_iteration_limit(now + 500)
    results = run.result(timeout=240)
    asked = [event for event, _ in read_events(tmp_path) if event["kind"] == "control_applied"]
    assert [(event["action"], event["value"]) for event in asked] == [
        ("checkpoint", None),
        ("iteration_limit", now + 500),
    ]
    done = results.metadata["iterations"]
    assert done >= now + 500
    assert results.metadata["termination_reason"] == "iteration_limit"
    written = [
        event["iteration"] for event, _ in read_events(tmp_path) if event["kind"] == "checkpoint_written"
    ]
    assert asked[0]["iteration"] in written
    # What was asked is recorded, and so the run can be repeated.
    again = pycobre.train(problem(), options=options(done))
    assert results.metadata["policy_digest"] == again.policy_digest


@pytest.mark.parametrize("attached", [False, True])
def test_a_run_is_stopped_after_the_iteration_and_resumed(attached: bool, tmp_path: Path) -> None:
    run = pycobre.start(problem(), options=options(LONG), output=tmp_path, scenarios=3, num_workers=2)
    (pycobre.Run.attach(tmp_path) if attached else run).stop()
    results = run.result(timeout=240)
    assert run.status().state == "interrupted"
    assert results.metadata["termination_reason"] == "interrupted"
    assert "simulation" not in results.metadata
    done = results.metadata["iterations"]
    resumed = pycobre.train(problem(), options=options(done + 3), output=tmp_path, resume=True)
    assert resumed.policy_digest == pycobre.train(problem(), options=options(done + 3)).policy_digest


@pytest.mark.parametrize("attached", [False, True])
def test_a_run_is_ended_now_and_resumed(attached: bool, tmp_path: Path) -> None:
    run = pycobre.start(problem(), options=options(LONG), output=tmp_path, num_workers=2)
    until(lambda: run.status().checkpoint_iteration is not None)
    (pycobre.Run.attach(tmp_path) if attached else run).stop(after="now")
    with pytest.raises(WorkerError, match="was killed by signal 9"):
        run.result(timeout=240)
    other = pycobre.Run.attach(tmp_path)
    assert other.status().state == "lost"
    with pytest.raises(OutputError, match="the process of the run is gone"):
        other.result()
    assert workers_alive() == {}
    assert segments() == set()
    resumed = pycobre.train(problem(), options=options(6), output=tmp_path, resume=True)
    assert resumed.iterations >= 6


def test_a_run_can_be_awaited_and_its_events_too(tmp_path: Path) -> None:
    async def main() -> tuple[int, str]:
        run = pycobre.start(problem(), options=options(4), output=tmp_path)
        count = 0
        async for event in run.events():
            count += event["kind"] == "iteration_finished"
        return count, (await run).metadata["policy_digest"]

    assert asyncio.run(main()) == (4, pycobre.train(problem(), options=options(4)).policy_digest)


def test_cancelling_stops_the_run(tmp_path: Path) -> None:
    async def main() -> pycobre.Run:
        run = pycobre.start(problem(), options=options(LONG), output=tmp_path)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_wait(run), 0.2)
        return run

    async def _wait(run: pycobre.Run) -> object:
        return await run

    run = asyncio.run(main())
    assert run.result(timeout=240).metadata["termination_reason"] == "interrupted"


def test_what_is_wrong_is_raised_when_it_is_started(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="output: expected a directory for the run, got none"):
        pycobre.start(problem(), options=options(1))
    with pytest.raises(CaseError):
        pycobre.start(tmp_path / "nothing")
    with pytest.raises(OutputError, match="expected the directory of a run, got one without a status"):
        pycobre.Run.attach(tmp_path)
    run = pycobre.start(problem(), options=options(1), output=tmp_path)
    with pytest.raises(OptionError, match="stop: expected 'iteration' or 'now', got 'later'"):
        run.stop("later")
    run.result()
    assert workers_alive() == {}


def test_a_run_that_still_goes_on_times_out(tmp_path: Path) -> None:
    run = pycobre.start(problem(), options=options(LONG), output=tmp_path)
    with pytest.raises(TimeoutError, match="still goes on"):
        run.result(timeout=0.05)
    with pytest.raises(TimeoutError, match="still goes on"):
        pycobre.Run.attach(tmp_path).result(timeout=0.05)
    run.stop()
    run.result(timeout=240)


def test_nothing_in_the_control_file_is_believed_unchecked(tmp_path: Path) -> None:
    control = ControlFile(tmp_path)
    send_request(tmp_path, "iteration_limit", 7)
    lines = [
        b"{",
        b"[]",
        b'{"action":"run"}',
        b'{"action":"iteration_limit","value":true}',
        b'{"action":"stop","value":1}',
    ]
    with (tmp_path / "control.jsonl").open("ab") as file:
        file.write(b"\n".join(lines) + b"\n" + b'{"action":"st')
    requests, faults = control.poll()
    assert requests == [ControlRequest("iteration_limit", 7)]
    assert len(faults) == len(lines)
    assert all("expected one of checkpoint, stop, iteration_limit, got" in fault for fault in faults)
    with (tmp_path / "control.jsonl").open("ab") as file:
        file.write(b'op"}\n')
    assert control.poll() == ([ControlRequest("stop")], [])
    assert control.poll() == ([], [])
    for action, value in (("fly", None), ("iteration_limit", 0), ("iteration_limit", None), ("stop", 3)):
        with pytest.raises(
            OptionError, match="request to a run: expected checkpoint, stop or iteration_limit"
        ):
            send_request(tmp_path, action, value)
    with pytest.raises(OutputError, match="cannot write: No such file"):
        send_request(tmp_path / "nowhere", "stop")


def test_what_an_earlier_session_was_asked_is_forgotten(tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "control.jsonl").write_text(json.dumps({"action": "stop"}) + "\n")
    assert pycobre.train(problem(), options=options(3), output=tmp_path).iterations == 3
    assert os.path.exists(tmp_path / "status.json")
    assert read_status(tmp_path) is not None


def test_a_limit_is_replaced_wherever_it_stands() -> None:
    stalling = BoundStalling(5, 1e-3)
    cases: list[tuple[StoppingRule, StoppingRule]] = [
        (IterationLimit(3), IterationLimit(9)),
        (AnyOf(stalling, IterationLimit(3)), AnyOf(stalling, IterationLimit(9))),
        (stalling, AnyOf(stalling, IterationLimit(9))),
        (AllOf(TimeLimit(3.0), stalling), AnyOf(AllOf(TimeLimit(3.0), stalling), IterationLimit(9))),
    ]
    for before, after in cases:
        assert with_limit(before, 9) == after
