"""The end of a launcher's job when one of its ranks fails.

MPI's ranks wait for each other, with some launchers for ever, so the error of one of them has to end the job. The
exit code is the one that the command line documents, for Python programs too.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from pycobre.app.backend import backend_name, communicator_for
from pycobre.app.failures import describe, exit_code
from pycobre.app.streams import print_error
from pycobre.comm.select import joins_mpi
from pycobre.errors import BackendError, CobreError

if TYPE_CHECKING:
    from pycobre.app.backend import BackendChoice
    from pycobre.comm import Communicator

__all__ = ["end_job", "end_job_without_communicator"]


def end_job(comm: Communicator, error: BaseException | None) -> None:
    """Under MPI with several ranks, end the launcher's job with the exit code of an error of pycobre or the system.

    An exception that left the communicator's own block would end the job too, with a traceback and the code 1.
    """
    if not isinstance(error, CobreError | OSError) or comm.size == 1 or backend_name(comm) != "mpi":
        return
    print_error(describe(error))
    try:
        sys.exit(exit_code(error))
    except SystemExit:
        comm.abort(f"{type(error).__name__}, as said above")  # its exit code is that of the exception in hand


def end_job_without_communicator(backend: BackendChoice, error: BaseException | None) -> None:
    """The same before this rank has joined: the other ranks wait for it."""
    if not isinstance(error, CobreError | OSError) or not isinstance(backend, str):
        return
    if joins_mpi(None if backend == "auto" else backend):
        # Where this rank cannot join, the others cannot either, and its own error is the one to show.
        with suppress(BackendError), communicator_for(backend) as comm:
            end_job(comm, error)
