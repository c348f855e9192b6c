"""What a trial needs of the system: mounts of its own, network namespaces, a look at its processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x4000, 0x40000, 2
SHARED_MEMORY = "/dev/shm"


class Mounts:
    """File systems that only this process and its children see, and that go with them."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.allowed = (
            wanted
            and os.geteuid() == 0
            and self._libc.unshare(_CLONE_NEWNS) == 0
            and self._libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) == 0
            and self._libc.mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", 0, b"size=512m") == 0
        )

    @contextmanager
    def small(self, path: str, size: str) -> Iterator[None]:
        """A file system of that size at `path`, for a while."""
        if self._libc.mount(b"tmpfs", path.encode(), b"tmpfs", 0, f"size={size}".encode()) != 0:
            raise OSError(ctypes.get_errno(), f"cannot mount at {path}")
        try:
            yield
        finally:
            self._libc.umount2(path.encode(), _MNT_DETACH)


class Hosts:
    """Two hosts, 10.78.0.1 and 10.78.0.2, made of network namespaces, and the link between them."""

    def __init__(self) -> None:
        self.names = [f"pycobre{os.getpid()}-{rank}" for rank in range(2)]

    def build(self) -> str:
        """Make them; returns why that is not possible, or nothing."""
        if os.geteuid() != 0 or shutil.which("ip") is None:
            return "network namespaces need root and iproute2"
        try:
            for name in self.names:
                _ip("netns", "add", name)
            first, second = self.names
            ends = ["eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second]
            _ip("link", "add", *ends)
            for rank, name in enumerate(self.names):
                _ip("-n", name, "addr", "add", f"10.78.0.{rank + 1}/24", "dev", "eth0")
                _ip("-n", name, "link", "set", "lo", "up")
            self.connect()
        except subprocess.CalledProcessError as error:
            self.remove()
            return f"this system refuses network namespaces: {error.stderr.strip()}"
        return ""

    def connect(self) -> None:
        for name in self.names:
            _ip("-n", name, "link", "set", "eth0", "up")

    def cut(self) -> None:
        _ip("-n", self.names[0], "link", "set", "eth0", "down")

    def remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def marked_processes(mark: str) -> list[int]:
    """The living processes, but this one, whose environment contains `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is not ours
            if (
                mark.encode() in (entry / "environ").read_bytes()
                and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            ):
                found.append(int(entry.name))
    return found


def left_processes(mark: str, patience_s: float = 40.0) -> list[int]:
    """Marked processes that do not end by themselves; they are killed then."""
    deadline = time.monotonic() + patience_s
    while (found := marked_processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def segments() -> set[str]:
    """Names in the shared-memory mount."""
    return set(os.listdir(SHARED_MEMORY))
