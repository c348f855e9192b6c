"""The cost beyond the last stage from the policy of another study: by date, by plant, lag by lag."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_case import random_case

import pycobre
from pycobre.errors import CaseError
from pycobre.hydro.build import build_model
from pycobre.hydro.files import load_case, validate, write_case
from pycobre.hydro.files.flat_buffer import NotFlat, root_table
from pycobre.hydro.model.boundary import state_key
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import PolicyBoundary
from pycobre.problem import solve_extensive_form

FEATURES = ("lags", "discount")


def shortened(case: Case, count: int, path: str = "", *, strict: bool = False) -> Case:
    """The first stages of a case, and after them the policy at `path`."""
    keep = [stage.id for stage in case.stages[:count]]
    changes: dict[str, Any] = {"stages": case.stages[:count]}
    for field in fields(case):
        value = getattr(case, field.name)
        if hasattr(value, "stage_id") and len(value):
            rows = np.isin(value.stage_id, keep) | (value.stage_id < 0)
            changes[field.name] = type(value)(**{c.name: getattr(value, c.name)[rows] for c in fields(value)})
        elif isinstance(value, tuple) and value and hasattr(value[0], "stage_id"):
            changes[field.name] = tuple(each for each in value if each.stage_id in keep)
    if path:
        policy = replace(case.config.policy, boundary=PolicyBoundary(path=path, strict=strict))
        changes["config"] = replace(case.config, policy=policy)
    return replace(case, **changes)


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Path, float]:
    """A study of four stages, its results, and its bound, which is the optimum."""
    root = tmp_path_factory.mktemp("studies")
    case = random_case(901, *FEATURES, stages=4, openings=2, iterations=60, passes=3)
    found = pycobre.train(case, output=root / "long")
    assert found.final_lower_bound == pytest.approx(solve_extensive_form(build_model(case).problem), rel=1e-7)
    return case, root, found.final_lower_bound


def written(case: Case, root: Path, name: str) -> Path:
    shutil.rmtree(root / name, ignore_errors=True)
    write_case(case, root / name)
    return root / name


@pytest.mark.parametrize("path", ["../long", "../long/policy"])
def test_a_short_study_before_a_long_one_has_its_bound(studies: tuple[Case, Path, float], path: str) -> None:
    case, root, bound = studies
    short = written(shortened(case, 2, path), root, f"short-{len(path)}")
    loaded = load_case(short)
    assert len(build_model(loaded).problem.nodes) == 2
    found = pycobre.train(loaded)
    assert found.final_lower_bound == pytest.approx(bound, rel=1e-7)
    assert found.metadata["boundary"]["dropped"] == []
    assert solve_extensive_form(build_model(loaded).problem) == pytest.approx(bound, rel=1e-7)


def test_a_written_case_holds_the_cuts(studies: tuple[Case, Path, float]) -> None:
    case, root, _ = studies
    loaded = load_case(written(shortened(case, 2, "../long"), root, "first"))
    moved = root / "elsewhere" / "deep" / "copy"
    write_case(loaded, moved)
    again = load_case(moved)
    assert again.boundary_cuts == loaded.boundary_cuts
    assert build_model(again).problem.fingerprint == build_model(loaded).problem.fingerprint


def test_what_this_study_does_not_have_is_dropped_or_refused(studies: tuple[Case, Path, float]) -> None:
    case, root, _ = studies
    plain = replace(shortened(case, 2, "../long"), ar_coefficients=type(case.ar_coefficients).empty())
    plain = replace(plain, pre_study_stages=())
    loose = load_case(written(plain, root, "loose"))
    dropped = pycobre.train(loose).metadata["boundary"]["dropped"]
    assert dropped[0] == "inflow of hydro 0, lag 1"
    policy = replace(loose.config.policy, boundary=PolicyBoundary(path="../long", strict=True))
    strict = replace(loose, config=replace(loose.config, policy=policy))
    with pytest.raises(
        CaseError, match="expected states of this study only, got prices of 6 others: inflow of"
    ):
        build_model(strict)


def test_water_that_arrives_after_the_study_has_no_price(tmp_path: Path) -> None:
    case = random_case(903, "travel", stages=3, openings=2)
    pycobre.train(case, output=tmp_path / "long")
    loaded = load_case(written(shortened(case, 2, "../long"), tmp_path, "short"))
    dropped = pycobre.train(loaded).metadata["boundary"]["dropped"]
    assert dropped
    assert all(name.startswith("water on its way to hydro") for name in dropped)


def test_every_reservoir_has_a_price(studies: tuple[Case, Path, float]) -> None:
    case, root, _ = studies
    loaded = load_case(written(shortened(case, 2, "../long"), root, "priced"))
    table = loaded.boundary_cuts
    rows = ~((table.kind == 1) & (table.entity_id == 1))
    fewer = type(table)(**{c.name: getattr(table, c.name)[rows] for c in fields(table)})
    with pytest.raises(
        CaseError, match=r"expected a price of every reservoir of this study, got none of storage\["
    ):
        build_model(replace(loaded, boundary_cuts=fewer))
    with pytest.raises(CaseError, match=r"expected the cuts of \.\./long, got none. Load the case from"):
        build_model(replace(loaded, boundary_cuts=type(table).empty()))


def said(path: Path) -> str:
    return " ".join(str(finding) for finding in validate(path) if finding.kind == "boundary")


def test_what_is_not_there_or_ends_on_another_day_is_said(studies: tuple[Case, Path, float]) -> None:
    case, root, _ = studies
    assert "got neither, got ../nothing" in said(written(shortened(case, 2, "../nothing"), root, "none"))
    last = case.stages[1]
    odd = shortened(case, 2, "../long")
    odd = replace(odd, stages=(odd.stages[0], replace(last, end_date=date(2024, 2, 20))))
    text = said(written(odd, root, "odd"))
    assert "expected one node whose cuts price the state of 2024-02-20, got 0; it prices 2024-02-01" in text
    whole = said(written(shortened(case, 4, "../long"), root, "whole"))
    assert "got none: nothing follows it in its own study" in whole


@pytest.mark.parametrize("damage", ["policy", "metadata", "names", "missing"])
def test_damaged_results_are_findings(studies: tuple[Case, Path, float], damage: str, tmp_path: Path) -> None:
    case, root, _ = studies
    shutil.copytree(root / "long", tmp_path / "long")
    policy, metadata = tmp_path / "long/policy/policy.cobre", tmp_path / "long/metadata.json"
    if damage == "policy":
        policy.write_bytes(policy.read_bytes()[:-40])
    elif damage == "metadata":
        metadata.write_text("{")
    elif damage == "names":
        metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"stages": 7}))
    else:
        metadata.unlink()
    text = said(written(shortened(case, 2, "../long"), tmp_path, "short"))
    assert "the policy of another study gives the cost beyond the last stage" in text
    with pytest.raises(CaseError):
        load_case(tmp_path / "short")


def test_states_are_known_by_name() -> None:
    known = {"hydros": {"A": 3, "7": 9}, "thermals": {"T": 5}}
    assert state_key("storage[A]", known) == (1, 3, 0)
    assert state_key("storage[7]", known) == (1, 9, 0)
    assert state_key("inflow_lag[2,A]", known) == (2, 3, 2)
    assert state_key("transit[A,1]", known) == (4, 3, 1)
    assert state_key("commitment[T,2]", known) == (5, 5, 2)
    for name in ("storage[B]", "storage", "price[A]", "inflow_lag[A,A]", "transit[A,1,2]"):
        assert state_key(name, known) is None, name


def flat(fields_: list[bytes | None]) -> bytes:
    """A table of a FlatBuffer: its list of fields, then their bytes."""
    inside, places, at = b"", [], 4
    for field in fields_:
        places.append(0 if field is None else at)
        inside += field or b""
        at += len(field or b"")
    vtable = struct.pack(f"<HH{len(places)}H", 4 + 2 * len(places), at, *places)
    return vtable + struct.pack("<i", len(vtable)) + inside


def marked(table: bytes, vtable: int) -> bytes:
    return struct.pack("<I", 8 + vtable) + b"CBVF" + table


def test_flat_buffers_are_read_within_their_bounds() -> None:
    table = flat([struct.pack("<i", 7), None, struct.pack("<d", 2.5)])
    found = root_table(marked(table, 10), b"CBVF")
    assert (found.number(0, "i"), found.number(1, "i", 4), found.number(9, "i"), found.real(2)) == (
        7,
        4,
        0,
        2.5,
    )
    assert found.reals(1).size == 0
    beyond = root_table(marked(flat([struct.pack("<I", 10**6)]), 6), b"CBVF")
    with pytest.raises(NotFlat, match="is outside the file"):
        beyond.reals(0)
    endless = root_table(marked(flat([struct.pack("<II", 4, 2**31)]), 6), b"CBVF")
    with pytest.raises(NotFlat, match="is longer than the file"):
        endless.reals(0)
    with pytest.raises(NotFlat, match="expected a file marked CBVF"):
        root_table(b"\0" * 16, b"CBVF")
    for size in range(8, len(marked(table, 10))):
        try:
            root_table(marked(table, 10)[:size], b"CBVF").real(2)
        except NotFlat:
            continue


def test_bytes_that_are_no_policy_of_cobre_are_findings(tmp_path: Path) -> None:
    case = random_case(902, stages=3)
    cuts = tmp_path / "theirs/cuts"
    cuts.mkdir(parents=True)
    (tmp_path / "theirs/manifest.bin").write_bytes(b"")
    short = written(shortened(case, 2, "../theirs"), tmp_path, "short")
    assert "got 0; it prices" in said(short)
    draw = np.random.default_rng(3)
    for size in (0, 7, 12, 200, 3000):
        (cuts / "000.bin").write_bytes(draw.bytes(size)[:4] + b"CBVF"[: max(0, size - 4)] + draw.bytes(size))
        assert "the cost beyond the last stage" in said(short)
