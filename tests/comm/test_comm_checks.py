"""The preconditions: their texts, and the corners of the shortcuts that make them cheap."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pycobre.comm import InvalidBufferSize, InvalidRoot, LocalBackend, ReduceOp, checks
from pycobre.comm.checks import Layouts, check_allgatherv, check_allreduce, check_broadcast, check_region

PAIR = np.dtype([("a", "i4"), ("b", "f8")])


@pytest.fixture(params=["native", "python"], autouse=True)
def shortcut(request, monkeypatch):
    """With and without the native test in front, which may only say yes to what the rest would let pass."""
    if request.param == "python":
        for name in ("fits_allgatherv", "fits_allreduce", "fits_broadcast"):
            monkeypatch.setattr(checks, name, lambda *arguments: False)


def frozen(count: int) -> np.ndarray:
    array = np.zeros(count)
    array.flags.writeable = False
    return array


def gather(send=None, recv=None, counts=(2, 2, 2), displs=(0, 2, 4)):
    return check_allgatherv(
        np.zeros(2) if send is None else send,
        np.zeros(6) if recv is None else recv,
        counts,
        displs,
        1,
        Layouts(3),
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"counts": (2, 2)}, "expected counts to have one entry per rank = 3, got 2"),
        ({"displs": (0, 2, 4, 6)}, "expected displs to have one entry per rank = 3, got 4"),
        ({"counts": (2, 2, -2)}, "expected counts[2] to be 0 or more, got -2"),
        ({"displs": (-1, 2, 4)}, "expected displs[0] to be 0 or more, got -1"),
        ({"displs": (0, 1, 4)}, "rank 1 to start at 2 or later, got 1, inside the range of rank 0"),
        ({"displs": (4, 2, 1)}, "rank 1 to start at 3 or later, got 2, inside the range of rank 2"),
        ({"send": np.zeros(3)}, "expected send to have counts[1] = 2 elements, got 3"),
        ({"recv": np.zeros(5)}, "expected recv to have at least max(displs + counts) = 6 elements, got 5"),
        ({"displs": (0, 2, 9)}, "max(displs + counts) = 11 elements, got 6"),
        ({"send": np.zeros(2, "f4")}, "expected recv to have send's dtype float32, got float64"),
        ({"send": np.array([None, None])}, "expected recv to have send's dtype object"),
        ({"send": np.zeros(4)[::2]}, "expected send to be C-contiguous, got shape (2,) with strides (16,)"),
        ({"recv": np.zeros((3, 2)).T}, "expected recv to be C-contiguous"),
        ({"recv": frozen(6)}, "expected recv to be writable, got a read-only array"),
        ({"send": [0.0, 0.0]}, "expected send to be a NumPy array, got a list"),
        ({"recv": memoryview(b"")}, "expected recv to be a NumPy array, got a memoryview"),
        ({"send": np.float64(1.0)}, "expected send to be a NumPy array, got a float64"),
    ],
)
def test_allgatherv_says_what_is_wrong(arguments, text):
    with pytest.raises(InvalidBufferSize, match=re.escape(text)) as caught:
        gather(**arguments)
    assert caught.value.operation == "allgatherv"
    assert str(caught.value) == f"allgatherv: {caught.value.message}"


@pytest.mark.parametrize(
    ("arguments", "expected", "actual"),
    [
        ({"counts": (2, 2)}, 3, 2),
        ({"displs": (0, 2, 4, 6)}, 3, 4),
        ({"counts": (2, 2, -2)}, 0, -2),
        ({"displs": (0, 1, 4)}, 2, 1),
        ({"send": np.zeros(3)}, 2, 3),
        ({"recv": np.zeros(5)}, 6, 5),
        ({"send": np.zeros(2, "f4")}, np.dtype("f4"), np.dtype("f8")),
    ],
)
def test_the_fields_are_what_was_compared(arguments, expected, actual):
    with pytest.raises(InvalidBufferSize) as caught:
        gather(**arguments)
    assert (caught.value.expected, caught.value.actual) == (expected, actual)


def test_the_fields_of_a_reduction_are_sizes():
    with pytest.raises(InvalidBufferSize) as caught:
        check_allreduce(np.zeros(2), np.zeros(3), ReduceOp.SUM)
    assert (caught.value.operation, caught.value.expected, caught.value.actual) == ("allreduce", 2, 3)
    with pytest.raises(InvalidBufferSize) as caught:
        check_allreduce(np.zeros(0), np.zeros(0), ReduceOp.SUM)
    assert (caught.value.expected, caught.value.actual) == (1, 0)


@pytest.mark.parametrize(
    ("send", "recv", "text"),
    [
        (np.zeros(2), np.zeros(3), "expected recv to have send's 2 elements, got 3"),
        (np.zeros(0), np.zeros(0), "expected at least one element, got 0"),
        (np.zeros(2), np.zeros(2, int), "expected recv to have send's dtype float64, got int64"),
        (
            np.zeros(2, bool),
            np.zeros(2, bool),
            "expected an integer or floating dtype in native byte order, got dtype bool",
        ),
        (np.zeros(2, complex), np.zeros(2, complex), "got dtype complex128"),
        (np.zeros(2, PAIR), np.zeros(2, PAIR), "got dtype [('a', '<i4'), ('b', '<f8')]"),
        (np.zeros(2, ">f8"), np.zeros(2, ">f8"), "got dtype >f8"),
        (np.zeros(2, "m8[s]"), np.zeros(2, "m8[s]"), "got dtype timedelta64[s]"),
        (np.zeros(2), frozen(2), "expected recv to be writable"),
    ],
)
def test_allreduce_says_what_is_wrong(send, recv, text):
    with pytest.raises(InvalidBufferSize, match=re.escape(text)):
        check_allreduce(send, recv, ReduceOp.SUM)


def test_allreduce_takes_no_name_for_an_operation():
    with pytest.raises(TypeError, match=r"got .sum.\. Use ReduceOp\.SUM"):
        check_allreduce(np.zeros(1), np.zeros(1), "sum")


def test_unaligned_arrays_are_refused():
    unaligned = np.zeros(17, np.uint8)[1:].view(np.float64)
    with pytest.raises(InvalidBufferSize, match="expected send to be aligned"):
        check_allreduce(unaligned, np.zeros(2), ReduceOp.SUM)


@pytest.mark.parametrize(
    ("buf", "root", "error", "text"),
    [
        (np.zeros(1), 3, InvalidRoot, "expected a root from 0 to 2, got 3"),
        (np.zeros(1), -1, InvalidRoot, "expected a root from 0 to 2, got -1"),
        (np.array([None]), 0, InvalidBufferSize, "expected a dtype without Python objects"),
        (np.zeros(3, "V0"), 0, InvalidBufferSize, "and with a size, got dtype"),
        (np.zeros(4)[::2], 0, InvalidBufferSize, "expected buf to be C-contiguous"),
        (frozen(2), 0, InvalidBufferSize, "expected buf to be writable"),
        ([1.0], 0, InvalidBufferSize, "expected buf to be a NumPy array, got a list"),
    ],
)
def test_broadcast_says_what_is_wrong(buf, root, error, text):
    with pytest.raises(error, match=re.escape(text)):
        check_broadcast(buf, root, rank=1, size=3)


def test_the_root_of_a_broadcast_may_be_read_only():
    assert check_broadcast(frozen(2), 1, rank=1, size=3) == 1


def test_memory_that_overlaps_is_refused_and_neighbours_are_not():
    whole = np.zeros(8)
    for send, recv in (
        (whole[:4], whole[2:6]),
        (whole[:4], whole[:4]),
        (whole, whole),
        (whole[2:6], whole[:4]),
        (np.frombuffer(whole.data)[:4], whole[2:6]),
    ):
        with pytest.raises(InvalidBufferSize, match="expected send and recv in separate memory"):
            check_allreduce(send, recv, ReduceOp.SUM)
    check_allreduce(whole[:4], whole[4:], ReduceOp.SUM)
    check_allreduce(whole[:4], np.zeros(4), ReduceOp.SUM)
    check_allreduce(np.zeros(4), whole[4:], ReduceOp.SUM)


def test_equal_dtypes_need_not_be_one_object():
    other = np.dtype([("a", "i4"), ("b", "f8")])
    assert other is not PAIR
    gather(np.zeros(2, PAIR), np.zeros(6, other))
    check_allreduce(np.zeros(2, np.longlong), np.zeros(2, np.int64), ReduceOp.SUM)


def test_subclasses_are_arrays(tmp_path):
    send = np.memmap(tmp_path / "send", np.float64, "w+", shape=(2,))
    check_allreduce(send, np.zeros(2), ReduceOp.SUM)
    gather(np.zeros(2, PAIR).view(np.recarray), np.zeros(6, np.zeros(0, PAIR).view(np.recarray).dtype))


def test_layouts_recognise_what_they_validated_and_nothing_else():
    layouts = Layouts(2)
    counts, displs = (1, 2), (0, 1)
    assert layouts.resolve(counts, displs) == ((1, 2), (0, 1), 3)
    assert layouts.resolve(counts, displs) == ((1, 2), (0, 1), 3)
    assert layouts.resolve([1, 2], np.array([0, 1])) == ((1, 2), (0, 1), 3)
    with pytest.raises(TypeError):
        layouts.resolve((1.0, 2.0), (0, 1))
    with pytest.raises(TypeError):
        layouts.resolve(("1", "2"), (0, 1))


def test_lists_that_change_are_seen():
    layouts = Layouts(2)
    counts, displs = [1, 1], [0, 1]
    layouts.resolve(counts, displs)
    counts[0] = 2
    with pytest.raises(InvalidBufferSize, match="do not overlap"):
        layouts.resolve(counts, displs)


def test_layouts_do_not_grow_without_bound():
    layouts = Layouts(1)
    for displ in range(1000):
        assert layouts.resolve((1,), (displ,)) == ((1,), (displ,), displ + 1)
    assert len(layouts._valid) < 300


def test_empty_ranges_overlap_nothing_but_count_for_the_length():
    assert Layouts(3).resolve((2, 0, 2), (0, 1, 2))[2] == 4
    assert Layouts(3).resolve((2, 0, 2), (0, 9, 2))[2] == 9


def test_many_layouts_against_a_direct_definition():
    rng = np.random.default_rng(5)
    seen = {True: 0, False: 0}
    for _ in range(500):
        counts = rng.integers(0, 4, 4).tolist()
        displs = rng.integers(0, 12, 4).tolist()
        used = [index for c, d in zip(counts, displs, strict=True) for index in range(d, d + c)]
        disjoint = len(used) == len(set(used))
        seen[disjoint] += 1
        if disjoint:
            assert Layouts(4).resolve(counts, displs)[2] == max(np.add(counts, displs))
        else:
            with pytest.raises(InvalidBufferSize, match="do not overlap"):
                Layouts(4).resolve(counts, displs)
    assert min(seen.values()) > 50


def test_regions_need_a_count_and_a_dtype_that_can_be_shared():
    assert check_region(np.int8(3), "f4") == (3, np.dtype("f4"))
    with pytest.raises(InvalidBufferSize, match="expected a count of 0 or more, got -1"):
        check_region(-1, float)
    with pytest.raises(InvalidBufferSize, match="without Python objects"):
        check_region(1, [("a", object)])
    with pytest.raises(TypeError):
        check_region(1.0, float)


def test_a_violation_leaves_local_usable():
    comm = LocalBackend()
    recv = np.zeros(1)
    with pytest.raises(InvalidBufferSize):
        comm.allreduce(np.zeros(2), recv, ReduceOp.SUM)
    comm.allreduce(np.ones(1), recv, ReduceOp.SUM)
    assert recv[0] == 1.0
