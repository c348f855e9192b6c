"""The rank-order fold, against a scalar definition and against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.comm import ReduceOp
from pycobre.comm.fold import fold_into

floats = st.floats(width=64, allow_subnormal=True)


def bits(values: np.ndarray) -> list[str]:
    return ["nan" if math.isnan(value) else float(value).hex() for value in values.tolist()]


def scalar_fold(column: tuple[float, ...], op: ReduceOp) -> float:
    value = column[0]
    for item in column[1:]:
        if op is ReduceOp.SUM:
            value = value + item
        elif math.isnan(value) or math.isnan(item):
            value = math.nan
        elif op is ReduceOp.MIN:
            value = value if value < item else item
        else:
            value = value if value > item else item
    return value


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(floats, floats, floats, floats), min_size=1, max_size=9), st.sampled_from(ReduceOp))
def test_fold_has_the_bits_of_python_floats(rows, op):
    parts = np.array(rows).T.copy()
    out = np.empty(len(rows))
    fold_into(out, list(parts), op)
    assert bits(out) == bits(np.array([scalar_fold(row, op) for row in rows]))


def test_the_order_shows_in_the_sum():
    parts = [np.array([value]) for value in (1e16, 1.0, -1e16, 1.0)]
    out = np.empty(1)
    fold_into(out, parts, ReduceOp.SUM)
    assert out[0] == 1.0  # (1e16 + 1) loses the 1; the last one stays
    fold_into(out, [parts[0], parts[2], parts[1], parts[3]], ReduceOp.SUM)
    assert out[0] == 2.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_of_equal_zeros_the_last_wins_for_every_dtype_and_length(dtype):
    for op in (ReduceOp.MIN, ReduceOp.MAX):
        for first, last in ((0.0, -0.0), (-0.0, 0.0)):
            for count in (1, 3, 8, 33):
                out = np.empty(count, dtype)
                fold_into(out, [np.full(count, first, dtype), np.full(count, last, dtype)], op)
                assert (np.signbit(out) == np.signbit(dtype(last))).all()


@pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX])
def test_nan_propagates_as_in_numpy(op):
    parts = [np.array([1.0, np.nan, 3.0]), np.array([np.nan, 2.0, 3.0]), np.array([0.0, 5.0, 1.0])]
    out = np.empty(3)
    fold_into(out, parts, op)
    reduce = np.minimum.reduce if op is ReduceOp.MIN else np.maximum.reduce
    np.testing.assert_array_equal(out, reduce(parts))


def test_integers_wrap_around_and_nothing_warns():
    out = np.empty(2, np.int8)
    fold_into(out, [np.array([127, -128], np.int8), np.array([1, -1], np.int8)], ReduceOp.SUM)
    assert out.tolist() == [-128, 127]
    infinite = np.empty(2)
    fold_into(infinite, [np.array([np.inf, 1e308]), np.array([-np.inf, 1e308])], ReduceOp.SUM)
    assert np.isnan(infinite[0])
    assert np.isinf(infinite[1])


def test_the_first_part_may_be_the_output_and_shapes_may_differ():
    out = np.array([[1.0, 2.0], [3.0, 4.0]])
    fold_into(out, [out, np.ones(4)], ReduceOp.SUM)
    assert out.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    fold_into(out, iter([np.zeros((4, 1)), np.ones(4)]), ReduceOp.SUM)
    assert out.tolist() == [[1.0, 1.0], [1.0, 1.0]]
