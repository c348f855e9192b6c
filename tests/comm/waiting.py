"""Waiting for what another thread or process does, in tests and in the scripts they start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

_PAUSE_S = 0.002
# A rank that waits in a collective sleeps, but for an instant every 20 ms at least. Elsewhere it may sleep for an
# instant, for example until another thread lets go of the interpreter, but hardly through so many looks.
_LOOKS = 8


def until(condition: Callable[[], bool], timeout_s: float = 200.0) -> None:
    """Look again and again until it is so."""
    pause = threading.Event()
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        pause.wait(_PAUSE_S)


def until_exists(path: Path | str) -> None:
    """Wait for a file that somebody makes."""
    until(Path(path).exists)


def until_asleep(pid: int, task: int | None = None) -> None:
    """Wait until a process's first thread, or the thread `task`, is asleep and stays so."""
    stat = Path(f"/proc/{pid}/task/{task or pid}/stat")
    looks = 0

    def sleeps_on() -> bool:
        nonlocal looks
        looks = looks + 1 if stat.read_text().rpartition(")")[2].split()[0] == "S" else 0
        return looks >= _LOOKS

    until(sleeps_on)
