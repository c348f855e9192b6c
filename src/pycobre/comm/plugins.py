"""Backends of other packages: entry points of the group `pycobre.backends`.

    [project.entry-points."pycobre.backends"]
    quic = "my_package:connect"

`connect(environ)` takes the environment variables and returns this process's communicator, which is a `Backend`, or
both a `Communicator` and a `SharedMemoryProvider`. Nothing of the package is imported before its name is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from pycobre.errors import BackendError, InitializationFailed

if TYPE_CHECKING:
    from pycobre.comm.api import Backend

__all__ = ["GROUP", "installed", "start"]

GROUP = "pycobre.backends"
OWN = frozenset({"auto", "mpi", "tcp", "shm", "local"})


def installed() -> dict[str, str]:
    """The name of each and the package that it comes from; a name of pycobre's own stays pycobre's."""
    from importlib import metadata  # slow to load, and most runs use a backend of pycobre's own

    found = sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name)
    return {
        point.name: point.dist.name if point.dist else point.value for point in found if point.name not in OWN
    }


def start(name: str, environ: Mapping[str, str]) -> Backend:
    """Start the backend of that name. Raises `InitializationFailed`, chained from what the package raised."""
    from importlib import metadata

    from pycobre.comm.api import Communicator, SharedMemoryProvider

    (point, *_) = metadata.entry_points(group=GROUP, name=name)
    try:
        comm = point.load()(environ)
    except BackendError:
        raise
    except Exception as error:
        raise InitializationFailed(name, f"{point.value}: {type(error).__name__}: {error}") from error
    if not isinstance(comm, Communicator) or not isinstance(comm, SharedMemoryProvider):
        raise InitializationFailed(
            name,
            f"{point.value}: expected a Communicator that is a SharedMemoryProvider, got {type(comm).__name__}. "
            "Derive it from pycobre.comm.Backend",
        )
    return cast("Backend", comm)
