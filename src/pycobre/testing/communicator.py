"""The conformance suite of `Communicator`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pycobre.comm.api import ReduceOp
from pycobre.errors import CollectiveFailed, WorkerError
from pycobre.testing import collectives, failures, misuse, programs
from pycobre.testing.suite import RankTests
from pycobre.testing.values import FAMILIES, MOVABLE, REDUCIBLE

MOST_RANKS = 8


@st.composite
def _steps(draw: st.DrawFn) -> programs.Step:
    kind = draw(st.sampled_from(["allgatherv", "allreduce", "broadcast", "barrier"]))
    dtypes = sorted(REDUCIBLE if kind == "allreduce" else MOVABLE)
    counts = st.lists(st.integers(0, 40), min_size=MOST_RANKS, max_size=MOST_RANKS)
    scale = draw(st.sampled_from([1, 1, 1, 300]))
    return programs.Step(
        kind=kind,
        dtype=draw(st.sampled_from(dtypes)),
        counts=tuple(count * scale for count in draw(counts)),
        order=tuple(draw(st.permutations(range(MOST_RANKS)))),
        gap=draw(st.integers(0, 3)),
        op=draw(st.sampled_from(list(ReduceOp))),
        root=draw(st.integers(0, MOST_RANKS - 1)),
        salt=draw(st.integers(0, 1000)),
    )


class CommunicatorTests(RankTests):
    """Every promise of the communicator contract.

    Subclass, set `backend`, and pytest collects the suite:

        class TestMyBackend(CommunicatorTests):
            backend = MyStarter()
            sizes = (1, 2, 3, 4)
    """

    def test_ranks_are_unique_and_agree_on_the_size(self, size: int) -> None:
        assert self.run(size, collectives.identity) == [(rank, size) for rank in range(size)]

    def test_allgatherv_with_different_and_empty_contributions(self, size: int) -> None:
        self.run(size, collectives.gather_heterogeneous)

    def test_allgatherv_with_gaps_and_permuted_ranges(self, size: int) -> None:
        self.run(size, collectives.gather_displaced)

    def test_allgatherv_of_megabytes(self, size: int) -> None:
        self.run(size, collectives.gather_large)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_allgatherv_of_every_dtype(self, size: int, family: str) -> None:
        self.run(size, collectives.gather_dtypes, family)

    def test_arrays_of_any_shape(self, size: int) -> None:
        self.run(size, collectives.any_shape)

    @pytest.mark.parametrize("op", list(ReduceOp), ids=lambda op: op.value)
    def test_allreduce_of_every_dtype(self, size: int, op: ReduceOp) -> None:
        self.run(size, collectives.reduce_dtypes, op)

    @pytest.mark.parametrize("op", list(ReduceOp), ids=lambda op: op.value)
    def test_allreduce_of_nan_infinities_and_signed_zeros(self, size: int, op: ReduceOp) -> None:
        self.run(size, collectives.reduce_special, op)

    def test_allreduce_folds_in_rank_order_to_the_bit(self, size: int) -> None:
        self.run(size, collectives.reduce_in_rank_order)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_broadcast_from_first_and_last_root(self, size: int, family: str) -> None:
        self.run(size, collectives.broadcast_dtypes, family)

    def test_broadcast_of_megabytes(self, size: int) -> None:
        self.run(size, collectives.broadcast_large)

    def test_barrier_orders_writes_before_reads(self, size: int, tmp_path: Path) -> None:
        self.run(size, collectives.barrier_orders, str(tmp_path))

    def test_a_thousand_barriers(self, size: int) -> None:
        self.run(size, collectives.many_barriers)

    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
    )
    @given(steps=st.lists(_steps(), min_size=1, max_size=40))
    def test_random_programs_agree_with_numpy(self, size: int, steps: list[programs.Step]) -> None:
        self.run(size, programs.run_program, steps)

    @pytest.mark.parametrize("operation", failures.OPERATIONS)
    def test_a_violated_precondition_harms_nothing(self, size: int, operation: str) -> None:
        self.run(size, failures.violate, operation)

    def test_violations_between_ranks_harm_nothing(self, several: int) -> None:
        self.run(several, failures.violate_between_ranks)

    @pytest.mark.parametrize("mismatch", failures.MISMATCHES)
    def test_ranks_that_disagree_all_raise(self, several: int, mismatch: str) -> None:
        self.require(self.detects_mismatch, "disagreement between ranks is not detected")
        for odd in (0, several - 1):
            self.run(several, failures.mismatch, mismatch, odd)

    @pytest.mark.parametrize("body", [failures.abort, failures.leave_by_exception, failures.leave_by_close])
    def test_a_rank_that_leaves_is_blamed_at_once(self, several: int, body: Any) -> None:
        self.require(self.notices_absence, "a rank that leaves is not noticed")
        for odd in (0, several - 1):
            self.run(several, body, odd, environ=self.long_patience(), timeout=200)

    def test_a_rank_that_dies_is_blamed_at_once(self, several: int) -> None:
        self.require(self.notices_absence, "a rank that dies is not noticed")
        self.require(self.backend != "threads", "threads cannot be killed")
        for odd in (0, several - 1):
            with pytest.raises(ExceptionGroup) as caught:
                self.run(several, failures.die, odd, environ=self.long_patience(), timeout=200)
            (death,) = caught.value.exceptions
            assert isinstance(death, WorkerError)
            assert (death.rank, death.exit_code) == (odd, -9)

    def test_a_rank_that_stalls_is_blamed_at_the_timeout(self, several: int, tmp_path: Path) -> None:
        if self.patience_variable is None:
            pytest.skip(f"{type(self).__name__} declares: no variable bounds a collective's patience")
        # One odd rank per size, first or last in turn: each run takes the whole timeout.
        odd = 0 if several % 2 == 0 else several - 1
        # The patience is also for those who come, on a machine that may have other things to do.
        environ = {self.patience_variable: "10"}
        self.run(several, failures.stall, odd, str(tmp_path), environ=environ, timeout=200)

    def test_a_second_thread_is_refused(self, several: int, tmp_path: Path) -> None:
        self.run(several, misuse.second_thread, str(tmp_path))

    def test_a_forked_child_is_refused(self, size: int) -> None:
        self.require(self.backend != "threads", "threads share one process")
        self.run(size, misuse.forked_child)

    def test_use_after_close(self, size: int) -> None:
        assert self.run(size, collectives.closing) == [["InvalidCommunicator"] * 4] * size

    def test_errors_arrive_whole(self, size: int) -> None:
        with pytest.raises(ExceptionGroup) as caught:
            self.run(size, failures.raise_each)
        errors = [error for error in caught.value.exceptions if isinstance(error, CollectiveFailed)]
        assert [error.rank for error in errors] == list(range(size))
        assert {(error.operation, error.mpi_error_code) for error in errors} == {("broadcast", 17)}
