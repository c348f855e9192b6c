"""Faults in real training runs: the correct result, or a named error and a run that can be resumed; never a hang.

Each test is the command of `run_faults.py` in a process of its own. What a trial may end in is judged there; here
counts only that no trial hung, leaked or ended otherwise. How long a detection took is printed, not asserted.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "comm"))

from mpi_environments import require_environment  # noqa: E402

BACKENDS = ("local", "shm", "tcp", "mpi")


def table(backend: str, *words: str, timeout: float) -> str:
    """What the command prints, which ends with 0."""
    if backend == "mpi":
        require_environment("mpich")
        require_environment("openmpi")
    command = [sys.executable, str(HERE / "run_faults.py"), backend, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fault_of_each_kind(backend: str) -> None:
    assert f"\n{backend}" in table(backend, "--each-kind", timeout=1100)


@pytest.mark.ci
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fault_of_each_kind_with_default_settings(backend: str) -> None:
    assert f"\n{backend}" in table(backend, "--defaults", "--each-kind", timeout=1100)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_hundred_faults_with_default_settings(backend: str) -> None:
    assert f"\n{backend}" in table(backend, "--defaults", "--trials", "200", timeout=7000)


@pytest.mark.ci
@pytest.mark.timeout(2500)
@pytest.mark.parametrize("backend", BACKENDS)
def test_twenty_faults(backend: str) -> None:
    assert f"\n{backend}" in table(backend, timeout=2400)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_hundred_faults(backend: str) -> None:
    assert f"\n{backend}" in table(backend, "--trials", "200", "--seed", "2", timeout=7000)


@pytest.mark.slow
@pytest.mark.timeout(2500)
@pytest.mark.parametrize("backend", BACKENDS)
def test_twenty_faults_without_root(backend: str) -> None:
    """The same where mounts and network namespaces are not allowed."""
    assert f"\n{backend}" in table(backend, "--plain", "--seed", "3", timeout=2400)
