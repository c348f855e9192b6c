"""The mpi backend keeps the whole contract, on both MPI libraries that come as wheels."""

from __future__ import annotations

from typing import ClassVar

import pytest
from mpi_environments import EnvironmentStarter, require_environment

from pycobre.testing import CommunicatorTests, SharedMemoryTests


class MpiTests(CommunicatorTests, SharedMemoryTests):
    __test__ = False
    backend: ClassVar[EnvironmentStarter]
    # MPI sees neither: a rank that is gone ends the job (test_mpi_failures), and ranks that call different
    # collectives wait for each other, or get an error from the library, as it happens.
    detects_mismatch = False
    notices_absence = False

    @classmethod
    def setup_class(cls) -> None:
        super().setup_class()
        require_environment(cls.backend.library)


class TestMpich(MpiTests):
    __test__ = True
    backend = EnvironmentStarter("mpich")


@pytest.mark.ci
class TestOpenMpi(MpiTests):
    __test__ = True
    backend = EnvironmentStarter("openmpi")
