"""Reading tables of the FlatBuffers format: every offset is looked at before it is followed.

Only what Cobre's policies need: tables with scalar fields, vectors of scalars and of tables.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from pycobre._util.arrays import F64

__all__ = ["FlatTable", "NotFlat", "root_table"]


class NotFlat(ValueError):
    """The bytes are not what they are said to be; becomes a finding, and never leaves this package."""


class FlatTable:
    """One table: its fields by number, each with the value it has where it is left out."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        (back,) = self._unpack("<i", position)
        self._vtable = position - back
        size, _ = self._unpack("<HH", self._vtable)
        if size < 4 or size % 2 or self._vtable + size > len(data):
            raise NotFlat(f"a table at byte {position} has no list of fields")
        self._fields = size // 2 - 2

    def number(self, field: int, code: str, default: int = 0) -> int:
        at = self._at(field)
        return default if at is None else int(self._unpack(f"<{code}", at)[0])

    def real(self, field: int) -> float:
        at = self._at(field)
        return 0.0 if at is None else float(self._unpack("<d", at)[0])

    def reals(self, field: int) -> F64:
        """A vector of doubles; none where it is left out."""
        start, count = self._vector(field, 8)
        return np.frombuffer(self._data, "<f8", count, start).astype(np.float64)

    def tables(self, field: int) -> Iterator[FlatTable]:
        """A vector of tables."""
        start, count = self._vector(field, 4)
        for place in range(start, start + 4 * count, 4):
            (offset,) = self._unpack("<I", place)
            yield FlatTable(self._data, place + offset)

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        at = self._at(field)
        if at is None:
            return 0, 0
        (offset,) = self._unpack("<I", at)
        (count,) = self._unpack("<I", at + offset)
        start = at + offset + 4
        if start + width * count > len(self._data):
            raise NotFlat(f"a list at byte {at + offset} is longer than the file")
        return start, count

    def _at(self, field: int) -> int | None:
        if field >= self._fields:
            return None
        (offset,) = self._unpack("<H", self._vtable + 4 + 2 * field)
        return self._position + offset if offset else None

    def _unpack(self, form: str, position: int) -> tuple[int, ...]:
        if position < 0 or position + struct.calcsize(form) > len(self._data):
            raise NotFlat(f"byte {position} is outside the file")
        return struct.unpack_from(form, self._data, position)


def root_table(data: bytes, identifier: bytes) -> FlatTable:
    """The table that a file with this identifier holds."""
    if data[4:8] != identifier:
        raise NotFlat(f"expected a file marked {identifier.decode()}, got {data[4:8]!r}")
    (offset,) = struct.unpack_from("<I", data)
    return FlatTable(data, offset)
