"""Typing commands as a user would."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PYCOBRE = [sys.executable, "-m", "pycobre"]
#: What a command may take on the busiest machine; less than what a test may.
PATIENCE_S = 500


def pycobre(*words: object, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PYCOBRE, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=cwd,
        env={**os.environ, **environ},
        check=False,
    )


@contextmanager
def held_port() -> Iterator[int]:
    """A port of 127.0.0.1 that a rank 0 can listen on and that the system gives to nobody else meanwhile.

    It is held by a socket that is bound and does not listen; rank 0 may bind it too because both set SO_REUSEADDR.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
