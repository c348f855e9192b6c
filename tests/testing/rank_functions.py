"""What the ranks of the kit's own tests do: importable, as `run_ranks` asks for."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import threading

import numpy as np

from pycobre.comm import ReduceOp


def describe(comm, base):
    recv = np.zeros(1, np.int64)
    comm.allreduce(np.array([base + comm.rank]), recv, ReduceOp.SUM)
    return comm.rank, comm.size, int(recv[0]), os.getpid()


def variables(environ):
    return environ


def from_environment(environ, name):
    return os.environ.get(name)


def fail_on_odd(comm):
    if comm.rank % 2:
        raise ValueError(f"odd rank {comm.rank}")
    return comm.rank


def fail_alone(environ, rank):
    if environ["COBRE_SHM_RANK"] == str(rank):
        raise ValueError(f"I am rank {rank}")


def exit_badly(environ):
    os._exit(3)


def die(environ, rank):
    if environ["COBRE_SHM_RANK"] == str(rank):
        os.kill(os.getpid(), signal.SIGKILL)


def hang(environ):
    threading.Event().wait()


def raise_unpicklable(environ):
    class Local(Exception):
        pass

    raise Local("cannot leave")


def leave_descriptor(environ):
    os.dup(0)


def leave_thread(environ):
    threading.Thread(target=threading.Event().wait, name="forgotten", daemon=True).start()


def leave_process(environ):
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=False, close_fds=True
    )
    child.returncode = 0  # keep Popen from warning: the leak is the point
    return child.pid


def leave_segment(environ):
    name = environ["COBRE_SHM_NAME"]
    if environ["COBRE_SHM_RANK"] == "0":
        descriptor = os.open(f"/dev/shm/{name}.region", os.O_CREAT | os.O_RDWR, 0o600)
        os.close(descriptor)


def keep_mapping(environ):
    """A mapping that outlives its name."""
    path = f"/dev/shm/{environ['COBRE_SHM_NAME']}"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.ftruncate(descriptor, 4096)
    KEPT.append(mmap.mmap(descriptor, 4096))
    os.close(descriptor)
    os.unlink(path)


KEPT: list[object] = []
