"""What a Parquet file says of itself, read without the Parquet library: codecs, rows, and how large it becomes.

The library ends the process when it is asked about the columns of a damaged file, and takes all the memory that a
small file can ask for. So the metadata (Thrift's compact protocol) and the headers of all pages are read here first,
with every number checked against the bytes that there are. What is wrong is a `ValueError`.
"""

from __future__ import annotations

import struct
from typing import Any

from pycobre._util.frozen import frozen

__all__ = ["LARGEST_DECODED", "Footer", "largest_decoded", "read_footer"]

LARGEST_DECODED = 4 << 30
"""Bytes that a table may have in memory, however large its file is."""
FREE = 64 << 20  # bytes that any file may become
RATIO = 200  # beyond them, times the size of the file

MAGIC = b"PAR1"
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
BYTES_PER_VALUE = 8
_DEPTH = 16  # of structures inside each other; metadata have half of it

Struct = dict[int, Any]


@frozen()
class Footer:
    """Of one file; `decoded` are the bytes of its pages and of its values in memory."""

    rows: int
    codecs: frozenset[str]
    decoded: int


def largest_decoded(size: int) -> int:
    """The bytes that a file of this size may become in memory."""
    return min(LARGEST_DECODED, max(FREE, RATIO * size))


def read_footer(content: bytes) -> Footer:
    """Read the metadata of a file and the headers of its pages."""
    if len(content) < 12 or content[:4] != MAGIC or content[-4:] != MAGIC:
        raise ValueError("no Parquet file: it neither begins nor ends as one")
    (length,) = struct.unpack("<I", content[-8:-4])
    if length > len(content) - 12:
        raise ValueError(f"metadata of {length} bytes in a file of {len(content)}")
    end = len(content) - 8
    meta = _Reader(content, end - length, end).struct()
    rows = _count(meta, 3)
    codecs, values, pages, seen = set(), 0, 0, 0
    for group in _list(meta, 4):
        group_rows = _count(group, 3)
        seen += group_rows
        for chunk in _list(group, 1):
            column = chunk.get(3)
            if not isinstance(column, dict):
                raise ValueError("a column without metadata")
            codec = _count(column, 4)
            if codec >= len(CODECS):
                raise ValueError(f"codec {codec}")
            codecs.add(CODECS[codec])
            if _count(column, 5) != group_rows:
                raise ValueError("a column with another number of values than its group has rows")
            values += group_rows
            if group_rows:
                pages += _pages(content, column, end - length)
    if seen != rows:
        raise ValueError(f"{rows} rows, {seen} of them in groups")
    return Footer(rows, frozenset(codecs), pages + BYTES_PER_VALUE * values)


def _pages(content: bytes, column: Struct, end: int) -> int:
    """The decompressed bytes of a column's pages, by their headers."""
    first = _count(column, 9)
    if column.get(11):  # the page of its dictionary comes first
        first = min(first, _count(column, 11))
    stop = first + _count(column, 7)
    if first < len(MAGIC) or stop > end:
        raise ValueError("a column outside the file")
    total, at, values = 0, first, 0
    while at < stop:
        reader = _Reader(content, at, stop)
        header = reader.struct()
        total += _count(header, 2)
        at = reader.at + _count(header, 3)
        for kind in (5, 8):  # pages of data, of both versions
            if isinstance(header.get(kind), dict):
                values += _count(header[kind], 1)
    if at != stop or values != _count(column, 5):
        raise ValueError("pages that do not fill their column")
    return total


def _count(found: Struct, field: int) -> int:
    value = found.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise ValueError(f"field {field} is {value!r}")
    return value


def _list(found: Struct, field: int) -> list[Struct]:
    value = found.get(field)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"field {field} is no list of structures")
    return value


class _Reader:
    """Thrift's compact protocol between two places of a file."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self._content, self.at, self._end = content, at, end

    def struct(self, depth: int = 0) -> Struct:
        """Fields by number; one that is there twice is wrong."""
        if depth > _DEPTH:
            raise ValueError("structures inside each other without end")
        found: Struct = {}
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return found
            step, kind = head >> 4, head & 15
            number = number + step if step else self._zigzag()
            if number in found:
                raise ValueError(f"field {number} twice")
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return self._take(8)
            case 8:
                return self._take(self._varint())
            case 9 | 10:
                return self._list(depth)
            case 12:
                return self.struct(depth + 1)
        raise ValueError(f"a value of kind {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > _DEPTH:
            raise ValueError("lists inside each other without end")
        head = self._byte()
        count, kind = head >> 4, head & 15
        count = self._varint() if count == 15 else count
        if count > self._end - self.at:  # each item has a byte at least
            raise ValueError(f"a list of {count} in {self._end - self.at} bytes")
        if kind in (1, 2):
            return [self._byte() == 1 for _ in range(count)]
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("a number without end")

    def _take(self, count: int) -> bytes:
        if count > self._end - self.at:
            raise ValueError(f"{count} bytes where {self._end - self.at} are left")
        self.at += count
        return self._content[self.at - count : self.at]

    def _byte(self) -> int:
        if self.at >= self._end:
            raise ValueError("metadata that end too soon")
        self.at += 1
        return self._content[self.at - 1]
