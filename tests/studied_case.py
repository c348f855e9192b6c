"""Fixtures: one trained and simulated case, of which questions are asked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pycobre.app.answers.run_tables import RunTables
    from pycobre.sddp import Policy

SETTINGS = {
    "training.stopping_rules": [{"type": "iteration_limit", "limit": 12}],
    "simulation.selection.num_scenarios": 24,
}


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a case, `cascade`, and a run of it in `cascade/output`."""
    import pycobre
    from pycobre.hydro.examples import example
    from pycobre.hydro.files import write_case

    root = tmp_path_factory.mktemp("studies")
    write_case(example("cascade").build(), root / "cascade")
    pycobre.start(root / "cascade", SETTINGS).result(timeout=300)
    return root


@pytest.fixture(scope="session")
def tables(root: Path) -> RunTables:
    """The tables of that run."""
    from pycobre.app.answers.run_index import find_run
    from pycobre.app.answers.run_tables import RunTables

    return RunTables(*find_run(root, "cascade/output"))


@pytest.fixture(scope="session")
def policy(tables: RunTables) -> Policy:
    """Its policy."""
    from pycobre.sddp import Policy

    return Policy.load(tables.results.policy_path)


@pytest.fixture
def studies(root: Path, tmp_path: Path) -> Path:
    """A copy of the directory, for tests that write into it."""
    return Path(shutil.copytree(root, tmp_path / "studies"))
