"""Folding gathered rows natively gives the bits of the one definition of a fold."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.comm import ReduceOp
from pycobre.comm.fold import fold_into
from pycobre.comm.mpi import fold as mpi_fold

native = pytest.importorskip("pycobre._native.fold", reason="the native modules were not built")


def rows(letter: str, ranks: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.generic]]:
    rng = np.random.default_rng(ranks * count)
    dtype = np.dtype(letter)
    if dtype.kind != "f":
        return rng.integers(0, 256, (ranks, count * dtype.itemsize), np.uint8).view(dtype)
    found = (rng.standard_normal((ranks, count)) * 10.0 ** rng.integers(-4, 5, (ranks, count))).astype(dtype)
    special = np.array([0.0, -0.0, np.inf], dtype)
    chosen = rng.random((ranks, count)) < 0.3
    found[chosen] = rng.choice(special, int(chosen.sum()))
    found[ranks // 2, ::5] = np.nan  # from one rank only: of two NaNs either payload may survive
    return found


@pytest.mark.parametrize("op", list(ReduceOp), ids=lambda op: op.value)
@pytest.mark.parametrize("letter", "bBhHiIlLqQefdg")
def test_the_bits_are_those_of_the_definition(letter: str, op: ReduceOp) -> None:
    for ranks, count in ((1, 3), (2, 1), (3, 17), (4, 30_000)):
        gathered = rows(letter, ranks, count)
        expected, found = np.empty(count, letter), np.empty(count, letter)
        fold_into(expected, gathered, op)
        mpi_fold.fold_gathered(found, gathered, ranks, op)
        first = gathered[0]
        # Padding bytes of long doubles mean nothing; all else is compared to the bit.
        same = (found == expected) & (np.signbit(found) == np.signbit(expected)) | (found != found) & (
            expected != expected
        )
        assert same.all()
        mpi_fold.fold_gathered(first, gathered, ranks, op)
        assert (first == expected)[expected == expected].all(), "into the first row itself"


def test_types_without_a_kernel_are_left_to_the_definition() -> None:
    gathered = rows("g", 2, 3)
    assert not native.fold_rows(np.empty(3, "g"), gathered, 1)
    assert native.fold_rows(np.empty(3), np.zeros((2, 3)), 1)


def test_without_the_native_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_fold, "_native", None)
    out = np.empty(2)
    mpi_fold.fold_gathered(out, np.array([[1.0, 5.0], [3.0, 2.0]]), 2, ReduceOp.MAX)
    assert out.tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    ("out", "given", "op", "error"),
    [
        (np.zeros(3), np.zeros(4), 1, ValueError),
        (np.zeros(3), np.zeros(0), 1, ValueError),
        (np.zeros(0), np.zeros(0), 1, ValueError),
        (np.zeros(3), np.zeros(6), 4, ValueError),
        (np.zeros(6)[::2], np.zeros(6), 1, ValueError),
        (b"bytes", np.zeros(6), 1, BufferError),
        (np.zeros(3), None, 1, TypeError),
    ],
)
def test_arguments_that_make_no_sense_are_refused(out: object, given: object, op: int, error: type) -> None:
    with pytest.raises(error):
        native.fold_rows(out, given, op)
