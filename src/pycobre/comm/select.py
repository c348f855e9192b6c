"""From the environment to a backend.

The first line that holds decides:

    kind given           that backend, or the backend of that configuration object
    COBRE_COMM_BACKEND   that backend, unless it says auto
    auto                 mpi    mpi4py is importable and an MPI launcher announced itself
                         tcp    COBRE_TCP_COORDINATOR is set
                         shm    COBRE_SHM_NAME is set
                         local  otherwise

Besides the four names of this package, those of installed packages count that declare an entry point in the group
`pycobre.backends` (`plugins`). A backend's module is imported when that backend is asked for and not before.
"""

from __future__ import annotations

import enum
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pycobre._util.pidfd import pidfds_work
from pycobre.comm import plugins
from pycobre.comm.config import ShmConfig, TcpConfig
from pycobre.comm.platforms import INDEXED_JOB, platform_of
from pycobre.errors import BackendNotAvailable, CobreError, InitializationFailed, InvalidBackend

if TYPE_CHECKING:
    from pycobre.comm.api import Backend

_MPI_VARIABLES = (
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALRANKID",
    "SLURM_PROCID",
)
_AUTO = "auto"  # how the reason of a choice begins that nobody made


class BackendKind(enum.StrEnum):
    """The backends by name, and `AUTO`, which chooses among them."""

    AUTO = "auto"
    MPI = "mpi"
    TCP = "tcp"
    SHM = "shm"
    LOCAL = "local"


class BackendStatus(NamedTuple):
    """Whether a backend can run here and, where not, why and what to do; true when it can."""

    available: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.available


def create_communicator(
    kind: BackendKind | str | TcpConfig | ShmConfig | None = None, *, environ: Mapping[str, str] | None = None
) -> Backend:
    """Choose a backend as the module's chart says, start it and log the choice with its reason.

    `environ` stands in for `os.environ`. Collective for backends with several ranks. Raises `InvalidBackend`
    for an unknown name, `BackendNotAvailable` for one that cannot run here, `MissingConfiguration` naming all
    variables that are not set, and `InitializationFailed` for malformed ones, for a backend that could not
    start, and for a launcher that announces several ranks to a backend that has one.
    """
    environ = os.environ if environ is None else environ
    config: TcpConfig | ShmConfig | None = None
    chosen: str
    if isinstance(kind, TcpConfig):
        chosen, config, reason = BackendKind.TCP, kind, "a TcpConfig was given"
    elif isinstance(kind, ShmConfig):
        chosen, config, reason = BackendKind.SHM, kind, "a ShmConfig was given"
    else:
        chosen, reason = _choose(kind, environ)
    comm = _start(chosen, config, environ)
    try:
        _refuse_silent_copies(comm, chosen, reason.startswith(_AUTO), environ)
    except CobreError:
        comm.close()
        raise
    import logging  # here, since who starts workers needs the rest of this module before everything else

    log = logging.getLogger("pycobre.comm")
    log.info("communicator: %s, rank %d of %d (%s)", chosen, comm.rank, comm.size, reason)
    return comm


def available_backends() -> dict[str, BackendStatus]:
    """Each backend's name with its availability and, where it is not available, the reason."""
    installed = {name: BackendStatus(True, f"of {package}") for name, package in plugins.installed().items()}
    return {**{name: _status(name) for name in ("mpi", "tcp", "shm", "local")}, **installed}


def backend_named(name: str) -> str:
    """The name as it is written in code: of one of the four backends, of `auto`, or of an installed package's.

    Raises `InvalidBackend` for any other.
    """
    wanted = str(name).strip()
    try:
        return BackendKind(wanted.lower()).value
    except ValueError:
        if wanted in plugins.installed():
            return wanted
        raise InvalidBackend(
            str(name), (*(kind.value for kind in BackendKind), *plugins.installed())
        ) from None


def mpi_launch_detected(environ: Mapping[str, str] | None = None) -> bool:
    """Whether a variable that MPI launchers set for their processes is present."""
    return mpi_launch_variable(os.environ if environ is None else environ) is not None


def joins_mpi(kind: BackendKind | str | None = None) -> bool:
    """Whether `create_communicator(kind)` would join the job of an MPI launcher, whose ranks wait for each other."""
    return mpi_launch_detected() and _choose(kind, os.environ)[0] == BackendKind.MPI


def mpi_launch_variable(environ: Mapping[str, str]) -> str | None:
    """The variable by which an MPI launcher is recognised, where there is one."""
    return next((variable for variable in _MPI_VARIABLES if variable in environ), None)


def _choose(kind: BackendKind | str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """The name of the backend to start, never auto, and why."""
    if kind is not None:
        chosen, reason = backend_named(kind), "asked for by the caller"
    elif requested := environ.get("COBRE_COMM_BACKEND"):
        chosen, reason = backend_named(requested), f"COBRE_COMM_BACKEND={requested}"
    else:
        chosen, reason = BackendKind.AUTO.value, ""
    if chosen != BackendKind.AUTO:
        return chosen, reason
    if (variable := mpi_launch_variable(environ)) and _mpi_status():
        return BackendKind.MPI.value, f"{_AUTO}: {variable} is set and mpi4py is installed"
    if environ.get("COBRE_TCP_COORDINATOR"):
        return BackendKind.TCP.value, f"{_AUTO}: COBRE_TCP_COORDINATOR is set"
    if environ.get("COBRE_SHM_NAME"):
        return BackendKind.SHM.value, f"{_AUTO}: COBRE_SHM_NAME is set"
    return (
        BackendKind.LOCAL.value,
        f"{_AUTO}: no MPI launcher, no COBRE_TCP_COORDINATOR, no COBRE_SHM_NAME",
    )


def _start(name: str, config: TcpConfig | ShmConfig | None, environ: Mapping[str, str]) -> Backend:
    status = _status(name)
    if not status:
        available = tuple(other for other, found in available_backends().items() if found)
        raise BackendNotAvailable(name, available, status.reason)
    try:
        if name == BackendKind.TCP:
            tcp = config or TcpConfig.from_env(environ)
            return _load("pycobre.comm.tcp.backend", "TcpBackend")(tcp)
        if name == BackendKind.SHM:
            shm = config or ShmConfig.from_env(environ)
            return _load("pycobre.comm.shm.backend", "ShmBackend")(shm)
        if name == BackendKind.MPI:
            return _load("pycobre.comm.mpi.backend", "MpiBackend")()
        if name == BackendKind.LOCAL:
            return _load("pycobre.comm.local", "LocalBackend")()
        return plugins.start(name, environ)
    except (OSError, ImportError, RuntimeError) as error:
        raise InitializationFailed(name, f"{type(error).__name__}: {error}") from error


def _load(module: str, name: str) -> Callable[..., Backend]:
    backend: Callable[..., Backend] = getattr(importlib.import_module(module), name)
    return backend


def _refuse_silent_copies(comm: Backend, name: str, by_itself: bool, environ: Mapping[str, str]) -> None:
    """N processes that each believe to be the whole run would do the same work N times.

    `by_itself`: nobody asked for this backend.
    """
    if comm.size > 1:
        return
    announced = announced_size(environ)
    if announced is None:
        if by_itself and INDEXED_JOB in environ:
            raise InitializationFailed(
                name,
                f"{INDEXED_JOB}={environ[INDEXED_JOB]} says that this is one of several pods, and each would do "
                "the whole run. To fix: set COBRE_TCP_SIZE and COBRE_TCP_COORDINATOR, and COBRE_COMM_BACKEND=tcp; "
                "or COBRE_COMM_BACKEND=local, where the pods' runs are independent.",
            )
        return
    variable, size = announced
    fix = f"unset {variable} if a single process is meant, or choose the backend that connects the ranks"
    if variable.startswith("COBRE_"):
        fix += f": COBRE_COMM_BACKEND={variable.split('_')[1].lower()}"
    elif name != BackendKind.MPI:
        status = _mpi_status()
        fix += ": COBRE_COMM_BACKEND=mpi" + ("" if status else f" ({status.reason})")
        platform = platform_of(environ)
        if platform is not None and variable in platform.size_variables(environ):
            fix += f", or COBRE_COMM_BACKEND=tcp, which finds its ranks by the variables of {platform.name}"
    else:
        fix += ": mpi4py must be built for the MPI whose launcher started the processes"
    raise InitializationFailed(
        name,
        f"{variable} announces {size} ranks, but this backend has 1, so {size} copies of the same run would "
        f"start. To fix: {fix}.",
    )


def announced_size(environ: Mapping[str, str]) -> tuple[str, int] | None:
    """The variable with which a launcher says that there are several ranks, and how many."""
    variables = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "COBRE_TCP_SIZE", "COBRE_SHM_SIZE"]
    platform = platform_of(environ)
    if platform is not None:
        variables += platform.size_variables(environ)
    for variable in variables:
        value = environ.get(variable, "")
        if value.isdecimal() and int(value) > 1:
            return variable, int(value)
    return None


def _status(name: str) -> BackendStatus:
    if name == BackendKind.MPI:
        return _mpi_status()
    return _shm_status() if name == BackendKind.SHM else BackendStatus(True)


def _mpi_status() -> BackendStatus:
    if importlib.util.find_spec("mpi4py") is None:
        return BackendStatus(False, 'mpi4py is not installed: pip install "pycobre[mpi]"')
    return BackendStatus(True)


def _shm_status() -> BackendStatus:
    if not sys.platform.startswith("linux"):
        return BackendStatus(False, f"it needs Linux, this is {sys.platform}: use tcp")
    try:
        _load_code("pycobre._native.shm")
    except ImportError as error:
        return BackendStatus(
            False,
            f"the native module pycobre._native.shm is missing ({error}): install a C compiler and the "
            "Python headers and reinstall pycobre, or use tcp",
        )
    if not os.path.isdir("/dev/shm"):
        return BackendStatus(
            False, "there is no shared-memory mount /dev/shm: mount a tmpfs there, or use tcp"
        )
    if not pidfds_work():
        return BackendStatus(
            False, "this system refuses pidfds, by which dead ranks are noticed (Linux 5.3 has them): use tcp"
        )
    return BackendStatus(True)


def _load_code(module: str) -> None:
    """Load a compiled module without running it, which would import numpy: who starts workers asks before that."""
    if module in sys.modules:
        importlib.import_module(module)  # refused if it stands there as missing
        return
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {module!r}")
    importlib.util.module_from_spec(spec)
