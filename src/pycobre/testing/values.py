"""Inputs that every rank can compute for every other rank, and comparison to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from pycobre.comm.api import Buffer

#: Every dtype of the contract, by a name that makes a readable test id.
MOVABLE: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: np.dtype(name) for name in ("float16", "float32", "float64", "longdouble")},
    **{name: np.dtype(name) for name in ("complex64", "complex128", "clongdouble")},
    "big-endian": np.dtype(">f8"),
    "structured": np.dtype([("stage", "i4"), ("value", "f8"), ("kept", "?")]),
    "structured-aligned": np.dtype([("kept", "?"), ("value", "f8"), ("stage", "i2")], align=True),
    "structured-nested": np.dtype([("at", [("x", "f4"), ("y", "u1")]), ("path", "i8", (2, 3))]),
}

REDUCIBLE = {
    name: dtype
    for name, dtype in MOVABLE.items()
    if dtype.kind in "iuf" and dtype.isnative and not dtype.names
}

#: The same by families: one test for each.
FAMILIES: dict[str, list[str]] = {
    "integers": [name for name, dtype in MOVABLE.items() if dtype.kind in "biu"],
    "floats": [name for name, dtype in MOVABLE.items() if dtype.kind == "f"],
    "complex": [name for name, dtype in MOVABLE.items() if dtype.kind == "c"],
    "structured": [name for name, dtype in MOVABLE.items() if dtype.kind == "V"],
}

_BLOCK = 4093  # a prime: chunks of any usual size end at another place of it


def contribution(rank: int, count: int, dtype: np.dtype[Any], salt: int = 0) -> Buffer:
    """What `rank` sends: `count` values that depend on the rank, the salt and the position, all finite.

    Long ones repeat a block of random values, so that large payloads cost the transport and not the generator.
    """
    rng = np.random.default_rng((salt, rank, count))
    block = _random(rng, (min(count, _BLOCK),), dtype)
    return block if count <= _BLOCK else block[np.arange(count) % _BLOCK]


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
    if dtype.names is not None:
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            field = dtype[name]
            out[name] = _random(rng, shape + field.shape, field.base)
        return out
    if dtype.kind == "c":
        real, imaginary = rng.standard_normal(shape), rng.standard_normal(shape)
        return (real + 1j * imaginary).astype(dtype)
    if dtype.kind == "f":
        # Magnitudes far apart, so that the order of a sum shows in its last bits.
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)
    return rng.integers(0, 256, shape).astype(np.uint8).astype(dtype)


def expect_same(actual: Buffer, expected: Buffer, what: str) -> None:
    """Fail unless both have the same values with the same bits; any NaN equals any NaN."""
    assert actual.shape == expected.shape, f"{what}: expected shape {expected.shape}, got {actual.shape}"
    assert actual.dtype == expected.dtype, f"{what}: expected dtype {expected.dtype}, got {actual.dtype}"
    if actual.dtype.kind == "f":
        same = np.where(np.isnan(expected), np.isnan(actual), actual == expected)
        same &= np.isnan(expected) | (np.signbit(actual) == np.signbit(expected))
    else:
        same = np.asarray(actual == expected)
    if not same.all():
        first = int(np.argmin(same.reshape(-1)))
        got, wanted = actual.reshape(-1)[first], expected.reshape(-1)[first]
        raise AssertionError(
            f"{what}: {int(same.size - same.sum())} of {same.size} values differ, first at {first}: "
            f"expected {wanted!r}, got {got!r}"
        )
