"""One directory, one run: nothing of two runs is ever mixed, two at once never both go on, all of them are found."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from run_helpers import options, problem

import pycobre
from pycobre.app.cli import main
from pycobre.app.results import list_runs
from pycobre.app.results.event_log import event_schema, read_events
from pycobre.app.results.lock import DirectoryLock, owner_of
from pycobre.app.results.record import read_record
from pycobre.app.results.status import read_status, status_schema
from pycobre.errors import OutputError, PolicyError
from pycobre.events import Event, IterationFinished
from pycobre.testing.problems import reservoir


def test_a_second_run_leaves_nothing_of_the_first_in_its_place(tmp_path: Path) -> None:
    first = pycobre.train(problem(), options=options(3), output=tmp_path)
    pycobre.simulate(problem(), first.policy, 5, output=tmp_path)
    assert pycobre.open_results(tmp_path).simulated
    second = pycobre.train(problem(), {"seed": 7}, options=options(2), output=tmp_path)
    now = pycobre.open_results(tmp_path)
    assert now.metadata["policy_digest"] == second.policy_digest
    assert now.simulated == ()
    assert not any("previous" in name for name in now.files)
    with pytest.raises(OutputError, match="there is no costs table here"):
        now.simulation("costs")
    runs = list_runs(tmp_path)
    assert [found.metadata["policy_digest"] for _, found in runs] == [
        first.policy_digest,
        second.policy_digest,
    ]
    before = pycobre.open_results(tmp_path, run=runs[0][0])
    assert before.simulation("paths").num_rows == 5 * 6
    assert pycobre.Policy.load(before.policy_path).digest == first.policy_digest
    with pytest.raises(OutputError, match=r"expected the id of one of its runs, got 'nonsense'. There are: "):
        pycobre.open_results(tmp_path, run="nonsense")


def test_training_and_simulation_of_its_policy_are_one_record(tmp_path: Path) -> None:
    trained = pycobre.train(problem(), options=options(3), output=tmp_path)
    pycobre.simulate(problem(), trained.policy, 5, output=tmp_path)
    pycobre.simulate(problem(), trained.policy, 7, output=tmp_path)
    results = pycobre.open_results(tmp_path)
    assert results.metadata["lower_bound"] == trained.final_lower_bound
    assert results.metadata["iterations"] == 3
    assert results.metadata["termination_reason"] == "iteration_limit"
    assert results.metadata["simulation"]["scenarios"] == 7
    assert results.metadata["simulation"]["policy_digest"] == trained.policy_digest
    record = read_record(tmp_path)
    assert record is not None
    assert [(s.train, s.simulate, s.state) for s in record.sessions] == [
        (True, False, "finished"),
        (False, True, "finished"),
        (False, True, "finished"),
    ]
    (earlier, found), _ = list_runs(tmp_path)
    assert earlier == f"{record.id}.2"
    assert found.simulation("paths").num_rows == 5 * 6


def test_a_simulation_of_another_policy_is_another_run(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(3), output=tmp_path)
    other = pycobre.train(problem(), {"seed": 7}, options=options(3))
    pycobre.simulate(problem(), other.policy, 5, output=tmp_path)
    results = pycobre.open_results(tmp_path)
    assert not results.trained
    assert results.metadata["policy_digest"] == other.policy_digest
    assert len(list_runs(tmp_path)) == 2


def test_tables_are_not_served_with_another_policy(tmp_path: Path) -> None:
    trained = pycobre.train(problem(), options=options(2), output=tmp_path)
    pycobre.simulate(problem(), trained.policy, 2, output=tmp_path)
    path = tmp_path / "metadata.json"
    document = json.loads(path.read_text())
    document["simulation"]["policy_digest"] = "0" * 64
    path.write_text(json.dumps(document))
    with pytest.raises(OutputError, match=r"expected a simulation of policy .*, got one of 000000000000"):
        pycobre.open_results(tmp_path).simulation("paths")


def test_a_refused_resume_leaves_the_results_in_place(tmp_path: Path) -> None:
    first = pycobre.train(problem(), options=options(2), output=tmp_path)
    with pytest.raises(PolicyError, match="the problem has changed"):
        pycobre.train(reservoir(5), options=options(4), output=tmp_path, resume=True)
    assert pycobre.open_results(tmp_path).metadata["policy_digest"] == first.policy_digest
    status = read_status(tmp_path)
    assert status is not None
    assert (status.state, status.error and status.error["kind"]) == ("failed", "PolicyError")


def test_results_from_before_there_were_records_are_moved_too(tmp_path: Path) -> None:
    first = pycobre.train(problem(), options=options(2), output=tmp_path)
    for name in ("run.json", "status.json", "events.jsonl", ".lock"):
        (tmp_path / name).unlink()
    pycobre.train(problem(), options=options(1), output=tmp_path)
    (name, found), _ = list_runs(tmp_path)
    assert name.endswith("-unrecorded")
    assert found.metadata["policy_digest"] == first.policy_digest


def test_earlier_runs_are_removed_when_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(4):
        pycobre.train(problem(), {"iteration_limit": 1, "seed": seed}, output=tmp_path)
    names = [name for name, _ in list_runs(tmp_path)]
    assert len(names) == 4  # nothing removes them by itself
    lock = DirectoryLock(tmp_path)
    assert main(["runs", str(tmp_path), "--keep", "1"]) == 2
    assert "expected a directory that no run writes to" in capsys.readouterr().err
    lock.release()
    assert main(["runs", str(tmp_path), "--keep", "-1"]) == 1
    assert "--keep: expected at least 0, got -1." in capsys.readouterr().err
    assert main(["runs", str(tmp_path), "--keep", "1"]) == 0
    assert capsys.readouterr().out.startswith(f"removed: {names[0]}, {names[1]}\n")
    assert [name for name, _ in list_runs(tmp_path)] == names[2:]
    assert main(["runs", str(tmp_path), "--keep", "0"]) == 0
    assert [path.name for path in (tmp_path / "previous").iterdir()] == []
    assert pycobre.open_results(tmp_path).metadata["iterations"] == 1


def test_what_is_not_of_a_run_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    pycobre.train(problem(), options=options(1), output=tmp_path)
    pycobre.train(problem(), options=options(1), output=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_run_at_once_is_refused_by_process_and_host(workers: int, tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.sign("20260101T000000Z-abc")
    expected = (
        rf"expected a directory that no run writes to, got one in use by process {os.getpid()} on \S+ "
        r"\(run 20260101T000000Z-abc\)\. Wait for that run, stop it, or choose another output directory\."
    )
    try:
        with pytest.raises(pycobre.CobreError, match=expected) as caught:
            pycobre.train(problem(), options=options(1), output=tmp_path, num_workers=workers)
        assert isinstance(getattr(caught.value, "inner", caught.value), OutputError)
    finally:
        lock.release()
    assert owner_of(tmp_path) is None
    assert pycobre.train(problem(), options=options(1), output=tmp_path).iterations == 1


def _hold(directory: str, ready: "multiprocessing.synchronize.Event") -> None:
    DirectoryLock(directory)
    ready.set()
    time.sleep(600)


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), ready))
    holder.start()
    assert ready.wait(120)
    owner = owner_of(tmp_path)
    assert owner is not None
    assert owner.pid == holder.pid
    with pytest.raises(OutputError, match=f"in use by process {holder.pid}"):
        DirectoryLock(tmp_path)
    holder.kill()
    holder.join()
    assert owner_of(tmp_path) is None
    DirectoryLock(tmp_path).release()


KILLED = """
import sys
import pycobre
from pycobre.events import IterationFinished
from pycobre.testing.problems import reservoir
from run_helpers import options

def report(event):
    if isinstance(event, IterationFinished):
        print(event.iteration, flush=True)

pycobre.train(reservoir(6), options=options(100000), output=sys.argv[1], num_workers=int(sys.argv[2]),
              progress_callback=report)
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("iterations", [1, 4])
def test_resume_after_sigkill_with_default_settings(workers: int, iterations: int, tmp_path: Path) -> None:
    """Killed with no time to do anything, some iterations in: what was reached two minutes ago is there."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(workers)],
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    ) as process:
        assert process.stdout is not None
        for _ in range(iterations):
            process.stdout.readline()
        seen = read_status(tmp_path)
        process.send_signal(signal.SIGKILL)
    assert seen is not None
    assert seen.state == "running"
    while owner_of(tmp_path) is not None:  # ranks notice that their launcher is gone, and end
        time.sleep(0.01)
    status = read_status(tmp_path)
    assert status is not None
    assert status.state == "lost"
    resumed = pycobre.train(problem(), options=options(30), output=tmp_path, resume=True)
    assert resumed.policy_digest == pycobre.train(problem(), options=options(30)).policy_digest
    record = read_record(tmp_path)
    assert record is not None
    assert [session.state for session in record.sessions][-1] == "finished"


def test_resuming_a_run_that_was_lost_before_its_first_checkpoint_starts_it(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(3), output=tmp_path)
    for path in (tmp_path / "checkpoints").iterdir():
        path.unlink()
    resumed = pycobre.train(problem(), options=options(3), output=tmp_path, resume=True)
    assert any("ended before its first checkpoint: starting at iteration 1" in w for w in resumed.warnings)
    assert resumed.iterations == 3


def test_a_run_can_be_watched_while_it_goes_on(tmp_path: Path) -> None:
    """A reader sees whole records only, and each iteration in the log when its event has been delivered."""
    seen: list[int] = []

    def watch(event: Event) -> None:
        if not isinstance(event, IterationFinished):
            return
        results = pycobre.open_results(tmp_path)
        assert results.metadata == {}
        status = results.status
        assert status is not None
        assert (status.state, status.phase) == ("running", "training")
        finished = [e["iteration"] for e in results.events() if e["kind"] == "iteration_finished"]
        assert finished == list(range(1, event.iteration + 1))
        seen.append(event.iteration)

    pycobre.train(problem(), options=options(6), output=tmp_path, progress_callback=watch)
    assert seen == [1, 2, 3, 4, 5, 6]
    status = read_status(tmp_path)
    assert status is not None
    assert (status.state, status.phase, status.iteration) == ("finished", "done", 6)
    assert status.result is not None
    assert status.result["iterations"] == 6
    assert status.checkpoint_iteration == 6


def test_events_and_status_are_as_their_schemas_say(tmp_path: Path) -> None:
    trained = pycobre.train(problem(), options=options(2), output=tmp_path, num_workers=2)
    pycobre.simulate(problem(), trained.policy, 3, output=tmp_path)
    kinds = {each["properties"]["kind"]["const"]: each for each in event_schema()["oneOf"]}
    lines = [event for event, _ in read_events(tmp_path)]
    assert {line["kind"] for line in lines} >= {
        "training_started",
        "iteration_finished",
        "checkpoint_written",
        "training_finished",
        "simulation_started",
        "simulation_finished",
        "run_finished",
    }
    for line in lines:
        check(kinds[line["kind"]], line)
    check(status_schema(), json.loads((tmp_path / "status.json").read_text()))


def check(schema: dict[str, object], document: dict[str, object]) -> None:
    """The part of JSON Schema that is used."""
    types = {"integer": int, "number": (int, float), "string": str, "boolean": bool, "null": type(None)}
    types |= {"array": list, "object": dict}
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert set(document) == set(schema["required"]) == set(properties)  # type: ignore[call-overload]
    for name, value in document.items():
        rule = properties[name]
        if "const" in rule:
            assert value == rule["const"]
        elif "enum" in rule:
            assert value in rule["enum"]
        else:
            allowed = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
            assert isinstance(value, tuple(types[each] for each in allowed)), (name, value, rule)  # type: ignore[misc]


def test_a_line_that_was_broken_off_is_skipped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(2), output=tmp_path)
    path = tmp_path / "events.jsonl"
    whole = len(list(read_events(tmp_path)))
    path.write_bytes(path.read_bytes()[:-20])
    assert len(list(read_events(tmp_path))) == whole - 1
    pycobre.train(problem(), options=options(3), output=tmp_path, resume=True)
    kinds = [event["kind"] for event, _ in read_events(tmp_path)]
    assert kinds[whole - 1] == "training_started"
    assert kinds[-1] == "run_finished"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_is_in_the_status_with_its_remedy(workers: int, tmp_path: Path) -> None:
    (tmp_path / "policy").write_text("in the way")
    with pytest.raises(pycobre.CobreError, match="cannot write the results"):
        pycobre.train(problem(), options=options(3), output=tmp_path, num_workers=workers)
    status = read_status(tmp_path)
    assert status is not None
    assert (status.state, status.iteration) == ("failed", 3)
    assert status.error is not None
    assert {name: status.error[name] for name in ("kind", "exit_code")} == {
        "kind": "OutputError",
        "exit_code": 2,
    }
    assert "cannot write the results" in status.error["message"]
    assert "name another file or directory" in status.error["remedy"]
    *_, (last, _) = read_events(tmp_path)
    assert (last["kind"], last["error"]) == ("run_failed", status.error)
    record = read_record(tmp_path)
    assert record is not None
    assert record.state == "failed"
