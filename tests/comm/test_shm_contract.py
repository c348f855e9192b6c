"""The conformance suites on the shm backend; 8 ranks are more than the machine may have cores."""

import pytest

from pycobre.testing import CommunicatorTests, SharedMemoryTests


class TestShmCommunicator(CommunicatorTests):
    backend = "shm"
    sizes = (1, 2, 3)
    patience_variable = "COBRE_SHM_TIMEOUT_SECS"


class TestShmSharedMemory(SharedMemoryTests):
    backend = "shm"
    sizes = (1, 2, 3)


@pytest.mark.ci
class TestMoreShmRanks(CommunicatorTests, SharedMemoryTests):
    backend = "shm"
    sizes = (4, 8)
    patience_variable = "COBRE_SHM_TIMEOUT_SECS"
