"""A descriptor that becomes readable when a process ends: it works for any process, and no number is reused."""

from __future__ import annotations

import ctypes
import os
import sys

# The same on every architecture since Linux 5.3.
_SYS_PIDFD_OPEN = 434


def open_pidfd(pid: int) -> int:
    """Raises `ProcessLookupError` when there is no such process, another `OSError` where the system has no pidfds."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    # A Python that was built on an older system than it runs on, as portable builds are, does not have the function.
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    descriptor: int = syscall(ctypes.c_long(_SYS_PIDFD_OPEN), ctypes.c_long(pid), ctypes.c_long(0))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def pidfds_work() -> bool:
    """Whether this system has them: not before Linux 5.3, nor in a sandbox that forbids them."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(open_pidfd(os.getpid()))
    except OSError:
        return False
    return True
