"""Random programs of collectives, and the NumPy model they are checked against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pycobre.comm.api import Communicator, ReduceOp
from pycobre.testing.collectives import gather
from pycobre.testing.values import MOVABLE, contribution, expect_same


@dataclass(frozen=True)
class Step:
    """One collective of a program; each kind uses the fields it needs.

    `counts`, `order` and `gap` are reduced to the number of ranks, so that one program fits every group.
    """

    kind: str
    dtype: str
    counts: tuple[int, ...]
    order: tuple[int, ...]
    gap: int
    op: ReduceOp
    root: int
    salt: int


def run_program(comm: Communicator, steps: list[Step]) -> None:
    """Run the steps on this rank and check each result in full."""
    for number, step in enumerate(steps):
        try:
            _run_step(comm, step)
        except AssertionError as error:
            raise AssertionError(f"step {number}, {step}: {error}") from error


def _run_step(comm: Communicator, step: Step) -> None:
    size, dtype, count = comm.size, MOVABLE[step.dtype], step.counts[0] + 1
    if step.kind == "allgatherv":
        counts = list(step.counts[:size])
        displs = [0] * size
        end = step.gap
        for rank in sorted(range(size), key=lambda rank: step.order[rank]):
            displs[rank] = end
            end += counts[rank] + step.gap
        gather(comm, counts, displs, end, dtype, step.salt)
    elif step.kind == "allreduce":
        parts = [contribution(rank, count, dtype, step.salt) for rank in range(size)]
        expected = parts[0].copy()
        combine = {ReduceOp.SUM: np.add, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum}[step.op]
        with np.errstate(over="ignore"):
            for part in parts[1:]:
                expected = combine(expected, part)
        recv = np.zeros(count, dtype)
        comm.allreduce(parts[comm.rank], recv, step.op)
        expect_same(recv, expected, "allreduce")
    elif step.kind == "broadcast":
        root = step.root % size
        buf = contribution(comm.rank, count, dtype, step.salt)
        comm.broadcast(buf, root)
        expect_same(buf, contribution(root, count, dtype, step.salt), "broadcast")
    else:
        comm.barrier()
