"""What goes over a tcp connection after the handshake: frames.

A frame is a header of 64 bytes, little-endian, and `length` bytes of payload:

    0   kind       1 byte    what the frame is (`Kind`)
    1   operation  1 byte    which collective (`Operation`)              ┐
    2   letter     1 byte    the dtype's kind, as NumPy writes it        │
    3   reduce     1 byte    how an allreduce combines (`REDUCE_CODES`)  │
    4   itemsize   4 bytes   of the dtype                                │  the call: the same on
    8   root       4 bytes   of a broadcast                              │  every rank, or the ranks
    12  fields     4 bytes   checksum of a dtype that letter and         │  are not making the same
                             itemsize do not describe                    │  collective
    16  sequence   8 bytes   number of the collective                    │
    24  elements   8 bytes   in all                                      │
    32  layout     8 bytes   checksum of an allgatherv's counts          ┘
    40  block      4 bytes   whose contribution a CHUNK belongs to; whom a FAILURE names
    44  reserved   4 bytes   zero
    48  offset     8 bytes   where in the block a CHUNK starts, in bytes; of a CALL and a RESULT, how many
                             elements the sender itself contributes (for the error message)
    56  length     8 bytes   of the payload

Every rank sends one CALL up to the coordinator per collective. What comes down is one RESULT with everything
the worker lacks, or CHUNKs and a LAST one; only that end is held back until the calls of all other ranks have
arrived and agree. A receiver compares the call with its own before it looks at the payload, and the lengths
with what its own arguments make it expect, so nothing is ever allocated or written on a peer's word.
"""

from __future__ import annotations

import enum
import struct
import zlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pycobre.comm.failure import call_text
from pycobre.comm.fold import REDUCE_CODES, REDUCE_NAMES

__all__ = [
    "CALL_BYTES",
    "HEADER",
    "MAX_TEXT_BYTES",
    "NOBODY",
    "REDUCE_CODES",
    "SMALL_BYTES",
    "Call",
    "DtypeCode",
    "Header",
    "Kind",
    "Operation",
    "dtype_code",
    "failure_frame",
    "folds_at_coordinator",
    "layout_code",
    "shutdown_frame",
]

HEADER = struct.Struct("<BBBBIIIQQQIIQQ")
CALL_BYTES = slice(1, 40)
NOBODY = 0xFFFFFFFF
MAX_TEXT_BYTES = 4096
# Up to here a collective is one frame up and one down, put together in memory; above, blocks are streamed.
SMALL_BYTES = 64 * 1024


class Kind(enum.IntEnum):
    """What a frame is."""

    CALL = 1  # up: a rank enters a collective, with its contribution
    RESULT = 2  # down: everything the worker lacks, in rank order without its own block; ends the collective
    CHUNK = 3  # down: a piece of one block
    LAST = 4  # down: the last piece, possibly empty; ends the collective
    WAITING = 5  # down: the coordinator is in this collective and waits for others; its timeout starts anew
    FAILURE = 6  # either way: no collective will complete any more; the payload says why
    SHUTDOWN = 7  # either way: the sender closed its communicator


class Operation(enum.IntEnum):
    """Which collective."""

    NONE = 0
    ALLGATHERV = 1
    ALLREDUCE = 2
    BROADCAST = 3
    BARRIER = 4


class DtypeCode(NamedTuple):
    """A dtype as the header carries it."""

    letter: int
    itemsize: int
    fields: int


class Call(NamedTuple):
    """What a rank says it is doing: equal on all ranks, or the collective fails on all of them."""

    operation: int
    letter: int
    reduce: int
    itemsize: int
    root: int
    fields: int
    sequence: int
    elements: int
    layout: int

    def header(self, kind: int, *, block: int = 0, offset: int = 0, length: int = 0) -> bytes:
        """The 64 bytes of a frame that belongs to this call."""
        return HEADER.pack(kind, *self, block, 0, offset, length)

    def __str__(self) -> str:
        try:
            name = Operation(self.operation).name.lower()
        except ValueError:
            return f"an unknown operation {self.operation}"
        details = []
        if self.operation != Operation.BARRIER:
            details.append(f"{self.elements} of {_dtype_name(self.letter, self.itemsize)}")
        if self.operation == Operation.ALLREDUCE:
            details.append(REDUCE_NAMES.get(self.reduce, f"operator {self.reduce}"))
        if self.operation == Operation.BROADCAST:
            details.append(f"root {self.root}")
        return call_text(name, self.sequence, *details)


class Header(NamedTuple):
    """A frame's header, taken apart. Any 64 bytes are one; whether it is sensible is the receiver's check."""

    kind: int
    call: Call
    block: int
    offset: int
    length: int

    def pack(self) -> bytes:
        """The 64 bytes again."""
        return self.call.header(self.kind, block=self.block, offset=self.offset, length=self.length)

    @classmethod
    def parse(cls, data: bytes | bytearray | memoryview) -> Header:
        """Take apart the first 64 bytes of `data`."""
        kind, *fields = HEADER.unpack_from(data)
        block, _, offset, length = fields[9:]
        return cls(kind, Call(*fields[:9]), block, offset, length)


@lru_cache(maxsize=256)
def dtype_code(dtype: np.dtype[Any]) -> DtypeCode:
    """How the header describes `dtype`; equal codes mean equal dtypes."""
    simple = dtype.isnative and dtype.fields is None and dtype.subdtype is None and dtype.kind in "biufcSUV"
    fields = 0 if simple else zlib.crc32(repr(dtype).encode()) or 1
    return DtypeCode(ord(dtype.kind), dtype.itemsize, fields)


@lru_cache(maxsize=256)
def layout_code(counts: tuple[int, ...]) -> int:
    """A checksum of the counts, so that ranks that disagree about them are found out."""
    return zlib.crc32(struct.pack(f"<{len(counts)}Q", *counts))


def folds_at_coordinator(nbytes: int, size: int) -> bool:
    """Whether an allreduce is folded by the coordinator; smaller ones are gathered and folded everywhere."""
    return nbytes * size > SMALL_BYTES


def failure_frame(rank: int, text: bytes) -> bytes:
    """A FAILURE frame that blames `rank`, or `NOBODY`."""
    return HEADER.pack(Kind.FAILURE, *(0,) * 9, rank, 0, 0, len(text)) + text


def shutdown_frame(collectives: int) -> bytes:
    """A SHUTDOWN frame of a rank that made so many collectives."""
    return HEADER.pack(Kind.SHUTDOWN, *(0,) * 6, collectives, *(0,) * 6)


def _dtype_name(letter: int, itemsize: int) -> str:
    kind = chr(letter)
    if kind in "biufc" and itemsize <= 32:
        try:
            return np.dtype(f"{kind}{itemsize}").name
        except TypeError:
            pass
    return f"dtype {kind!r} of {itemsize} bytes"
