"""What the ranks of the jobs in test_mpi_failures do: `python -m mpi_jobs NAME DIRECTORY` under a launcher.

Each process leaves a file with its number in that directory, so that the test can tell who lives.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pycobre.comm import CollectiveFailed, Communicator, MpiBackend, ReduceOp, create_communicator

VICTIM = 1


def total(comm: Communicator) -> None:
    """A collective that needs everybody."""
    recv = np.zeros(1)
    comm.allreduce(np.ones(1), recv, ReduceOp.SUM)
    print(f"rank {comm.rank} got {recv[0]:.0f}", flush=True)


def good(comm: Communicator) -> None:
    total(comm)


def raise_at_once(comm: Communicator) -> None:
    if comm.rank == VICTIM:
        raise ValueError("the reservoir is empty")
    total(comm)


def raise_later(comm: Communicator) -> None:
    total(comm)
    raise_at_once(comm)


def raise_in_thread(comm: Communicator) -> None:
    total(comm)
    if comm.rank == VICTIM:
        thread = threading.Thread(target=lambda: [][1], name="pump")
        thread.start()
        thread.join()
    total(comm)


def raise_in_with(comm: Communicator) -> None:
    with comm:
        raise_later(comm)


def exit_in_with(comm: Communicator) -> None:
    with comm:
        total(comm)
        sys.exit(0)


def abort(comm: Communicator) -> None:
    total(comm)
    if comm.rank == VICTIM:
        comm.abort("the reservoir is empty")
    total(comm)


def die(comm: Communicator) -> None:
    total(comm)
    if comm.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    total(comm)


def stand_still(comm: Communicator) -> None:
    total(comm)
    if comm.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGSTOP)
    total(comm)


def interrupt_one(comm: Communicator) -> None:
    total(comm)
    if comm.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGINT)
    total(comm)


def exit_early(comm: Communicator) -> None:
    total(comm)
    if comm.rank == VICTIM:
        sys.exit(3)
    total(comm)


class Broken:
    """A communicator whose broadcast is refused by the library, through the communicator's error handler.

    By a tag that cannot be, which the library sees before it does anything. Ranks whose broadcasts disagree would
    provoke an error too, but what that does to memory is undefined: Open MPI writes a long message beyond the
    end of the buffer before it reports that it does not fit.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    def Bcast(self, *_: object) -> None:
        self._comm.Send(np.zeros(1), 0, tag=-77)


def fail_inside(comm: Communicator) -> None:
    """An error of the library's own on the victim, which then comes to its end as if nothing had happened."""
    total(comm)
    if comm.rank != VICTIM:
        threading.Event().wait()
    assert isinstance(comm, MpiBackend)
    comm._comm = Broken(comm._comm)
    try:
        comm.broadcast(np.zeros(1))
    except CollectiveFailed as error:
        print(f"rank {comm.rank} caught {error}", flush=True)


def close_early(comm: Communicator) -> None:
    total(comm)
    if comm.rank == VICTIM:
        comm.close()
        threading.Event().wait()
    total(comm)


def wait_forever(comm: Communicator) -> None:
    """The victim computes; the others wait for it inside MPI."""
    total(comm)
    Path(sys.argv[2], f"waiting-{comm.rank}").touch()
    if comm.rank == VICTIM:
        while True:
            sum(range(1000))
    total(comm)


def forget_to_close(comm: Communicator) -> None:
    """A program that uses MPI itself, and comes to its end at once on one rank and later on another."""
    total(comm)
    threading.Event().wait(0.3 * comm.rank)


def finalise_without_closing(comm: Communicator) -> None:
    from mpi4py import MPI

    forget_to_close(comm)
    MPI.Finalize()
    threading.Event().wait(0.3 * (comm.size - comm.rank))


def own_world(comm: Communicator) -> None:
    """The world is duplicated, so that two communicators and the program itself do not meet."""
    from mpi4py import MPI

    received = np.zeros(1, np.int64)
    request = MPI.COMM_WORLD.Iallreduce(np.array([comm.rank]), received)
    other = MpiBackend(MPI.COMM_WORLD)
    total(comm)
    total(other)
    request.Wait()
    assert received[0] == comm.size * (comm.size - 1) // 2
    other.close()
    comm.close()
    assert not MPI.Is_finalized(), "close finalised MPI"


def main(name: str, directory: str) -> None:
    if name in ("own_world", "forget_to_close"):  # a program that uses MPI itself, and finalises it
        import mpi4py.MPI  # noqa: F401
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    Path(directory, f"process-{os.getpid()}").touch()
    comm = create_communicator()
    assert isinstance(comm, MpiBackend), f"auto chose {type(comm).__name__}"
    with open("/proc/self/maps") as maps:
        mapped = {line.split()[5] for line in maps if "/dev/shm/mpich_shm_" in line}
    Path(directory, f"segments-{os.getpid()}").write_text("\n".join(mapped))
    jobs: dict[str, Callable[[Communicator], None]] = {
        job.__name__: job
        for job in (
            *(good, raise_at_once, raise_later, raise_in_thread, raise_in_with, exit_in_with, abort, die),
            *(stand_still, interrupt_one, exit_early, close_early, fail_inside, wait_forever),
            *(own_world, forget_to_close, finalise_without_closing),
        )
    }
    jobs[name](comm)


if __name__ == "__main__":
    main(*sys.argv[1:])
