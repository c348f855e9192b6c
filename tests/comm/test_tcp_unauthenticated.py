"""Unauthenticated peers, before the start and during the run: dropped, logged, and nothing else."""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from tcp_helpers import (
    DROPPED,
    TOKEN,
    engine,
    gathering,
    log_lines,
    on_all,
    patient_handshakes,
    receive,
    running,
    shake_hands,
    train_a_little,
)

from pycobre.comm import TcpConfig
from pycobre.comm.tcp import acceptor, drop_log
from pycobre.comm.tcp.handshake import MAGIC, WorkerSide
from pycobre.comm.tcp.wire import Call, Kind

__all__ = ["engine", "patient_handshakes"]

Peer = Callable[[socket.socket], None]
SIZE = 3


def scan(sock: socket.socket) -> None:
    """A port scanner: connects and goes."""


def reset(sock: socket.socket) -> None:
    """A half-open scan: connects and resets."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def ask_for_a_page(sock: socket.socket) -> None:
    sock.sendall(b"GET / HTTP/1.1\r\nHost: cobre\r\n\r\n")
    expect_end(sock)


def talk_nonsense(sock: socket.socket) -> None:
    sock.sendall(os.urandom(5000))
    expect_end(sock)


def greet_and_talk_nonsense(sock: socket.socket) -> None:
    sock.sendall(MAGIC + b"\2\0" + os.urandom(3000))
    expect_end(sock)


def guess_the_token(sock: socket.socket) -> None:
    assert (
        shake_hands(sock, 1, SIZE, "guess").refused
        == "wrong token: COBRE_TCP_TOKEN must be the same on every rank"
    )
    expect_end(sock)


def bring_no_token(sock: socket.socket) -> None:
    refused = shake_hands(sock, 1, SIZE, None).refused
    assert refused is not None
    assert "has a token" in refused
    expect_end(sock)


def claim_a_rank_that_is_none(sock: socket.socket) -> None:
    refused = shake_hands(sock, SIZE, SIZE, TOKEN).refused
    assert refused == "rank: expected 1 to 2, got 3. Check COBRE_TCP_RANK."
    expect_end(sock)


def claim_a_huge_rank(sock: socket.socket) -> None:
    assert shake_hands(sock, 2**32 - 1, 2**32 - 1, TOKEN).refused is not None
    expect_end(sock)


def speak_another_version(sock: socket.socket) -> None:
    sock.sendall(MAGIC + b"\x63\0")
    assert b"speaks version 99" in receive(sock, 5000)


def send_a_huge_frame(sock: socket.socket) -> None:
    """A frame of 2^63 bytes instead of a greeting."""
    sock.sendall(Call(1, 0, 0, 8, 0, 0, 1, 1, 0).header(Kind.CALL, length=2**63))
    expect_end(sock)


def send_a_huge_frame_after_the_greeting(sock: socket.socket) -> None:
    sock.sendall(WorkerSide(1, SIZE, TOKEN, "").hello)
    receive(sock, 50)
    sock.sendall(Call(1, 0, 0, 8, 0, 0, 1, 1, 0).header(Kind.CALL, length=2**63))
    expect_end(sock)


def speak_tls(sock: socket.socket) -> None:
    sock.sendall(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + os.urandom(200))
    expect_end(sock)


def greet_half(sock: socket.socket) -> None:
    sock.sendall(MAGIC[:5])
    sock.shutdown(socket.SHUT_WR)
    expect_end(sock)


PEERS: dict[str, tuple[Peer, str]] = {
    "scanner": (scan, "it closed the connection without sending anything"),
    "reset": (reset, ""),
    "http": (ask_for_a_page, "expected a pycobre rank, got bytes starting b'GET / HT'"),
    "nonsense": (talk_nonsense, ""),
    "greeted nonsense": (greet_and_talk_nonsense, ""),
    "wrong token": (guess_the_token, "wrong token"),
    "no token": (bring_no_token, "the coordinator has a token and the worker none"),
    "no such rank": (claim_a_rank_that_is_none, "rank: expected 1 to 2, got 3"),
    "huge rank": (claim_a_huge_rank, "size: expected 3 as on rank 0, got 4294967295"),
    "other version": (speak_another_version, "speaks version 99"),
    "huge frame": (send_a_huge_frame, "expected a pycobre rank"),
    "huge frame after greeting": (send_a_huge_frame_after_the_greeting, "wrong token"),
    "tls": (speak_tls, "it speaks TLS"),
    "half a greeting": (greet_half, "it closed the connection during the handshake"),
}


def expect_end(sock: socket.socket) -> None:
    """The coordinator hangs up."""
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass


def connect(port: int, peer: Peer) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=200) as sock:
        peer(sock)


@pytest.mark.parametrize("name", PEERS)
def test_an_unauthenticated_peer_before_the_start(name: str) -> None:
    peer, words = PEERS[name]
    with log_lines() as log, gathering(SIZE) as group:
        group.add(1)
        connect(group.port, peer)
        (line,) = log.wait_for(DROPPED)
        assert words in line
        group.add(2)
        assert on_all(group.all(), train_a_little, 3) == [None] * SIZE
    assert len(log.with_words(DROPPED)) == 1


def test_unauthenticated_peers_during_the_run(engine: str) -> None:
    with log_lines() as log, running(SIZE) as comms:
        port = comms[0].port
        trained = threading.Thread(target=lambda: results.extend(on_all(comms, train_a_little, 150)))
        results: list[object] = []
        trained.start()
        for name, (peer, words) in PEERS.items():
            before = len(log.with_words(DROPPED))
            connect(port, peer)
            line = log.wait_for(DROPPED, before + 1)[-1]
            assert words in line, name
        # One whose token is right comes too late for any rank.
        with socket.create_connection(("127.0.0.1", port), timeout=200) as sock:
            refused = shake_hands(sock, 2, SIZE, TOKEN).refused
            assert refused is not None
            assert refused.startswith("rank 2 is here already, from 127.0.0.1:")
        log.wait_for(DROPPED, len(PEERS) + 1)
        trained.join()
        assert results == [None] * SIZE
    assert len(log.with_words(DROPPED)) == len(PEERS) + 1


def test_a_hundred_silent_ones_at_once(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They fill all places before the start, and a worker still gets in at once; then they are dropped."""
    monkeypatch.setattr(acceptor, "_HANDSHAKE_S", 1.0)
    monkeypatch.setattr(drop_log, "MAX_LINES", 1000)
    with log_lines() as log, ExitStack() as stack, gathering(SIZE) as group:

        def come_and_say_nothing() -> list[str]:
            sockets = [
                stack.enter_context(socket.create_connection(("127.0.0.1", group.port), timeout=200))
                for _ in range(100)
            ]
            return [f"{DROPPED}{pending.getsockname()[1]}: " for pending in sockets]

        silent = come_and_say_nothing()
        group.add(1)
        group.add(2)
        comms = group.all()
        silent += come_and_say_nothing()
        assert on_all(comms, train_a_little, 100) == [None] * SIZE
        lines = [log.wait_for(words) for words in silent]
    assert [len(found) for found in lines] == [1] * 200
    reasons = [found[0].partition(words)[2] for found, words in zip(lines, silent, strict=True)]
    crowded = reasons.count("too many connections wait for their handshake, and this one longest")
    patient = reasons.count("it sent nothing within 1 s")
    assert crowded + patient == 200
    assert patient >= acceptor.MAX_PENDING


def test_a_hundred_talkative_ones_at_once(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # One that is slow to speak must not have to go for the others, before it has heard what it waits for.
    monkeypatch.setattr(acceptor, "MAX_PENDING", 128)
    monkeypatch.setattr(drop_log, "MAX_LINES", 1000)
    with log_lines() as log, running(SIZE) as comms:
        results: list[object] = []
        trained = threading.Thread(target=lambda: results.extend(on_all(comms, train_a_little, 100)))
        trained.start()
        threads = [
            threading.Thread(target=connect, args=(comms[0].port, peer))
            for peer in [guess_the_token, talk_nonsense, scan, ask_for_a_page] * 25
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.wait_for(DROPPED, 100)
        trained.join()
        assert results == [None] * SIZE
    assert len(log.with_words(DROPPED)) == 100


def test_one_that_is_still_silent_when_the_run_ends_is_noted_too() -> None:
    with log_lines() as log, running(2) as comms:
        with socket.create_connection(("127.0.0.1", comms[0].port), timeout=200) as silent:
            # A second peer that is dropped shows that the first one was accepted.
            connect(comms[0].port, scan)
            log.wait_for(DROPPED)
            comms[0].close()
            assert silent.recv(1) == b""
            name = f"{DROPPED}{silent.getsockname()[1]}: "
        assert log.with_words(name) == [f"tcp: {name}the run ended before its handshake did"]


def test_a_slow_talker_is_dropped_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then does not buy more time."""
    with log_lines() as log, running(2) as comms:
        monkeypatch.setattr(acceptor, "_HANDSHAKE_S", 3.0)
        with socket.create_connection(("127.0.0.1", comms[0].port), timeout=200) as sock:
            sock.settimeout(0.1)
            for byte in WorkerSide(1, 2, TOKEN, "").hello[:-1]:
                try:
                    sock.sendall(bytes([byte]))
                    sock.recv(1)
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
                else:
                    break
            log.wait_for(DROPPED)  # it has not sent all, and does not disconnect first
        assert "it did not finish the handshake within 3 s" in log.wait_for(DROPPED)[0]
        assert on_all(comms, train_a_little, 3) == [None, None]


MORE = "more connections in"


def test_a_flood_is_counted_and_not_written_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand connections leave `MAX_LINES` lines and, at the end of the window, their number."""
    monkeypatch.setattr(drop_log, "WINDOW_S", 3.0)
    with log_lines() as log, running(2) as comms:
        for _ in range(1000):
            connect(comms[0].port, scan)
        counted = 0
        while len(log.with_words(DROPPED)) + counted < 1000:
            lines = log.wait_for(MORE, len(log.with_words(MORE)) + 1)
            counted = sum(int(line.split()[2]) for line in lines)
        assert len(log.with_words(DROPPED)) + counted == 1000
        assert "in 3 s, the last one from 127.0.0.1:" in lines[0]
        # Every line of a count closes a window, and at most one more was open.
        assert len(log.with_words(DROPPED)) <= drop_log.MAX_LINES * (len(lines) + 1)
        assert on_all(comms, train_a_little, 3) == [None, None]


def test_what_was_counted_is_reported_when_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop_log, "MAX_LINES", 2)
    with log_lines() as log, running(2) as comms:
        for _ in range(5):
            connect(comms[0].port, ask_for_a_page)
        log.wait_for(DROPPED, 2)
    (line,) = log.with_words(MORE)
    assert line.startswith("tcp: dropped 3 more connections in 60 s, the last one from 127.0.0.1:")
    assert line.endswith("expected a pycobre rank, got bytes starting b'GET / HT'")


class Exhausted(socket.socket):
    """A listening socket in a process that is out of descriptors for a while."""

    refusals = 3

    def accept(self) -> tuple[socket.socket, object]:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_out_of_descriptors_is_survived(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the system refuses to accept, the acceptor waits a little and goes on."""
    monkeypatch.setattr(acceptor, "_BLOCKED_S", 0.05)
    listener = Exhausted()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    listener.setblocking(False)
    with caplog.at_level(logging.WARNING, "pycobre.comm.tcp.backend"):
        accepting = acceptor.Acceptor(
            listener,
            TcpConfig(rank=0, size=2, token=TOKEN),
            deadline=time.monotonic() + 60,
            tls=None,
            on_disconnect=lambda rank: True,
        )
        try:
            with socket.create_connection(listener.getsockname(), timeout=200) as worker:
                assert shake_hands(worker, 1, 2, TOKEN).refused is None
                (connection,) = accepting.wait_for_all().values()
                connection.sock.close()
        finally:
            accepting.close()
    assert caplog.text.count("cannot accept connections for 0.05 s: [Errno 24] Too many open files") == 3
