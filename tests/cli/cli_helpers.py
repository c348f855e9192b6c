"""Typing commands as a user would."""

import os
import subprocess
import sys
from pathlib import Path

PYCOBRE = [sys.executable, "-m", "pycobre"]


def pycobre(*words: object, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PYCOBRE, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=cwd,
        env={**os.environ, **environ},
        check=False,
    )
