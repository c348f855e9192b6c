"""The backends by name, and the communicator that this process takes part in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pycobre.errors import InvalidBackend

if TYPE_CHECKING:
    from pycobre.comm import Communicator

__all__ = ["NAMES", "backend_name", "communicator_for"]

NAMES = ("auto", "mpi", "tcp", "shm", "local")
# Where one of these is set, other ranks are meant: what is missing is an error, and not a run of one rank.
_OF_TCP = ("COBRE_TCP_RANK", "COBRE_TCP_SIZE", "COBRE_TCP_COORDINATOR", "COBRE_TCP_TOKEN")
_OF_SHM = ("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE")


def communicator_for(backend: str) -> Communicator:
    """This process's communicator: what the environment announces, or one rank of the backend asked for."""
    if backend not in NAMES:
        raise InvalidBackend(backend, NAMES)
    from pycobre.comm import ShmConfig, TcpConfig, create_communicator
    from pycobre.comm.platforms import platform_of

    if backend == "shm" and not any(name in os.environ for name in _OF_SHM):
        return create_communicator(ShmConfig(f"pycobre-{os.getpid()}-{os.urandom(6).hex()}", 0, 1))
    if (
        backend == "tcp"
        and platform_of(os.environ) is None
        and not any(name in os.environ for name in _OF_TCP)
    ):
        return create_communicator(TcpConfig(rank=0, size=1, port=0, bind_addr="127.0.0.1"))
    return create_communicator(None if backend == "auto" else backend)


def backend_name(comm: Communicator) -> str:
    """The public name of a communicator's backend."""
    return type(comm).__name__.removesuffix("Backend").lower()
