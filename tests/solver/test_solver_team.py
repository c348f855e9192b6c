"""Threads of the compiled path: whoever is free takes the next chain, and nobody can tell from the result."""

import os
import signal
import threading

import numpy as np
import pytest
from solver_cases import bits, random_case

from pycobre.errors import SolverError
from pycobre.solver import SolveCall, SolverOptions, Target, create_engine
from pycobre.solver.native import why_not_native

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no compiled path: {why_not_native()}")


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("chains", [1, 2, 5, 64])
def test_any_number_of_threads_gives_the_bits_and_bases_of_one(threads, chains):
    """More threads than cores, more than chains, fewer: blocks of two models in turn, again and again."""
    cases = [random_case(seed, chains=chains, openings=3) for seed in (1, 2)]
    with create_engine(SolverOptions()) as one, create_engine(SolverOptions(threads=threads)) as many:
        expected = [bits(case.solve(one, want_basis=True, want_primal=True)) for case in cases]
        for _ in range(20):
            got = [bits(case.solve(many, want_basis=True, want_primal=True)) for case in cases]
            assert got == expected


def test_chains_are_recovered_in_every_thread():
    """With so few iterations allowed many runs end early, in all threads at once; the bits are those of one."""
    case = random_case(3, rows=9, cols=14, chains=40, kinds=(Target.RHS,), gains=True)
    options = {"tableau_entries": 0, "kernel_rows": 0, "iteration_limit": 4}
    said = []
    for threads in (1, 2, 4):
        with create_engine(SolverOptions(threads=threads, **options)) as engine:
            block = case.solve(engine, want_basis=True)
            assert np.count_nonzero(block.retries) > 20
            said.append(bits(block))
    assert said[0] == said[1] == said[2]


def test_of_several_chains_that_fail_the_lowest_is_reported():
    case = random_case(5, chains=40, kinds=(Target.COL_UPPER,))
    x = case.x.copy()
    values = np.repeat(case.values[None], 40, axis=0)
    for chain in (11, 12, 13, 30):
        values[chain, 2] = -1.0  # upper bounds below the lower ones
    with create_engine(SolverOptions(threads=3)) as engine:
        for _ in range(10):
            with pytest.raises(SolverError) as caught:
                engine.solve(SolveCall(case.model, x, values, case.pool))
            assert (caught.value.chain, caught.value.opening) == (11, 2)
        assert bits(case.solve(engine)) == bits(case.solve(engine))


def test_a_signal_ends_a_block_and_the_engine_goes_on():
    case = random_case(6, chains=400, openings=40)
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are for the main thread")

    class Stopped(Exception):
        pass

    def stop(number, frame):
        raise Stopped

    def solve_for_ever(engine):
        while True:
            case.solve(engine)

    with create_engine(SolverOptions(threads=2)) as engine:
        expected = bits(case.solve(engine))
        before = signal.signal(signal.SIGUSR1, stop)
        try:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            with pytest.raises(Stopped):
                solve_for_ever(engine)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert bits(case.solve(engine)) == expected


def test_engines_begin_and_end_their_threads():
    case = random_case(8)
    before = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
    for _ in range(5):
        with create_engine(SolverOptions(threads=3)) as engine:
            case.solve(engine)
    if before:
        assert len(os.listdir("/proc/self/task")) <= before
