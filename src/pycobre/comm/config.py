"""How a rank finds its peers: the settings of the shm and tcp backends, and their environment variables.

Errors speak of the variables, also where the values came from elsewhere: that is where launchers set them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeVar

from pycobre._util.frozen import frozen
from pycobre.comm.platforms import with_platform
from pycobre.errors import InitializationFailed, MissingConfiguration

T = TypeVar("T", int, float)


@frozen()
class ShmConfig:
    """Ranks on one machine that meet in the shared-memory segment `name` (COBRE_SHM_*).

    `timeout_s` is how long a collective waits for a peer that does not respond.
    """

    name: str
    rank: int
    size: int
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        problems = _rank_problems("SHM", self.rank, self.size)
        problems += _positive("COBRE_SHM_TIMEOUT_SECS", self.timeout_s)
        if not self.name or "/" in self.name.removeprefix("/") or "\0" in self.name or len(self.name) > 200:
            problems.append(
                f"COBRE_SHM_NAME: expected 1 to 200 characters without a slash, got {self.name!r}"
            )
        _refuse("shm", problems)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> ShmConfig:
        """Read COBRE_SHM_NAME, _RANK, _SIZE and, optionally, _TIMEOUT_SECS."""
        reader = _Reader("shm", environ)
        name = reader.text("COBRE_SHM_NAME", required=True)
        rank = reader.number(int, "COBRE_SHM_RANK", None)
        size = reader.number(int, "COBRE_SHM_SIZE", None)
        timeout_s = reader.number(float, "COBRE_SHM_TIMEOUT_SECS", 60.0)
        reader.finish()
        return cls(name=name or "", rank=rank, size=size, timeout_s=timeout_s)


@frozen()
class TcpConfig:
    """Ranks that meet at rank 0's TCP port (COBRE_TCP_*).

    `coordinator` is the host of rank 0, needed by the workers only; `port` 0 lets rank 0 take any free one.
    `connect_timeout_ms` bounds how long the group may take to assemble, `timeout_s` how long a collective waits
    for a silent peer. With `token` set, only peers that prove to know it are let in, and beyond loopback every
    message is authenticated; `authenticate` asks for that on loopback too. `listen_fd` is a bound socket that a
    launcher passed to rank 0, so that nobody can take the port in between.
    """

    rank: int
    size: int
    coordinator: str | None = None
    port: int = 29500
    bind_addr: str = "0.0.0.0"
    connect_timeout_ms: int = 30000
    timeout_s: float = 60.0
    token: str | None = field(default=None, repr=False)
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    listen_fd: int | None = None
    authenticate: bool = False

    def __post_init__(self) -> None:
        problems = _rank_problems("TCP", self.rank, self.size)
        problems += _positive("COBRE_TCP_TIMEOUT_SECS", self.timeout_s)
        problems += _positive("COBRE_TCP_CONNECT_TIMEOUT_MS", self.connect_timeout_ms)
        if not 0 <= self.port <= 65535:
            problems.append(f"COBRE_TCP_PORT: expected 0 to 65535, got {self.port}")
        if (self.tls_cert is None) != (self.tls_key is None):
            problems.append("COBRE_TCP_TLS_CERT and COBRE_TCP_TLS_KEY: expected both or neither")
        if self.authenticate and self.token is None:
            problems.append(
                "COBRE_TCP_AUTH=always: expected a token to derive keys from, got none. Set COBRE_TCP_TOKEN"
            )
        _refuse("tcp", problems)
        if self.rank > 0 and not self.coordinator:
            raise MissingConfiguration("tcp", ("COBRE_TCP_COORDINATOR",))

    @property
    def uses_tls(self) -> bool:
        """Whether the connections are encrypted: when any of the TLS files is given."""
        return any(path is not None for path in (self.tls_cert, self.tls_key, self.tls_ca))

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> TcpConfig:
        """Read the COBRE_TCP_* variables; rank 0 does not need COBRE_TCP_COORDINATOR.

        What is not set follows from the variables of Slurm, torchrun, AWS Batch or Kubernetes (`platforms`).
        """
        environ = with_platform(environ)
        reader = _Reader("tcp", environ)
        rank_is_0 = environ.get("COBRE_TCP_RANK", "").strip() == "0"
        coordinator = reader.text("COBRE_TCP_COORDINATOR", required=not rank_is_0)
        rank = reader.number(int, "COBRE_TCP_RANK", None)
        size = reader.number(int, "COBRE_TCP_SIZE", None)
        port = reader.number(int, "COBRE_TCP_PORT", 29500)
        bind_addr = reader.text("COBRE_TCP_BIND_ADDR") or "0.0.0.0"
        connect_timeout_ms = reader.number(int, "COBRE_TCP_CONNECT_TIMEOUT_MS", 30000)
        timeout_s = reader.number(float, "COBRE_TCP_TIMEOUT_SECS", 60.0)
        token = reader.text("COBRE_TCP_TOKEN")
        auth = reader.choice("COBRE_TCP_AUTH", ("auto", "always"))
        tls_cert = reader.text("COBRE_TCP_TLS_CERT")
        tls_key = reader.text("COBRE_TCP_TLS_KEY")
        tls_ca = reader.text("COBRE_TCP_TLS_CA")
        # -1, never a descriptor, stands for an unset variable.
        listen_fd = reader.number(int, "COBRE_TCP_LISTEN_FD", -1) if rank_is_0 else -1
        reader.finish()
        return cls(
            rank=rank,
            size=size,
            coordinator=coordinator,
            port=port,
            bind_addr=bind_addr,
            connect_timeout_ms=connect_timeout_ms,
            timeout_s=timeout_s,
            token=token,
            authenticate=auth == "always",
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
            listen_fd=None if listen_fd < 0 else listen_fd,
        )


def mpi_timeout_s(environ: Mapping[str, str]) -> float:
    """How long a rank of an MPI job may stand still: COBRE_MPI_TIMEOUT_SECS, or a minute."""
    reader = _Reader("mpi", environ)
    timeout_s = reader.number(float, "COBRE_MPI_TIMEOUT_SECS", 60.0)
    reader.finish()
    _refuse("mpi", _positive("COBRE_MPI_TIMEOUT_SECS", timeout_s))
    return timeout_s


class _Reader:
    """Reads variables and remembers all that are missing or malformed, to name them at once."""

    def __init__(self, backend: str, environ: Mapping[str, str]) -> None:
        self._backend = backend
        self._environ = environ
        self._missing: list[str] = []
        self._malformed: list[str] = []
        self._cause: ValueError | None = None

    def text(self, variable: str, *, required: bool = False) -> str | None:
        """The value, or None where it is unset or empty."""
        value = self._environ.get(variable, "")
        if not value and required:
            self._missing.append(variable)
        return value or None

    def number(self, convert: Callable[[str], T], variable: str, default: T | None) -> T:
        """The value as a number; `default` None makes it required."""
        value = self.text(variable, required=default is None)
        if value is None:
            # Where it was required, `finish` raises before anyone looks at this.
            return convert("0") if default is None else default
        try:
            return convert(value)
        except ValueError as error:
            kind = "a whole number" if convert is int else "a number"
            self._malformed.append(f"{variable}: expected {kind}, got {value!r}")
            self._cause = error
            return convert("0")

    def choice(self, variable: str, names: tuple[str, ...]) -> str:
        """The value, one of `names`; the first of them where it is unset."""
        value = self.text(variable) or names[0]
        if value not in names:
            self._malformed.append(f"{variable}: expected {' or '.join(names)}, got {value!r}")
        return value

    def finish(self) -> None:
        """Raise if anything was missing or malformed."""
        if self._missing:
            raise MissingConfiguration(self._backend, tuple(self._missing))
        _refuse(self._backend, self._malformed, self._cause)


def _rank_problems(backend: str, rank: int, size: int) -> list[str]:
    if size < 1:
        return [f"COBRE_{backend}_SIZE: expected 1 or more, got {size}"]
    if not 0 <= rank < size:
        ranks = f"{size} rank{'s' if size > 1 else ''}"
        return [f"COBRE_{backend}_RANK: expected 0 to {size - 1} for {ranks}, got {rank}"]
    return []


def _positive(name: str, value: float) -> list[str]:
    if value > 0 and math.isfinite(value):
        return []
    return [f"{name}: expected a positive finite number, got {value}"]


def _refuse(backend: str, problems: list[str], cause: Exception | None = None) -> None:
    if problems:
        raise InitializationFailed(backend, "; ".join(problems)) from cause
