"""What the contract costs when there is no transport: `LocalBackend` beside `numpy.copyto` on the same arrays.

Run with `python -m benchmarks.local_overhead`. Candidates take turns in every round; the minimum is printed, in
nanoseconds per call, with the ratio to copyto.
"""

from __future__ import annotations

import argparse
import timeit

import numpy as np

from pycobre.comm import LocalBackend, ReduceOp

COUNT = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    comm = LocalBackend()
    send, recv = np.arange(float(COUNT)), np.zeros(COUNT)
    long = np.zeros(10 * COUNT)
    view = long[COUNT : 2 * COUNT]
    counts, displs = (COUNT,), (0,)
    candidates = {
        "numpy.copyto": lambda: np.copyto(recv, send),
        "allreduce": lambda: comm.allreduce(send, recv, ReduceOp.SUM),
        "allreduce into a view": lambda: comm.allreduce(send, view, ReduceOp.SUM),
        "allgatherv, same tuples": lambda: comm.allgatherv(send, recv, counts, displs),
        "allgatherv, lists": lambda: comm.allgatherv(send, recv, [COUNT], [0]),
        "broadcast": lambda: comm.broadcast(recv),
        "barrier": comm.barrier,
    }
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(options.rounds):
        for name, call in candidates.items():
            best[name] = min(best[name], timeit.timeit(call, number=options.calls) / options.calls)
    for name, value in best.items():
        print(f"{name:26} {1e9 * value:7.0f} ns   {value / best['numpy.copyto']:5.2f} x copyto")


if __name__ == "__main__":
    main()
