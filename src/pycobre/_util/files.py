"""Whole files or none: written beside their place, flushed to the disk, renamed; and files that grow at their end."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from pycobre.errors import OutputError

__all__ = ["append_durably", "expect_free", "remove_unfinished", "replace_file", "write_atomically"]

_UNFINISHED = ".part"


def write_atomically(path: str | os.PathLike[str], data: bytes | Iterable[bytes | memoryview]) -> None:
    """Write beside `path`, flush to the disk, rename: readers see all of it or nothing."""
    import tempfile  # brings the archive formats along, which nobody who reads needs

    target = Path(path)
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(_UNFINISHED, f".{target.name}.", target.parent)
        with os.fdopen(descriptor, "wb") as file:
            for block in (data,) if isinstance(data, bytes) else data:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
        _sync_directory(target.parent)
    except OSError as cause:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise OutputError(
            f"{target}: cannot write: {cause.strerror}. What was there before is untouched; "
            "free some space or choose another directory."
        ) from cause


def expect_free(path: str | os.PathLike[str]) -> None:
    """Raise `OutputError` unless there is nothing at `path`, or an empty directory: nothing is written over."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        there = "a directory with files in it" if target.is_dir() else "a file"
        raise OutputError(f"{target}: expected a new or empty directory, got {there}. Choose another name.")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to read; a pipe or a device, which may have no end or wait for one, raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        why = os.strerror(code) if code == errno.EISDIR else "it is a pipe or a device and no regular file"
        raise OSError(code, why, os.fspath(path))
    return os.fdopen(descriptor, "rb")


def append_durably(path: str | os.PathLike[str], at: int, data: bytes) -> None:
    """Replace what follows the first `at` bytes by `data`, on the disk when this returns.

    Readers who know how many bytes count see the old content or the new one; what a killed writer left behind those
    bytes is cut off by the next. Requires that one process at a time writes to `path`.
    """
    target = Path(path)
    try:
        descriptor = os.open(target, os.O_RDWR | os.O_CREAT, 0o666)
        with os.fdopen(descriptor, "r+b") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if at == 0:
            _sync_directory(target.parent)
    except OSError as cause:
        raise OutputError(
            f"{target}: cannot write: {cause.strerror}. What was there before is untouched; "
            "free some space or choose another directory."
        ) from cause


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """The same without waiting for the disk, for what is worth nothing after the system has failed.

    Requires that one process at a time writes to `path`.
    """
    target = Path(path)
    temporary = target.parent / f".{target.name}{_UNFINISHED}"
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    except OSError as cause:
        raise OutputError(f"{target}: cannot write: {cause.strerror}. Free some space.") from cause


def remove_unfinished(directory: str | os.PathLike[str]) -> None:
    """Remove what processes that were killed while they wrote have left anywhere under `directory`.

    Requires that nobody is writing there now.
    """
    for path in Path(directory).rglob(f".*{_UNFINISHED}"):
        path.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
