"""Frames: their layout, what counts as the same call, and how calls are described."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.comm.tcp.failure import CommFailure, FailureKind, explain
from pycobre.comm.tcp.wire import (
    CALL_BYTES,
    HEADER,
    NOBODY,
    SMALL_BYTES,
    Call,
    Header,
    Kind,
    Operation,
    dtype_code,
    failure_frame,
    folds_at_coordinator,
    layout_code,
    shutdown_frame,
)

CALL = Call(Operation.ALLREDUCE, ord("f"), 1, 8, 0, 0, 7, 4, 0)


def test_the_layout_is_as_documented() -> None:
    call = Call(
        operation=2, letter=0x66, reduce=1, itemsize=8, root=3, fields=5, sequence=7, elements=9, layout=11
    )
    data = call.header(Kind.CHUNK, block=13, offset=15, length=2**40 + 17)
    assert len(data) == HEADER.size == 64
    expected = [(0, 1, 3), (1, 1, 2), (2, 1, 0x66), (3, 1, 1), (4, 4, 8), (8, 4, 3), (12, 4, 5), (16, 8, 7)]
    expected += [(24, 8, 9), (32, 8, 11), (40, 4, 13), (44, 4, 0), (48, 8, 15), (56, 8, 2**40 + 17)]
    for offset, width, value in expected:
        assert int.from_bytes(data[offset : offset + width], "little") == value
    assert Header.parse(data) == Header(Kind.CHUNK, call, 13, 15, 2**40 + 17)
    assert Header.parse(data).pack() == data


@settings(max_examples=500, deadline=None)
@given(st.binary(min_size=64, max_size=80))
def test_any_64_bytes_are_a_header_with_a_description(data: bytes) -> None:
    header = Header.parse(data)
    assert header.pack()[CALL_BYTES] == data[CALL_BYTES]
    assert len(str(header.call)) < 300
    for kind in FailureKind:
        rank, text = explain(
            CommFailure(kind, header.block, header.length % 200, data[:64] + data[:64]), 0, {}, 60.0
        )
        assert text
        assert rank is None or 0 <= rank <= NOBODY


DTYPES = [
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16", "S3", "U2", "V5",
    ">i4", ">f8", "M8[s]", "M8[ms]", "m8[s]", "i4,f8", "f8,i4", "i4,i4", "(2,)i4,f8",
]  # fmt: skip


def test_different_dtypes_have_different_codes() -> None:
    codes = {dtype_code(np.dtype(dtype)) for dtype in DTYPES}
    assert len(codes) == len(DTYPES)


def test_equal_dtypes_have_equal_codes() -> None:
    assert dtype_code(np.dtype("l")) == dtype_code(np.dtype("q")) == dtype_code(np.dtype("i8"))
    assert dtype_code(np.dtype([("a", "i4")])) == dtype_code(np.dtype({"names": ["a"], "formats": ["i4"]}))
    assert dtype_code(np.dtype([("a", "i4")])) != dtype_code(np.dtype([("b", "i4")]))


def test_layouts_differ_by_order_and_value() -> None:
    assert len({layout_code(counts) for counts in [(1, 2), (2, 1), (3, 0), (0, 3), (1, 1, 1)]}) == 5


def test_where_reductions_are_folded_is_the_same_on_all_ranks() -> None:
    assert not folds_at_coordinator(SMALL_BYTES // 4, 4)
    assert folds_at_coordinator(SMALL_BYTES // 4 + 1, 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (CALL, "allreduce(4 of float64, sum) as collective 7"),
        (CALL._replace(reduce=9), "allreduce(4 of float64, operator 9) as collective 7"),
        (CALL._replace(operation=Operation.BARRIER), "barrier() as collective 7"),
        (
            CALL._replace(operation=Operation.BROADCAST, root=2),
            "broadcast(4 of float64, root 2) as collective 7",
        ),
        (
            CALL._replace(letter=ord("V"), itemsize=12),
            "allreduce(4 of dtype 'V' of 12 bytes, sum) as collective 7",
        ),
        (CALL._replace(letter=ord("b"), itemsize=1), "allreduce(4 of bool, sum) as collective 7"),
        (CALL._replace(operation=99), "an unknown operation 99"),
    ],
)
def test_calls_in_words(call: Call, words: str) -> None:
    assert str(call) == words


def both(mine: bytes, theirs: bytes) -> str:
    rank, text = explain(CommFailure(FailureKind.MISMATCH, 2, 0, theirs + mine), 0, {}, 60.0)
    assert rank is None
    return text


def test_disagreement_in_words() -> None:
    gather = CALL._replace(operation=Operation.ALLGATHERV, reduce=0)
    mine = gather.header(Kind.CALL, offset=2, length=16)
    other = gather._replace(layout=1)
    assert both(mine, gather._replace(elements=6).header(Kind.CALL, offset=3, length=24)) == (
        "the ranks do not make the same call: rank 0 calls allgatherv(4 of float64) as collective 7 with 2 of its "
        "own, rank 2 calls allgatherv(6 of float64) as collective 7 with 3 of its own. All ranks must make the "
        "same collectives in the same order."
    )
    assert ", with other counts." in both(mine, other.header(Kind.CALL, offset=2, length=16))
    assert ", with other fields in the dtype." in both(
        mine, gather._replace(fields=5).header(Kind.CALL, offset=2, length=16)
    )


ADDRESSES = {2: "10.0.0.3:41000"}


@pytest.mark.parametrize(
    ("failure", "blamed", "words"),
    [
        (
            CommFailure(FailureKind.DISCONNECTED, 2),
            2,
            "rank 2 (10.0.0.3:41000) is gone: the connection was closed without a shutdown message.",
        ),
        (
            CommFailure(FailureKind.DISCONNECTED, 2, 104),
            2,
            "rank 2 (10.0.0.3:41000) is gone: Connection reset by peer.",
        ),
        (
            CommFailure(FailureKind.DISCONNECTED, 2, 110),
            2,
            "the host of rank 2 (10.0.0.3:41000) no longer answers",
        ),
        (
            CommFailure(FailureKind.SHUTDOWN, 2, 1),
            2,
            "rank 2 (10.0.0.3:41000) closed its communicator after 1 collective.",
        ),
        (CommFailure(FailureKind.TIMEOUT, 2), 2, "rank 2 (10.0.0.3:41000) did not respond for 60 s"),
        (CommFailure(FailureKind.REPORTED, 1, 0, b"rank 1 aborted: no"), 1, "rank 1 aborted: no"),
        (CommFailure(FailureKind.REPORTED, NOBODY, 0, b"\xff"), None, "�"),
        (
            CommFailure(FailureKind.UNEXPECTED_FRAME, 2, 0, b"\x09" + b"\0" * 63),
            2,
            "protocol error: unexpected frame of rank 2 (10.0.0.3:41000) (kind 9,",
        ),
        (CommFailure(FailureKind.INTERRUPTED, 0), 0, "rank 0 was interrupted"),
    ],
)
def test_failures_in_words(failure: CommFailure, blamed: int | None, words: str) -> None:
    rank, text = explain(failure, 0, ADDRESSES, 60.0)
    assert rank == blamed
    assert words in text


def test_frames_besides_collectives() -> None:
    header = Header.parse(failure_frame(3, b"why"))
    assert (header.kind, header.block, header.length) == (Kind.FAILURE, 3, 3)
    header = Header.parse(shutdown_frame(12))
    assert (header.kind, header.call.sequence, header.length) == (Kind.SHUTDOWN, 12, 0)
