"""The kit is proved on its own reference backend, which has several ranks without any transport."""

from pycobre.testing import CommunicatorTests, SharedMemoryTests


class TestThreads(CommunicatorTests, SharedMemoryTests):
    backend = "threads"
