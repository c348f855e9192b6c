"""What every rank of a `RankGroup` runs: take a task from the parent, do it with a new communicator, answer.

Started with the path of the parent's socket and the rank, or `mpi` in its place under an MPI launcher.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import os
import pickle
import signal
import socket
import sys
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection

from pycobre.testing.leaks import Holdings

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Task:
    """One function to run; `payload` is the pickled (starter, function, arguments)."""

    payload: bytes
    environ: dict[str, str]
    connect: bool
    timeout_s: float
    check_leaks: bool


@dataclass(frozen=True)
class Outcome:
    """What the function returned or raised, pickled; sent before the communicator is closed."""

    value: bytes | None
    error: bytes | None


@dataclass(frozen=True)
class Released:
    """Sent after the communicator is closed, with what the process holds more than before."""

    gained: list[str]


def main(argv: list[str]) -> None:
    """Serve tasks until the parent hangs up."""
    # A shell that starts the parent in the background has it ignore Ctrl-C, and so its ranks.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    path, rank_argument = argv
    if rank_argument == "mpi":
        rank = importlib.import_module("mpi4py.MPI").COMM_WORLD.Get_rank()
    else:
        rank = int(rank_argument)
        # A parent that is killed takes its ranks with it, also those that wait in a collective.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    with Connection(sock.detach()) as parent:
        parent.send((rank, os.getpid()))
        sys.path[:] = parent.recv()
        while True:
            try:
                task = parent.recv()
            except EOFError:
                return
            _perform(task, parent)


def _perform(task: Task, parent: Connection) -> None:
    # What exists now is not garbage of this task: it need not be searched afterwards.
    gc.freeze()
    before = Holdings.now()
    faulthandler.dump_traceback_later(task.timeout_s * 0.8)
    os.environ.update(task.environ)
    try:
        _call(task, parent)
    finally:
        for variable in task.environ:
            del os.environ[variable]
        faulthandler.cancel_dump_traceback_later()
    gc.collect()
    parent.send(Released(before.gained() if task.check_leaks else []))


def _call(task: Task, parent: Connection) -> None:
    """Connect, call, answer, close; in a frame of its own, so that nothing is referenced afterwards."""
    comm = None
    try:
        starter, function, arguments = pickle.loads(task.payload)
        if task.connect:
            comm = starter.connect(os.environ)
            value = function(comm, *arguments)
        else:
            value = function(dict(task.environ), *arguments)
        outcome = Outcome(pickle.dumps(value), None)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the parent
        outcome = Outcome(None, _pickle_error(error))
        if comm is not None and not starter.launched:
            comm.abort(f"{type(error).__name__}: {error}")
    parent.send(outcome)
    if comm is not None:
        comm.close()


def _pickle_error(error: BaseException) -> bytes:
    text = "".join(traceback.format_exception(error))
    error.add_note(f"Traceback on the rank:\n{text}")
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:  # noqa: BLE001 - an error that does not pickle can fail to in any way
        return pickle.dumps(RuntimeError(f"the rank raised an error that cannot be pickled:\n{text}"))
    return data
