"""Vectorised streams against a scalar second implementation, and against numbers known from elsewhere."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import scalar_streams as scalar
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.stochastic import streams
from pycobre.stochastic.generators import Generators
from pycobre.stochastic.hashing import siphash13

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)


@given(seed=u64, a=u32, b=u32, c=u32)
def test_each_seed_equals_the_hash_of_its_bytes(seed: int, a: int, b: int, c: int) -> None:
    expected = {
        "opening": scalar.siphash13(struct.pack("<QII", seed, a, b)),
        "stage": scalar.siphash13(struct.pack("<QI", seed, a)),
        "forward": scalar.siphash13(struct.pack("<QIII", seed, a, b, c)),
        "grouped": scalar.siphash13(b"\x01" + struct.pack("<QIII", seed, a, b, c)),
    }
    assert int(streams.opening_seed(seed, a, b)) == expected["opening"]
    assert int(streams.stage_seed(seed, a)) == expected["stage"]
    assert int(streams.forward_seed(seed, a, b, c)) == expected["forward"]
    assert int(streams.grouped_forward_seed(seed, a, b, c)) == expected["grouped"]


def test_siphash_of_the_empty_and_the_long_message() -> None:
    assert int(siphash13((np.array([], dtype=np.uint64).sum(), "<u8"))) == scalar.siphash13(bytes(8))
    fields = [(np.int64(i), "<u1") for i in range(40)]
    assert int(siphash13(*fields)) == scalar.siphash13(bytes(range(40)))


def test_normals_equal_the_scalar_generator_bit_for_bit_through_wedges_and_tails() -> None:
    x, f = scalar.ziggurat_tables()
    seeds = streams.opening_seed(42, np.arange(120), 3)
    vector = Generators(seeds).normal(60)
    for lane, seed in enumerate(seeds):
        generator = scalar.Pcg64(int(seed))
        assert vector[lane].tolist() == [generator.normal(x, f) for _ in range(60)]
    assert np.abs(vector).max() > x[1], "no draw reached the tail: enlarge the sample"


def test_a_lane_does_not_depend_on_its_neighbours() -> None:
    seeds = streams.opening_seed(7, np.arange(50), 0)
    together = Generators(seeds).normal(30)
    alone = np.concatenate([Generators(seeds[i : i + 1]).normal(30) for i in range(50)])
    assert np.array_equal(together, alone)


@given(seed=u64, n=st.one_of(st.integers(1, 1000), st.integers(2**31, 2**32 - 1)))
def test_index_choice_equals_the_scalar_generator(seed: int, n: int) -> None:
    seeds = streams.forward_seed(seed, 1, np.arange(8), 0)
    expected = [scalar.Pcg64(int(s)).index(n) for s in seeds]
    assert Generators(seeds).uniform_index(n).tolist() == expected


def test_openings_are_the_ones_the_peer_exports_for_its_one_reservoir_case() -> None:
    first = streams.opening_normal(42, 10, 0, 1)[:, 0]
    last = streams.opening_normal(42, 10, 3, 1)[:, 0]
    assert (first[0], first[4], first[8]) == (0.40098936496495646, -1.1232292158458135, 0.34846072414240065)
    assert last[2] == -1.5467356264692829


@settings(max_examples=20)
@given(seed=st.integers(-(2**63), 2**64 - 1))
def test_uniform_is_a_pure_function_of_its_key(seed: int) -> None:
    scenario, step = np.arange(20)[:, None], np.arange(4)[None, :]
    whole = streams.uniform(seed, streams.Purpose.FORWARD, 3, scenario, step)
    assert whole.shape == (20, 4)
    part = streams.uniform(seed, streams.Purpose.FORWARD, 3, np.arange(5, 9)[:, None], 2)
    assert np.array_equal(whole[5:9, 2:3], part)
    other = streams.uniform(
        seed, streams.Purpose.SIMULATION, 3, np.arange(20)[:, None], np.arange(4)[None, :]
    )
    assert not np.any(whole == other)


def test_uniform_fills_the_unit_interval_evenly() -> None:
    u = streams.uniform(1, streams.Purpose.FORWARD, 1, np.arange(20000), 0)
    counts = np.histogram(u, bins=20, range=(0.0, 1.0))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 60  # chi-square with 19 degrees of freedom: p < 1e-5
    assert u.min() >= 0.0
    assert u.max() < 1.0


def test_seeds_that_are_not_64_bit_integers_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a 64-bit integer, got 18446744073709551616"):
        streams.stage_seed(2**64, 0)
    with pytest.raises(TypeError, match="expected integers, got float64"):
        streams.stage_seed(1, np.array([0.5]))
    with pytest.raises(ValueError, match="expected 1 <= n < 2"):
        Generators(streams.stage_seed(1, 0)).uniform_index(0)


def test_openings_of_several_stages_at_once_are_those_of_each() -> None:
    together = streams.opening_normals(3, [4, 1, 7], [0, 5, 2], 6)
    for noise, count, stage in zip(together, [4, 1, 7], [0, 5, 2], strict=True):
        assert np.array_equal(noise, streams.opening_normal(3, count, stage, 6))
    assert streams.opening_normals(3, [], [], 6) == []
