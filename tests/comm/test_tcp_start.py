"""How tcp ranks find each other, and every way in which they do not."""

from __future__ import annotations

import re
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from typing import Any, NoReturn

import pytest
from tcp_helpers import (
    TOKEN,
    gathering,
    log_lines,
    on_all,
    patient_handshakes,
    receive,
    running,
    shake_hands,
    train_a_little,
)
from waiting import until

from pycobre.comm import Communicator, InitializationFailed, MissingConfiguration, TcpBackend, TcpConfig
from pycobre.comm.tcp import acceptor
from pycobre.comm.tcp import backend as tcp
from pycobre.comm.tcp.acceptor import Acceptor
from pycobre.comm.tcp.handshake import refusal

__all__ = ["patient_handshakes"]

LEFT = "left before the start"


def failure_of(future: Future[TcpBackend]) -> str:
    """The text with which a rank refused to start."""
    error = future.exception(200)
    assert isinstance(error, InitializationFailed), error
    assert error.backend == "tcp"
    return error.message


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)])
def test_workers_come_in_any_order(order: tuple[int, ...]) -> None:
    with gathering(4) as group:
        for rank in order:
            group.add(rank)
        assert [comm.rank for comm in group.all()] == [0, 1, 2, 3]
        assert on_all(group.all(), train_a_little, 3) == [None] * 4


def test_workers_may_come_before_the_coordinator() -> None:
    """They are refused a connection and try again."""
    with socket.socket() as held, ThreadPoolExecutor(2) as pool:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        common = {
            "size": 2,
            "coordinator": "127.0.0.1",
            "bind_addr": "127.0.0.1",
            "port": port,
            "token": TOKEN,
        }
        worker = pool.submit(TcpBackend, TcpConfig(rank=1, **common))
        with pytest.raises(TimeoutError):
            worker.result(0.3)
        with TcpBackend(TcpConfig(rank=0, **common)) as coordinator, worker.result(200) as joined:
            assert coordinator.port == port
            assert on_all([coordinator, joined], train_a_little, 2) == [None, None]


def test_the_port_is_told_before_anybody_comes() -> None:
    with running(2) as comms:
        assert 0 < comms[0].port < 65536


def test_a_launcher_may_pass_the_listening_socket() -> None:
    with socket.socket() as listener, ThreadPoolExecutor(2) as pool:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        passed = listener.dup().detach()
        environ = {
            "COBRE_TCP_RANK": "0",
            "COBRE_TCP_SIZE": "2",
            "COBRE_TCP_TOKEN": TOKEN,
            "COBRE_TCP_LISTEN_FD": str(passed),
        }
        coordinator = pool.submit(TcpBackend, TcpConfig.from_env(environ))
        worker = pool.submit(TcpBackend, TcpConfig(1, 2, "127.0.0.1", port, token=TOKEN))
        with coordinator.result(200) as first, worker.result(200) as second:
            assert first.port == port
            assert on_all([first, second], train_a_little, 2) == [None, None]


def test_a_descriptor_that_is_no_socket_is_refused() -> None:
    with pytest.raises(
        InitializationFailed, match=r"COBRE_TCP_LISTEN_FD: expected a listening socket, got desc"
    ):
        TcpBackend(TcpConfig(0, 2, listen_fd=987654))


@pytest.mark.parametrize("address", ["::1", "localhost"])
def test_ipv6(address: str) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    with running(3, bind_addr=address, coordinator=address) as comms:
        assert on_all(comms, train_a_little, 2) == [None] * 3


def test_one_rank_alone_needs_no_port() -> None:
    """And so may have the default address without a token."""
    with TcpBackend(TcpConfig(rank=0, size=1)) as comm:
        train_a_little(comm, 2)


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_listening_without_a_token_is_refused(address: str) -> None:
    with pytest.raises(InitializationFailed) as caught:
        TcpBackend(TcpConfig(rank=0, size=2, port=0, bind_addr=address))
    text = str(caught.value)
    assert f"listening on {address} without a token would let anyone on the network join" in text
    assert "COBRE_TCP_TOKEN" in text
    assert "COBRE_TCP_BIND_ADDR=127.0.0.1" in text


def test_without_a_token_workers_trust_loopback_only() -> None:
    config = TcpConfig(rank=1, size=2, coordinator="192.0.2.1", connect_timeout_ms=100)
    with pytest.raises(InitializationFailed, match="without a token would trust whoever answers"):
        TcpBackend(config)


def test_an_address_of_another_machine_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InitializationFailed, match=r"cannot listen on 192\.0\.2\.1:29500: .*COBRE_TCP_PORT"):
        TcpBackend(TcpConfig(rank=0, size=2, bind_addr="192.0.2.1", token=TOKEN))
    monkeypatch.setattr(socket, "getaddrinfo", unknown_name)
    with pytest.raises(InitializationFailed, match=r"bind address 'no such host.*COBRE_TCP_BIND_ADDR"):
        TcpBackend(TcpConfig(rank=0, size=2, bind_addr="no such host", token=TOKEN))


def test_a_taken_port_is_explained() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            InitializationFailed, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"
        ):
            TcpBackend(TcpConfig(rank=0, size=2, bind_addr="127.0.0.1", port=port, token=TOKEN))


def test_the_missing_are_listed_on_every_rank_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    acceptors = Queue[Acceptor]()

    class NotedAcceptor(Acceptor):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            acceptors.put(self)

        def close(self) -> None:
            group.ranks[2].exception(200)  # the worker was told, and disconnected
            super().close()

    monkeypatch.setattr(tcp, "Acceptor", NotedAcceptor)
    with log_lines() as log, gathering(4) as group:
        accepting = acceptors.get(timeout=200)
        worker = group.add(2)
        with socket.create_connection(("127.0.0.1", group.port)) as peer:
            assert shake_hands(peer, 1, 4, "guess").refused is not None
        until(lambda: bool(accepting._members and accepting._refusals))
        with accepting._changed:
            accepting._deadline = time.monotonic()  # and nobody else comes
            accepting._changed.notify_all()
        for text in (failure_of(group.ranks[0]), failure_of(worker)):
            assert (
                "2 of 4 ranks did not arrive in time: missing 1, 3; arrived: rank 2 from 127.0.0.1:" in text
            )
            assert re.search(r"refused: 127\.0\.0\.1:\d+ \(wrong token", text)
            assert "COBRE_TCP_CONNECT_TIMEOUT_MS" in text
    assert log.with_words("left before the start") == []  # it left because it was told to


def test_a_worker_that_left_before_the_start_is_named_at_once_and_in_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acceptors = Queue[Acceptor]()

    class NotedAcceptor(Acceptor):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            acceptors.put(self)

    monkeypatch.setattr(tcp, "Acceptor", NotedAcceptor)
    with log_lines() as log, gathering(3) as group:
        accepting = acceptors.get(timeout=200)
        with socket.create_connection(("127.0.0.1", group.port)) as early:
            assert shake_hands(early, 2, 3, TOKEN).refused is None
        (line,) = log.wait_for(LEFT)  # while the others are still waited for
        assert "rank 2 from 127.0.0.1" in line
        with accepting._changed:
            accepting._deadline = time.monotonic()
            accepting._changed.notify_all()
        text = failure_of(group.ranks[0])
        assert "missing 1, 2; arrived: nobody; came and left before the start: rank 2 from 127.0.0.1:" in text


def test_a_worker_that_finds_nobody_says_where_it_looked() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        started = time.monotonic()
        with pytest.raises(InitializationFailed) as caught:
            TcpBackend(TcpConfig(1, 2, "127.0.0.1", port, token=TOKEN, connect_timeout_ms=300))
    assert time.monotonic() - started > 0.25
    text = str(caught.value)
    assert f"rank 1 could not join rank 0 at 127.0.0.1:{port} within 300 ms" in text
    assert f"the last, 127.0.0.1:{port}: Connection refused" in text
    assert "COBRE_TCP_COORDINATOR" in text


def unknown_name(*_: object, **__: object) -> NoReturn:
    """What a resolver answers, without asking one, which may take its time."""
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_an_unknown_name_is_tried_again_until_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", unknown_name)
    with pytest.raises(InitializationFailed, match=r"the name 'nowhere\.invalid' is not known here"):
        TcpBackend(TcpConfig(1, 2, "nowhere.invalid", token=TOKEN, connect_timeout_ms=100))


def test_a_worker_needs_to_know_the_coordinator() -> None:
    with pytest.raises(MissingConfiguration, match="COBRE_TCP_COORDINATOR"):
        TcpConfig(rank=1, size=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"token": "another"}, "wrong token: COBRE_TCP_TOKEN must be the same on every rank"),
        ({"token": None}, "the coordinator has a token and the worker none"),
        ({"rank": 2, "size": 3}, "size: expected 2 as on rank 0, got 3. Check COBRE_TCP_SIZE."),
    ],
)
def test_a_worker_that_is_turned_away_knows_why_at_once(options: dict[str, object], words: str) -> None:
    with gathering(2) as group:
        config = {
            "rank": 1,
            "size": 2,
            "coordinator": "127.0.0.1",
            "port": group.port,
            "token": TOKEN,
            **options,
        }
        with pytest.raises(InitializationFailed, match=re.escape(words)):
            TcpBackend(TcpConfig(**config))  # type: ignore[arg-type]
        group.add(1)
        assert on_all(group.all(), train_a_little, 2) == [None, None]


def test_a_second_worker_of_the_same_rank_is_turned_away() -> None:
    with log_lines() as log, gathering(3) as group:
        with socket.create_connection(("127.0.0.1", group.port)) as early:
            # Our own proof of rank 2 takes its place, so the real one is the duplicate.
            assert shake_hands(early, 2, 3, TOKEN).refused is None
            text = failure_of(group.pool.submit(TcpBackend, group.config(2)))
            assert text.startswith("rank 2 is here already, from 127.0.0.1:")
            assert text.endswith("Check COBRE_TCP_RANK.")
        log.wait_for(LEFT)  # the place is free again
        group.add(1)
        group.add(2)
        assert on_all(group.all(), train_a_little, 2) == [None] * 3


def test_a_worker_that_dies_before_the_start_may_be_replaced() -> None:
    with log_lines() as log, gathering(3) as group:
        with socket.create_connection(("127.0.0.1", group.port)) as early:
            assert shake_hands(early, 2, 3, TOKEN).refused is None
        (line,) = log.wait_for(LEFT)
        assert "rank 2 from 127.0.0.1" in line
        group.add(1)
        group.add(2)
        assert on_all(group.all(), train_a_little, 2) == [None] * 3


def answering(reply: bytes) -> tuple[socket.socket, threading.Thread]:
    """A server that gives one answer to the first who comes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            receive(peer, 52)
            peer.sendall(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    return listener, thread


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not a pycobre coordinator: expected b'pycobre"),
        (b"pycobre\n\x07\0", "speaks version 7 of the protocol, this rank version 2"),
        (refusal("not today"), "not today"),
    ],
)
def test_a_server_that_is_something_else_is_recognised(reply: bytes, words: str) -> None:
    listener, thread = answering(reply)
    with listener, pytest.raises(InitializationFailed, match=re.escape(words)):
        TcpBackend(TcpConfig(1, 2, "127.0.0.1", listener.getsockname()[1], token=TOKEN))
    thread.join()


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(TcpConfig(rank=0, size=2, token=TOKEN))


def test_a_closed_group_leaves_no_thread() -> None:
    with running(3):
        assert any(thread.name == "pycobre-tcp-acceptor" for thread in threading.enumerate())
    assert not any(thread.name == "pycobre-tcp-acceptor" for thread in threading.enumerate())


def close_early(comm: Communicator) -> None:
    comm.barrier()
    comm.close()


def test_ranks_that_close_at_different_times_harm_nobody() -> None:
    """Closing early is an error only for those who still have collectives to make."""
    with running(4) as comms:
        assert on_all(comms, close_early) == [None] * 4


def test_rank_0_says_whom_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "_FIRST_NOTICE_S", 0.05)
    with log_lines() as log, gathering(4) as group:
        log.wait_for("tcp: waiting for 3 of 4: ranks 1, 2, 3 (")
        group.add(1)
        group.add(3)
        line = log.wait_for("tcp: waiting for 1 of 4: rank 2 (")[0]
        assert re.fullmatch(r"tcp: waiting for 1 of 4: rank 2 \(\d+ s left\)", line)
        group.add(2)
        group.all()


def test_nobody_is_told_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with log_lines() as log, running(3):
        assert log.with_words("waiting for") == []


def test_many_ranks_are_not_all_listed() -> None:
    assert acceptor.rank_list([2]) == "rank 2"
    assert acceptor.rank_list([2, 5]) == "ranks 2, 5"
    assert acceptor.rank_list(list(range(1, 38))) == "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 27 more"
