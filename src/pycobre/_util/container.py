"""The one binary file format: a JSON header and raw arrays, checked whole before anything in it is believed.

    magic        8 bytes    89 43 4F 42 52 45 0A 1A
    header size  u64        little-endian
    header       UTF-8 JSON, keys sorted, no spaces: kind, version, meta, arrays [name, dtype, shape, offset]
    arrays       little-endian, C order, each starting at a multiple of 64 bytes from the file's start
    checksum     32 bytes   SHA-256 of everything before it

The bytes are a function of the content alone, so equal content gives equal files; loading runs no code and
allocates nothing on the file's word.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre.errors import CobreError, OutputError

__all__ = ["Container", "pack", "read", "remove_unfinished", "unpack", "write_atomically"]

MAGIC = b"\x89COBRE\n\x1a"
ALIGNMENT = 64
_SIZE = struct.Struct("<Q")
_CHECKSUM_BYTES = 32
_KINDS = frozenset("biufc")
_UNFINISHED = ".part"


@dataclass(frozen=True)
class Container:
    """What a file holds: its kind, the version of that kind, metadata and named read-only arrays."""

    kind: str
    version: int
    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def pack(content: Container) -> bytes:
    """Return the file's bytes. `meta` holds JSON values only; floats keep every bit."""
    entries: list[list[Any]] = []
    blocks: list[NDArray[Any]] = []
    offset = 0
    for name in sorted(content.arrays):
        given = np.asarray(content.arrays[name])
        if given.dtype.kind not in _KINDS:
            raise TypeError(f"array {name!r}: expected a plain numeric dtype, got {given.dtype}")
        array = np.ascontiguousarray(given, dtype=given.dtype.newbyteorder("<")).reshape(given.shape)
        entries.append([name, array.dtype.str, list(array.shape), offset])
        blocks.append(array)
        offset = _aligned(offset + array.nbytes)
    header = json.dumps(
        {"kind": content.kind, "version": content.version, "meta": content.meta, "arrays": entries},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=True,
    ).encode()
    body = _aligned(len(MAGIC) + _SIZE.size + len(header))
    out = bytearray(body + offset)
    out[: len(MAGIC)] = MAGIC
    _SIZE.pack_into(out, len(MAGIC), len(header))
    out[len(MAGIC) + _SIZE.size : len(MAGIC) + _SIZE.size + len(header)] = header
    for (_, _, _, start), array in zip(entries, blocks, strict=True):
        out[body + start : body + start + array.nbytes] = array.tobytes()
    out += hashlib.sha256(out).digest()
    return bytes(out)


def unpack(data: bytes, kind: str, version: int, *, where: str, error: type[CobreError]) -> Container:
    """Check and open a file's bytes; raise `error` with a sentence about `where` when anything is off."""
    if data[: len(MAGIC)] != MAGIC:
        raise error(f"{where}: expected a pycobre {kind} file, got something else. Check the path.")
    checked = memoryview(data)[:-_CHECKSUM_BYTES]
    if (
        len(data) < len(MAGIC) + _SIZE.size + _CHECKSUM_BYTES
        or hashlib.sha256(checked).digest() != data[-_CHECKSUM_BYTES:]
    ):
        raise error(
            f"{where}: the checksum does not match its {len(data)} bytes: the file is torn or was changed. "
            "Use an earlier copy."
        )
    (size,) = _SIZE.unpack_from(data, len(MAGIC))
    start = len(MAGIC) + _SIZE.size
    try:
        header = json.loads(bytes(checked[start : start + size]))
        found_kind, found_version = header["kind"], header["version"]
        meta, entries = header["meta"], header["arrays"]
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise error(f"{where}: the header is not readable ({cause}). Use an earlier copy.") from cause
    if found_kind != kind:
        raise error(f"{where}: expected a pycobre {kind} file, got a {found_kind} file. Check the path.")
    if found_version != version:
        raise error(
            f"{where}: expected version {version} of the {kind} format, got {found_version}. "
            f"Use the pycobre that wrote it, or write it again."
        )
    body = _aligned(start + size)
    try:
        arrays = {name: _view(checked, body + at, dtype, shape) for name, dtype, shape, at in entries}
    except (ValueError, TypeError) as cause:
        raise error(f"{where}: an array does not fit the file ({cause}). Use an earlier copy.") from cause
    return Container(kind, version, meta, arrays)


def read(path: str | os.PathLike[str], kind: str, version: int, *, error: type[CobreError]) -> Container:
    """Read, check and open a file; raise `error` when it is not there or not what it should be."""
    try:
        data = Path(path).read_bytes()
    except OSError as cause:
        raise error(f"{path}: cannot read the {kind} file: {cause.strerror}. Check the path.") from cause
    return unpack(data, kind, version, where=str(path), error=error)


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


def remove_unfinished(directory: str | os.PathLike[str]) -> None:
    """Remove what processes that were killed while they wrote have left anywhere under `directory`.

    Requires that nobody is writing there now.
    """
    for path in Path(directory).rglob(f".*{_UNFINISHED}"):
        path.unlink(missing_ok=True)


def _view(data: memoryview, start: int, dtype: str, shape: list[int]) -> NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind not in _KINDS or kind.itemsize == 0:
        raise ValueError(f"dtype {dtype}")
    if not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        raise ValueError(f"shape {shape}")
    count = math.prod(shape)
    if start < 0 or start + count * kind.itemsize > len(data):
        raise ValueError(f"{count} elements of {dtype} at byte {start} of {len(data)}")
    return np.frombuffer(data, kind, count, start).reshape(shape)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


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
