"""With default settings a lost worker, or a lost launcher, costs no finished iteration: rank 0 writes its state."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from run_helpers import options, problem, segments, workers_alive

import pycobre
from pycobre.app.results.event_log import read_events
from pycobre.app.results.lock import owner_of
from pycobre.errors import SolverError, WorkerError
from pycobre.events import Event, IterationFinished
from pycobre.sddp.training import checkpoint
from pycobre.sddp.training.checkpoint import latest
from pycobre.sddp.training.trainer import Trainer

sys.path.insert(0, str(Path(__file__).parents[1] / "comm"))

from waiting import until

ITERATIONS = 40
RUN = """
import sys
import pycobre
from run_helpers import options, problem

pycobre.train(problem(), options=options(100_000), output=sys.argv[1], num_workers=2, backend=sys.argv[2])
"""


def seconds(directory: Path) -> float:
    """How long a run's iterations have taken, as far as it has said so."""
    told = [event["total_s"] for event, _ in read_events(directory) if event["kind"] == "iteration_finished"]
    return told[-1] if told else 0.0


@pytest.fixture(scope="module")
def undisturbed() -> str:
    return pycobre.train(problem(), options=options(ITERATIONS)).policy_digest


def iterations(directory: Path) -> int:
    """How many a run has finished, as far as it has said so."""
    return sum(event["kind"] == "iteration_finished" for event, _ in read_events(directory))


def resumed_like_undisturbed(directory: Path) -> int:
    """Resume for two more iterations, to the bits of a run of as many; the iteration resumed from."""
    state, faults = latest(directory / "checkpoints")
    assert faults == []
    more = options(state.iteration + 2)
    resumed = pycobre.train(problem(), options=more, output=directory, resume=True)
    assert resumed.policy_digest == pycobre.train(problem(), options=more).policy_digest
    return state.iteration


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_rank_0_writes_its_state_when_a_worker_is_lost(backend: str, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill(event: Event) -> None:
        # Many times as long after the start as it takes between two states that are held.
        if isinstance(event, IterationFinished) and event.total_s > 0.5 and not killed:
            killed.append(event.iteration)
            with suppress(ProcessLookupError):
                os.kill(workers_alive()[1], signal.SIGKILL)

    with pytest.raises(WorkerError, match="worker 1 was killed by signal 9"):
        pycobre.train(
            problem(),
            options=options(100_000),
            output=tmp_path,
            num_workers=2,
            backend=backend,
            progress_callback=kill,
        )
    status = pycobre.open_results(tmp_path).status
    assert status is not None
    reached = resumed_like_undisturbed(tmp_path)
    # The default settings have written the first iteration alone.
    assert 1 < reached <= killed[0]
    assert status.checkpoint_iteration == reached
    assert workers_alive() == {}
    assert segments() == set()


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_rank_0_writes_its_state_when_its_launcher_is_killed(backend: str, tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), backend],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    try:
        until(lambda: seconds(tmp_path) > 0.5)
    finally:
        run.kill()
        run.wait()
    until(lambda: owner_of(tmp_path) is None)
    said = iterations(tmp_path)
    assert 1 < resumed_like_undisturbed(tmp_path) <= said


def test_a_failure_of_the_run_itself_costs_no_finished_iteration(
    monkeypatch: pytest.MonkeyPatch, undisturbed: str, tmp_path: Path
) -> None:
    real = Trainer._backward

    def backward(self: Trainer, iteration: int, *others: Any) -> int:
        if iteration == 7:
            raise SolverError("no solution")
        return real(self, iteration, *others)

    monkeypatch.setattr(Trainer, "_backward", backward)
    monkeypatch.setattr(checkpoint, "SHARE", 0.0)  # these iterations are too short to hold each
    with pytest.raises(SolverError, match="no solution"):
        pycobre.train(problem(), options=options(ITERATIONS), output=tmp_path)
    monkeypatch.undo()
    assert latest(tmp_path / "checkpoints")[0].iteration == 6
    resumed = pycobre.train(problem(), options=options(ITERATIONS), output=tmp_path, resume=True)
    assert resumed.policy_digest == undisturbed


def test_a_state_that_cannot_be_written_is_a_note_on_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def backward(self: Trainer, iteration: int, *others: Any) -> int:
        shutil.rmtree(tmp_path / "checkpoints")
        raise SolverError("no solution")

    def begun(event: Event) -> None:
        if isinstance(event, IterationFinished) and event.iteration == 2:
            monkeypatch.setattr(Trainer, "_backward", backward)

    monkeypatch.setattr(checkpoint, "SHARE", 0.0)  # these iterations are too short to hold each
    with pytest.raises(SolverError, match="no solution") as caught:
        pycobre.train(problem(), options=options(9), output=tmp_path, progress_callback=begun)
    (note,) = caught.value.__notes__
    assert note.startswith("the state of the last iteration could not be written: ")
    assert "No such file or directory" in note
