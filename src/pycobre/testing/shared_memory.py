"""The conformance suite of `SharedMemoryProvider` and `SharedRegion`."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.testing import regions
from pycobre.testing.suite import RankTests
from pycobre.testing.values import FAMILIES


class SharedMemoryTests(RankTests):
    """Every promise about shared memory; `shares_memory` says which of the two kinds the backend is."""

    @pytest.mark.parametrize("family", FAMILIES)
    def test_lifecycle_for_every_dtype(self, size: int, family: str) -> None:
        self.run(size, regions.leader_fills_dtypes, family)

    def test_lifecycle_of_megabytes(self, size: int) -> None:
        self.run(size, regions.leader_fills, np.dtype(np.float64), 600_000)

    def test_distributed_filling(self, size: int) -> None:
        self.run(size, regions.all_fill, self.shares_memory, 3)
        self.run(size, regions.all_fill, self.shares_memory, 100_000)

    def test_leader_rule(self, size: int) -> None:
        expected = [rank == 0 for rank in range(size)] if self.shares_memory else [True] * size
        assert self.run(size, regions.leaders) == expected

    def test_views(self, size: int) -> None:
        self.run(size, regions.views)

    def test_release(self, size: int) -> None:
        self.run(size, regions.release)

    def test_several_regions(self, size: int) -> None:
        self.run(size, regions.several_regions)

    def test_split_local(self, size: int) -> None:
        expected = [(rank, size) for rank in range(size)] if self.shares_memory else [(0, 1)] * size
        assert self.run(size, regions.split) == expected

    def test_a_split_communicator_is_a_provider(self, size: int) -> None:
        self.run(size, regions.split_is_a_provider)

    def test_memory_that_does_not_exist(self, size: int) -> None:
        assert self.run(size, regions.refuse_allocation) == [2**58 * 8] * size

    def test_arguments_that_make_no_sense(self, size: int) -> None:
        self.run(size, regions.refuse_arguments)

    def test_a_closed_communicator_makes_no_regions(self, size: int) -> None:
        self.run(size, regions.after_close)
