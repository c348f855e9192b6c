"""SipHash-1-3 with a zero key over whole arrays of messages.

A message is a fixed sequence of little-endian integers. The same call hashes one message or a million; a
result depends on its own message only, never on the order or the company in which it is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre._util.arrays import U64

__all__ = ["siphash13"]


_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def siphash13(*fields: tuple[ArrayLike, str]) -> U64:
    """Hash one message per broadcast element; a field is `(values, dtype)`, e.g. `(stage, "<u4")`.

    The message is the fields' bytes in the given order. Values are reduced modulo the width of their field,
    so that −1 in a `<u4` field is 0xFFFFFFFF.
    """
    columns = [(_unsigned(values), np.dtype(dtype)) for values, dtype in fields]
    shape = np.broadcast_shapes(*(values.shape for values, _ in columns))
    n = int(np.prod(shape, dtype=np.int64))
    length = sum(dtype.itemsize for _, dtype in columns)
    padded = (length // 8 + 1) * 8
    message = np.zeros((n, padded), dtype=np.uint8)
    at = 0
    for values, dtype in columns:
        flat = np.broadcast_to(values, shape).reshape(n).astype(dtype)
        message[:, at : at + dtype.itemsize] = flat.view(np.uint8).reshape(n, dtype.itemsize)
        at += dtype.itemsize
    message[:, -1] = length & 0xFF
    words = message.view("<u8").astype(np.uint64)

    v0, v1, v2, v3 = (np.full(n, word, dtype=np.uint64) for word in _INITIAL)
    for i in range(words.shape[1]):
        v3 ^= words[:, i]
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= words[:, i]
    v2 ^= np.uint64(0xFF)
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    result: U64 = (v0 ^ v1 ^ v2 ^ v3).reshape(shape)
    return result


def _unsigned(values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "O" or array.dtype.kind not in "iu":
        raise TypeError(f"hash field: expected integers, got {array.dtype}. Pass integer arrays.")
    return array.astype(np.uint64) if array.dtype.kind == "u" else array.astype(np.int64).view(np.uint64)


def _rotate(x: U64, bits: int) -> U64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _round(v0: U64, v1: U64, v2: U64, v3: U64) -> tuple[U64, U64, U64, U64]:
    v0 = v0 + v1
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 = v2 + v3
    v3 = _rotate(v3, 16) ^ v2
    v0 = v0 + v3
    v3 = _rotate(v3, 21) ^ v0
    v2 = v2 + v1
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3
