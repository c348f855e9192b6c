"""The text of a file that somebody else wrote: regular files of a limited size, compressed or not."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path

from pycobre.errors import ProblemError

__all__ = ["MAX_BYTES", "read_text"]

MAX_BYTES = 2**30
"""How large the text of one file may be, decompressed."""


def read_text(path: Path) -> str:
    """The text of a file; a name that ends with `.gz` is decompressed."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
        )  # a pipe would wait for a writer
    except OSError as cause:
        raise ProblemError(f"{path}: cannot read: {cause.strerror}. Check the path.") from cause
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ProblemError(f"{path}: expected a regular file, got something else. Check the path.")
        try:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=file) as unpacked:
                    data = unpacked.read(MAX_BYTES + 1)
            else:
                data = file.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as cause:
            raise ProblemError(f"{path}: cannot read: {cause}. Get the file again.") from cause
    if len(data) > MAX_BYTES:
        raise ProblemError(
            f"{path}: expected at most {MAX_BYTES} bytes of text, got more. Split the problem."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise ProblemError(f"{path}: expected text in UTF-8, got other bytes at {cause.start}.") from cause
