"""Message authentication: session keys from a handshake, and the tags made with them.

One `Mac` serves one direction of one connection. It makes tag after tag; tag number n of a message m is

    (Poly1305 polynomial of m at the point r  +  pad n)  mod 2^128

where pad n is bytes 16 (n mod 4) to 16 (n mod 4) + 15 of BLAKE2b-512, keyed, of the number n div 4 as eight bytes,
little-endian. Point and BLAKE2b's key are the session key. This is the construction of Poly1305-AES (Bernstein, "The
Poly1305-AES message-authentication code", 2005) with keyed BLAKE2b (RFC 7693) for AES and n for the nonce; the
polynomial is that of RFC 8439. Because the number of a tag is part of it without being sent, a message that is left
out, repeated or moved makes every following tag wrong. Whoever does not know the key gets a changed message of L
bytes accepted with a probability of at most ceil(L / 16) / 2^103, once: the first wrong tag ends the run.

`pycobre._native.tcp` does the same in C (tcp_mac.h). Here short messages are Python integers and long ones are
evaluated in interleaved parts by NumPy; both are exact.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, NamedTuple

import numpy as np

__all__ = ["KEY_BYTES", "TAG_BYTES", "Mac", "SessionKeys", "session_keys"]

TAG_BYTES = 16
KEY_BYTES = 48  # 16 for the point, 32 for the pads

_PRIME = (1 << 130) - 5
_CLAMP = 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
_PADS_PER_BLOCK = 4
_LANES = (4096, 1024)  # for the bulk of a message, and for what is left of it
_LIMBS = 5
_LIMB_BITS = 26
_LIMB_MASK = np.uint64((1 << _LIMB_BITS) - 1)
_SHIFT = np.uint64(_LIMB_BITS)
_TOP_BIT = np.uint64(1 << (128 - 4 * _LIMB_BITS))

_U64 = np.ndarray[Any, np.dtype[np.uint64]]


class SessionKeys(NamedTuple):
    """The keys of one connection as one of its ends uses them."""

    receive: bytes
    send: bytes


def session_keys(token: str, transcript: bytes, *, coordinator: bool) -> SessionKeys:
    """The keys of a connection whose handshake was `transcript`: HKDF (RFC 5869) with SHA-256 from the token."""
    secret = hmac.digest(transcript, token.encode(), "sha256")
    upward, downward = (
        _expand(secret, role) for role in (b"worker to coordinator", b"coordinator to worker")
    )
    return SessionKeys(upward, downward) if coordinator else SessionKeys(downward, upward)


def _expand(secret: bytes, role: bytes) -> bytes:
    info = b"pycobre tcp frames, " + role
    first = hmac.digest(secret, info + b"\x01", "sha256")
    return (first + hmac.digest(secret, first + info + b"\x02", "sha256"))[:KEY_BYTES]


class Mac:
    """Makes the tags of one direction, in order."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"key: expected {KEY_BYTES} bytes, got {len(key)}")
        self._point = int.from_bytes(key[:16], "little") & _CLAMP
        self._pad_key = key[16:]
        self._pads = b""
        self._count = 0
        self._sum = 0
        self._partial = b""
        self._lanes: dict[int, _Lanes] = {}

    def add(self, data: bytes | bytearray | memoryview) -> None:
        """Take in the next bytes of what the next tag covers."""
        view = memoryview(data)
        if self._partial:
            missing = 16 - len(self._partial)
            self._partial += view[:missing]
            view = view[missing:]
            if len(self._partial) < 16:
                return
            self._blocks(memoryview(self._partial))
            self._partial = b""
        for lanes in _LANES:
            whole = len(view) // (16 * lanes) * (16 * lanes)
            if whole:
                if lanes not in self._lanes:
                    self._lanes[lanes] = _Lanes(self._point, lanes)
                self._sum = self._lanes[lanes].evaluate(self._sum, view[:whole])
                view = view[whole:]
        rest = len(view) % 16
        self._blocks(view[: len(view) - rest])
        self._partial = bytes(view[len(view) - rest :])

    def tag(self) -> bytes:
        """The tag of everything taken in since the tag before."""
        if self._partial:
            self._sum = (self._sum + int.from_bytes(self._partial + b"\x01", "little")) * self._point % _PRIME
        which = self._count % _PADS_PER_BLOCK
        if which == 0:
            number = (self._count // _PADS_PER_BLOCK).to_bytes(8, "little")
            self._pads = hashlib.blake2b(number, key=self._pad_key).digest()
        pad = int.from_bytes(self._pads[TAG_BYTES * which : TAG_BYTES * (which + 1)], "little")
        tag = ((self._sum + pad) & ((1 << 128) - 1)).to_bytes(TAG_BYTES, "little")
        self._count += 1
        self._sum = 0
        self._partial = b""
        return tag

    def verify(self, tag: bytes | bytearray | memoryview) -> bool:
        """Whether `tag` is that of everything taken in since the tag before."""
        return hmac.compare_digest(self.tag(), bytes(tag))

    def _blocks(self, view: memoryview) -> None:
        total, point = self._sum, self._point
        for start in range(0, len(view), 16):
            total = (total + int.from_bytes(view[start : start + 16], "little") + (1 << 128)) * point % _PRIME
        self._sum = total


class _Lanes:
    """Evaluates the polynomial in `count` parts: lane j has blocks j, j + `count`, … at the point r^`count`."""

    def __init__(self, point: int, count: int) -> None:
        powers = [1]
        for _ in range(count):
            powers.append(powers[-1] * point % _PRIME)
        self._count = count
        self._stride = _limbs_of([powers[count]])
        self._finish = _limbs_of(powers[:0:-1])  # r^count for lane 0 down to r for the last

    def evaluate(self, start: int, view: memoryview) -> int:
        """The polynomial of whole rows of blocks, begun with the sum `start`."""
        rows = np.frombuffer(view, "<u8").reshape(-1, self._count, 2)
        total = _limbs_of_rows(rows[0])
        total[:, 0] += _limbs_of([start])[:, 0]
        for row in rows[1:]:
            total = _multiply(total, self._stride)
            total += _limbs_of_rows(row)
        limbs = _multiply(total, self._finish).sum(
            axis=1
        )  # a lane's limb has 27 bits, the sum of 4096 of them 39
        return sum(int(limb) << (_LIMB_BITS * place) for place, limb in enumerate(limbs)) % _PRIME


def _limbs_of(numbers: list[int]) -> _U64:
    mask = (1 << _LIMB_BITS) - 1
    limbs = [[number >> (_LIMB_BITS * place) & mask for number in numbers] for place in range(_LIMBS)]
    return np.array(limbs, np.uint64)


def _limbs_of_rows(row: _U64) -> _U64:
    """The limbs of one row of 16-byte blocks, with the bit that Poly1305 adds above each."""
    low, high = row[:, 0], row[:, 1]
    limbs = np.empty((_LIMBS, row.shape[0]), np.uint64)
    limbs[0] = low & _LIMB_MASK
    limbs[1] = low >> _SHIFT & _LIMB_MASK
    limbs[2] = (low >> np.uint64(52) | high << np.uint64(12)) & _LIMB_MASK
    limbs[3] = high >> np.uint64(14) & _LIMB_MASK
    limbs[4] = high >> np.uint64(40) | _TOP_BIT
    return limbs


def _multiply(a: _U64, b: _U64) -> _U64:
    """The products of the lanes of `a` with those of `b` (or with its only one) modulo 2^130 - 5.

    Limbs of `a` have 28 bits and those of `b` 26, times five 29, so a column of five products fits 64 bits.
    """
    folded = b * np.uint64(5)
    columns = []
    for place in range(_LIMBS):
        column = a[0] * b[place]
        for left in range(1, _LIMBS):
            right = place - left
            column += a[left] * (b[right] if right >= 0 else folded[right + _LIMBS])
        columns.append(column)
    limbs = np.empty_like(a)
    carry: Any = np.uint64(0)
    for place, column in enumerate(columns):
        column += carry
        limbs[place] = column & _LIMB_MASK
        carry = column >> _SHIFT
    # What is above 2^130 comes back five times; it has fewer than 35 bits, and two steps leave limbs of 27 bits.
    limbs[0] += carry * np.uint64(5)
    for place in (0, 1):
        limbs[place + 1] += limbs[place] >> _SHIFT
        limbs[place] &= _LIMB_MASK
    return limbs
