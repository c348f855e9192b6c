"""What a system or an interpreter takes away: memory, docstrings, reason. Each ends in results or a clear error."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import pycobre

GIB = 1 << 30


def run(case: Path, *words: str, python: tuple[str, ...] = (), memory: int | None = None) -> tuple[int, str]:
    """Exit code and standard error of a run of two iterations."""
    command = [
        sys.executable,
        *python,
        "-m",
        "pycobre",
        "run",
        str(case),
        "--iterations",
        "2",
        "--quiet",
        *words,
    ]

    def limited() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=250, check=False, preexec_fn=limited
    )
    return done.returncode, done.stderr


@pytest.fixture
def case(tmp_path: Path) -> Path:
    assert pycobre("init", "one-reservoir", tmp_path / "case").returncode == 0
    return tmp_path / "case"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interpreter_without_docstrings_and_asserts(workers: str, case: Path) -> None:
    assert run(case, "--workers", workers, "--scenarios", "2", python=("-OO",)) == (0, "")


def test_memory_that_the_system_refuses_is_an_error_with_a_remedy(case: Path) -> None:
    code, said = run(case, "--scenarios", "1000000000", memory=4 * GIB)
    assert code == 1
    assert said.startswith("error: memory: expected enough for this run, got a refusal of the system")
    assert "Use fewer scenarios or forward passes, or more memory." in said


def test_more_threads_than_any_machine_has_are_refused(case: Path) -> None:
    code, said = run(case, "--scenarios", "2", "--threads", "1000000", memory=4 * GIB)
    assert code == 1
    assert "threads: expected a whole number from 1 to 64, got 1000000" in said
