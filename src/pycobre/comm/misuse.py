"""What no backend survives: a second thread inside a communicator, and a forked child that uses its parent's.

Both are refused before anything is sent, alike on every backend, and the communicator goes on.
"""

from __future__ import annotations

import os
import threading

from pycobre.errors import InvalidCommunicator

__all__ = ["OneUser", "forked", "second_thread"]

_forks = 0
"""How many forks lie between the first process and this one."""


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


def forked(rank: int) -> InvalidCommunicator:
    """A forked child uses the communicator of its parent."""
    return InvalidCommunicator(
        f"the communicator belongs to the process that forked this one, rank {rank}: "
        "create one in this process, or start ranks as processes of their own"
    )


def second_thread(rank: int) -> InvalidCommunicator:
    """A thread, or a signal handler, begins a collective while another one goes on."""
    return InvalidCommunicator(
        f"another thread is inside a collective of this communicator, rank {rank}: one thread at a time"
    )


class OneUser:
    """Lets one thread at a time into a communicator, and only in the process that made it."""

    __slots__ = ("_forks", "_inside", "_rank")

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._forks = _forks
        self._inside = threading.Lock()

    @property
    def in_forked_child(self) -> bool:
        """Whether this process is a child of the one that made the communicator."""
        return self._forks != _forks

    def enter(self) -> None:
        """Begin a collective; `leave` ends it."""
        if self._forks != _forks:
            raise forked(self._rank)
        if not self._inside.acquire(blocking=False):
            raise second_thread(self._rank)

    def leave(self) -> None:
        """End a collective."""
        self._inside.release()

    def check(self) -> None:
        """Raise where `enter` would."""
        self.enter()
        self.leave()
