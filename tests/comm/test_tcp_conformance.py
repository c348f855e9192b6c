"""The tcp backend keeps the whole contract, with the native engine and with the one in Python."""

from __future__ import annotations

import pytest
from tcp_helpers import AuthenticatedPythonStarter, AuthenticatedStarter, PythonStarter

from pycobre.comm.tcp import engine as engines
from pycobre.testing import CommunicatorTests, SharedMemoryTests


@pytest.mark.skipif(engines.native is None, reason="pycobre._native.tcp was not built")
class TestTcp(CommunicatorTests, SharedMemoryTests):
    backend = "tcp"
    sizes = (1, 2, 3)
    shares_memory = False
    patience_variable = "COBRE_TCP_TIMEOUT_SECS"


@pytest.mark.ci
class TestMoreTcpRanks(CommunicatorTests, SharedMemoryTests):
    backend = "tcp"
    sizes = (4, 8)
    shares_memory = False
    patience_variable = "COBRE_TCP_TIMEOUT_SECS"


class TestTcpInPython(CommunicatorTests):
    backend = PythonStarter()
    sizes = (3,)
    patience_variable = "COBRE_TCP_TIMEOUT_SECS"


@pytest.mark.skipif(engines.native is None, reason="pycobre._native.tcp was not built")
class TestTcpAuthenticated(CommunicatorTests):
    backend = AuthenticatedStarter()
    sizes = (2, 3)
    patience_variable = "COBRE_TCP_TIMEOUT_SECS"


class TestTcpAuthenticatedInPython(CommunicatorTests):
    backend = AuthenticatedPythonStarter()
    sizes = (3,)
    patience_variable = "COBRE_TCP_TIMEOUT_SECS"


@pytest.mark.slow
class TestTcpInPythonAtOtherSizes(CommunicatorTests, SharedMemoryTests):
    backend = PythonStarter()
    sizes = (1, 2, 4, 8)
    shares_memory = False
    patience_variable = "COBRE_TCP_TIMEOUT_SECS"
