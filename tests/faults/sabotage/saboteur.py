"""Inside a rank of a trial: counts the moments of a run and, at the chosen one, does the damage.

Moments are entries into a phase: `start` (of the interpreter), `join`, `solve`, each collective, `region`, `fence`,
`write`, `fsync`, `replace`, `close`, `exit`. The damage is done by a thread after a delay, so that the rank has gone
on into the phase; threads run there, because solving and waiting release the lock of the interpreter.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import resource
import signal
import sys
import threading
import time
from collections import Counter
from typing import Any

VARIABLE = "PYCOBRE_FAULT"
RANK_VARIABLES = ("COBRE_SHM_RANK", "COBRE_TCP_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")
JOBS = ("pycobre.app.worker", "fault_rank.py", "reference_run.py")
COLLECTIVES = ("allgatherv", "allreduce", "broadcast", "barrier")

_fault: dict[str, Any] = {}
_counts: Counter[str] = Counter()
_rank = 0


def prepare() -> None:
    """Read the fault of this trial and wrap what marks the moments; other programs of the job are left alone."""
    global _rank
    if not any(job in word for word in sys.orig_argv for job in JOBS):
        return
    _fault.update(json.loads(os.environ[VARIABLE]))
    _rank = int(next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "0"))
    _leave(f"pid-{_rank}", str(os.getpid()))
    moment("start")
    _wrap_everything()
    atexit.register(_say_counts)
    atexit.register(moment, "exit")  # last registered, first called


def _wrap_everything() -> None:
    from pycobre._util import files

    _wrap(files, "write_atomically", "write")  # before others take the name over
    from pycobre.comm.api import Communicator, SharedMemoryProvider, SharedRegion
    from pycobre.launch.channel import Channel
    from pycobre.solver.engine import HighsEngine

    _wrap(Communicator, "__init__", "join")
    for name in COLLECTIVES:
        _wrap(_collective_class(Communicator), name, name)
    _wrap(Communicator, "close", "close")
    _wrap(SharedMemoryProvider, "create_shared_region", "region")
    _wrap(SharedRegion, "fence", "fence")
    _wrap(HighsEngine, "solve", "solve")
    _wrap(os, "fsync", "fsync")
    _wrap_replace()
    _account_for_errors(Channel)


def _collective_class(communicator: Any) -> Any:
    """The class whose collectives a rank calls: the base's, but for shm, which has a native way around them."""
    if "COBRE_SHM_RANK" not in os.environ:
        return communicator
    from pycobre.comm.shm.backend import ShmBackend

    return ShmBackend


def _wrap(owner: Any, name: str, phase: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **named: Any) -> Any:
        moment(phase)
        return original(*args, **named)

    setattr(owner, name, wrapped)


def _wrap_replace() -> None:
    """A fault may count the renames in one place only (`within`), such as those of checkpoints."""
    original = os.replace

    def wrapped(source: Any, target: Any, **named: Any) -> None:
        if _fault.get("within", "") in os.fspath(target):
            moment("replace")
        original(source, target, **named)

    os.replace = wrapped


def moment(phase: str) -> None:
    """This rank enters a phase."""
    _counts[phase] += 1
    if phase != _fault["phase"] or _counts[phase] != _fault["nth"]:
        return
    if _rank != _fault["at_rank"]:
        time.sleep(_fault["hold_s"])  # the victim is to be found waiting for the others
    elif _fault["delay_s"]:
        threading.Thread(target=_strike_later, daemon=True).start()
    else:
        _strike()


def _strike_later() -> None:
    time.sleep(_fault["delay_s"])
    _strike()


def _strike() -> None:
    victim, action = _fault["victim"], _fault["action"]
    if action == "parent":
        _leave("strike", json.dumps({"time": time.monotonic(), "pid": os.getppid()}))
        os.kill(os.getppid(), signal.SIGKILL)
        return
    pid = os.getpid() if victim == _rank else int(_read(f"pid-{victim}"))
    _leave("strike", json.dumps({"time": time.monotonic(), "pid": pid}))
    if action == "kill":
        os.kill(pid, signal.SIGKILL)
    elif action == "stop":
        os.kill(pid, signal.SIGSTOP)
    elif action == "starve":
        os.sched_setaffinity(pid, {_fault["cpu"]})
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    elif action == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (_fault["bytes"], resource.RLIM_INFINITY))
    elif action == "fill":
        _fill(_fault["mount"])


def _fill(mount: str) -> None:
    """Leave no space on a mount."""
    descriptor = os.open(os.path.join(mount, "ballast"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    size = 1 << 20
    while size:
        try:
            os.write(descriptor, bytes(size))
        except OSError:
            size //= 2
    os.close(descriptor)


def account(error: BaseException) -> None:
    """Write down what this rank says at its end."""
    said = {
        "time": time.monotonic(),
        "type": type(error).__name__,
        "text": str(error),
        "blamed": getattr(error, "rank", None),
        "expected": type(error).__module__ == "pycobre.errors",
    }
    _leave(f"account-{_rank}", json.dumps(said))


def _account_for_errors(channel: Any) -> None:
    from pycobre.launch.channel import Kind

    original = channel.send

    def send(self: Any, kind: Any, payload: bytes) -> None:
        if kind is Kind.ERROR:
            error = sys.exception()
            assert error is not None
            account(error)
        original(self, kind, payload)

    channel.send = send


def _say_counts() -> None:
    _leave(f"counts-{_rank}", json.dumps(_counts))


def _leave(name: str, text: str) -> None:
    """Leave a file for the harness: all of it or nothing."""
    path = os.path.join(_fault["directory"], name)
    descriptor = os.open(path + "~", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    os.write(descriptor, text.encode())
    os.close(descriptor)
    os.rename(path + "~", path)


def _read(name: str) -> str:
    with open(os.path.join(_fault["directory"], name)) as file:
        return file.read()
