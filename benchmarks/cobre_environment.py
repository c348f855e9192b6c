"""An environment with Cobre, found or made: PyPI `cobre-python`, which needs Python 3.12 or newer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["COBRE", "PYTHON_VARIABLE", "Missing", "cobre_python"]

COBRE = "cobre-python==0.18.*"
PYTHON_VARIABLE = "PYCOBRE_COBRE_PYTHON"
CACHE_VARIABLE = "PYCOBRE_BENCH_CACHE"
_OLDEST = (3, 12)
_NEWEST = (3, 15)


class Missing(Exception):
    """There is no Cobre here, and why. It never leaves this package."""


def cobre_python() -> Path:
    """An interpreter that can import Cobre.

    `PYCOBRE_COBRE_PYTHON` names one that has it; without, an environment is made once in the cache
    (`PYCOBRE_BENCH_CACHE`, else the system's temporary directory) with the first Python that is new enough.
    Raises `Missing` with the reason.
    """
    named = os.environ.get(PYTHON_VARIABLE)
    if named:
        if not _has_cobre(Path(named)):
            raise Missing(f"{PYTHON_VARIABLE}={named} cannot import cobre")
        return Path(named)
    home = cache() / "cobre-python"
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        base = _new_enough()
        if base is None:
            raise Missing(
                f"Cobre needs Python {_OLDEST[0]}.{_OLDEST[1]} or newer, and none was found on PATH, in "
                f"pyenv or by uv; name one that has it in {PYTHON_VARIABLE}"
            )
        _make(base, home, python)
    return python


def cache() -> Path:
    """Where environments with Cobre live between runs."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(tempfile.gettempdir()) / f"pycobre-bench-{os.getuid()}"


def _make(base: str, home: Path, python: Path) -> None:
    """A virtual environment with Cobre; nothing half-made is used later."""
    steps = [
        [base, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", COBRE],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
            raise Missing(f"`{' '.join(step)}` failed: {last[0]}")
    (home / "complete").touch()


def _new_enough() -> str | None:
    """The oldest Python that Cobre runs on."""
    names = [f"python3.{minor}" for minor in range(_OLDEST[1], _NEWEST[1] + 1)]
    found = [path for name in names if (path := shutil.which(name))]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found += [str(path) for name in names for path in sorted(versions.glob(f"*/bin/{name}"))]
    if sys.version_info >= _OLDEST:
        found.append(sys.executable)
    # A pyenv shim exists for versions that are not active, so each candidate has to prove itself.
    for candidate in found:
        if _version(candidate) >= _OLDEST:
            return candidate
    uv = shutil.which("uv")
    if uv:
        done = subprocess.run([uv, "python", "find", ">=3.12"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def _version(python: str) -> tuple[int, ...]:
    command = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return tuple(int(word) for word in done.stdout.split()) if done.returncode == 0 else ()


def _has_cobre(python: Path) -> bool:
    try:
        done = subprocess.run([str(python), "-c", "import cobre.run"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0
