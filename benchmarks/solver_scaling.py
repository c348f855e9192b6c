"""Two threads of one engine, and two processes, against one: the same blocks of chains, the same bits.

    python -m benchmarks.solver_scaling [--rounds 5] [--method tableau|highs] [--chains 400] [--quick] [--json FILE]

A round runs one thread, two threads, and two processes of one thread each on half the chains, one after the
other; the quietest round of each counts. Wall-clock times: on a busy machine the ratios say more about the
neighbours.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np

from benchmarks import solver_models
from benchmarks.harness.cells import Cell, arguments, finish
from benchmarks.solver_models import Call
from pycobre.solver import BasisBlock, Block, SolveCall, SolverOptions, create_engine


def repeated(call: Call, chains: int) -> Call:
    """The call with its chains repeated up to the number asked for."""
    index = np.arange(chains, dtype=np.int32) % len(call.x)
    return replace(call, x=call.x[index], start=call.start.take(index), trial_point=call.trial_point[index])


def solve(engine: object, call: Call) -> Block:
    wanted = SolveCall(call.model, call.x, call.values, call.pool, call.start, call.trial_point)
    return engine.solve(wanted)  # type: ignore[attr-defined, no-any-return]


def serve(pipe: Connection, call: Call, options: SolverOptions) -> None:
    """One worker process: solve its chains each time it is told to, and say their sum of objectives."""
    with create_engine(options) as engine:
        while pipe.recv():
            pipe.send(solve(engine, call).objective.tobytes())


def half(call: Call, which: int) -> Call:
    middle = len(call.x) // 2
    chosen = np.arange(middle, dtype=np.int32) + which * middle
    start: BasisBlock = call.start.take(chosen)
    return replace(call, x=call.x[chosen], start=start, trial_point=call.trial_point[chosen])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--method", choices=["tableau", "highs"], default="tableau")
    parser.add_argument("--chains", type=int, default=400)
    given = parser.parse_args()
    options = (
        SolverOptions() if given.method == "tableau" else SolverOptions(tableau_entries=0, kernel_rows=0)
    )
    rows, chains, rounds = (100, 100, 2) if given.quick else (500, given.chains, given.rounds)
    call = repeated(solver_models.train(solver_models.small(), rows, 20), chains)
    context = multiprocessing.get_context("spawn")
    pipes = []
    for which in range(2):
        ours, theirs = context.Pipe()
        context.Process(target=serve, args=(theirs, half(call, which), options), daemon=True).start()
        pipes.append(ours)
    times: dict[str, list[float]] = {"one thread": [], "two threads": [], "two processes": []}
    with create_engine(options) as one, create_engine(replace(options, threads=2)) as two:
        expected = solve(one, call).objective.tobytes()
        for _ in range(rounds + 1):
            for name, engine in (("one thread", one), ("two threads", two)):
                begin = time.perf_counter()
                got = solve(engine, call).objective.tobytes()
                times[name].append(time.perf_counter() - begin)
                assert got == expected
            begin = time.perf_counter()
            for pipe in pipes:
                pipe.send(True)
            assert b"".join(pipe.recv() for pipe in pipes) == expected
            times["two processes"].append(time.perf_counter() - begin)
    for pipe in pipes:
        pipe.send(False)
    solves = len(call.x) * len(call.values)
    base = min(times["one thread"][1:])
    cells = []
    for name, taken in times.items():
        quietest = min(taken[1:])
        print(f"{name:14} {solves / quietest:12,.0f} solves/s   {base / quietest:5.2f}×")
        cells.append(Cell(name, given.method, solves / quietest, "solves per second"))
        cells.append(Cell(name, f"{given.method}, speed-up", base / quietest, "×"))
    finish(given, "solver_scaling", cells)


if __name__ == "__main__":
    main()
