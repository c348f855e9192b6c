"""One trained and simulated case for all questions."""

from __future__ import annotations

from pathlib import Path

import pytest

import pycobre
from pycobre.app.answers.run_index import find_run
from pycobre.app.answers.run_tables import RunTables
from pycobre.hydro.examples import example
from pycobre.hydro.files import write_case
from pycobre.sddp import Policy

SETTINGS = {
    "training.stopping_rules": [{"type": "iteration_limit", "limit": 12}],
    "simulation.selection.num_scenarios": 24,
}


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a case, `cascade`, and a run of it in `cascade/output`."""
    root = tmp_path_factory.mktemp("studies")
    write_case(example("cascade").build(), root / "cascade")
    pycobre.start(root / "cascade", SETTINGS).result(timeout=300)
    return root


@pytest.fixture(scope="session")
def tables(root: Path) -> RunTables:
    return RunTables(*find_run(root, "cascade/output"))


@pytest.fixture(scope="session")
def policy(tables: RunTables) -> Policy:
    return Policy.load(tables.results.policy_path)
