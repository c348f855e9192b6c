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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.files import open_regular
from pycobre.errors import CobreError

__all__ = ["CHECKSUM_BYTES", "Container", "pack", "pack_blocks", "read", "unpack"]

MAGIC = b"\x89COBRE\n\x1a"
ALIGNMENT = 64
_SIZE = struct.Struct("<Q")
CHECKSUM_BYTES = 32
_KINDS = frozenset("biufc")


@dataclass(frozen=True)
class Container:
    """What a file holds: its kind, the version of that kind, metadata and named read-only arrays."""

    kind: str
    version: int
    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def pack(content: Container) -> bytes:
    """Return the file's bytes. `meta` holds JSON values only; floats keep every bit."""
    return b"".join(pack_blocks(content))


def pack_blocks(content: Container) -> Iterator[bytes | memoryview]:
    """The same piece by piece, without a second copy of the arrays."""
    entries: list[list[Any]] = []
    arrays: list[NDArray[Any]] = []
    offset = 0
    for name in sorted(content.arrays):
        array = np.asarray(content.arrays[name])
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"array {name!r}: expected a plain numeric dtype, got {array.dtype}")
        little = array.dtype.newbyteorder("<")
        entries.append([name, little.str, list(array.shape), offset])
        arrays.append(array)
        offset = _aligned(offset + array.nbytes)
    header = json.dumps(
        {"kind": content.kind, "version": content.version, "meta": content.meta, "arrays": entries},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=True,
    ).encode()
    digest = hashlib.sha256()
    head = MAGIC + _SIZE.pack(len(header)) + header
    head += bytes(_aligned(len(head)) - len(head))
    digest.update(head)
    yield head
    for array in arrays:
        whole = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        for block in (whole.reshape(-1).view(np.uint8).data, bytes(_aligned(array.nbytes) - array.nbytes)):
            digest.update(block)
            yield block
    yield digest.digest()


def unpack(data: bytes, kind: str, version: int, *, where: str, error: type[CobreError]) -> Container:
    """Check and open a file's bytes; raise `error` with a sentence about `where` when anything is off."""
    if data[: len(MAGIC)] != MAGIC:
        raise error(f"{where}: expected a pycobre {kind} file, got something else. Check the path.")
    checked = memoryview(data)[:-CHECKSUM_BYTES]
    if (
        len(data) < len(MAGIC) + _SIZE.size + CHECKSUM_BYTES
        or hashlib.sha256(checked).digest() != data[-CHECKSUM_BYTES:]
    ):
        raise error(
            f"{where}: checksum mismatch over its {len(data)} bytes: the file is truncated or corrupt. "
            "Restore an earlier copy."
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
        arrays = {str(name): _view(checked, body, at, dtype, shape) for name, dtype, shape, at in entries}
        if len(arrays) < len(entries):
            raise ValueError("one name twice")
    except (ValueError, TypeError, OverflowError, SyntaxError) as cause:
        raise error(f"{where}: an array does not fit the file ({cause}). Use an earlier copy.") from cause
    return Container(kind, version, meta, arrays)


def read(path: str | os.PathLike[str], kind: str, version: int, *, error: type[CobreError]) -> Container:
    """Read, check and open a file; raise `error` when it is not there or not what it should be."""
    try:
        with open_regular(path) as file:
            data = file.read()
    except OSError as cause:
        raise error(f"{path}: cannot read the {kind} file: {cause.strerror}. Check the path.") from cause
    return unpack(data, kind, version, where=str(path), error=error)


def _view(data: memoryview, body: int, at: int, dtype: str, shape: list[int]) -> NDArray[Any]:
    if not isinstance(dtype, str):
        raise ValueError(f"dtype {dtype!r}")
    kind = np.dtype(dtype)
    if kind.kind not in _KINDS or kind.itemsize == 0:
        raise ValueError(f"dtype {dtype}")
    if not isinstance(shape, list) or any(type(extent) is not int or extent < 0 for extent in shape):
        raise ValueError(f"shape {shape}")
    if type(at) is not int or at < 0 or at % ALIGNMENT:
        raise ValueError(f"offset {at}")
    count, start = math.prod(shape), body + at
    if start + count * kind.itemsize > len(data):
        raise ValueError(f"{count} elements of {dtype} at byte {start} of {len(data)}")
    return np.frombuffer(data, kind, count, start).reshape(shape)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
