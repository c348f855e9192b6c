"""Whoever started workers dies before they have met: they end, and the name of their segment goes with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "comm"))
from waiting import until

# Rank 1 is stopped at once, so rank 0 waits for it in the segment that it has made.
LAUNCHER = """
import os, signal, sys
from pycobre.launch.launcher import RankGroup

with RankGroup("pycobre.app.worker", 2, "shm") as group:
    first, second = (rank.process.pid for rank in group.ranks)
    os.kill(second, signal.SIGSTOP)
    print(first, second, flush=True)
    sys.stdin.read()
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def segments(launcher: int) -> list[str]:
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"pycobre-{launcher}-")]


def test_no_segment_is_left() -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert launcher.stdout is not None
    assert launcher.stdin is not None
    first, second = (int(word) for word in launcher.stdout.readline().split())
    try:
        until(lambda: bool(segments(launcher.pid)))
        launcher.kill()
        launcher.wait()
        until(lambda: not alive(first))
        assert segments(launcher.pid) == []
    finally:
        os.kill(second, signal.SIGKILL)
        launcher.kill()
        launcher.stdin.close()
        launcher.stdout.close()
