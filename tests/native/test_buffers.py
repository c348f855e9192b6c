"""The native yes to buffers on the fast path never contradicts the checks that explain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_changes import CHANGES, changed
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.comm import CommError, ReduceOp, checks

buffers = pytest.importorskip("pycobre._native.buffers")


_DTYPES = [*"?bBhHiIlLqQefdgFDG", ">f8", "M8[s]", "S3", "i4,f8", "O"]
_STORE = np.zeros(4096, np.uint8)


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    """Arrays of all kinds in one piece of memory, so that they may overlap, and things that are none."""
    dtype = np.dtype(draw(st.sampled_from(_DTYPES)))
    count = draw(st.integers(0, 6))
    if dtype.hasobject:
        return np.zeros(count, dtype)
    start = draw(st.integers(0, 200))
    if draw(st.booleans()):
        start = start // 16 * 16
    array: Any = _STORE[start : start + count * dtype.itemsize].view(dtype)
    change = draw(st.sampled_from(["", "", "", *CHANGES, "bytes"]))
    return bytearray(array.tobytes()) if change == "bytes" else changed(array, change)


def accepted(check: Any, *arguments: Any) -> bool:
    """Whether the checks let it pass without the native module's help."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fits_allgatherv", "fits_allreduce", "fits_broadcast"):
            patch.setattr(checks, name, lambda *_: False)
        try:
            check(*arguments)
        except CommError:
            return False
        return True


@settings(max_examples=1500, deadline=None)
@given(send=arrays(), recv=arrays(), count=st.integers(0, 8), needed=st.integers(0, 8))
def test_yes_is_never_wrong(send: Any, recv: Any, count: int, needed: int) -> None:
    if buffers.fits_allreduce(send, recv):
        assert accepted(checks.check_allreduce, send, recv, ReduceOp.SUM)
    if buffers.fits_allgatherv(send, recv, count, needed):
        layouts = checks.Layouts(2)
        both = (count, max(0, needed - count))
        if sum(both) <= needed:
            assert accepted(checks.check_allgatherv, send, recv, both, (0, count), 0, layouts)
    for writable in (False, True):
        if buffers.fits_broadcast(send, writable):
            assert accepted(checks.check_broadcast, send, 0, int(writable), 2)


@pytest.mark.parametrize("letter", "bBhHiIlLqQefdg")
def test_plain_buffers_take_the_fast_path(letter: str) -> None:
    send, recv = np.zeros(3, letter), np.zeros(6, letter)
    assert buffers.fits_allreduce(send, recv[:3])
    assert buffers.fits_allgatherv(send, recv, 3, 6)
    assert not buffers.fits_allgatherv(send, recv, 2, 6)
    assert not buffers.fits_allgatherv(send, recv, 3, 7)
    assert not buffers.fits_allgatherv(send, recv, 3, 1 << 80)
    assert buffers.fits_broadcast(send, True)


def test_a_no_is_not_an_error() -> None:
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    assert buffers.fits_allreduce(frozen, np.zeros(3))
    assert not buffers.fits_allreduce(np.zeros(3), frozen)
    assert buffers.fits_broadcast(frozen, False)
    assert not buffers.fits_broadcast(frozen, True)
    assert not buffers.fits_broadcast(None, False)
