"""A block whose chains several engines share: every chain is solved once, by anybody, with the bits of one engine."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from solver_cases import random_case

from pycobre.errors import SolverError
from pycobre.solver import Block, SolveCall, SolverOptions, Target, create_engine
from pycobre.solver.native import why_not_native

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no compiled path: {why_not_native()}")

RESULTS = (
    "objective",
    "gradient",
    "output",
    "theta",
    "iterations",
    "rounds",
    "retries",
    "by_highs",
    "rejected",
    "certified",
)


def solve_shared(case, engines, threads=1, values=None, **options):
    """What each of `engines` engines, all at work at once, solved of one block: a `Block`, or the error it raised."""
    work_counter = np.zeros(1, np.int64)

    def work(engine):
        try:
            patches = case.values if values is None else values
            return engine.solve(SolveCall(case.model, case.x, patches, case.pool, work_counter=work_counter))
        except SolverError as error:
            return error

    made = [create_engine(SolverOptions(threads=threads, **options)) for _ in range(engines)]
    try:
        with ThreadPoolExecutor(engines) as pool:
            return list(pool.map(work, made))
    finally:
        for engine in made:
            engine.close()


def joined(blocks: list[Block]) -> dict[str, np.ndarray]:
    """The one block that the engines solved together; fails where a chain was solved twice or by nobody."""
    taken = np.stack([block.solved_here for block in blocks])
    assert (taken.sum(axis=0) == 1).all(), taken
    owner = taken.argmax(axis=0)
    return {
        name: np.stack([getattr(blocks[who], name)[chain] for chain, who in enumerate(owner)])
        for name in RESULTS
    }


def assert_same(found: dict[str, np.ndarray], alone: Block) -> None:
    for name in RESULTS:
        assert found[name].tobytes() == getattr(alone, name).tobytes(), name


@pytest.mark.parametrize(("engines", "threads"), [(1, 1), (2, 1), (3, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("chains", [1, 3, 40])
def test_engines_that_share_a_block_give_the_bits_of_one(engines, threads, chains):
    for seed in range(4):
        case = random_case(seed, chains=chains)
        with create_engine(SolverOptions()) as engine:
            alone = case.solve(engine)
        assert_same(joined(solve_shared(case, engines, threads)), alone)


@pytest.mark.parametrize("threads", [1, 2])
def test_recovered_chains_are_not_lost(threads):
    """With so few iterations allowed many runs end early, and are taken up again where they were."""
    case = random_case(3, rows=9, cols=14, chains=40, kinds=(Target.RHS,), gains=True)
    options = {"tableau_entries": 0, "kernel_rows": 0, "iteration_limit": 4}
    with create_engine(SolverOptions(**options)) as engine:
        alone = case.solve(engine)
    assert np.count_nonzero(alone.retries) > 20
    assert_same(joined(solve_shared(case, 2, threads, **options)), alone)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_lowest_failing_chain_is_among_the_errors(threads):
    """Whoever takes it: of the errors that the engines raise, the lowest chain is the one that one engine names."""
    case = random_case(5, chains=40, kinds=(Target.COL_UPPER,))
    values = np.repeat(case.values[None], 40, axis=0)
    for chain in (11, 12, 13, 30):
        values[chain, 2] = -1.0  # upper bounds below the lower ones
    for _ in range(10):
        found = solve_shared(case, 3, threads, values)
        failed = [each.chain for each in found if isinstance(each, SolverError)]
        assert min(failed) == 11
        for each in found:
            assert isinstance(each, SolverError) or not each.solved_here[[11, 12, 13, 30]].any()


def test_what_cannot_be_shared_is_refused():
    case, work_counter = random_case(1), np.zeros(1, np.int64)
    with (
        create_engine(SolverOptions(native=False)) as engine,
        pytest.raises(SolverError, match="compiled path"),
    ):
        case.solve(engine, work_counter=work_counter)
    with create_engine(SolverOptions()) as engine, pytest.raises(SolverError, match="no bases to keep"):
        case.solve(engine, work_counter=work_counter, want_basis=True)
    assert work_counter[0] == 0
