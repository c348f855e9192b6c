"""Processes talking. Knows nothing of LPs.

    api          the contract: Communicator, SharedMemoryProvider, SharedRegion; Backend is both of the first
    checks       every precondition, once
    fold         ReduceOp and the rank-order reduction
    collectives  what programs build of them: rows of all ranks, bytes or an error of one
    failure      what can go wrong between ranks, one sentence for each kind
    misuse       a second thread or a forked child in a communicator, refused
    config       ShmConfig, TcpConfig and their environment variables
    platforms    ranks and hosts of the jobs of batch systems and clusters, as the tcp backend needs them
    slurm        those of a Slurm step
    select       from the environment to a backend
    plugins      backends of other packages
    region       HeapRegion
    local        one process          shm   ranks of one machine
    tcp          ranks anywhere       mpi   ranks under an MPI launcher

Importing this package imports none of them: each is loaded when one of its names is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycobre._util.lazy import lazy_names
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

if TYPE_CHECKING:
    from pycobre.comm.api import Backend, Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
    from pycobre.comm.config import ShmConfig, TcpConfig
    from pycobre.comm.local import LocalBackend
    from pycobre.comm.mpi.backend import MpiBackend, MpiRegion
    from pycobre.comm.region import HeapRegion
    from pycobre.comm.select import (
        BackendKind,
        BackendStatus,
        available_backends,
        create_communicator,
        mpi_launch_detected,
    )
    from pycobre.comm.shm.backend import ShmBackend, ShmRegion
    from pycobre.comm.tcp.backend import TcpBackend

__all__ = [
    "AllocationFailed",
    "Backend",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "api": ("Backend", "Communicator", "ReduceOp", "SharedMemoryProvider", "SharedRegion"),
        "config": ("ShmConfig", "TcpConfig"),
        "local": ("LocalBackend",),
        "mpi.backend": ("MpiBackend", "MpiRegion"),
        "region": ("HeapRegion",),
        "select": (
            "BackendKind",
            "BackendStatus",
            "available_backends",
            "create_communicator",
            "mpi_launch_detected",
        ),
        "shm.backend": ("ShmBackend", "ShmRegion"),
        "tcp.backend": ("TcpBackend",),
    },
)
