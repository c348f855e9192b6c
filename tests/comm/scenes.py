"""What happens to one rank, the odd one, and what the others say of it: the scenes of all backends' failures.

The odd rank leaves in some manner: of itself before or between collectives, or pushed by another rank while it
sleeps in one. Every other rank then enters a collective and writes down whom it blamed and how long after the
event. "computing": the odd rank leaves while the first of the others is busy outside any collective.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import numpy as np
from waiting import until_asleep, until_exists

from pycobre.comm import CollectiveFailed, Communicator, ReduceOp

EXIT_CODE = 7


class Leaving(Exception):
    """What the odd rank raises, or its signal handler."""


def pids(comm: Communicator) -> list[int]:
    """Everybody's process."""
    found = np.zeros(comm.size, np.int64)
    comm.allgatherv(np.array([os.getpid()]), found, [1] * comm.size, list(range(comm.size)))
    return [int(pid) for pid in found]


def note_time(directory: Path) -> None:
    """Write down when it happened; the clock is the same in all processes."""
    (directory / "part").write_text(repr(time.monotonic()))
    (directory / "part").rename(directory / "happened")


def leave(comm: Communicator, manner: str) -> None:
    """Go by oneself, outside any collective."""
    if manner == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif manner == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif manner == "exit at once":
        os._exit(EXIT_CODE)
    elif manner == "exception":
        with comm:
            raise Leaving("on purpose")
    elif manner == "close":
        comm.close()
    else:
        assert manner == "exit"
        sys.exit(EXIT_CODE)


def sleep_inside(comm: Communicator, manner: str, directory: Path) -> None:
    """Wait in a barrier; one has not come, and will send a signal instead."""

    def handler(number: int, frame: object) -> NoReturn:
        if manner == "exception":
            raise Leaving("by a signal")
        if manner == "exit":
            sys.exit(EXIT_CODE)
        os._exit(EXIT_CODE)

    signal.signal(signal.SIGUSR1, handler)
    if manner == "close":
        # From another thread: the one that waits cannot.
        threading.Thread(target=lambda: (until_exists(directory / "close"), comm.close())).start()
    (directory / "entering").touch()
    with comm:
        comm.barrier()
        comm.barrier()


def push_out(pid: int, manner: str, directory: Path) -> None:
    """Make the odd rank leave the collective it sleeps in, and come only when rank 2 has noticed."""
    until_exists(directory / "entering")
    until_asleep(pid)
    note_time(directory)
    if manner == "close":
        (directory / "close").touch()
    else:
        os.kill(pid, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}.get(manner, signal.SIGUSR1))
    if manner != "stop":
        until_exists(directory / "account-2")


def write_account(
    comm: Communicator, failure: CollectiveFailed, directory: Path, entered: float = 0.0
) -> None:
    """Write down whom this rank blamed, how long after the event, and how long it waited."""
    now = time.monotonic()
    until_exists(directory / "happened")
    seconds = now - float((directory / "happened").read_text())
    waited = now - entered
    account = {"blamed": failure.rank, "text": str(failure), "seconds": seconds, "waited": waited}
    (directory / f"part-{comm.rank}").write_text(json.dumps(account))
    (directory / f"part-{comm.rank}").rename(directory / f"account-{comm.rank}")


def survive(comm: Communicator, directory: Path) -> None:
    """Enter collectives until one fails; write down the account of it."""
    entered = time.monotonic()
    try:
        comm.barrier()
        comm.allreduce(np.ones(2), np.ones(2), ReduceOp.SUM)
    except CollectiveFailed as failure:
        write_account(comm, failure, directory, entered)
    else:
        raise AssertionError("the collectives completed without the odd rank")


def play(comm: Communicator, odd: int, manner: str, moment: str, directory: Path) -> None:
    """This rank's part in the scene."""
    processes = [] if moment == "before" else pids(comm)
    pusher = 1 if odd == 0 else 0
    if comm.rank == odd:
        if moment == "inside":
            sleep_inside(comm, manner, directory)
        else:
            note_time(directory)
            leave(comm, manner)
        if manner == "stop":  # and was continued
            survive(comm, directory)
        return
    if comm.rank == pusher and moment == "inside":
        push_out(processes[odd], manner, directory)
    if comm.rank == pusher and moment == "computing":
        until_exists(directory / "account-2")
    survive(comm, directory)
