"""Each mechanism of determinism broken on purpose: the comparison of the matrix must notice.

Ranks are threads of this process (the kit's reference backend), so that a mechanism can be replaced for all of
them at once. What is broken is what a careless implementation would do.
"""

import hashlib
import threading
from typing import Any

import numpy as np
import pytest
from reference_run import fingerprint, request

from pycobre.comm import Communicator, LocalBackend
from pycobre.run.pipeline import execute
from pycobre.sddp import sampling, solving, trainer
from pycobre.sddp.meeting import Meeting
from pycobre.sddp.numbers import Spread
from pycobre.testing import ThreadBackend


def run_on(ranks: int, study: str = "markov") -> dict[str, str]:
    """A reference study on threads that act as ranks."""
    found: dict[int, dict[str, str]] = {}
    errors: list[BaseException] = []

    def one(comm: Communicator) -> None:
        try:
            with comm:
                report = execute(request(study), comm, lambda event: None, lambda: False)
                if comm.rank == 0:
                    found[0] = fingerprint(report)
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            errors.append(error)

    comms = [LocalBackend()] if ranks == 1 else ThreadBackend.group(ranks, timeout_s=60.0)
    threads = [threading.Thread(target=one, args=(comm,)) for comm in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found[0]


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    return run_on(1)


@pytest.fixture(scope="module")
def expected_hydro() -> dict[str, str]:
    return run_on(1, "hydro")


def test_without_a_fault_nothing_differs(expected: dict[str, str]) -> None:
    assert run_on(2) == expected
    assert run_on(3) == expected


def test_sums_per_rank_are_noticed(expected_hydro: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rank adds up its own trajectories, and the sums are added: the order depends on the ranks."""
    original = trainer.spread

    def by_three_ranks(costs: np.ndarray) -> Spread:
        sums = [sum(part.tolist()) for part in np.array_split(costs, 3)]
        return original(costs)._replace(mean=sum(sums[::-1]) / len(costs))

    monkeypatch.setattr(trainer, "spread", by_three_ranks)
    assert run_on(3, "hydro")["upper bound"] != expected_hydro["upper bound"]


def test_a_seed_that_depends_on_the_rank_is_noticed(
    expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = sampling.InSample.sample

    def sample(self: sampling.InSample, iteration: int, first: int, count: int) -> sampling.Paths:
        self._seed += 1000 * (first > 0)
        try:
            return original(self, iteration, first, count)
        finally:
            self._seed -= 1000 * (first > 0)

    monkeypatch.setattr(sampling.InSample, "sample", sample)
    assert run_on(2)["policy file"] != expected["policy file"]


def test_a_hot_start_without_a_reset_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every solve starts from whatever basis the engine ended with, as solvers do when they are left alone."""
    original = solving.Solving._solve
    last: dict[tuple[int, int], Any] = {}

    def hot(self: solving.Solving, node: int, x: Any, values: Any, start: Any, *rest: Any) -> Any:
        if (id(self), node) in last:
            start = last[id(self), node]
        block = original(self, node, x, values, start, *rest)
        if block.basis is not None:
            last[id(self), node] = block.basis.take([len(block.basis) - 1])
        return block

    monkeypatch.setattr(solving.Solving, "_solve", hot)
    assert run_on(3) != run_on(1)


def test_a_loop_over_a_set_is_noticed(
    expected_hydro: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts are stored in the order of a hash of the rank's name, as a set would give them."""
    original = Meeting.gather

    def gather(self: Meeting, rows: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
        found = original(self, rows, counts)
        if rows.shape[1] < 3:  # costs and counts; cuts are wider
            return found
        parts = np.split(found, np.cumsum(counts)[:-1])
        order = sorted(range(len(counts)), key=lambda rank: hashlib.md5(f"rank {rank}".encode()).digest())
        assert len(counts) == 1 or order != sorted(order)
        return np.concatenate([parts[rank] for rank in order])

    monkeypatch.setattr(Meeting, "gather", gather)
    assert run_on(3, "hydro")["policy file"] != expected_hydro["policy file"]
