"""A rank that ends or stops, in every manner and at every moment: who is blamed, how soon, what remains.

Where the system can know, survivors must fail long before the timeout (`PROMPT_S` and `LONG_S` are generous because
tests share the machine; the slow test measures how long it really takes); where it cannot, at the timeout.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import until_exists

SCENES = Path(__file__).with_name("shm_scenes.py")
PROMPT_S = 60.0
LONG_S = 300.0
SHORT_S = 10.0
ODD, EXIT_CODE = 1, 7


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

    processes: list[subprocess.Popen[bytes]]
    directory: Path

    def account(self, rank: int) -> Account:
        """Wait for a rank to end well, and read what it wrote."""
        assert self.processes[rank].wait(200) == 0, f"rank {rank} failed: see its output"
        return Account(**json.loads((self.directory / f"account-{rank}").read_text()))


@contextmanager
def playing(
    manner: str, moment: str, directory: Path, *, size: int = 3, patience_s: float = LONG_S
) -> Iterator[Cast]:
    """The ranks of a scene; none of them, and no segment, remains."""
    name = f"pycobre-test-{secrets.token_hex(8)}"
    common = {"COBRE_SHM_NAME": name, "COBRE_SHM_SIZE": str(size), "COBRE_SHM_TIMEOUT_SECS": str(patience_s)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", str(SCENES), manner, moment, str(directory)],
            env={**os.environ, **common, "COBRE_SHM_RANK": str(rank)},
        )
        for rank in range(size)
    ]
    try:
        yield Cast(processes, directory)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [entry for entry in os.listdir("/dev/shm") if name in entry] == []


WORDS = {
    "kill": "ended without closing its communicator",
    "exit at once": "ended without closing its communicator",
    "exception": "rank 1 aborted: Leaving: on purpose",
    "close": "closed its communicator",
    "exit": "rank 1 (process ",
}
EXIT_CODES = {"kill": -9, "exit at once": EXIT_CODE, "exception": 1, "close": 0, "exit": EXIT_CODE}


@pytest.mark.parametrize("moment", ["before", "between"])
@pytest.mark.parametrize("manner", WORDS)
def test_a_rank_leaves_outside_a_collective(manner: str, moment: str, tmp_path: Path) -> None:
    with playing(manner, moment, tmp_path) as cast:
        for rank in (0, 2):
            account = cast.account(rank)
            assert account.blamed == ODD
            assert WORDS[manner] in account.text
            assert account.seconds < PROMPT_S
        assert cast.processes[ODD].wait(200) == EXIT_CODES[manner]


WORDS_INSIDE = {
    "kill": "ended without closing its communicator",
    "exit at once": "ended without closing its communicator",
    "exception": "broke off a collective: a signal handler raised while it waited",
    "close": "rank 1 (process ",
    "exit": "broke off a collective: a signal handler raised while it waited",
}
EXIT_CODES_INSIDE = {**EXIT_CODES, "close": 1}  # the thread that waited got an exception


@pytest.mark.parametrize("manner", WORDS_INSIDE)
def test_a_rank_leaves_a_collective_it_waits_in(manner: str, tmp_path: Path) -> None:
    with playing(manner, "inside", tmp_path) as cast:
        for rank in (0, 2):
            account = cast.account(rank)
            assert account.blamed == ODD
            assert WORDS_INSIDE[manner] in account.text
            assert account.seconds < PROMPT_S
        assert cast.processes[ODD].wait(200) == EXIT_CODES_INSIDE[manner]


@pytest.mark.parametrize("moment", ["before", "between", "inside"])
def test_a_stopped_rank_is_blamed_at_the_timeout_and_learns_of_it(moment: str, tmp_path: Path) -> None:
    with playing("stop", moment, tmp_path, patience_s=SHORT_S) as cast:
        accounts = [cast.account(rank) for rank in (0, 2)]
        for account in accounts:
            assert account.blamed == ODD
            assert f"did not respond for {SHORT_S:g} s" in account.text
            assert "COBRE_SHM_TIMEOUT_SECS" in account.text
            assert account.seconds < SHORT_S + PROMPT_S
        assert max(account.waited for account in accounts) > 0.9 * SHORT_S
        cast.processes[ODD].send_signal(signal.SIGCONT)
        if moment == "inside":
            # It completes the barrier it had entered, as the others did, and fails in the next.
            assert cast.processes[ODD].wait(200) == 1
        else:
            late = cast.account(ODD)
            assert late.blamed == ODD
            assert "gave up waiting for this rank" in late.text


@pytest.mark.parametrize(
    ("size", "nbytes"), [(2, 3 << 20), (2, 20 << 20), (3, 4 << 20)], ids=["direct", "staged", "three"]
)
def test_a_rank_is_killed_in_the_middle_of_a_transfer(size: int, nbytes: int, tmp_path: Path) -> None:
    with playing(str(nbytes), "moving", tmp_path, size=size) as cast:
        for rank in range(size):
            until_exists(tmp_path / f"moving-{rank}")
        # Wherever it is by then: the transfers follow each other without a pause.
        cast.processes[ODD].kill()
        (tmp_path / "part").write_text(repr(time.monotonic()))
        (tmp_path / "part").rename(tmp_path / "happened")
        for rank in {*range(size)} - {ODD}:
            account = cast.account(rank)
            assert account.blamed == ODD
            assert "ended without closing its communicator" in account.text
            assert account.seconds < PROMPT_S


@pytest.mark.slow
@pytest.mark.parametrize("manner", ["kill", "exit at once", "close"])
def test_how_soon_survivors_know(manner: str, tmp_path: Path) -> None:
    seconds = []
    for trial in range(15):
        directory = tmp_path / str(trial)
        directory.mkdir()
        with playing(manner, "between", directory) as cast:
            seconds += [cast.account(rank).seconds for rank in (0, 2)]
    print(f"{manner}: median {statistics.median(seconds) * 1e3:.1f} ms, worst {max(seconds) * 1e3:.1f} ms")
    assert statistics.median(seconds) < 0.1


def test_the_clock_of_the_accounts_is_shared() -> None:
    """The times above compare `time.monotonic()` of different processes."""
    before = time.monotonic()
    code = "import time; print(repr(time.monotonic()))"
    elsewhere = float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert before < elsewhere < time.monotonic()
