"""A rank that ends or stops, coordinator or worker, in every manner and at every moment: who is blamed, how soon.

Where the system can know, survivors must fail long before the timeout (`PROMPT_S` and `LONG_S` are generous because
tests share the machine; the slow test measures how long it really takes); where it cannot, at the timeout.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SCENES = Path(__file__).with_name("tcp_scenes.py")
PROMPT_S = 60.0
LONG_S = 300.0
SHORT_S = 10.0
EXIT_CODE = 7
ROLES = [pytest.param(0, id="coordinator"), pytest.param(1, id="worker")]


@dataclass
class Account:
    """What one survivor wrote down."""

    blamed: int
    text: str
    seconds: float  # since it happened
    waited: float  # since this rank entered the collective


@dataclass
class Cast:
    """The running ranks of a scene."""

    odd: int
    processes: list[subprocess.Popen[bytes]]
    directory: Path

    @property
    def survivors(self) -> list[int]:
        return [rank for rank in range(len(self.processes)) if rank != self.odd]

    def account(self, rank: int) -> Account:
        """Wait for a rank to end well, and read what it wrote."""
        assert self.processes[rank].wait(100) == 0, f"rank {rank} failed: see its output"
        return Account(**json.loads((self.directory / f"account-{rank}").read_text()))


@contextmanager
def playing(
    odd: int, manner: str, moment: str, directory: Path, *, patience_s: float = LONG_S
) -> Iterator[Cast]:
    """The ranks of a scene; none of them remains."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        common = {
            "COBRE_TCP_COORDINATOR": "127.0.0.1",
            "COBRE_TCP_PORT": str(listener.getsockname()[1]),
            "COBRE_TCP_SIZE": "3",
            "COBRE_TCP_TOKEN": "only for this test",
            "COBRE_TCP_CONNECT_TIMEOUT_MS": "200000",
            "COBRE_TCP_TIMEOUT_SECS": str(patience_s),
            "COBRE_TCP_LISTEN_FD": str(listener.fileno()),
        }
        processes = [
            subprocess.Popen(
                [sys.executable, "-W", "error", str(SCENES), str(odd), manner, moment, str(directory)],
                env={**os.environ, **common, "COBRE_TCP_RANK": str(rank)},
                pass_fds=[listener.fileno()] if rank == 0 else [],
            )
            for rank in range(3)
        ]
    try:
        yield Cast(odd, processes, directory)
    finally:
        for process in processes:
            process.kill()
            process.wait()


WORDS = {
    "kill": "is gone",
    "exit at once": "is gone",
    "exception": "aborted: Leaving: on purpose",
    "close": "closed its communicator after ",
    "exit": "is gone",
}
EXIT_CODES = {"kill": -9, "exit at once": EXIT_CODE, "exception": 1, "close": 0, "exit": EXIT_CODE}


OUTSIDE = [("kill", "before"), ("close", "before"), *((manner, "between") for manner in WORDS)]


@pytest.mark.parametrize("odd", ROLES)
@pytest.mark.parametrize(("manner", "moment"), OUTSIDE)
def test_a_rank_leaves_outside_a_collective(odd: int, manner: str, moment: str, tmp_path: Path) -> None:
    with playing(odd, manner, moment, tmp_path) as cast:
        for rank in cast.survivors:
            account = cast.account(rank)
            assert account.blamed == odd
            assert f"rank {odd}" in account.text
            assert WORDS[manner] in account.text
            assert account.seconds < PROMPT_S
        assert cast.processes[odd].wait(100) == EXIT_CODES[manner]


@pytest.mark.parametrize("manner", ["kill", "exception", "close"])
def test_a_worker_leaves_while_the_coordinator_computes(manner: str, tmp_path: Path) -> None:
    """Rank 2 learns of it in its collective although rank 0 does not come."""
    with playing(1, manner, "computing", tmp_path) as cast:
        for rank in cast.survivors:
            account = cast.account(rank)
            assert account.blamed == 1
            assert WORDS[manner] in account.text
        assert cast.account(2).seconds < PROMPT_S


WORDS_INSIDE = {
    "kill": "is gone",
    "exit at once": "is gone",
    "exception": "broke off barrier: Leaving: by a signal",
    "close": "closed its communicator in the middle of a collective",
    "exit": "broke off barrier: SystemExit: 7",
}
EXIT_CODES_INSIDE = {**EXIT_CODES, "close": 1}  # the thread that waited got an exception


@pytest.mark.parametrize("odd", ROLES)
@pytest.mark.parametrize("manner", WORDS_INSIDE)
def test_a_rank_leaves_a_collective_it_waits_in(odd: int, manner: str, tmp_path: Path) -> None:
    with playing(odd, manner, "inside", tmp_path) as cast:
        for rank in cast.survivors:
            account = cast.account(rank)
            assert account.blamed == odd
            assert WORDS_INSIDE[manner] in account.text
            assert account.seconds < PROMPT_S
        assert cast.processes[odd].wait(100) == EXIT_CODES_INSIDE[manner]


@pytest.mark.parametrize("odd", ROLES)
@pytest.mark.parametrize("moment", ["between", "inside"])
def test_a_stopped_rank_is_blamed_at_the_timeout_and_learns_of_it(
    odd: int, moment: str, tmp_path: Path
) -> None:
    with playing(odd, "stop", moment, tmp_path, patience_s=SHORT_S) as cast:
        accounts = [cast.account(rank) for rank in cast.survivors]
        for account in accounts:
            assert account.blamed == odd
            assert re.search(rf"rank {odd} .*did not respond for", account.text)
            assert f"for {SHORT_S:g} s: it is stopped, stuck or still computing" in account.text
            assert "COBRE_TCP_TIMEOUT_SECS" in account.text
            assert account.seconds < SHORT_S + PROMPT_S
        assert max(account.waited for account in accounts) > 0.9 * SHORT_S
        cast.processes[odd].send_signal(signal.SIGCONT)
        if moment == "inside":
            assert cast.processes[odd].wait(100) == 1
        else:
            late = cast.account(odd)
            assert late.blamed == odd
            assert re.search(rf"rank {odd} .*did not respond for", late.text)


@pytest.mark.slow
@pytest.mark.parametrize("odd", ROLES)
@pytest.mark.parametrize("manner", ["kill", "exit at once", "close"])
def test_how_soon_survivors_know(odd: int, manner: str, tmp_path: Path) -> None:
    seconds = []
    for trial in range(15):
        directory = tmp_path / str(trial)
        directory.mkdir()
        with playing(odd, manner, "between", directory) as cast:
            seconds += [cast.account(rank).seconds for rank in cast.survivors]
    print(f"{manner}: median {statistics.median(seconds) * 1e3:.1f} ms, worst {max(seconds) * 1e3:.1f} ms")
    assert statistics.median(seconds) < 0.1
