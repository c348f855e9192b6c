"""The backends by name, and the communicator that this process takes part in."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeAlias, cast

from pycobre.errors import OptionError

if TYPE_CHECKING:
    from pycobre.comm import Communicator, ShmConfig, TcpConfig

    BackendChoice: TypeAlias = str | TcpConfig | ShmConfig | Communicator
    """A name (of `BackendKind` or of an installed package), the settings of one rank, or a communicator."""

__all__ = ["backend_name", "communicator_for", "named_backend"]

# Where one of these is set, other ranks are meant: what is missing is an error, and not a run of one rank.
_OF_TCP = ("COBRE_TCP_RANK", "COBRE_TCP_SIZE", "COBRE_TCP_COORDINATOR", "COBRE_TCP_TOKEN")
_OF_SHM = ("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE")


def named_backend(backend: BackendChoice) -> str | None:
    """The name that was given, as it is written in code; None for settings and communicators.

    Raises `InvalidBackend` for a name that nobody knows, `OptionError` for anything else.
    """
    if isinstance(backend, str):
        from pycobre.comm.select import backend_named

        return backend_named(backend)
    from pycobre.comm import Communicator, SharedMemoryProvider, ShmConfig, TcpConfig

    if isinstance(backend, TcpConfig | ShmConfig):
        return None
    if isinstance(backend, Communicator) and isinstance(backend, SharedMemoryProvider):
        return None
    raise OptionError(
        "backend: expected a name, a TcpConfig, a ShmConfig or a communicator that is a SharedMemoryProvider, "
        f"got {type(backend).__name__}."
    )


def communicator_for(backend: BackendChoice) -> AbstractContextManager[Communicator]:
    """This process's communicator: what the environment announces, or one rank of the backend asked for.

    A communicator that was given stays open at the end.
    """
    name = named_backend(backend)
    from pycobre.comm import Communicator, ShmConfig, TcpConfig, create_communicator
    from pycobre.comm.platforms import platform_of

    if name is None:
        if isinstance(backend, Communicator):
            return nullcontext(backend)
        return create_communicator(cast("TcpConfig | ShmConfig", backend))
    if name == "shm" and not any(variable in os.environ for variable in _OF_SHM):
        return create_communicator(ShmConfig(f"pycobre-{os.getpid()}-{os.urandom(6).hex()}", 0, 1))
    alone = platform_of(os.environ) is None and not any(variable in os.environ for variable in _OF_TCP)
    if name == "tcp" and alone:
        return create_communicator(TcpConfig(rank=0, size=1, port=0, bind_addr="127.0.0.1"))
    return create_communicator(None if name == "auto" else name)


def backend_name(comm: Communicator) -> str:
    """The public name of a communicator's backend."""
    return type(comm).__name__.removesuffix("Backend").lower()
