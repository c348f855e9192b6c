"""MPI in this process: which library, initialised how.

This happens once per process, when the first MPI backend is made, and never at import. Whoever initialised
MPI finalises it: a program that imported `mpi4py.MPI` before us keeps both for itself.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pycobre.comm.mpi.job import finalise_at_exit
from pycobre.comm.mpi.library import Launcher, find_launcher, search_path, wheel_prefixes
from pycobre.errors import BackendNotAvailable, InitializationFailed, InvalidCommunicator

FINALISED = (
    "MPI is finalised in this process and cannot start again: use the communicator before MPI_Finalize"
)
# These abort the process inside MPI_Init when Open MPI's launcher started it, with no word about the cause.
_MPICH_FAMILY = ("MPICH", "Intel MPI", "MVAPICH", "MVAPICH2")


def start() -> Any:
    """The module `mpi4py.MPI`, initialised with a thread level that suits us.

    We ask for MPI_THREAD_SERIALIZED: any thread may make the calls, one at a time, which is what a
    communicator promises. MPI_THREAD_MULTIPLE would cost a lock in every call.
    """
    mpi = _load()
    if mpi.Is_finalized():
        raise InvalidCommunicator(FINALISED)
    if not mpi.Is_initialized():
        launcher = find_launcher(os.environ)
        if launcher is not None and launcher.family == "Open MPI" and mpi.get_vendor()[0] in _MPICH_FAMILY:
            raise _mismatch(mpi, launcher)
        mpi.Init_thread(mpi.THREAD_SERIALIZED)
        finalise_at_exit(mpi)
    level = mpi.Query_thread()
    if level < mpi.THREAD_SERIALIZED:
        names = {mpi.THREAD_SINGLE: "MPI_THREAD_SINGLE", mpi.THREAD_FUNNELED: "MPI_THREAD_FUNNELED"}
        raise InitializationFailed(
            "mpi",
            f"thread level: expected MPI_THREAD_SERIALIZED or higher, got {names.get(level, level)}. Set "
            "mpi4py.rc.thread_level = 'serialized' before the first import of mpi4py.MPI, or let this "
            "backend initialise MPI.",
        )
    return mpi


def refuse_lonely_world(mpi: Any) -> None:
    """Refuse to be one of N processes that each see a world of one rank: N copies of the same run."""
    launcher = find_launcher(os.environ)
    if launcher is not None and launcher.size > 1 and mpi.COMM_WORLD.size == 1:
        raise _mismatch(mpi, launcher)


def _load() -> Any:
    """Import `mpi4py.MPI` on the library of the launcher, without initialising it."""
    try:
        import mpi4py
    except ImportError as error:
        raise BackendNotAvailable(
            "mpi", ("tcp", "shm", "local"), 'mpi4py is not installed: pip install "pycobre[mpi]"'
        ) from error
    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
    chosen = search_path(os.environ, find_launcher(os.environ), wheel_prefixes())
    if chosen is not None:
        os.environ["MPI4PY_LIBMPI"] = chosen
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise InitializationFailed(
            "mpi",
            "mpi4py found no MPI library that it can load. Install one beside it (pip install mpich), load "
            f"the cluster's MPI module, or name the library's file in MPI4PY_LIBMPI. It tried: {error}",
        ) from error
    finally:
        if chosen is not None:
            del os.environ["MPI4PY_LIBMPI"]
    return MPI


def _mismatch(mpi: Any, launcher: Launcher) -> InitializationFailed:
    name, version = mpi.get_vendor()
    library = f"{name} {'.'.join(map(str, version))}"
    return InitializationFailed(
        "mpi",
        f"{launcher.announced} announces {launcher.size} ranks, but each process would see a world of 1, so "
        f"{launcher.size} copies of the same run would start: they come from {launcher}, while mpi4py uses "
        f"{library}, and the two do not know each other. Start with the mpiexec that belongs to {name}, or "
        f"let mpi4py load the launcher's library: MPI4PY_LIBMPI={launcher.library}.",
    )
