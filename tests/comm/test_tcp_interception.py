"""Somebody on the path attacks a frame after the handshake: a named error on every rank, never a wrong number."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tcp_interceptor as interceptor
from tcp_helpers import TOKEN, gathering, on_all, patient_handshakes
from tcp_interceptor import DOWN, UP, Attack, intercepting

from pycobre.comm import CollectiveFailed, Communicator, ReduceOp, TcpBackend
from pycobre.comm.tcp import backend
from pycobre.comm.tcp import engine as engines

__all__ = ["patient_handshakes"]

SIZE = 3
LARGE = 100_000  # numbers, so that a payload has several segments

needs_native = pytest.mark.skipif(engines.native is None, reason="pycobre._native.tcp was not built")
ENGINES = [
    pytest.param(frozenset(), id="native", marks=needs_native),
    pytest.param(frozenset({0, 1, 2}), id="python"),
    pytest.param(frozenset({1}), id="python worker", marks=needs_native),
    pytest.param(frozenset({0}), id="python coordinator", marks=needs_native),
]


@pytest.fixture(params=ENGINES)
def python_ranks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> frozenset[int]:
    """Which ranks use the engine in Python: none, all, or some."""
    ranks: frozenset[int] = request.param
    use_python(monkeypatch, ranks)
    return ranks


def use_python(monkeypatch: pytest.MonkeyPatch, ranks: frozenset[int]) -> None:
    def make_engine(config: Any, *connections: Any) -> Any:
        make = engines.python_engine if config.rank in ranks else engines.make_engine
        return make(config, *connections)

    monkeypatch.setattr(backend, "make_engine", make_engine)


@dataclass
class Group:
    """Ranks of which rank 1 is behind an interceptor."""

    comms: list[TcpBackend]
    middle: interceptor.Interceptor


@contextmanager
def intercepted(attack: Attack | None, **options: Any) -> Iterator[Group]:
    options = {"authenticate": True, "timeout_s": 20.0, **options}
    authenticated = options["authenticate"]
    with (
        gathering(SIZE, **options) as group,
        intercepting(group.port, attack, authenticated=authenticated) as middle,
    ):
        group.add(1, port=middle.address)
        group.add(2)
        comms = group.all()
        try:
            yield Group(comms, middle)
        finally:
            for comm in comms:
                comm.close()


def collectives(comm: Communicator) -> None:
    """Collectives of every kind, small and large, every value checked: frame n is of collective n."""
    rank, size = comm.rank, comm.size
    counts, displs = [2] * size, [2 * r for r in range(size)]
    for step in range(3):
        found = np.zeros(2 * size)
        comm.allgatherv(np.full(2, rank + step + 1.0), found, counts, displs)
        assert np.array_equal(found, np.repeat(np.arange(size) + step + 1.0, 2)), "a wrong number"
        total = np.zeros(4)
        comm.allreduce(np.arange(4.0) + rank, total, ReduceOp.SUM)
        assert np.array_equal(total, size * np.arange(4.0) + size * (size - 1) / 2), "a wrong number"
        comm.barrier()
        large = np.zeros(size * LARGE)
        comm.allgatherv(
            np.arange(float(LARGE)) + rank, large, [LARGE] * size, [LARGE * r for r in range(size)]
        )
        expected = np.concatenate([np.arange(float(LARGE)) + r for r in range(size)])
        assert np.array_equal(large, expected), "a wrong number"
        reduced = np.zeros(LARGE)
        comm.allreduce(np.arange(float(LARGE)) * (rank + 1), reduced, ReduceOp.SUM)
        assert np.array_equal(reduced, np.arange(float(LARGE)) * (size * (size + 1) // 2)), "a wrong number"
        message = np.arange(float(LARGE)) + step if rank == step else np.zeros(LARGE)
        comm.broadcast(message, step)
        assert np.array_equal(message, np.arange(float(LARGE)) + step), "a wrong number"


def leaving_by_exception(comm: Communicator) -> None:
    """The same, telling the others where a number is wrong."""
    with comm:
        collectives(comm)


def failures(group: Group) -> list[str]:
    """What every rank raised: it must be `CollectiveFailed`, naming the same rank."""
    found = on_all(group.comms, collectives)
    assert group.middle.attacked.is_set()
    for failure in found:
        assert isinstance(failure, CollectiveFailed), failure
        assert failure.rank == 1
    return [str(failure) for failure in found]


def test_nothing_happens_to_a_run_that_is_only_forwarded(python_ranks: frozenset[int]) -> None:
    with intercepted(None) as group:
        assert on_all(group.comms, collectives) == [None] * SIZE
        assert min(group.middle.forwarded.values()) >= 15


def test_without_authentication_the_attack_succeeds(python_ranks: frozenset[int]) -> None:
    """What the tests below are about: the interceptor changes a number, and nobody notices but the numbers."""
    attack = Attack(UP, 0, interceptor.flip_plain_payload)
    with intercepted(attack, authenticate=False) as group:
        found = on_all(group.comms, leaving_by_exception)
        assert any(isinstance(failure, AssertionError) for failure in found)


# The first frames of a direction are those of a small allgatherv, a small allreduce, a barrier, a large allgatherv
# (one up, the other ranks' two blocks down) and a large allreduce.
REWRITES = {
    "the header of a call": Attack(UP, 0, interceptor.flip(0.01)),
    "the length in a header": Attack(UP, 1, lambda frames: [frames[0][:57] + b"\x7f" + frames[0][58:]]),
    "a number of a call": Attack(UP, 0, interceptor.flip_payload),
    "a number of a large call": Attack(UP, 4, interceptor.flip(0.9, 7)),
    "the tag of a call": Attack(UP, 1, interceptor.flip(1.0)),
    "the header of a result": Attack(DOWN, 1, interceptor.flip(0.0, 1)),
    "a number of a result": Attack(DOWN, 0, interceptor.flip_payload),
    "a number of a chunk": Attack(DOWN, 3, interceptor.flip(0.5, 6)),
    "the tag of a chunk": Attack(DOWN, 3, interceptor.flip(1.0, 3)),
    "a barrier": Attack(DOWN, 2, interceptor.flip(0.3)),
    "a repeated result": Attack(DOWN, 0, interceptor.replay),
    "a repeated call": Attack(UP, 2, interceptor.replay),
    "an earlier result again": Attack(DOWN, 0, interceptor.replace_by_earlier, count=2),
    "chunks in another order": Attack(DOWN, 3, interceptor.reorder, count=2),
    "segments in another order": Attack(UP, 4, interceptor.swap_segments),
    "a chunk left out": Attack(DOWN, 3, interceptor.drop),
    "the end of a chunk left out": Attack(DOWN, 3, interceptor.truncate),
    "a frame without its tags": Attack(DOWN, 0, interceptor.strip_tags),
    "an invented frame": Attack(UP, 3, interceptor.invent),
}


@pytest.mark.parametrize("name", REWRITES)
def test_whatever_is_done_to_a_frame_is_noticed(name: str, python_ranks: frozenset[int]) -> None:
    with intercepted(REWRITES[name]) as group:
        texts = failures(group)
    ends = {"rank 0 to rank 1 (127.0.0.1:": UP, "rank 1 to rank 0 (127.0.0.1:": DOWN}
    for text in texts:
        assert "message authentication failed on the connection of " in text
        assert any(words in text for words in ends)
        assert text.endswith("or use TLS (COBRE_TCP_TLS_CERT).")


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_connection_that_is_cut_inside_a_frame(direction: str, python_ranks: frozenset[int]) -> None:
    """The same as a host that is gone: the attacker can end the run, and nothing else."""
    with intercepted(Attack(direction, 3, interceptor.cut_off, hang_up=True)) as group:
        found = on_all(group.comms, collectives)
    for failure in found:
        assert isinstance(failure, CollectiveFailed)
        assert "is gone: " in str(failure)


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_frame_that_never_arrives_ends_the_run_at_the_timeout(
    direction: str, python_ranks: frozenset[int]
) -> None:
    """Nothing follows a barrier's frame, so nobody can tell a dropped one from a rank that is late."""
    with intercepted(Attack(direction, 2, interceptor.drop), timeout_s=3.0) as group:
        found = on_all(group.comms, collectives)
    for failure in found:
        assert isinstance(failure, CollectiveFailed)
        assert "nothing was heard from rank" in str(failure) or "message authentication failed" in str(
            failure
        )


def test_frames_of_one_connection_mean_nothing_on_another(python_ranks: frozenset[int]) -> None:
    """A recorded run with the same token and the same frames cannot be played again."""
    recorded: list[bytes] = []

    def record(frames: list[bytes]) -> list[bytes]:
        recorded.extend(frames)
        return frames

    with intercepted(Attack(UP, 0, record)) as group:
        assert on_all(group.comms, collectives) == [None] * SIZE
    with intercepted(Attack(UP, 0, lambda frames: recorded)) as group:
        for text in failures(group):
            assert "message authentication failed on the connection of rank 0 to rank 1" in text


# --- the handshake cannot be talked out of it ---


@pytest.mark.parametrize(
    ("place", "words"),
    [(10, "wrong token"), (None, "does not authenticate frames although this rank asked for it")],
    ids=["in the HELLO", "in the CHALLENGE"],
)
def test_the_flag_cannot_be_cleared_on_the_way(place: int | None, words: str) -> None:
    """The attacker clears the flag for authenticated frames in what one side says; rank 1 does not join."""
    with gathering(2, authenticate=True, connect_timeout_ms=5000) as group:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            worker = group.add(1, port=listener.getsockname()[1])
            inside, _ = listener.accept()
            with inside, socket.create_connection(("127.0.0.1", group.port)) as outside:
                hello = bytearray(interceptor.receive(inside, interceptor.HELLO_BYTES))
                if place is not None:
                    assert hello[place] == 3
                    hello[place] = 1
                outside.sendall(hello)
                challenge = bytearray(interceptor.receive(outside, 50))
                assert challenge[16] == 3
                if place is None:
                    challenge[16] = 1
                inside.sendall(challenge)
                proof = interceptor.receive(inside, interceptor.PROOF_BYTES)
                if proof:
                    outside.sendall(proof)
                    inside.sendall(interceptor.receive(outside, 5000))
        assert words in str(worker.exception(200))
        assert group.ranks[0].exception(200) is not None


@pytest.mark.parametrize("asking", [frozenset(), frozenset({0}), frozenset({1}), frozenset({0, 1})])
def test_either_end_can_ask_for_it(asking: frozenset[int]) -> None:
    with gathering(2, authenticate=0 in asking) as group:
        group.add(1, authenticate=1 in asking)
        comms = group.all()
        assert [bool(comm._keys) for comm in comms] == [bool(asking)] * 2
        assert on_all(comms, collectives_of_two) == [None, None]


def collectives_of_two(comm: Communicator) -> None:
    total = np.zeros(1)
    comm.allreduce(np.array([comm.rank + 1.0]), total, ReduceOp.SUM)
    assert total[0] == 3.0


# --- at random, at length ---


def random_attack(rng: random.Random) -> Attack:
    direction, first = rng.choice([UP, DOWN]), rng.randrange(15)
    change, count = rng.choice(
        [
            (interceptor.flip(rng.random(), rng.randrange(8)), 1),
            (interceptor.flip(rng.random(), rng.randrange(8)), 1),
            (interceptor.flip_payload, 1),
            (interceptor.replay, 1),
            (interceptor.truncate, 1),
            (interceptor.invent, 1),
            (interceptor.cut_off, 1),
        ]
    )
    return Attack(direction, first, change, count, hang_up=change is interceptor.cut_off)


@pytest.mark.slow
@pytest.mark.timeout(7200)  # the engine in Python computes every tag
def test_random_attacks_for_ten_thousand_frames(python_ranks: frozenset[int]) -> None:
    rng = random.Random(f"attacks on {sorted(python_ranks)}")
    frames = attacks = 0
    while frames < 10_000:
        with intercepted(random_attack(rng), timeout_s=20.0, token=TOKEN) as group:
            found = on_all(group.comms, collectives)
            attacks += group.middle.attacked.is_set()
            for failure in found:
                assert isinstance(failure, CollectiveFailed), failure
            frames += sum(group.middle.forwarded.values())
    print(f"{attacks} attacks among {frames} frames")
