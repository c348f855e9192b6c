"""Processes talking. Knows nothing of LPs or of water.

    api      the contract: Communicator, SharedMemoryProvider, SharedRegion
    checks   every precondition, once
    fold     ReduceOp and the rank-order reduction
    config   ShmConfig, TcpConfig and their environment variables
    select   from the environment to a backend
    region   HeapRegion
    local    one process          shm   ranks of one machine
    tcp      ranks anywhere       mpi   ranks under an MPI launcher

Importing this package imports no backend but local: the others are loaded when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from pycobre.comm.api import Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
from pycobre.comm.config import ShmConfig, TcpConfig
from pycobre.comm.local import LocalBackend
from pycobre.comm.region import HeapRegion
from pycobre.comm.select import (
    BackendKind,
    BackendStatus,
    available_backends,
    create_communicator,
    mpi_launch_detected,
)
from pycobre.errors import (
    AllocationFailed,
    BackendError,
    BackendNotAvailable,
    CollectiveFailed,
    CommError,
    InitializationFailed,
    InvalidBackend,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    MissingConfiguration,
)

_LAZY = {
    "ShmBackend": "pycobre.comm.shm",
    "ShmRegion": "pycobre.comm.shm",
    "TcpBackend": "pycobre.comm.tcp",
    "MpiBackend": "pycobre.comm.mpi",
    "MpiRegion": "pycobre.comm.mpi",
}

__all__ = [
    "AllocationFailed",
    "BackendError",
    "BackendKind",
    "BackendNotAvailable",
    "BackendStatus",
    "CollectiveFailed",
    "CommError",
    "Communicator",
    "HeapRegion",
    "InitializationFailed",
    "InvalidBackend",
    "InvalidBufferSize",
    "InvalidCommunicator",
    "InvalidRoot",
    "LocalBackend",
    "MissingConfiguration",
    "MpiBackend",
    "MpiRegion",
    "ReduceOp",
    "SharedMemoryProvider",
    "SharedRegion",
    "ShmBackend",
    "ShmConfig",
    "ShmRegion",
    "TcpBackend",
    "TcpConfig",
    "available_backends",
    "create_communicator",
    "mpi_launch_detected",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
