"""What a gather costs here: latency and seconds per byte of two ranks, by backend.

Started by `RankGroup` as `python -m benchmarks.cluster_costs`: the main program of one of those ranks.
"""

from __future__ import annotations

import json
import statistics
import time

import numpy as np

from benchmarks.cluster_model import Line
from pycobre.comm import Communicator, create_communicator
from pycobre.launch.channel import Channel, Kind
from pycobre.launch.launcher import RankGroup

__all__ = ["measure_line"]

SMALL, LARGE = 8, 1 << 20  # bytes per rank


def measure_line(backend: str, *, quick: bool) -> Line:
    """The cost of gathering from two ranks of this machine."""
    found: dict[int, dict[str, float]] = {}

    def listen(rank: int, kind: Kind, payload: bytes) -> None:
        if kind is Kind.RESULT:
            found[rank] = json.loads(payload)

    calls = 50 if quick else 2000
    with RankGroup("benchmarks.cluster_costs", 2, backend, json.dumps(calls).encode()) as group:
        group.run(listen)
    small, large = (max(each[size] for each in found.values()) for size in ("small", "large"))
    return Line(small, max(0.0, large - small) / (2 * (LARGE - SMALL)))


def _median(comm: Communicator, nbytes: int, calls: int) -> float:
    send = np.zeros(nbytes // 8)
    recv = np.zeros(comm.size * send.size)
    counts = (send.size,) * comm.size
    displs = tuple(rank * send.size for rank in range(comm.size))
    spent = []
    for _ in range(calls):
        begin = time.perf_counter()
        comm.allgatherv(send, recv, counts, displs)
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)


def main() -> None:
    """Be one rank."""
    from pycobre.app.worker import payload

    channel = Channel.inherited(lambda: None, lambda: None)
    assert channel is not None
    calls = json.loads(payload())
    with create_communicator() as comm:
        found = {"small": _median(comm, SMALL, calls), "large": _median(comm, LARGE, max(10, calls // 20))}
    channel.send(Kind.RESULT, json.dumps(found).encode())
    channel.close()


if __name__ == "__main__":
    main()
