"""Killed at a random moment, resumed on another backend and another number of workers: the same policy."""

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from run_helpers import options, problem, segments, workers_alive

import pycobre
from pycobre.errors import WorkerError
from pycobre.events import Event, IterationFinished

ITERATIONS = 24


@pytest.fixture(scope="module")
def uninterrupted() -> str:
    return pycobre.train(problem(), options=options(ITERATIONS)).policy_digest


class Assassin:
    """Kills a worker a moment after a random iteration: in a solve, a collective or a checkpoint, as it comes."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.victim = rng.randrange(size)
        self._iteration, self._delay = rng.randrange(1, ITERATIONS), rng.uniform(0.0, 0.02)
        self._timer: threading.Timer | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, IterationFinished) and (event.worker_id, event.iteration) == (
            0,
            self._iteration,
        ):
            self._timer = threading.Timer(self._delay, self._strike)
            self._timer.start()

    def _strike(self) -> None:
        pid = workers_alive().get(self.victim)
        if pid is not None:
            with suppress(ProcessLookupError):  # it has come to its own end since it was looked for
                os.kill(pid, signal.SIGKILL)

    def rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


def killed_then_resumed(seed: int, output: Path) -> tuple[int, str]:
    """Kill random workers at random times until a run gets through; return kills and the final digest."""
    rng = random.Random(seed)
    for kills in range(20):
        size = rng.choice([2, 3])
        assassin = Assassin(rng, size)
        arguments = {
            "options": options(ITERATIONS),
            "backend": rng.choice(["shm", "tcp"]),
            "num_workers": size,
            "output": output,
            "resume": any((output / "checkpoints").glob("*.cobre")),
            "checkpoint_iterations": 1,
            "progress_callback": assassin if kills < 4 else None,
        }
        try:
            return kills, pycobre.train(problem(), **arguments).policy_digest
        except WorkerError as error:
            died = (error.rank, error.exit_code)
        finally:
            assassin.rest()
        assert died == (assassin.victim, -signal.SIGKILL)
    raise AssertionError("no run got through")


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_and_resume(seed: int, uninterrupted: str, tmp_path: Path) -> None:
    _, digest = killed_then_resumed(seed, tmp_path)
    assert digest == uninterrupted
    assert workers_alive() == {}
    assert segments() == set()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kill_and_resume_twenty_times(uninterrupted: str, tmp_path: Path) -> None:
    total = 0
    for seed in range(100, 120):
        kills, digest = killed_then_resumed(seed, tmp_path / str(seed))
        total += kills
        assert digest == uninterrupted
    assert total >= 20
    print(f"{total} kills in 20 runs, every final policy the same")
