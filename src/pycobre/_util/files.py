"""Whole files or none: written beside their place, flushed to the disk, renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pycobre.errors import OutputError

__all__ = ["remove_unfinished", "replace_file", "write_atomically"]

_UNFINISHED = ".part"


def write_atomically(path: str | os.PathLike[str], data: bytes | Iterable[bytes]) -> None:
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
