"""The fuzzer's entry, guided by what its bytes reach in the handshake, the frames and the Python engine.

    pip install atheris
    python tests/comm/tcp_atheris.py -max_total_time=60 [DIRECTORY FOR WHAT IT LEARNS]

The first byte decides who is spoken to: a coordinator's or a worker's half of the handshake, or the engines.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["pycobre.comm", "tcp_fuzzing"]):
    import tcp_fuzzing as fuzzing

    from pycobre.comm.tcp.handshake import CoordinatorSide, Stage, WorkerSide, ready, refusal

SIZE = 3
MOST_BYTES = 5000  # that a handshake may hold or answer


def disturbed(honest: bytes, rest: bytes) -> tuple[bytes, bytes]:
    """The next thing said, which is honest, nearly so, or anything, and the fuzzer's remaining bytes."""
    how, value, length = rest[:3]
    if how % 4 == 0:
        return honest, rest[3:]
    if how % 4 == 1 and honest:
        said = bytearray(honest)
        said[length % len(said)] ^= value
        return bytes(said), rest[3:]
    if how % 4 == 2:
        return honest[:length], rest[3:]
    return rest[3 : 3 + length], rest[3 + length :]


def speak(side: CoordinatorSide | WorkerSide, said: bytes) -> bytes:
    """Everything that the side answers to these bytes, which it reads in its own portions."""
    answer = b""
    while said and side.refused is None and getattr(side, "rank", None) is None:
        wanted = side.wanted
        assert 0 < wanted < MOST_BYTES
        answer += side.feed(said[:wanted])
        said = said[wanted:]
    assert len(answer) < MOST_BYTES
    return answer


def to_coordinator(rest: bytes) -> None:
    """Only who says nothing but what an honest worker says gets in."""
    side, worker = CoordinatorSide(SIZE, "token"), WorkerSide(1, SIZE, "token", "the coordinator")
    honest, heard, whole = worker.hello, b"", b""
    while len(rest) >= 3 and side.refused is None and side.rank is None:
        said, rest = disturbed(honest, rest)
        heard += said
        whole += honest
        honest = worker.feed(speak(side, said))
    if side.rank is not None:
        assert heard.startswith(whole)
        assert side.rank == 1


def to_worker(rest: bytes) -> None:
    """Only who proves to know the token is believed."""
    side, coordinator = WorkerSide(1, SIZE, "token", "the coordinator"), CoordinatorSide(SIZE, "token")
    answer = coordinator.feed(side.hello)
    proven = False
    while len(rest) >= 4 and side.refused is None and side.stage is not Stage.READY:
        choice, rest = rest[0] % 4, rest[1:]
        honest = [answer, b"" if not proven else coordinator.welcome(5), ready(), refusal("go away")][choice]
        said, rest = disturbed(honest, rest)
        proof = speak(side, said)
        if proof and coordinator.rank is None:
            coordinator.feed(proof[: coordinator.wanted])
        proven = coordinator.rank is not None
    if side.stage is Stage.READY:
        assert proven, "the worker believed somebody who never saw its proof"


def one(data: bytes) -> None:
    if not data:
        return
    if data[0] % 4 == 0:
        to_coordinator(data[1:])
    elif data[0] % 4 == 1:
        to_worker(data[1:])
    else:
        rank, collective, size, frames = fuzzing.from_bytes(data[1:])
        authenticated = data[0] % 4 == 2
        said = fuzzing.with_tags(rank, frames) if authenticated else fuzzing.joined(frames)
        fuzzing.meet_twice(rank, collective, size, said, authenticated=authenticated)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
