"""A case is parsed once, checked once, and is what its data say: not its name, not the bytes of its files."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_case import one_reservoir

import pycobre
from pycobre.app.request import CaseSource, Request
from pycobre.hydro import build_model, checks
from pycobre.hydro.checks import registry
from pycobre.hydro.examples import example
from pycobre.hydro.files import identity, load_case, with_overrides, write_case
from pycobre.hydro.model.table import Table


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_case(example("cascade").build(), tmp_path / "river")
    return tmp_path / "river"


@pytest.fixture
def runs_of_checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for every time that all checks run."""
    seen: list[int] = []
    everything = registry.run_checks

    def counted(sections: dict[str, object]) -> list[object]:
        seen.append(len(sections))
        return list(everything(sections))

    for module in (checks, __import__("pycobre.hydro.files.read_case", fromlist=["run_checks"])):
        monkeypatch.setattr(module, "run_checks", counted)
    return seen


def test_json_is_parsed_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    loads = json.loads

    def counted(content: bytes, **how: object) -> object:
        parsed.append(content)
        return loads(content, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(json, "loads", counted)
    load_case(directory)
    files = [path for path in directory.rglob("*.json") if path.parent.name != "schemas"]
    assert sorted(parsed) == sorted(path.read_bytes() for path in files)


def test_a_case_is_checked_once_from_its_files_to_the_worker(
    directory: Path, runs_of_checks: list[int]
) -> None:
    case = load_case(directory)
    assert case.checked
    build_model(case)
    received = Request.from_bytes(Request(CaseSource(case)).to_bytes()).source
    assert isinstance(received, CaseSource)
    build_model(received.case)
    assert len(runs_of_checks) == 1


def test_a_changed_case_is_checked_again(directory: Path, runs_of_checks: list[int]) -> None:
    changed = with_overrides(load_case(directory), {"training.tree_seed": 7})
    assert not changed.checked
    build_model(changed)
    build_model(changed)
    assert len(runs_of_checks) == 2
    assert not replace(changed, name="other").checked


def test_a_case_that_is_wrong_stays_unchecked() -> None:
    wrong = replace(one_reservoir(), buses=())
    with pytest.raises(pycobre.CobreError, match="a system has at least one bus"):
        build_model(wrong)
    assert not wrong.checked


def test_an_unchecked_case_arrives_unchecked() -> None:
    received = Request.from_bytes(Request(CaseSource(one_reservoir())).to_bytes()).source
    assert isinstance(received, CaseSource)
    assert not received.case.checked


def test_the_name_of_the_directory_is_in_no_digest(directory: Path) -> None:
    copy = directory.parent / "another name"
    shutil.copytree(directory, copy)
    first, second = load_case(directory), load_case(copy)
    assert first.name != second.name
    assert identity(first) == identity(second)
    assert build_model(first).problem.fingerprint == build_model(second).problem.fingerprint


def test_a_renamed_case_can_be_resumed(directory: Path, tmp_path: Path) -> None:
    short = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 2}]}
    longer = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 3}]}
    pycobre.train(directory, short, output=tmp_path / "out", checkpoint_iterations=1)
    renamed = directory.rename(directory.parent / "stream")
    resumed = pycobre.train(renamed, longer, output=tmp_path / "out", resume=True)
    assert resumed.iterations == 3
    assert resumed.policy_digest == pycobre.train(renamed, longer).policy_digest


def test_identity_does_not_know_how_files_were_written(directory: Path) -> None:
    before = identity(load_case(directory))
    for path in directory.rglob("*.parquet"):
        pq.write_table(pq.read_table(path), path, compression="none", version="1.0")
    for path in directory.rglob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=7))
    assert identity(load_case(directory)) == before


def test_identity_says_what_has_changed(directory: Path) -> None:
    case = load_case(directory)
    stats = case.inflow_stats
    columns = {name: column.copy() for name, column in vars(stats).items()}
    columns["mean_m3s"][3] += 1e-9
    other = replace(case, inflow_stats=type(stats)(**columns))
    before, after = identity(case), identity(other)
    changed = [file for file in before["inputs"] if before["inputs"][file] != after["inputs"][file]]
    assert changed == ["scenarios/inflow_seasonal_stats.parquet"]
    assert before["input_hash"] != after["input_hash"]
    assert before["config_hash"] == after["config_hash"]
    seeded = identity(with_overrides(case, {"training.tree_seed": 9}))
    assert seeded["input_hash"] == before["input_hash"]
    assert seeded["config_hash"] != before["config_hash"]


def test_writing_replaces_the_case_that_was_there(directory: Path) -> None:
    (directory / "notes.txt").write_text("mine")
    small = one_reservoir()
    write_case(small, directory)
    assert replace(load_case(directory), name=small.name) == small
    assert (directory / "notes.txt").read_text() == "mine"


def test_a_write_that_fails_leaves_no_part_of_a_new_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: Table) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", lambda self, data: full(data))
    with pytest.raises(OSError, match="No space left"):
        write_case(example("cascade").build(), tmp_path / "river")
    assert list(tmp_path.iterdir()) == []
