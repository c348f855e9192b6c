"""The local backend keeps the whole contract, as rank 0 of 1."""

from pycobre.testing import CommunicatorTests, SharedMemoryTests


class TestLocal(CommunicatorTests, SharedMemoryTests):
    backend = "local"
    sizes = (1,)
    shares_memory = False
