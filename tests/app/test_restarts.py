"""A lost worker is replaced by a restart from the newest checkpoint, with the bits of an undisturbed run."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from run_helpers import options, problem, segments, workers_alive

import pycobre
from pycobre.app.results.record import read_record
from pycobre.errors import OptionError, WorkerError
from pycobre.events import Event, IterationFinished, WarningRaised

ITERATIONS = 12


@pytest.fixture(scope="module")
def undisturbed() -> str:
    return pycobre.train(problem(), options=options(ITERATIONS)).policy_digest


class Killer:
    """Sends a signal to a worker at the end of given iterations, each once."""

    def __init__(self, *iterations: int, by: signal.Signals = signal.SIGKILL) -> None:
        self._left, self._by = list(iterations), by
        self.warnings: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, WarningRaised):
            self.warnings.append(event.message)
        if isinstance(event, IterationFinished) and event.iteration in self._left:
            self._left.remove(event.iteration)
            with suppress(ProcessLookupError):
                os.kill(workers_alive()[event.iteration % 2], self._by)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_run_is_restarted_from_its_checkpoint(backend: str, undisturbed: str, tmp_path: Path) -> None:
    killer = Killer(3, 6)
    result = pycobre.train(
        problem(),
        options=options(ITERATIONS),
        output=tmp_path,
        num_workers=2,
        backend=backend,
        restarts=2,
        progress_callback=killer,
        checkpoint_iterations=2,
    )
    assert result.policy_digest == undisturbed
    assert [text for text in killer.warnings if "restart" in text] == [
        "worker 1 was killed by signal 9: restart 1 of 2, on 2 workers",
        "worker 0 was killed by signal 9: restart 2 of 2, on 2 workers",
    ]
    record = read_record(tmp_path)
    assert record is not None
    assert len(record.sessions) == 3
    assert workers_alive() == {}
    assert segments() == set()


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_run_goes_on_with_fewer_workers_to_the_same_bits(
    backend: str, undisturbed: str, tmp_path: Path
) -> None:
    killer = Killer(2, 4, 6)
    result = pycobre.train(
        problem(),
        options=options(ITERATIONS),
        output=tmp_path,
        num_workers=3,
        backend=backend,
        restarts=3,
        min_workers=2,
        progress_callback=killer,
    )
    assert result.policy_digest == undisturbed
    assert [text.rpartition(": ")[2] for text in killer.warnings if "restart" in text] == [
        f"restart {number} of 3, on 2 workers" for number in (1, 2, 3)
    ]
    assert result.workers is not None
    assert len(result.workers) == 2
    record = read_record(tmp_path)
    assert record is not None
    assert [session.ranks for session in record.sessions] == [3, 2, 2, 2]
    assert workers_alive() == {}
    assert segments() == set()


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_an_evicted_worker_is_replaced_without_losing_an_iteration(
    backend: str, undisturbed: str, tmp_path: Path
) -> None:
    killer = Killer(3, by=signal.SIGTERM)
    result = pycobre.train(
        problem(),
        options=options(ITERATIONS),
        output=tmp_path,
        num_workers=2,
        backend=backend,
        restarts=1,
        min_workers=1,
        progress_callback=killer,
    )
    assert result.policy_digest == undisturbed
    (said,) = [text for text in killer.warnings if "restart" in text]
    assert said == "worker 1 was asked to end by signal 15: restart 1 of 1, on 1 worker"
    record = read_record(tmp_path)
    assert record is not None
    assert [(session.state, session.ranks) for session in record.sessions] == [
        ("interrupted", 2),
        ("finished", 1),
    ]


def test_an_evicted_worker_ends_a_run_that_may_not_restart_after_the_iteration(
    undisturbed: str, tmp_path: Path
) -> None:
    killer = Killer(3, by=signal.SIGTERM)
    first = pycobre.train(
        problem(), options=options(ITERATIONS), output=tmp_path, num_workers=2, progress_callback=killer
    )
    assert first.termination_reason == "interrupted"
    rest = pycobre.train(problem(), options=options(ITERATIONS), output=tmp_path, resume=True)
    assert rest.policy_digest == undisturbed


def test_the_last_worker_goes_on_alone(undisturbed: str, tmp_path: Path) -> None:
    killer = Killer(3)
    result = pycobre.train(
        problem(),
        options=options(ITERATIONS),
        output=tmp_path,
        num_workers=2,
        restarts=1,
        min_workers=1,
        progress_callback=killer,
    )
    assert result.policy_digest == undisturbed
    assert "restart 1 of 1, on 1 worker" in " ".join(killer.warnings)


def test_what_is_lost_once_more_than_allowed_is_raised(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="was killed by signal 9"):
        pycobre.train(
            problem(),
            options=options(ITERATIONS),
            output=tmp_path,
            num_workers=2,
            restarts=1,
            progress_callback=Killer(2, 3),
            checkpoint_iterations=1,
        )
    assert workers_alive() == {}


def test_a_failure_of_the_run_itself_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "policy").write_text("in the way")
    with pytest.raises(WorkerError, match="cannot write the results"):
        pycobre.train(problem(), options=options(2), output=tmp_path, num_workers=2, restarts=3)
    record = read_record(tmp_path)
    assert record is not None
    assert len(record.sessions) == 1


def test_restarts_need_workers_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="restarts: expected 0 without workers, got 1"):
        pycobre.train(problem(), options=options(2), output=tmp_path, restarts=1)
    with pytest.raises(OptionError, match="min_workers: expected at most the number of workers, 2, got 3"):
        pycobre.train(
            problem(), options=options(2), output=tmp_path, num_workers=2, restarts=1, min_workers=3
        )
    with pytest.raises(OptionError, match="min_workers: expected at least 1, got 0"):
        pycobre.train(
            problem(), options=options(2), output=tmp_path, num_workers=2, restarts=1, min_workers=0
        )
    with pytest.raises(OptionError, match="restarts: expected at least 0, got -1"):
        pycobre.train(problem(), options=options(2), output=tmp_path, num_workers=2, restarts=-1)
    with pytest.raises(OptionError, match="restarts: expected an output directory to restart from, got none"):
        pycobre.train(problem(), options=options(2), num_workers=2, restarts=1)
