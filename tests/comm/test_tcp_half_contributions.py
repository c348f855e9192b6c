"""A worker that stops in the middle of its contribution is blamed at the timeout, like any silent one."""

from __future__ import annotations

import socket

import numpy as np
import pytest
from tcp_helpers import TOKEN, engine, gathering, patient_handshakes, shake_hands

from pycobre.comm import CollectiveFailed, ReduceOp, TcpBackend
from pycobre.comm.tcp.wire import REDUCE_CODES, Call, Kind, Operation

__all__ = ["engine", "patient_handshakes"]

COUNT = 100_000


def add_up(comm: TcpBackend) -> None:
    comm.allreduce(np.zeros(COUNT), np.zeros(COUNT), ReduceOp.SUM)


@pytest.mark.parametrize("size", [2, 3])
def test_the_rest_of_a_contribution_never_comes(engine: str, size: int) -> None:
    """What rank 0 sends to such a worker meanwhile does not count as a sign of life of it."""
    call = Call(Operation.ALLREDUCE, ord("f"), REDUCE_CODES[ReduceOp.SUM], 8, 0, 0, 1, COUNT, 0)
    with gathering(size, timeout_s=1.0) as ranks, socket.create_connection(("127.0.0.1", ranks.port)) as half:
        assert shake_hands(half, 1, size, TOKEN).refused is None
        others = [ranks.add(rank) for rank in range(2, size)]
        zero = ranks.ranks[0].result(60)
        half.sendall(call.header(Kind.CALL, block=1, offset=COUNT, length=8 * COUNT) + bytes(8 * COUNT - 5))
        entered = [ranks.pool.submit(add_up, other.result(60)) for other in others]
        with pytest.raises(CollectiveFailed, match=r"rank 1 .*did not respond for 1 s") as raised:
            add_up(zero)
        assert raised.value.rank == 1
        for other in entered:
            failed = other.exception(60)
            assert isinstance(failed, CollectiveFailed)
            assert failed.rank == 1
