"""Peers that say arbitrary things once they are in: no crash, no hang, no memory on their word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tcp_fuzzing as fuzzing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tcp_helpers import engine

from pycobre.comm.tcp.failure import FailureKind
from pycobre.comm.tcp.wire import HEADER, Kind, failure_frame, shutdown_frame

__all__ = ["engine"]

SCENES = [
    (rank, collective, size)
    for rank in (0, 1)
    for collective in fuzzing.COLLECTIVES
    for size in fuzzing.COUNTS
]
fuzz = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize(("rank", "collective", "size"), SCENES)
def test_honest_peers_are_understood(engine: str, rank: int, collective: str, size: str) -> None:
    """The scenes below start from what would have worked."""
    assert fuzzing.meet(rank, collective, size, fuzzing.honest(rank, collective, size)) is None


@fuzz
@given(st.sampled_from(SCENES), st.lists(st.binary(max_size=300), max_size=2))
def test_arbitrary_bytes(engine: str, scene: tuple[int, str, str], said: list[bytes]) -> None:
    assert fuzzing.meet(*scene, said) is not None


@fuzz
@given(st.binary(max_size=400))
def test_both_engines_take_frames_of_the_right_call_alike(data: bytes) -> None:
    *scene, said = fuzzing.from_bytes(data)
    fuzzing.meet_twice(*scene, fuzzing.joined(said))


@fuzz
@given(st.binary(max_size=400))
def test_both_engines_take_authenticated_frames_alike(data: bytes) -> None:
    *scene, said = fuzzing.from_bytes(data)
    fuzzing.meet_twice(*scene, fuzzing.with_tags(scene[0], said), authenticated=True)


@pytest.mark.parametrize(("rank", "collective", "size"), SCENES)
def test_honest_peers_are_understood_with_tags(engine: str, rank: int, collective: str, size: str) -> None:
    said = fuzzing.with_tags(rank, fuzzing.honest_frames(rank, collective, size))
    assert fuzzing.meet(rank, collective, size, said, authenticated=True) is None


@fuzz
@given(st.sampled_from(SCENES), st.lists(st.binary(max_size=300), max_size=2))
def test_arbitrary_bytes_instead_of_tags(engine: str, scene: tuple[int, str, str], said: list[bytes]) -> None:
    failure = fuzzing.meet(*scene, said, authenticated=True)
    assert failure is not None
    assert failure.kind in (FailureKind.DISCONNECTED, FailureKind.UNAUTHENTIC)


@fuzz
@given(st.sampled_from(SCENES), st.data())
def test_one_bit_is_wrong_anywhere(engine: str, scene: tuple[int, str, str], data: st.DataObject) -> None:
    """Header, payload or tag: nothing but the tags tells what may be believed."""
    said = fuzzing.with_tags(scene[0], fuzzing.honest_frames(*scene))
    bit = data.draw(st.integers(0, 8 * len(said[0]) - 1))
    text = bytearray(said[0])
    text[bit // 8] ^= 1 << bit % 8
    failure = fuzzing.meet(*scene, [bytes(text), *said[1:]], authenticated=True)
    assert failure == (FailureKind.UNAUTHENTIC, 0 if scene[0] else 1, 0, b"")


@fuzz
@given(st.sampled_from(SCENES), st.data())
def test_the_peer_breaks_off_between_tags(
    engine: str, scene: tuple[int, str, str], data: st.DataObject
) -> None:
    said = fuzzing.with_tags(scene[0], fuzzing.honest_frames(*scene))
    rest = said[0][: data.draw(st.integers(0, len(said[0]) - 1))]
    failure = fuzzing.meet(*scene, [rest, *said[1:]], authenticated=True)
    assert failure is not None
    assert failure[:3] == (FailureKind.DISCONNECTED, 0 if scene[0] else 1, 0)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_reason_counts_only_with_its_tag(engine: str, rank: int) -> None:
    frame = failure_frame(2, b"the reservoir is empty")
    (text,) = fuzzing.with_tags(rank, [[frame]])
    failure = fuzzing.meet(rank, "barrier", "small", [text], authenticated=True)
    assert failure == (FailureKind.REPORTED, 2, 0, b"the reservoir is empty")
    failure = fuzzing.meet(rank, "barrier", "small", [text[:-3]], authenticated=True)
    assert failure == (FailureKind.REPORTED, 2, 0, b"")
    changed = text.replace(b"empty", b"fully")
    failure = fuzzing.meet(rank, "barrier", "small", [changed], authenticated=True)
    assert failure == (FailureKind.UNAUTHENTIC, 0 if rank else 1, 0, b"")


@fuzz
@given(st.sampled_from(SCENES), st.data())
def test_one_byte_of_a_header_is_wrong(engine: str, scene: tuple[int, str, str], data: st.DataObject) -> None:
    said = fuzzing.honest(*scene)
    position, flip = data.draw(st.integers(0, HEADER.size - 1)), data.draw(st.integers(1, 255))
    frame = bytearray(said[0])
    frame[position] ^= flip
    failure = fuzzing.meet(*scene, [bytes(frame), *said[1:]])
    # Nobody looks at the block of a call, nor at fields that are for the error message or for later versions.
    if failure is None:
        assert 40 <= position < 56


@fuzz
@given(st.sampled_from(SCENES), st.data())
def test_the_peer_breaks_off(engine: str, scene: tuple[int, str, str], data: st.DataObject) -> None:
    said = fuzzing.honest(*scene)
    rest = said[0][: data.draw(st.integers(0, len(said[0]) - 1))]
    failure = fuzzing.meet(*scene, [rest, *said[1:]])
    assert failure is not None
    assert failure[:3] == (FailureKind.DISCONNECTED, 0 if scene[0] else 1, 0)


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**32, 5000])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_length_nobody_expects(engine: str, rank: int, length: int) -> None:
    call = fuzzing.expected_call("allreduce", fuzzing.COUNTS["small"])
    for kind in (Kind.CALL, Kind.RESULT, Kind.CHUNK, Kind.LAST):
        failure = fuzzing.meet(rank, "allreduce", "small", [call.header(kind, length=length)])
        assert failure is not None
        assert failure.kind in (FailureKind.MISMATCH, FailureKind.UNEXPECTED_FRAME)


def test_empty_pieces_do_not_keep_a_worker_waiting(engine: str) -> None:
    call = fuzzing.expected_call("allgatherv", fuzzing.COUNTS["large"])
    failure = fuzzing.meet(1, "allgatherv", "large", [call.header(Kind.CHUNK)])
    assert failure is not None
    assert failure.kind == FailureKind.UNEXPECTED_FRAME


@pytest.mark.parametrize("rank", [0, 1])
def test_a_failure_with_too_long_a_reason(engine: str, rank: int) -> None:
    header = fuzzing.expected_call("barrier", ()).header(Kind.FAILURE, length=2**40)
    failure = fuzzing.meet(rank, "barrier", "small", [header])
    assert failure is not None
    assert failure.kind == FailureKind.UNEXPECTED_FRAME


@pytest.mark.parametrize("rank", [0, 1])
def test_last_words_are_understood(engine: str, rank: int) -> None:
    peer = 0 if rank else 1
    failure = fuzzing.meet(rank, "barrier", "small", [failure_frame(2, "für immer".encode())])
    assert failure == (FailureKind.REPORTED, 2, 0, "für immer".encode())
    failure = fuzzing.meet(rank, "barrier", "small", [shutdown_frame(5)])
    assert failure == (FailureKind.SHUTDOWN, peer, 5, b"")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_reason_that_breaks_off_still_blames(engine: str, rank: int) -> None:
    torn = failure_frame(2, b"the reservoir is empty")[:-6]
    failure = fuzzing.meet(rank, "barrier", "small", [torn])
    assert failure == (FailureKind.REPORTED, 2, 0, b"the reservoir is")


@pytest.mark.slow
def test_with_atheris(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: pip install atheris")
    entry = Path(__file__).with_name("tcp_atheris.py")
    command = [sys.executable, str(entry), "-max_total_time=60", f"-artifact_prefix={tmp_path}/"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stderr[-300:])
