"""One directory, one run: the lock of a result directory.

The lock is the system's own (`flock`): it belongs to an open file, so it ends with the process that holds it, however
that process ends. The file says which process that is, for the refusal and for those who only look.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.app.results.files import make_directory
from pycobre.app.results.layout import LOCK
from pycobre.errors import OutputError

__all__ = ["DirectoryLock", "Owner", "owner_of"]


@frozen()
class Owner:
    """The process that writes into a directory."""

    pid: int
    host: str
    process_start: int  #: when the process started, in the system's ticks: another process may get its number
    run: str = ""

    @property
    def alive(self) -> bool:
        """Whether it still runs; of another host that is not known, and assumed."""
        if self.host != socket.gethostname():
            return True
        return self.process_start == _process_start(self.pid)


class DirectoryLock:
    """Held from construction to `release`, or until this process ends.

    Raises `OutputError` with the holder's process and host where another run holds it.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._root = Path(directory)
        make_directory(self._root)
        path = self._root / LOCK
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as cause:
            raise OutputError(
                f"{path}: cannot write: {cause.strerror}. Choose an output directory that can be written."
            ) from cause
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise self._refusal() from None
        except OSError:  # a file system without locks: what the file says has to do
            owner = owner_of(self._root)
            if owner is not None:
                os.close(self._descriptor)
                raise self._refusal() from None
        self.sign("")

    def sign(self, run: str) -> None:
        """Say in the file who holds the lock, and for which run."""
        pid = os.getpid()
        said = {"pid": pid, "host": socket.gethostname(), "process_start": _process_start(pid), "run": run}
        data = json.dumps(said).encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))

    def release(self) -> None:
        """Let others in."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def _refusal(self) -> OutputError:
        owner = owner_of(self._root)
        who = "another process"
        if owner is not None:
            run = f" (run {owner.run})" if owner.run else ""
            who = f"process {owner.pid} on {owner.host}{run}"
        return OutputError(
            f"{self._root}: expected a directory that no run writes to, got one in use by {who}. "
            "Wait for that run, stop it, or choose another output directory."
        )


def owner_of(directory: str | os.PathLike[str]) -> Owner | None:
    """The living process that writes into a directory, as its lock says."""
    try:
        said: Any = json.loads((Path(directory) / LOCK).read_bytes())
        owner = Owner(int(said["pid"]), str(said["host"]), int(said["process_start"]), str(said["run"]))
    except (OSError, ValueError, KeyError, TypeError):  # absent, empty, or being written
        return None
    return owner if owner.alive else None


def _process_start(pid: int) -> int:
    """When a process started, in ticks since the system did; 0 where there is no such process or no /proc."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0
