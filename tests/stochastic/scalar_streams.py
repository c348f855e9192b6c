"""The same random streams once more: one number at a time, with Python's integers."""

from __future__ import annotations

import math
import struct

M64 = (1 << 64) - 1
M128 = (1 << 128) - 1


def siphash13(data: bytes) -> int:
    def rotl(x: int, b: int) -> int:
        return ((x << b) | (x >> (64 - b))) & M64

    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]

    def sip_round() -> None:
        v[0] = (v[0] + v[1]) & M64
        v[1] = rotl(v[1], 13) ^ v[0]
        v[0] = rotl(v[0], 32)
        v[2] = (v[2] + v[3]) & M64
        v[3] = rotl(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & M64
        v[3] = rotl(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & M64
        v[1] = rotl(v[1], 17) ^ v[2]
        v[2] = rotl(v[2], 32)

    tail = len(data) % 8
    padded = data + b"\0" * (7 - tail) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Pcg64:
    def __init__(self, seed: int) -> None:
        raw = b""
        state = seed
        for _ in range(8):
            state = (state * 6364136223846793005 + 11634580027462260723) & M64
            shifted = (((state >> 18) ^ state) >> 27) & 0xFFFFFFFF
            rot = state >> 59
            raw += struct.pack("<I", ((shifted >> rot) | (shifted << (32 - rot) % (1 << 32))) & 0xFFFFFFFF)
        self.inc = int.from_bytes(raw[16:], "little") | 1
        self.state = (int.from_bytes(raw[:16], "little") + self.inc) & M128
        self.step()

    def step(self) -> None:
        self.state = (self.state * 0x2360ED051FC65DA44385DF649FCCF645 + self.inc) & M128

    def u64(self) -> int:
        self.step()
        rot = self.state >> 122
        x = (self.state >> 64) ^ (self.state & M64)
        return ((x >> rot) | (x << (64 - rot))) & M64

    def index(self, n: int) -> int:
        product = (self.u64() & 0xFFFFFFFF) * n
        result, low = product >> 32, product & 0xFFFFFFFF
        if low > (1 << 32) - n:
            result += (low + (((self.u64() & 0xFFFFFFFF) * n) >> 32)) >> 32
        return result

    def open01(self) -> float:
        return struct.unpack("<d", struct.pack("<Q", (self.u64() >> 12) | (1023 << 52)))[0] - (1 - 2.0**-53)

    def normal(self, x: list[float], f: list[float]) -> float:
        r = x[1]
        while True:
            bits = self.u64()
            i = bits & 0xFF
            u = struct.unpack("<d", struct.pack("<Q", (bits >> 12) | (1024 << 52)))[0] - 3.0
            value = u * x[i]
            if abs(value) < x[i + 1]:
                return value
            if i == 0:
                while True:
                    a = math.log(self.open01()) / r
                    b = math.log(self.open01())
                    if -2.0 * b >= a * a:
                        return a - r if u < 0 else r - a
            if f[i + 1] + (f[i] - f[i + 1]) * ((self.u64() >> 11) * 2.0**-53) < math.exp(
                -value * value / 2.0
            ):
                return value


def ziggurat_tables() -> tuple[list[float], list[float]]:
    r, v = 3.6541528853610088, 0.00492867323399
    x = [v / math.exp(-r * r / 2), r]
    while len(x) < 256:
        x.append(math.sqrt(-2 * math.log(v / x[-1] + math.exp(-x[-1] * x[-1] / 2))))
    x.append(0.0)
    return x, [math.exp(-value * value / 2) for value in x]
