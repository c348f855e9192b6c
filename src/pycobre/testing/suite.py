"""What the conformance suites have in common: how a subclass names its backend, and the ranks they run on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from pycobre.testing.ranks import RankGroup, run_ranks
from pycobre.testing.starters import Starter


class RankTests:
    """Base of the suites. A subclass sets `backend`, and the other attributes where its backend differs.

    The processes of one size are started once per class; every test has a communicator of its own.
    """

    #: A name (local, threads, shm, tcp, mpi) or a `Starter`.
    backend: ClassVar[str | Starter]
    #: The numbers of ranks to test with.
    sizes: ClassVar[tuple[int, ...]] = (1, 2, 3, 4)
    #: Whether ranks that call different collectives all raise.
    detects_mismatch: ClassVar[bool] = True
    #: Whether a rank that aborts, closes or dies is noticed by the others at once.
    notices_absence: ClassVar[bool] = True
    #: The variable that bounds a collective's patience in seconds; None where there is none to set.
    patience_variable: ClassVar[str | None] = None
    #: Whether regions are one copy for all ranks, or one per rank.
    shares_memory: ClassVar[bool] = True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give `size` to every test that asks for it, and `several` to those that need two ranks or more."""
        if "size" in metafunc.fixturenames:
            metafunc.parametrize("size", self.sizes)
        if "several" in metafunc.fixturenames:
            sizes: list[Any] = [size for size in self.sizes if size > 1]
            if not sizes:
                alone = pytest.mark.skip(reason=f"{type(self).__name__} has one rank: there is no peer")
                sizes = [pytest.param(1, marks=alone)]
            metafunc.parametrize("several", sizes)

    _groups: ClassVar[dict[int, RankGroup]]

    @classmethod
    def setup_class(cls) -> None:
        """Start with no processes: each size gets its own when it is first asked for."""
        cls._groups = {}

    @classmethod
    def teardown_class(cls) -> None:
        """End all processes, and fail if one of them does not end well."""
        for group in cls._groups.values():
            group.close()

    def run(self, size: int, body: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
        """Run `body(comm, *args)` on that many ranks; `options` are those of `run_ranks`."""
        if self.backend == "threads":
            return run_ranks("threads", size, body, *args, **options)
        if size not in self._groups:
            self._groups[size] = RankGroup(self.backend, size)
        return self._groups[size].run(body, *args, **options)

    def long_patience(self) -> dict[str, str]:
        """Variables with which a collective waits longer than any test: what ends it then is not the timeout."""
        return {} if self.patience_variable is None else {self.patience_variable: "3600"}

    def require(self, capability: bool, what: str) -> None:
        """Skip a test, visibly, that the backend declares it cannot pass."""
        if not capability:
            pytest.skip(f"{type(self).__name__} declares: {what}")
