"""With default settings, a run killed at a random moment is resumed to the bits of an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from run_helpers import options, problem

import pycobre
from pycobre.app.results.lock import owner_of
from pycobre.app.results.status import read_status

ITERATIONS = 60
RUN = """
import sys
import pycobre
from run_helpers import options, problem

pycobre.train(problem(), options=options(int(sys.argv[4])), output=sys.argv[1], num_workers=int(sys.argv[2]),
              backend=sys.argv[3], resume=sys.argv[5] == "resume")
"""


def started(output: Path, workers: int, backend: str, *, resume: bool) -> subprocess.Popen[bytes]:
    words = [str(output), str(workers), backend, str(ITERATIONS), "resume" if resume else "fresh"]
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stderr=subprocess.PIPE,
    )


@pytest.fixture(scope="module")
def undisturbed() -> str:
    return pycobre.train(problem(), options=options(ITERATIONS)).policy_digest


def trial(seed: int, output: Path) -> tuple[bool, str]:
    """Kill one process of a run at a random moment after it has begun; whether it was in time, and the digest."""
    rng = random.Random(seed)
    workers, backend = rng.choice([(1, "local"), (2, "shm"), (3, "shm"), (2, "tcp")])
    process = started(output, workers, backend, resume=False)
    while (status := read_status(output)) is None and process.poll() is None:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.4))
    owner = owner_of(output)
    # The launcher, or rank 0, whichever it is that works: the same process where there are no workers.
    victim = process.pid if owner is None or rng.random() < 0.5 else owner.pid
    in_time = process.poll() is None
    if in_time:
        os.kill(victim, signal.SIGKILL)
    process.communicate()
    while owner_of(output) is not None:  # ranks notice that their launcher is gone, and end
        time.sleep(0.01)
    assert status is not None
    resumed = pycobre.train(problem(), options=options(ITERATIONS), output=output, resume=True)
    return in_time, resumed.policy_digest


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_run_is_resumed_to_the_same_bits(seed: int, undisturbed: str, tmp_path: Path) -> None:
    _, digest = trial(seed, tmp_path / "run")
    assert digest == undisturbed


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_killed_runs_are_resumed_to_the_same_bits(undisturbed: str, tmp_path: Path) -> None:
    killed = 0
    for seed in range(100, 200):
        in_time, digest = trial(seed, tmp_path / str(seed))
        assert digest == undisturbed, seed
        killed += in_time
    assert killed >= 60
    print(f"{killed} of 100 runs killed, every final policy the same")


@pytest.mark.parametrize("workers", [1, 2])
def test_of_two_runs_at_once_exactly_one_goes_on(workers: int, undisturbed: str, tmp_path: Path) -> None:
    runs = [started(tmp_path, workers, "shm", resume=False) for _ in range(2)]
    errors = [run.communicate()[1].decode() for run in runs]
    codes = [run.returncode for run in runs]
    refused = [text for text in errors if "expected a directory that no run writes to" in text]
    # One that starts after the other has ended is no second run at once: it moves the first one aside.
    assert codes.count(0) == 2 - len(refused)
    assert len(refused) <= 1
    results = pycobre.open_results(tmp_path)
    assert results.metadata["policy_digest"] == undisturbed
    assert set(results.files) >= {"metadata.json", "policy/policy.cobre", "training/convergence.parquet"}
