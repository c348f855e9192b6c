"""Who may come in: the handshake without any socket, honest, mistaken, malicious and random."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.comm.tcp.handshake import MAGIC, VERSION, CoordinatorSide, Stage, WorkerSide, ready, refusal

SERVER = "10.0.0.1:29500"


def meet(worker: WorkerSide, coordinator: CoordinatorSide, *, bite: int = 1000) -> None:
    """Carry messages to and fro, at most `bite` bytes at a time, until both sides have made up their minds."""
    message = worker.hello
    while message:
        answer = b""
        while message:
            step = min(bite, coordinator.wanted)
            answer += coordinator.feed(message[:step])
            message = message[step:]
        if coordinator.rank is not None:
            answer = coordinator.welcome(1234) + ready()
        while answer:
            step = min(bite, worker.wanted)
            message += worker.feed(answer[:step])
            answer = answer[step:]


@pytest.mark.parametrize("bite", [1, 3, 1000])
@pytest.mark.parametrize("token", ["a secret", "ein schönes Geheimnis", None])
def test_an_honest_worker_gets_in(token: str | None, bite: int) -> None:
    worker, coordinator = WorkerSide(2, 4, token, SERVER), CoordinatorSide(4, token)
    meet(worker, coordinator, bite=bite)
    assert (worker.refused, coordinator.refused) == (None, None)
    assert coordinator.rank == 2
    assert worker.stage is Stage.READY
    assert worker.left_ms == 1234


def test_the_token_never_travels() -> None:
    token = "a secret that must not be seen"
    worker, coordinator = WorkerSide(1, 2, token, SERVER), CoordinatorSide(2, token)
    heard = worker.hello
    challenge = coordinator.feed(worker.hello)
    proof = worker.feed(challenge)
    heard += challenge + proof
    coordinator.feed(proof)
    heard += coordinator.welcome(0)
    assert coordinator.rank == 1
    assert token.encode() not in heard


MISTAKES = {
    "wrong token": (("right", 4), (1, 4, "wrong"), "wrong token: COBRE_TCP_TOKEN must be the same"),
    "no token": (("right", 4), (1, 4, None), "the coordinator has a token and the worker none"),
    "needless token": ((None, 4), (1, 4, "any"), "the worker has a token and the coordinator none"),
    "other size": (("right", 4), (1, 3, "right"), "size: expected 4 as on rank 0, got 3"),
    "rank too large": (("right", 4), (4, 4, "right"), "rank: expected 1 to 3, got 4"),
    "the coordinator's rank": (("right", 4), (0, 4, "right"), "rank: expected 1 to 3, got 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_both_sides_know_what_was_wrong(mistake: str) -> None:
    (their_token, size), (rank, my_size, my_token), words = MISTAKES[mistake]
    worker, coordinator = WorkerSide(rank, my_size, my_token, SERVER), CoordinatorSide(size, their_token)
    meet(worker, coordinator)
    assert coordinator.rank is None
    assert coordinator.refused is not None
    assert words in coordinator.refused
    assert worker.refused == coordinator.refused


def test_another_version_is_a_sentence_on_both_sides() -> None:
    coordinator = CoordinatorSide(2, "t")
    newer = MAGIC + (VERSION + 1).to_bytes(2, "little")
    answer = coordinator.feed(newer)
    assert coordinator.refused == (
        "the worker speaks version 3 of the protocol, the coordinator 2: install the same pycobre on all ranks"
    )
    worker = WorkerSide(1, 2, "t", SERVER)
    worker.feed(answer)
    assert worker.refused == coordinator.refused
    worker = WorkerSide(1, 2, "t", SERVER)
    worker.feed(newer)
    assert worker.refused == (
        f"{SERVER} speaks version 3 of the protocol, this rank version 2: install the same pycobre on all ranks"
    )


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 60, b"pycobre\0", b"SSH-2.0-OpenSSH_9"])
def test_who_does_not_know_the_magic_gets_no_answer(said: bytes) -> None:
    coordinator = CoordinatorSide(2, "t")
    assert coordinator.feed(said[: coordinator.wanted]) == b""
    assert coordinator.refused is not None
    assert "expected a pycobre rank" in coordinator.refused
    assert repr(said[:8]) in coordinator.refused


def test_other_services_are_recognised() -> None:
    worker = WorkerSide(1, 2, "t", SERVER)
    worker.feed(b"HTTP/1.1 400 Bad")
    assert worker.refused == (
        f"{SERVER} is not a pycobre coordinator: expected b'pycobre\\n', got b'HTTP/1.1'. "
        "Check COBRE_TCP_COORDINATOR and COBRE_TCP_PORT."
    )
    worker = WorkerSide(1, 2, "t", SERVER)
    worker.feed(b"\x15\x03\x03\0\x02")
    assert worker.refused == f"{SERVER} speaks TLS: set COBRE_TCP_TLS_CA on this rank too"
    coordinator = CoordinatorSide(2, "t")
    coordinator.feed(b"\x16\x03\x01")
    assert coordinator.refused is not None
    assert "speaks TLS" in coordinator.refused


def test_a_recorded_proof_is_useless_in_another_connection() -> None:
    worker, first = WorkerSide(1, 2, "t", SERVER), CoordinatorSide(2, "t")
    proof = worker.feed(first.feed(worker.hello))
    second = CoordinatorSide(2, "t")
    second.feed(worker.hello)
    second.feed(proof)
    assert second.rank is None
    assert second.refused is not None
    assert "wrong token" in second.refused


def test_a_proof_sent_back_to_its_author_proves_nothing() -> None:
    """A false coordinator that knows no token reflects the worker's own proof."""
    worker, real = WorkerSide(1, 2, "t", SERVER), CoordinatorSide(2, "t")
    proof = worker.feed(real.feed(worker.hello))
    forged = real.welcome(0)
    worker.feed(forged[:16] + proof + forged[48:])
    assert worker.refused == f"{SERVER} could not prove that it knows COBRE_TCP_TOKEN"


def test_a_false_coordinator_is_not_believed() -> None:
    worker, thief = WorkerSide(1, 2, "right", SERVER), CoordinatorSide(2, "guess")
    worker.feed(thief.feed(worker.hello))
    worker.feed(thief.welcome(0))
    assert worker.refused == f"{SERVER} could not prove that it knows COBRE_TCP_TOKEN"


def test_replies_out_of_order_and_too_long_are_refused() -> None:
    for reply in (ready(), CoordinatorWelcome().message):
        worker = WorkerSide(1, 2, None, SERVER)
        worker.feed(reply[: worker.wanted])
        assert worker.refused is not None
        assert "answered out of order" in worker.refused
    worker = WorkerSide(1, 2, None, SERVER)
    worker.feed(refusal("")[:12] + (1 << 31).to_bytes(4, "little"))
    assert worker.refused is not None
    assert "2147483648 bytes" in worker.refused


class CoordinatorWelcome:
    """A WELCOME that nobody asked for."""

    def __init__(self) -> None:
        worker, coordinator = WorkerSide(1, 2, None, SERVER), CoordinatorSide(2, None)
        coordinator.feed(worker.hello)
        self.message = coordinator.welcome(0)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=8), st.booleans())
def test_random_bytes_never_get_in_nor_pile_up(pieces: list[bytes], starts_well: bool) -> None:
    coordinator = CoordinatorSide(3, "t")
    worker = WorkerSide(1, 3, "t", SERVER)
    for side in (coordinator, worker):
        stream = (worker.hello[:20] if starts_well else b"") + b"".join(pieces)
        while stream and side.refused is None:
            assert 0 < side.wanted <= 4096 + 16
            step, stream = stream[: side.wanted], stream[side.wanted :]
            assert len(side.feed(step)) < 5000
    assert coordinator.rank is None
    assert worker.stage is not Stage.READY


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_flipped_bits_never_get_in(data: st.DataObject) -> None:
    """An honest handshake with one bit changed on its way to the coordinator."""
    worker, coordinator = WorkerSide(1, 3, "t", SERVER), CoordinatorSide(3, "t")
    hello = bytearray(worker.hello)
    bit = data.draw(st.integers(0, (len(hello) + 32) * 8 - 1))
    if bit < len(hello) * 8:
        hello[bit // 8] ^= 1 << bit % 8
    answer = coordinator.feed(bytes(hello))
    if coordinator.refused is None:
        proof = bytearray(worker.feed(answer))
        if bit >= len(hello) * 8:
            proof[bit // 8 - len(hello)] ^= 1 << bit % 8
        coordinator.feed(bytes(proof))
    assert coordinator.rank is None
    assert coordinator.refused is not None


@settings(max_examples=300, deadline=None)
@given(st.booleans(), st.booleans(), st.data())
def test_bits_flipped_on_the_way_back_are_noticed(mine: bool, theirs: bool, data: st.DataObject) -> None:
    """CHALLENGE and WELCOME: flags, nonce, proof and the time left."""
    worker = WorkerSide(1, 3, "t", SERVER, seal=mine)
    coordinator = CoordinatorSide(3, "t", seal=theirs)
    challenge = bytearray(coordinator.feed(worker.hello))
    welcome_bytes = 16 + 36
    bit = data.draw(st.integers(0, (len(challenge) + welcome_bytes) * 8 - 1))
    if bit < len(challenge) * 8:
        challenge[bit // 8] ^= 1 << bit % 8
    proof = feed_all(worker, bytes(challenge))
    if worker.refused is None and worker.stage is Stage.CHALLENGE:
        refusal_text = coordinator.feed(proof)
        if coordinator.rank is None:
            assert b"wrong token" in refusal_text
            return
        welcome = bytearray(coordinator.welcome(1234))
        assert len(welcome) == welcome_bytes
        welcome[bit // 8 - len(challenge)] ^= 1 << bit % 8
        feed_all(worker, bytes(welcome))
    assert worker.refused is not None or worker.stage is not Stage.WELCOME


def feed_all(side: WorkerSide, data: bytes) -> bytes:
    answer = b""
    while data and side.refused is None:
        step, data = data[: side.wanted], data[side.wanted :]
        answer += side.feed(step)
    return answer


@given(st.booleans(), st.booleans())
def test_frames_are_authenticated_if_either_end_asks(mine: bool, theirs: bool) -> None:
    worker = WorkerSide(1, 3, "t", SERVER, seal=mine)
    coordinator = CoordinatorSide(3, "t", seal=theirs)
    coordinator.feed(feed_all(worker, coordinator.feed(worker.hello)))
    assert worker.keys is None, "the coordinator has not proven anything yet"
    feed_all(worker, coordinator.welcome(1))
    ours, others = worker.keys, coordinator.keys
    assert (ours is not None) == (others is not None) == (mine or theirs)
    if ours is not None and others is not None:
        assert (ours.send, ours.receive) == (others.receive, others.send)


def test_without_a_token_there_are_no_keys() -> None:
    worker, coordinator = WorkerSide(1, 3, None, SERVER, seal=True), CoordinatorSide(3, None, seal=True)
    coordinator.feed(feed_all(worker, coordinator.feed(worker.hello)))
    feed_all(worker, coordinator.welcome(1))
    assert worker.stage is Stage.WELCOME
    assert worker.keys is None
    assert coordinator.keys is None
