"""The package installs where there is no C compiler, and says what it then lacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROBE = """
import json, pycobre, numpy as np
from pycobre.comm import LocalBackend, ReduceOp, available_backends
recv = np.zeros(2)
LocalBackend().allreduce(np.ones(2), recv, ReduceOp.SUM)
statuses = {name: [status.available, status.reason] for name, status in available_backends().items()}
print(json.dumps({"file": pycobre.__file__, "sum": recv.tolist(), "statuses": statuses}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package was installed from a copy of the tree, with a compiler that always fails."""
    tree = tmp_path_factory.mktemp("tree")
    target = tmp_path_factory.mktemp("site")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    # Not what a build in the working tree has left there.
    shutil.copytree(
        ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
    )
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    environ = os.environ | {"CC": "/bin/false", "CXX": "/bin/false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [*pip, "--target", str(target), str(tree)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def probe(site: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(site)},
        cwd=site,
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    return done.stdout


def test_without_a_compiler_local_and_tcp_run_and_shm_says_why_not(site):
    assert not list(site.rglob("*.so"))
    seen = json.loads(probe(site, "-c", PROBE))
    assert Path(seen["file"]).is_relative_to(site)
    assert seen["sum"] == [1.0, 1.0]
    assert seen["statuses"]["local"] == [True, ""]
    assert seen["statuses"]["tcp"] == [True, ""]
    available, reason = seen["statuses"]["shm"]
    assert not available
    assert "pycobre._native.shm is missing" in reason
    assert "C compiler" in reason


def test_without_a_compiler_the_doctor_still_works(site):
    diagnosis = json.loads(probe(site, "-m", "pycobre", "doctor", "--json"))
    assert diagnosis["native"]
    assert not any(diagnosis["native"].values())


def test_types_and_license_are_installed(site):
    assert (site / "pycobre" / "py.typed").exists()
    assert list(site.glob("pycobre-*.dist-info/licenses/LICENSE"))
