"""The log of a run's cuts: a file that grows by what is new, so that a checkpoint writes its own cuts and not all.

    segment, segment, …    each: size u64, little-endian; then a container of kind "cuts" of that size

A segment holds rows of named arrays that only ever grow: cuts by node, and the points that a selection looks at. A
`Mark` says how far the log counts: its bytes, the rows of every array and a hash over the segments' checksums, each
with the hash before it. A checkpoint carries the mark that was valid when it was written; what follows, another
checkpoint's rows or what a killed process left, is not read. The bytes are a function of the rows and of when they
were written.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util import container
from pycobre._util.files import append_durably, open_regular
from pycobre._util.frozen import frozen
from pycobre.errors import PolicyError

__all__ = ["SUFFIX", "Mark", "append", "read_rows"]

SUFFIX = ".cuts"
KIND, VERSION = "cuts", 1
_SIZE = struct.Struct("<Q")
_NAME = re.compile(r"\d{8}\.cuts")
_HASH = re.compile(r"[0-9a-f]{64}")

Arrays = dict[str, NDArray[Any]]


@frozen()
class Mark:
    """How far a log counts."""

    file: str  #: name of the log, in the directory of its checkpoints
    size: int = 0  #: bytes
    chain: str = "0" * 64  #: hash over the checksums of all segments
    rows: Mapping[str, int] | None = None  #: of every array

    def meta(self) -> dict[str, Any]:
        """JSON values, for `read`."""
        return {"file": self.file, "size": self.size, "chain": self.chain, "rows": dict(self.rows or {})}

    @classmethod
    def read(cls, found: object, where: str) -> Mark:
        """Undo `meta`; anything else raises PolicyError."""
        if isinstance(found, dict) and set(found) == {"file", "size", "chain", "rows"}:
            file, size, chain, rows = (found[name] for name in ("file", "size", "chain", "rows"))
            if (
                isinstance(file, str)
                and _NAME.fullmatch(file)
                and _count(size)
                and isinstance(chain, str)
                and _HASH.fullmatch(chain)
                and isinstance(rows, dict)
                and all(_count(value) for value in rows.values())
            ):
                return cls(file, size, chain, rows)
        raise PolicyError(
            f"{where}: 'log' of the checkpoint: expected file, size, chain and rows of a log of cuts, "
            f"got {found!r:.60}. Use an earlier copy."
        )

    def fits(self, directory: Path) -> bool:
        """Whether the log is there and long enough."""
        try:
            return (directory / self.file).stat().st_size >= self.size
        except OSError:
            return False


def append(directory: Path, mark: Mark, arrays: Mapping[str, NDArray[Any]]) -> Mark:
    """Write the rows that `mark` does not know yet, on the disk when this returns; the new mark."""
    known = mark.rows or {}
    fresh = {name: array[known.get(name, 0) :] for name, array in arrays.items()}
    if mark.size and not any(len(array) for array in fresh.values()):
        return mark
    data = container.pack(container.Container(KIND, VERSION, {}, fresh))
    append_durably(directory / mark.file, mark.size, _SIZE.pack(len(data)) + data)
    rows = {name: len(array) for name, array in arrays.items()}
    return Mark(mark.file, mark.size + _SIZE.size + len(data), _linked(mark.chain, data), rows)


def read_rows(directory: Path, mark: Mark) -> Arrays:
    """All rows up to the mark; a log that is missing, truncated or changed raises PolicyError.

    One segment at a time is in memory beside the result.
    """
    path = directory / mark.file
    found: Arrays = {}
    filled = dict.fromkeys(mark.rows or {}, 0)
    at, chain = 0, "0" * 64
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size < mark.size:
                raise _torn(path, f"{mark.size} bytes", f"{os.fstat(file.fileno()).st_size}")
            while at < mark.size:
                size = int.from_bytes(file.read(_SIZE.size), "little")
                at += _SIZE.size + size
                if at > mark.size:
                    raise _torn(path, f"segments of {mark.size} bytes", f"one that ends at byte {at}")
                data = file.read(size)
                segment = container.unpack(data, KIND, VERSION, where=str(path), error=PolicyError)
                chain = _linked(chain, data)
                _take(segment.arrays, mark, found, filled, path)
    except OSError as cause:
        raise PolicyError(
            f"{path}: cannot read the log of cuts: {cause.strerror}. Keep it beside its checkpoints."
        ) from cause
    if chain != mark.chain:
        raise _torn(path, "the segments that the checkpoint was written with", "others")
    for name, rows in (mark.rows or {}).items():
        if filled[name] != rows:
            raise _torn(path, f"{rows} rows of {name!r}", f"{filled[name]}")
    return found


def _take(segment: Arrays, mark: Mark, found: Arrays, filled: dict[str, int], path: Path) -> None:
    """Copy the rows of one segment to their places."""
    for name, array in segment.items():
        total = (mark.rows or {}).get(name)
        if total is None or array.ndim == 0:
            raise _torn(path, "rows of the checkpoint's arrays", f"{name!r}")
        whole = found.get(name)
        if whole is None:
            # Every row has been written: what does not fit into the log is not allocated on its word.
            if total * array.dtype.itemsize * math.prod(array.shape[1:]) > mark.size:
                raise _torn(path, f"{total} rows of {name!r}", "a log that is shorter")
            whole = found[name] = np.empty((total, *array.shape[1:]), array.dtype)
        begin, end = filled[name], filled[name] + len(array)
        if whole.dtype != array.dtype or whole.shape[1:] != array.shape[1:] or end > total:
            raise _torn(
                path,
                f"{total} rows {whole.dtype} {list(whole.shape[1:])} of {name!r}",
                f"{end} rows {array.dtype} {list(array.shape[1:])}",
            )
        whole[begin:end] = array
        filled[name] = end


def _linked(chain: str, data: bytes) -> str:
    return hashlib.sha256(chain.encode() + data[-container.CHECKSUM_BYTES :]).hexdigest()


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _torn(path: Path, expected: str, got: str) -> PolicyError:
    return PolicyError(
        f"{path}: log of cuts: expected {expected}, got {got}: it is truncated or not that of the checkpoint. "
        "Use an earlier copy."
    )
