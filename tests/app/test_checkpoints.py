"""Checkpoints: resumed runs equal uninterrupted ones, and no torn or missing file loses anything."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from run_helpers import options, problem

import pycobre
from pycobre._util import container
from pycobre.errors import CobreError, OptionError, OutputError, PolicyError
from pycobre.events import CheckpointWritten, Event, WarningRaised
from pycobre.sddp import CVaR, IterationLimit
from pycobre.sddp.training.checkpoint import Checkpoints, latest, read_checkpoint
from pycobre.testing.problems import reservoir


@pytest.fixture(scope="module")
def whole() -> str:
    return pycobre.train(problem(), options=options(9)).policy_digest


def files(output: Path) -> list[str]:
    return sorted(path.name for path in (output / "checkpoints").glob("*.cobre"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({}, {"num_workers": 2, "backend": "shm"}),
        ({"num_workers": 3, "backend": "shm"}, {"num_workers": 2, "backend": "tcp", "threads": 2}),
        ({"num_workers": 2, "backend": "tcp"}, {}),
    ],
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(
    first: dict[str, object], second: dict[str, object], whole: str, tmp_path: Path
) -> None:
    pycobre.train(problem(), options=options(4), output=tmp_path, **first)  # type: ignore[arg-type]
    went_on = pycobre.train(problem(), options=options(9), output=tmp_path, resume=True, **second)  # type: ignore[arg-type]
    assert went_on.policy_digest == whole
    assert went_on.iterations == 9
    assert went_on.convergence_history.num_rows == 9


def test_the_last_three_are_kept_and_every_write_is_an_event(tmp_path: Path) -> None:
    seen: list[Event] = []
    pycobre.train(
        problem(), options=options(7), output=tmp_path, checkpoint_iterations=2, progress_callback=seen.append
    )
    assert files(tmp_path) == ["00000004.cobre", "00000006.cobre", "00000007.cobre"]
    assert [e.iteration for e in seen if isinstance(e, CheckpointWritten)] == [2, 4, 6, 7]


def test_a_torn_checkpoint_is_said_and_the_one_before_it_used(whole: str, tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(6), output=tmp_path, checkpoint_iterations=2)
    newest = tmp_path / "checkpoints" / "00000006.cobre"
    newest.write_bytes(newest.read_bytes()[:-100])
    seen: list[Event] = []
    result = pycobre.train(
        problem(), options=options(9), output=tmp_path, resume=True, progress_callback=seen.append
    )
    warnings = [event.message for event in seen if isinstance(event, WarningRaised)]
    assert any("00000006.cobre: checksum mismatch" in text for text in warnings)
    assert any("00000006.cobre: checksum mismatch" in text for text in result.warnings)
    assert result.policy_digest == whole


def test_a_caller_without_a_callback_hears_of_it_in_the_result(whole: str, tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(4), output=tmp_path, checkpoint_iterations=2)
    newest = tmp_path / "checkpoints" / "00000004.cobre"
    newest.write_bytes(newest.read_bytes()[:-100])
    result = pycobre.train(problem(), options=options(9), output=tmp_path, resume=True, num_workers=2)
    assert any("00000004.cobre: checksum mismatch" in text for text in result.warnings)
    assert result.policy_digest == whole


def test_a_changed_checkpoint_is_recognised(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(1), output=tmp_path)
    path = tmp_path / "checkpoints" / "00000001.cobre"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(
        PolicyError, match=r"none of its 1 checkpoints can be read.*the file is truncated or corrupt"
    ):
        latest(tmp_path / "checkpoints")


def test_another_problem_or_other_options_are_refused_with_the_difference(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(2), output=tmp_path)
    with pytest.raises(PolicyError, match="the problem has changed"):
        pycobre.train(reservoir(5), options=options(4), output=tmp_path, resume=True)
    with pytest.raises(PolicyError, match=r"risk was Expectation\(\), is CVaR\(tail=0.5\)"):
        pycobre.train(problem(), options=replace(options(4), risk=CVaR(0.5)), output=tmp_path, resume=True)


def test_resuming_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="expected checkpoints of an earlier run, got none"):
        pycobre.train(problem(), options=options(2), output=tmp_path, resume=True)


def test_iteration_limits_are_totals(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(5), output=tmp_path)
    again = pycobre.train(problem(), options=options(5), output=tmp_path, resume=True)
    assert (again.iterations, again.termination_reason) == (5, "iteration_limit")


def test_a_new_run_sets_the_earlier_checkpoints_aside(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(5), output=tmp_path)
    pycobre.train(problem(), options=options(2), output=tmp_path)
    assert files(tmp_path) == ["00000001.cobre", "00000002.cobre"]
    (earlier,) = (tmp_path / "previous").iterdir()
    assert read_checkpoint(earlier / "checkpoints" / "00000005.cobre").iteration == 5


def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pycobre.train(problem(), options=options(3), output=tmp_path)
    before = (tmp_path / "checkpoints" / "00000003.cobre").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(container.os, "fsync", full)
    with pytest.raises(OutputError, match=r"No space left on device\. What was there before is untouched"):
        pycobre.train(problem(), options=options(6), output=tmp_path, resume=True)
    monkeypatch.undo()
    assert (tmp_path / "checkpoints" / "00000003.cobre").read_bytes() == before
    assert pycobre.train(problem(), options=options(6), output=tmp_path, resume=True).iterations == 6


def test_a_directory_that_cannot_be_written_is_refused_before_training() -> None:
    started: list[Event] = []
    # Not even root may create anything there.
    with pytest.raises(OutputError, match="cannot create the directory"):
        pycobre.train(problem(), options=options(2), output="/proc/run", progress_callback=started.append)
    assert started == []


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_impossible_output_directory_is_refused_on_every_rank(num_workers: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        pycobre.CobreError, match=r"cannot create the directory: (File exists|Not a directory)"
    ):
        pycobre.train(problem(), options=options(2), output=tmp_path / "file", num_workers=num_workers)


def test_checkpoints_by_the_clock(tmp_path: Path) -> None:
    now = [0.0]
    due = Checkpoints(tmp_path, minutes=1.0, clock=lambda: now[0])
    assert not due.due(1, last=False)
    now[0] = 60.0
    assert due.due(2, last=False)
    assert due.due(3, last=True)
    by_default = Checkpoints(tmp_path, clock=lambda: now[0])
    assert by_default.due(1, last=False)
    for wrong in ({"iterations": 0}, {"minutes": 0.0}):
        with pytest.raises(OptionError, match=r"checkpoint (iterations|minutes): expected"):
            Checkpoints(tmp_path, **wrong)  # type: ignore[arg-type]


def test_results_are_complete_when_there_is_a_manifest(tmp_path: Path) -> None:
    pycobre.train(problem(), options=options(2), output=tmp_path)
    results = pycobre.open_results(tmp_path)
    assert set(results.files) >= {"metadata.json", "policy/policy.cobre", "training/convergence.parquet"}
    assert results.metadata["policy_digest"] == pycobre.Policy.load(results.policy_path).digest
    assert results.convergence.num_rows == 2
    assert IterationLimit(2).limit == results.metadata["iterations"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_directory_that_cannot_be_made_is_an_error_of_files(
    workers: int, whole: str, tmp_path: Path
) -> None:
    """The policy's directory is the first that is made after training; a file is in its place."""
    (tmp_path / "policy").write_text("in the way")
    arguments = {"options": options(9), "output": tmp_path, "num_workers": workers}
    with pytest.raises(
        CobreError, match=r"cannot write the results: (File exists|Not a directory)"
    ) as caught:
        pycobre.train(problem(), **arguments)
    assert isinstance(getattr(caught.value, "inner", caught.value), OutputError)
    (tmp_path / "policy").unlink()
    assert pycobre.train(problem(), resume=True, **arguments).policy_digest == whole
