"""What fuzzers do to a tcp engine: one end of a connection says arbitrary things, the other makes a collective.

Whatever the peer says, the collective must end soon, with or without failure, write nowhere but into its result,
and reserve no memory on the peer's word; and both engines must come to the same end. hypothesis (test_tcp_fuzz)
and atheris (tcp_atheris) supply the things said.
"""

from __future__ import annotations

import socket
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from pycobre.comm import TcpConfig
from pycobre.comm.tcp import engine as tcp_engine
from pycobre.comm.tcp.engine import Engine
from pycobre.comm.tcp.failure import CommFailure, FailureKind, explain
from pycobre.comm.tcp.mac import KEY_BYTES, Mac, SessionKeys
from pycobre.comm.tcp.sealed import sealed
from pycobre.comm.tcp.wire import HEADER, Call, DtypeCode, Kind, Operation, dtype_code, layout_code

SIZE = 3
FLOAT64 = dtype_code(np.dtype(float))
GUARD = 1234.5
MOST_MEMORY = 4_000_000

COUNTS = {"small": (2, 3, 4), "large": (9000, 3, 4000)}
KEYS = {peer: bytes((peer + 2) * place % 251 for place in range(KEY_BYTES)) for peer in (-1, 0, 1, 2)}
HONEST_KIND = 224  # a frame's kind from here on stands, in a fuzzer's bytes, for all that an honest peer says

Fields = tuple[int, int, int, bytes]
Array = np.ndarray[Any, Any]


def gather(engine: Engine, rank: int, counts: tuple[int, ...]) -> tuple[Fields | None, Array]:
    """An allgatherv into ranges with guards between them, which must survive."""
    displs = tuple(sum(counts[:r]) + 8 * (r + 1) for r in range(SIZE))
    recv = np.full(sum(counts) + 8 * (SIZE + 1), GUARD)
    inside = np.zeros(recv.size, bool)
    for displ, count in zip(displs, counts, strict=True):
        inside[displ : displ + count] = True
    send = np.zeros(counts[rank])
    failure = engine.allgatherv(1, FLOAT64, layout_code(counts), send, recv, counts, displs)
    assert np.all(recv[~inside] == GUARD), "something was written outside of the result"
    return failure, recv[inside]


def reduce(engine: Engine, rank: int, counts: tuple[int, ...]) -> tuple[Fields | None, Array]:
    store = np.full(sum(counts) + 16, GUARD)
    failure = engine.allreduce(1, FLOAT64, np.zeros(sum(counts)), store[8:-8], 1)
    assert np.all(store[:8] == GUARD)
    assert np.all(store[-8:] == GUARD)
    return failure, store[8:-8]


def broadcast(engine: Engine, rank: int, counts: tuple[int, ...]) -> tuple[Fields | None, Array]:
    store = np.full(sum(counts) + 16, GUARD)
    failure = engine.broadcast(1, FLOAT64, store[8:-8], 1)
    assert np.all(store[:8] == GUARD)
    assert np.all(store[-8:] == GUARD)
    return failure, store[8:-8]


def barrier(engine: Engine, rank: int, counts: tuple[int, ...]) -> tuple[Fields | None, Array]:
    return engine.barrier(1), np.empty(0)


COLLECTIVES: dict[str, Callable[[Engine, int, tuple[int, ...]], tuple[Fields | None, Array]]] = {
    "allgatherv": gather,
    "allreduce": reduce,
    "broadcast": broadcast,
    "barrier": barrier,
}


def expected_call(collective: str, counts: tuple[int, ...]) -> Call:
    """The call that a peer would have to make, so that a fuzzer gets past the first comparison."""
    operation = Operation[collective.upper()]
    code = DtypeCode(0, 0, 0) if collective == "barrier" else FLOAT64
    elements = 0 if collective == "barrier" else sum(counts)
    reduces, root = int(collective == "allreduce"), int(collective == "broadcast")
    layout = layout_code(counts) if collective == "allgatherv" else 0
    return Call(operation, code.letter, reduces, code.itemsize, root, code.fields, 1, elements, layout)


def meet(
    rank: int, collective: str, size: str, said: list[bytes], *, authenticated: bool = False
) -> CommFailure | None:
    """Make a collective as `rank` with peers who say these things and hang up."""
    return meet_fully(rank, collective, size, said, authenticated=authenticated)[0]


def meet_twice(
    rank: int, collective: str, size: str, said: list[bytes], *, authenticated: bool = False
) -> None:
    """The same with both engines, which must come to the same end: the same result, or the same words."""
    native = tcp_engine.native
    ends = []
    for tcp_engine.native in (native, None):  # type: ignore[assignment]
        try:
            failure, result = meet_fully(rank, collective, size, said, authenticated=authenticated)
        finally:
            tcp_engine.native = native
        ends.append(result.tobytes() if failure is None else explain(failure, rank, {}, 20.0))
    assert ends[0] == ends[1], f"{ends[0]!r} and {ends[1]!r}"


def meet_fully(
    rank: int, collective: str, size: str, said: list[bytes], *, authenticated: bool = False
) -> tuple[CommFailure | None, Array]:
    """What `meet` does, with the result as far as it came."""
    counts = COUNTS[size]
    peers = [0] if rank else list(range(1, SIZE))
    sockets, others = {}, []
    for number, peer in enumerate(peers):
        sockets[peer], other = socket.socketpair()
        others.append(other)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        other.setblocking(False)
        text = said[number] if number < len(said) else b""
        if text:
            other.send(text)
        other.shutdown(socket.SHUT_WR)
    config = TcpConfig(rank=rank, size=SIZE, coordinator="x", timeout_s=20.0)
    tracemalloc.start()
    try:
        keys = {peer: SessionKeys(KEYS[peer], KEYS[-1]) for peer in peers} if authenticated else None
        engine = tcp_engine.make_engine(config, dict(sockets), keys)
        fields, result = COLLECTIVES[collective](engine, rank, counts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        for sock in [*sockets.values(), *others]:
            sock.close()
    assert peak < MOST_MEMORY, f"{peak} bytes were reserved"
    if fields is None:
        return None, result
    failure = CommFailure(*fields)
    assert failure.kind in list(map(int, FailureKind))
    assert failure.kind != FailureKind.TIMEOUT, "the collective did not notice that its peers are gone"
    assert explain(failure, rank, {}, 20.0)[1]
    return failure, result


def with_tags(rank: int, said: list[list[bytes]]) -> list[bytes]:
    """What these peers say on authenticated connections: every frame with the tags that its place makes right."""
    peers = [0] if rank else list(range(1, SIZE))
    texts = []
    for peer, frames in zip(peers, said, strict=False):
        mac = Mac(KEYS[peer])
        texts.append(b"".join(sealed(mac, frame) for frame in frames))
    return texts


def from_bytes(data: bytes) -> tuple[int, str, str, list[list[bytes]]]:
    """A scene from a fuzzer's bytes: who, what, and frames that begin as the right ones would."""
    rank = data[0] % 2 if data else 0
    collective = sorted(COLLECTIVES)[data[1] % 4 if len(data) > 1 else 0]
    size = sorted(COUNTS)[data[2] % 2 if len(data) > 2 else 0]
    call = expected_call(collective, COUNTS[size])
    said: list[list[bytes]] = [[], []]
    rest = data[3:]
    while len(rest) >= 8:
        kind, block, offset, length, position, value, peer, payload = struct.unpack_from("<8B", rest)
        rest = rest[8:]
        if kind >= HONEST_KIND:
            said[peer % 2] += (honest_frames(rank, collective, size) * 2)[peer % 2]
            continue
        frame = bytearray(call.header(kind % 9, block=block, offset=offset * 8, length=length * 8))
        if position < HEADER.size:
            frame[position] ^= value
        said[peer % 2].append(frame + rest[: payload * 8].ljust(min(payload, length) * 8, b"\0"))
        rest = rest[payload * 8 :]
    return rank, collective, size, [list(map(bytes, frames)) for frames in said]


def joined(said: list[list[bytes]]) -> list[bytes]:
    """What peers say who say these frames."""
    return [b"".join(frames) for frames in said]


def honest(rank: int, collective: str, size: str) -> list[bytes]:
    """What honest peers would say."""
    return joined(honest_frames(rank, collective, size))


def honest_frames(rank: int, collective: str, size: str) -> list[list[bytes]]:
    """The frames of honest peers, for each of them."""
    counts = COUNTS[size]
    call = expected_call(collective, counts)
    width = 8
    if rank == 0:
        lengths = {
            "allgatherv": [counts[1], counts[2]],
            "allreduce": [sum(counts)] * 2,
            "broadcast": [sum(counts), 0],
            "barrier": [0, 0],
        }[collective]
        return [[call.header(Kind.CALL, length=n * width) + bytes(n * width)] for n in lengths]
    lengths_down = {
        "allgatherv": [counts[0], None, counts[2]],
        "allreduce": [sum(counts)] if size == "large" else [sum(counts), None, sum(counts)],
        "broadcast": [None] * 3,
        "barrier": [None] * 3,
    }[collective]
    left = sum(n or 0 for n in lengths_down)
    if size == "small":
        return [[call.header(Kind.RESULT, length=left * width) + bytes(left * width)]]
    frames = []
    for block, n in enumerate(lengths_down):
        if n:
            left -= n
            kind = Kind.CHUNK if left else Kind.LAST
            frames.append(call.header(kind, block=block, length=n * width) + bytes(n * width))
    return [frames or [call.header(Kind.LAST)]]
