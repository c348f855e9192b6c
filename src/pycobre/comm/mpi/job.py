"""How an MPI job ends: in good order, or for all ranks at once.

Nothing is left to the library here. MPI_Finalize waits for all ranks and a collective waits for all ranks, so a
rank that ends by an exception would leave itself in the one and the others in the other.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import fcntl
import logging
import os
import signal
import stat
import subprocess
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from pycobre._util.pidfd import pidfds_work
from pycobre.comm.failure import MONITOR_REPORT
from pycobre.comm.mpi.failure_monitor import FailureMonitor, start_failure_monitor
from pycobre.comm.mpi.library import find_launcher
from pycobre.comm.mpi.watch import PeerWatch

log = logging.getLogger("pycobre.comm")

_ABORT_GRACE_S = 5
_DRAIN_S = 5.0
_ADDRESS_BYTES = 64

_before_finalise: list[Callable[[], None]] = []
_watches: list[PeerWatch] = []
_end_noticed = False
_hooks_installed = False
_failed = False
_monitor: FailureMonitor | None = None
_monitor_started = False


def finalise_at_exit(mpi: Any) -> None:
    """Finalise MPI at the end of the process: said by who initialised it."""
    atexit.register(_finalise, mpi)


def before_finalise(mpi: Any, callback: Callable[[], None]) -> None:
    """Call `callback` before MPI is finalised, by whomever, or at the end of the process."""
    global _end_noticed
    _before_finalise.append(callback)
    if not _end_noticed:
        _end_noticed = True
        # Last registered, first called: before `_finalise`.
        atexit.register(_come_to_the_end)
        # MPI_Finalize begins with deleting the attributes of this communicator; a program may call it itself.
        keyval = mpi.Comm.Create_keyval(delete_fn=lambda *_: _come_to_the_end())
        mpi.COMM_SELF.Set_attr(keyval, None)


def forget_before_finalise(callback: Callable[[], None]) -> None:
    """Undo `before_finalise`; nothing where it was called already."""
    if callback in _before_finalise:
        _before_finalise.remove(callback)


def add_watch(watch: PeerWatch) -> None:
    """Let `watch` tell its peers when this process ends the job; until `drop_watch`."""
    _watches.append(watch)


def drop_watch(watch: PeerWatch) -> None:
    """Undo `add_watch`."""
    _watches.remove(watch)


def distrust() -> None:
    """After a failed collective nobody knows what MPI_Finalize does; at the end the job is aborted instead."""
    global _failed
    _failed = True


def start_monitor(mpi: Any, node: Any, rank: int) -> None:
    """Let one rank per node start a failure monitor of its ranks, where the launcher does not report who died.

    Collective over `node`; done once per process. A rank that cannot reach the monitor goes without: it has ended
    when another rank is already ending the job.
    """
    global _monitor, _monitor_started
    launcher = find_launcher(os.environ)
    if _monitor_started or launcher is None or launcher.family != "MPICH" or not pidfds_work():
        return
    _monitor_started = True
    packed = bytearray(_ADDRESS_BYTES)
    if node.rank == 0:
        try:
            address = start_failure_monitor(node.size, MONITOR_REPORT)
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("mpi: the failure monitor could not be started (%s)", error)
            address = b""
        packed[: len(address) + 1] = bytes([len(address)]) + address
    node.Bcast(packed, 0)
    if not packed[0]:
        return
    try:
        _monitor = FailureMonitor(rank, bytes(packed[1 : 1 + packed[0]]))
    except OSError as error:
        log.info("mpi: rank %d did not reach the failure monitor of its node (%s)", rank, error)
    else:
        before_finalise(mpi, _monitor.leave)


def end_job(mpi: Any, message: str, code: int = 1) -> NoReturn:
    """Say why on stderr and end every process of the job, from whichever thread.

    Where a peer has already said that it ends the job, its code counts: what happens here may be the consequence.
    """
    watches = tuple(_watches)
    code = next((told for watch in watches if (told := watch.announced_code()) is not None), code)
    # Before anybody can see the end of this process, which without a word would be a death to them.
    for watch in watches:
        watch.announce_end(code)
    # Whoever cannot be told any more, the job must end.
    with contextlib.suppress(OSError):
        # Not through sys.stderr: another thread may hold its lock, and nobody will release it any more.
        os.write(2, f"pycobre: {message}\n".encode(errors="replace"))
        _wait_until_read(1, 2)
    if _monitor is not None:
        _monitor.suppress()
    # MPI_Abort may need the very call that another thread is stuck in; the alarm ends us then, and the
    # launcher ends a job of which a process died.
    signal.alarm(_ABORT_GRACE_S)
    mpi.COMM_WORLD.Abort(code)
    os._exit(code)


def install_abort_hooks(mpi: Any) -> None:
    """Make an uncaught exception, on any thread, end the job after its traceback was printed.

    Without that the rank would wait for its peers in MPI_Finalize, and they for it in their next collective.
    """
    global _hooks_installed
    if _hooks_installed:
        return
    _hooks_installed = True
    previous, previous_in_thread = sys.excepthook, threading.excepthook

    def on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous(kind, error, trace)
        _abort_after(mpi, kind, "")

    def on_exception_in_thread(args: Any) -> None:
        previous_in_thread(args)
        if args.exc_type is not SystemExit:
            _abort_after(mpi, args.exc_type, f" in thread {args.thread.name if args.thread else '?'}")

    sys.excepthook = on_exception
    threading.excepthook = on_exception_in_thread


def print_current_exception() -> None:
    """Print the traceback of the exception being handled, if any: after `end_job` nobody can.

    Whoever ends by `sys.exit` has said why.
    """
    if not isinstance(sys.exc_info()[1], SystemExit | None):
        traceback.print_exc()
    _flush()


def _abort_after(mpi: Any, kind: type[BaseException], where: str) -> None:
    _flush()
    if mpi.Is_initialized() and not mpi.Is_finalized():
        world = mpi.COMM_WORLD
        code = 128 + signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1
        end_job(mpi, f"rank {world.rank} of {world.size} raised {kind.__name__}{where}: ending the job", code)


def _come_to_the_end() -> None:
    while _before_finalise:
        _before_finalise.pop()()


def _finalise(mpi: Any) -> None:
    if mpi.Is_finalized():
        return
    if _failed:
        world = mpi.COMM_WORLD
        place = f"rank {world.rank} of {world.size}"
        end_job(mpi, f"{place} comes to its end after a collective that failed: ending the job")
    mpi.Finalize()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _wait_until_read(*descriptors: int) -> None:
    """Wait, but not for long, until the launcher has read what the pipes to it hold.

    MPICH's drops what it has not read when a rank aborts, and that is the traceback.
    """
    deadline = time.monotonic() + _DRAIN_S
    pipes = [descriptor for descriptor in descriptors if stat.S_ISFIFO(os.fstat(descriptor).st_mode)]
    unread = array.array("i", [0])
    for pipe in pipes:
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
        while unread[0] and time.monotonic() < deadline:
            time.sleep(0.001)  # a pipe has no event for "empty"
            fcntl.ioctl(pipe, termios.FIONREAD, unread)
