"""Many iterations in the same processes: memory, file descriptors and threads stay what they were."""

from __future__ import annotations

import statistics
import time

import pytest
from soak_rank import ITERATIONS, Weight, soak

from pycobre.testing import RankGroup

#: What an allocator may keep of fragments; a leak of one cut pool per training would be many times that.
GROWTH_KIB = 4096
RANKS = {"local": 1, "shm": 2, "tcp": 2}


def check(backend: str, communicators: int, trainings: int, iterations: int, timeout: float) -> None:
    """A number of communicators, one after the other, and as many trainings over each."""
    started = time.monotonic()
    history: list[list[Weight]] = [[] for _ in range(RANKS[backend])]
    with RankGroup(backend, RANKS[backend]) as group:
        for _ in range(communicators):
            for rank, weights in enumerate(group.run(soak, trainings, iterations, timeout=timeout)):
                history[rank] += weights
    done = communicators * trainings * iterations
    print(f"{backend}: {done} iterations in {time.monotonic() - started:.0f} s")
    for rank, weights in enumerate(history):
        early, late = _part(weights, 1), _part(weights, 3)
        grown = statistics.median(w.kib for w in late) - statistics.median(w.kib for w in early)
        print(
            f"  rank {rank}: {early[0].kib} KiB early, {late[-1].kib} KiB late ({grown:+.0f} KiB in the median), "
            f"{late[-1].descriptors} descriptors, {late[-1].threads} threads"
        )
        assert grown <= GROWTH_KIB
        assert {w.descriptors for w in late} == {w.descriptors for w in early}
        assert {w.threads for w in late} == {w.threads for w in early}
        assert len({w.digest for w in weights}) == 1


def _part(weights: list[Weight], quarter: int) -> list[Weight]:
    """The second or the last quarter; the first is for warming up."""
    size = len(weights) // 4
    return weights[quarter * size : (quarter + 1) * size]


@pytest.mark.parametrize("backend", RANKS)
def test_a_short_soak(backend: str) -> None:
    """Fewer iterations, as many trainings and communicators: what is not given back shows in each of them."""
    check(backend, 4, 3, 12, timeout=500)


@pytest.mark.ci
@pytest.mark.parametrize("backend", RANKS)
def test_a_longer_soak(backend: str) -> None:
    check(backend, 4, 3, ITERATIONS, timeout=500)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", RANKS)
def test_an_hour_of_iterations(backend: str) -> None:
    """72 trainings: 3600 iterations, an hour of a study that needs a second for each."""
    check(backend, 8, 9, ITERATIONS, timeout=1800)
