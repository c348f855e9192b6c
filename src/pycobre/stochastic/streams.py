"""Random numbers keyed by what they are for: nothing depends on ranks, threads or the order of calls.

Two families. `uniform` serves any multistage problem. The others are Cobre's own streams, bit for bit: a
64-bit seed is the hash of (base seed, indices), and each seed starts a generator of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from pycobre._util.arrays import F64, I64, U64
from pycobre.stochastic.generators import Generators
from pycobre.stochastic.hashing import siphash13

__all__ = [
    "DEFAULT_SEED",
    "Purpose",
    "class_seed",
    "forward_index",
    "forward_normal",
    "forward_seed",
    "forward_uniform",
    "grouped_forward_seed",
    "opening_normal",
    "opening_normals",
    "opening_seed",
    "stage_seed",
    "uniform",
]

DEFAULT_SEED = 42
"""The seed of trees and draws where none is given."""


class Purpose(IntEnum):
    """What a keyed uniform is drawn for; equal keys with different purposes give unrelated numbers."""

    FORWARD = 1
    SIMULATION = 2
    TRANSITION = 3
    LENGTH = 4
    PERSISTENCE = 5


def uniform(
    seed: int,
    purpose: int,
    iteration: ArrayLike,
    scenario: ArrayLike,
    step: ArrayLike,
) -> F64:
    """One uniform number in [0, 1) per broadcast element of (iteration, scenario, step).

    A pure function of its key, 53 random bits each.
    """
    bits = siphash13(
        (_base(seed), "<u8"),
        (np.int64(int(purpose)), "<u4"),
        (iteration, "<u4"),
        (scenario, "<u4"),
        (step, "<u4"),
    )
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def opening_seed(seed: int, opening: ArrayLike, stage: ArrayLike) -> U64:
    """Seed of one opening of one stage."""
    return siphash13((_base(seed), "<u8"), (opening, "<u4"), (stage, "<u4"))


def stage_seed(seed: int, stage: ArrayLike) -> U64:
    """Seed of a whole stage, for methods that make all openings together."""
    return siphash13((_base(seed), "<u8"), (stage, "<u4"))


def forward_seed(seed: int, iteration: ArrayLike, scenario: ArrayLike, stage: ArrayLike) -> U64:
    """Seed of one forward draw. Iterations count from 1 in training; simulation is iteration 0."""
    return siphash13((_base(seed), "<u8"), (iteration, "<u4"), (scenario, "<u4"), (stage, "<u4"))


def grouped_forward_seed(seed: int, iteration: ArrayLike, scenario: ArrayLike, group: ArrayLike) -> U64:
    """Seed of one forward draw shared by the stages of a noise group."""
    return siphash13(
        (np.int64(1), "<u1"), (_base(seed), "<u8"), (iteration, "<u4"), (scenario, "<u4"), (group, "<u4")
    )


def class_seed(seed: int, name: str) -> int:
    """Base seed of a class of noise ("load", "ncs") beside that of inflows, which is the seed itself."""
    letters = [(np.int64(letter), "<u1") for letter in name.encode()]
    return int(siphash13((np.int64(2), "<u1"), (_base(seed), "<u8"), *letters))


def opening_normal(seed: int, openings: int, stage: int, dimension: int) -> F64:
    """Independent standard normals of one stage's openings, shape (openings, dimension)."""
    return opening_normals(seed, [openings], [stage], dimension)[0]


def opening_normals(seed: int, openings: Sequence[int], stages: Sequence[int], dimension: int) -> list[F64]:
    """The same for several stages at once, which is much faster than one after the other."""
    counts = np.asarray(openings, dtype=np.int64)
    if not counts.size:
        return []
    stage = np.repeat(np.asarray(stages, dtype=np.int64), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    seeds = opening_seed(seed, np.arange(stage.size) - first, stage)
    return np.split(Generators(seeds).normal(dimension), np.cumsum(counts)[:-1])


def forward_index(seed: int, iteration: ArrayLike, scenario: ArrayLike, stage: ArrayLike, n: int) -> I64:
    """Opening below `n` that each (iteration, scenario, stage) takes in the forward pass."""
    seeds = forward_seed(seed, iteration, scenario, stage)
    return Generators(seeds.reshape(-1)).uniform_index(n).reshape(seeds.shape)


def forward_normal(seeds: U64, dimension: int) -> F64:
    """Fresh standard normals for the given seeds, shape (*seeds.shape, dimension)."""
    return Generators(seeds.reshape(-1)).normal(dimension).reshape(*seeds.shape, dimension)


def forward_uniform(seeds: U64, dimension: int) -> F64:
    """Fresh numbers in [0, 1) for the given seeds, shape (*seeds.shape, dimension)."""
    return Generators(seeds.reshape(-1)).uniform(dimension).reshape(*seeds.shape, dimension)


def _base(seed: int) -> U64:
    """The base seed as the peer reads it: a signed or unsigned 64-bit integer's bit pattern."""
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"seed: expected a 64-bit integer, got {seed}.")
    return np.array(seed % 2**64, dtype=np.uint64)
