"""How N ranks of a backend come to be: which processes are started, and how they find each other."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

from pycobre.comm import LocalBackend, ShmConfig, TcpConfig, create_communicator
from pycobre.comm.api import Communicator


class Starter(ABC):
    """How the ranks of one backend find each other; subclass it to bring a backend of your own.

    An instance is pickled by reference to its class and sent to the ranks, so the class must be importable.
    """

    #: What the tests call this backend.
    name: str
    #: Whether an MPI-like launcher starts all ranks at once and `abort` ends them all.
    launched = False

    @abstractmethod
    def settings(self, size: int) -> AbstractContextManager[list[dict[str, str]]]:
        """Variables for each rank of a new group; what they refer to is reserved inside the block."""

    @abstractmethod
    def connect(self, environ: Mapping[str, str]) -> Communicator:
        """Called in the rank's process with its variables: join the group."""

    def command(self, size: int, worker: list[str]) -> list[list[str]]:
        """The commands to start: one per rank, unless a launcher starts them all."""
        return [[*worker, str(rank)] for rank in range(size)]

    def leftovers(self, settings: list[dict[str, str]]) -> list[str]:
        """What a finished group left behind in the system, under names from its settings."""
        return []


class LocalStarter(Starter):
    """One process with a `LocalBackend`."""

    name = "local"

    @contextlib.contextmanager
    def settings(self, size: int) -> Iterator[list[dict[str, str]]]:
        if size != 1:
            raise ValueError(f"the local backend has one rank: expected size 1, got {size}")
        yield [{"COBRE_COMM_BACKEND": "local"}]

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        return LocalBackend()


class ShmStarter(Starter):
    """Ranks that meet in a segment whose name nobody else uses."""

    name = "shm"

    @contextlib.contextmanager
    def settings(self, size: int) -> Iterator[list[dict[str, str]]]:
        common = {
            "COBRE_COMM_BACKEND": "shm",
            "COBRE_SHM_NAME": f"pycobre-test-{secrets.token_hex(8)}",
            "COBRE_SHM_SIZE": str(size),
        }
        yield [common | {"COBRE_SHM_RANK": str(rank)} for rank in range(size)]

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        return create_communicator(ShmConfig.from_env(environ), environ={})

    def leftovers(self, settings: list[dict[str, str]]) -> list[str]:
        name = settings[0]["COBRE_SHM_NAME"]
        return [f"/dev/shm/{entry}" for entry in sorted(os.listdir("/dev/shm")) if name in entry]


class TcpStarter(Starter):
    """Ranks that meet at an ephemeral port of the loopback interface, with a token.

    The port is held by a socket that is bound and does not listen, for as long as the group runs: the kernel
    gives it to nobody else, and rank 0 may still bind it because both set SO_REUSEADDR.
    """

    name = "tcp"

    @contextlib.contextmanager
    def settings(self, size: int) -> Iterator[list[dict[str, str]]]:
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            common = {
                "COBRE_COMM_BACKEND": "tcp",
                "COBRE_TCP_COORDINATOR": "127.0.0.1",
                "COBRE_TCP_BIND_ADDR": "127.0.0.1",
                "COBRE_TCP_PORT": str(held.getsockname()[1]),
                "COBRE_TCP_SIZE": str(size),
                "COBRE_TCP_TOKEN": secrets.token_hex(16),
                "COBRE_TCP_CONNECT_TIMEOUT_MS": "60000",
            }
            yield [common | {"COBRE_TCP_RANK": str(rank)} for rank in range(size)]

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        return create_communicator(TcpConfig.from_env(environ), environ={})


class MpiStarter(Starter):
    """Ranks that `mpiexec` starts on this machine."""

    name = "mpi"
    launched = True

    @contextlib.contextmanager
    def settings(self, size: int) -> Iterator[list[dict[str, str]]]:
        yield [{"COBRE_COMM_BACKEND": "mpi"} for _ in range(size)]

    def connect(self, environ: Mapping[str, str]) -> Communicator:
        return create_communicator("mpi")

    def command(self, size: int, worker: list[str]) -> list[list[str]]:
        mpiexec = shutil.which("mpiexec")
        if mpiexec is None:
            raise FileNotFoundError("mpiexec is not on PATH: install an MPI, or activate its environment")
        return [[mpiexec, *self._options(mpiexec), "-n", str(size), *worker, "mpi"]]

    def _options(self, mpiexec: str) -> list[str]:
        """Open MPI refuses more ranks than cores, and to run as root, unless it is told otherwise."""
        if "open" in os.path.realpath(mpiexec).lower() or shutil.which("ompi_info") is not None:
            return ["--oversubscribe", "--allow-run-as-root"]
        return []


_STARTERS: dict[str, type[Starter]] = {
    starter.name: starter for starter in (LocalStarter, ShmStarter, TcpStarter, MpiStarter)
}


def starter_for(backend: str | Starter) -> Starter:
    """The starter of a backend given by name, or the one given."""
    if isinstance(backend, Starter):
        return backend
    if backend not in _STARTERS:
        raise ValueError(f"expected a Starter or one of {', '.join(_STARTERS)}, threads; got {backend!r}")
    return _STARTERS[backend]()
