"""The names of segments that this process has made and not removed yet, for an end that runs no other code.

A segment has a name only until all ranks are attached. A rank whose launcher is gone ends at once, maybe in between.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

__all__ = ["identity_of", "note", "remove_all", "remove_if_same"]

Identity = tuple[int, int]

_noted: dict[str, Identity] = {}


def note(path: str, identity: Identity) -> None:
    """A name is about to be given to the file of this device and number."""
    _noted[path] = identity


def remove_all() -> None:
    """Remove every name that was noted and still means the same file."""
    for path, identity in list(_noted.items()):
        with suppress(OSError):  # this process ends, whatever becomes of the name
            remove_if_same(path, identity)


def remove_if_same(path: str, identity: Identity) -> None:
    """Remove a name unless it has come to mean another file.

    A name is only given to a file while it is free, so once we hold the lock of the file that has it, nobody else can
    make it mean another one before we have removed it.
    """
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if identity_of(os.fstat(descriptor)) == identity:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if identity_of(os.stat(path)) == identity:
                    os.unlink(path)
        finally:
            os.close(descriptor)
    _noted.pop(path, None)


def identity_of(found: os.stat_result) -> Identity:
    """What tells a file from its successor of the same name."""
    return found.st_dev, found.st_ino
