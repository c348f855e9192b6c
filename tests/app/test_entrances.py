"""Workers from wherever Python runs: a script without a guard, `python -c`, a notebook, any start method."""

import subprocess
import sys
from pathlib import Path

import pytest
from kernel import printed, run_in_kernel

BODY = """
import pycobre
from pycobre.testing.problems import reservoir
result = pycobre.train(reservoir(4), {"forward_passes": 2, "iteration_limit": 3}, num_workers=2)
print("digest", result.policy_digest, len(result.workers))
"""


def digest(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("digest")]
    assert len(lines) == 1, text
    _, value, workers = lines[0].split()
    assert workers == "2"
    return value


@pytest.fixture(scope="module")
def expected() -> str:
    import pycobre
    from pycobre.testing.problems import reservoir

    return pycobre.train(reservoir(4), {"forward_passes": 2, "iteration_limit": 3}).policy_digest


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_without_a_main_guard(expected: str, tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(BODY)
    assert digest(run(sys.executable, str(script), cwd=tmp_path)) == expected


def test_a_command_line_snippet(expected: str) -> None:
    assert digest(run(sys.executable, "-c", BODY)) == expected


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_whatever_multiprocessing_is_set_to(method: str, expected: str) -> None:
    code = f"import multiprocessing\nmultiprocessing.set_start_method({method!r})\n{BODY}"
    assert digest(run(sys.executable, "-c", code)) == expected


def test_a_notebook_kernel(expected: str) -> None:
    assert digest(printed(run_in_kernel(BODY))) == expected
