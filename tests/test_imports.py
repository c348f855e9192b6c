"""Importing is cheap: no optional package, no solver, no file format before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "mpi4py",
    "highspy",
    "pyarrow",
    "rich",
    "textual",
    "scipy",
    "pandas",
    "matplotlib",
    "plotly",
    "pytest",
    "hypothesis",
}


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=True
    )
    return set(json.loads(done.stdout))


def test_comm_imports_no_mpi_no_solver_no_file_format():
    loaded = loaded_by("import pycobre.comm")
    assert not loaded & HEAVY
    assert not loaded & {f"pycobre.comm.{name}" for name in ("shm", "tcp", "mpi")}
    assert not any(name.startswith(("pycobre.solver", "pycobre.testing")) for name in loaded)
    native = {name for name in loaded if name.startswith("pycobre._native.")}
    assert native <= {"pycobre._native.buffers"}  # the shortcut of the checks; the transports' modules wait


def test_the_package_itself_imports_almost_nothing():
    loaded = loaded_by("import pycobre")
    assert not loaded & (HEAVY | {"numpy"})
    assert {name for name in loaded if name.startswith("pycobre")} == {"pycobre", "pycobre.errors"}


def test_a_lazy_name_loads_its_own_module_only():
    loaded = loaded_by("from pycobre.comm import ShmBackend")
    assert "pycobre.comm.shm.backend" in loaded
    assert not loaded & (HEAVY | {"pycobre.comm.tcp.backend", "pycobre.comm.mpi.backend"})


def test_workers_are_started_before_anything_heavy_is_loaded():
    code = "from pycobre.app.api import Execution\nwith Execution('shm', 2) as run: pass"
    loaded = loaded_by(f"{code}\nassert run.place().size == 2")
    assert not loaded & (HEAVY | {"numpy", "pydantic_core"})


def test_a_worker_loads_what_it_works_with_and_nothing_else():
    loaded = loaded_by("import pycobre.app.worker")
    assert {"pycobre.sddp.training.trainer", "pycobre.hydro.build", "pycobre.solver.native"} <= loaded
    others = {
        "subprocess",
        "tempfile",
        "pydantic_core",
        "pycobre.launch.launcher",
        "pycobre.hydro.files.read_case",
    }
    assert not loaded & (HEAVY | others)


def test_the_kit_needs_pytest_only_for_its_suites():
    assert not loaded_by("from pycobre.testing import run_ranks") & HEAVY


@pytest.mark.parametrize("module", ["pycobre", "pycobre.comm", "pycobre.testing"])
def test_what_does_not_exist_is_an_attribute_error(module):
    __import__(module)
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = sys.modules[module].Nonsense
