"""Very many small collectives in a row, contents checked: slots are reused, rounds overlap, sizes change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pycobre.comm import Communicator, ReduceOp
from pycobre.testing import run_ranks


def mixed_collectives(comm: Communicator, rounds: int) -> int:
    """Four small collectives per round, every value checked, sizes that change between the ranks' slots."""
    rank, size = comm.rank, comm.size
    ranks = np.arange(size, dtype=np.int64)
    layouts = [((n,) * size, tuple(n * r for r in range(size))) for n in (1, 3, 40)]
    sends: list[Any] = [np.empty(n, np.int64) for n in (1, 3, 40)]
    recvs: list[Any] = [np.empty(n * size, np.int64) for n in (1, 3, 40)]
    one, total, buf = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(2, np.int64)
    wrong = 0
    for i in range(rounds):
        k = i % 3
        sends[k][:] = i * size + rank
        comm.allgatherv(sends[k], recvs[k], *layouts[k])
        wrong += recvs[k][0] != i * size or recvs[k][-1] != i * size + size - 1
        one[0] = i + rank
        comm.allreduce(one, total, ReduceOp.SUM)
        wrong += total[0] != i * size + size * (size - 1) // 2
        buf[:] = i if rank == i % size else -1
        comm.broadcast(buf, i % size)
        wrong += buf[0] != i or buf[1] != i
        comm.barrier()
        if i % 100 == 0:
            wrong += int((recvs[k].reshape(size, -1) != (i * size + ranks)[:, None]).sum())
    return int(wrong)


@pytest.mark.parametrize(("size", "rounds"), [(2, 5_000), (4, 500)])
def test_many_small_collectives(size: int, rounds: int) -> None:
    assert run_ranks("shm", size, mixed_collectives, rounds, timeout=200) == [0] * size


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("size", "rounds"), [(2, 500_000), (4, 50_000)])
def test_millions_of_small_collectives(size: int, rounds: int) -> None:
    """2 million collectives over 2 ranks, 200 thousand over 4."""
    assert run_ranks("shm", size, mixed_collectives, rounds, timeout=800) == [0] * size
