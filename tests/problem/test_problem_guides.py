"""Every example and every code block of the guide runs, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    "from_highspy",
    "markov_prices",
    "noise_everywhere",
    "reservoir_in_five_minutes",
    "ring_of_seasons",
]


def run(code: str, directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=directory,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    run((ROOT / "examples" / f"{name}.py").read_text(), tmp_path)


def test_the_guide_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guides" / "building-problems.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 7
    prelude = f"import tempfile\ntempfile.tempdir = {str(tmp_path)!r}\n"
    run(prelude + "\n".join(blocks), tmp_path)
