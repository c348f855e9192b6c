"""Cases on disk: what is written reads back the same, and what is wrong is all said at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_case import lags, one_reservoir, stages

from pycobre.errors import CaseError, OptionError
from pycobre.hydro.files import case_files, load_case, read_case_files, validate, with_overrides, write_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import DynamicSelection
from pycobre.hydro.model.findings import Finding, Layer, Severity
from pycobre.hydro.model.horizon import CVaR, CVaRParameters


@pytest.fixture
def case() -> Case:
    risky = stages(3, openings=2, risk_measure=CVaR(cvar=CVaRParameters(alpha=0.3, lambda_=0.6)))
    return one_reservoir(risky, ar_coefficients=lags(risky, {0: (0.4, 0.2)}))


@pytest.fixture
def directory(case: Case, tmp_path: Path) -> Path:
    write_case(case, tmp_path / "study")
    return tmp_path / "study"


def edit(directory: Path, file: str, old: str, new: str) -> None:
    text = (directory / file).read_text()
    assert old in text
    (directory / file).write_text(text.replace(old, new, 1))


def only(findings: tuple[Finding, ...], severity: Severity = Severity.ERROR) -> Finding:
    (found,) = [f for f in findings if f.severity is severity]
    return found


def test_a_case_reads_back_as_it_was_written(case: Case, directory: Path) -> None:
    found = load_case(directory)
    assert found.name == "study"
    assert with_name(found, case.name) == case
    assert case_files(found) == case_files(case)
    assert read_case_files(case_files(case), case.name) == case
    assert json.loads((directory / "stages.json").read_text())["stages"][0]["risk_measure"] == {
        "cvar": {"alpha": 0.3, "lambda": 0.6}
    }


def with_name(case: Case, name: str) -> Case:
    from dataclasses import replace

    return replace(case, name=name)


def test_schema_keys_are_allowed_at_the_root(directory: Path) -> None:
    whole = load_case(directory)
    for schema in ('"https://example.org/config"', "null"):
        path = directory / "config.json"
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "$schema": json.loads(schema)}))
        assert load_case(directory) == whole
    path.write_text(json.dumps({key: value for key, value in document.items() if key != "$schema"}))
    assert load_case(directory) == whole
    edit(directory, "system/thermals.json", '"cost_per_mwh"', '"$schema": "no root", "cost_per_mwh"')
    assert "thermals[0].$schema" in [f.where for f in validate(directory) if f.kind == "unknown_key"]


def test_unknown_keys_are_errors_with_a_suggestion(directory: Path) -> None:
    edit(directory, "system/thermals.json", '"cost_per_mwh"', '"cost_per_mhw"')
    findings = validate(directory)
    kinds = {f.kind: f for f in findings}
    assert kinds["unknown_key"].where == "thermals[0].cost_per_mhw"
    assert kinds["unknown_key"].suggestion == "Did you mean 'cost_per_mwh'?"
    assert kinds["missing_key"].where == "thermals[0].cost_per_mwh"


def test_a_wrong_type_inside_a_tagged_choice_names_the_path_of_the_author(directory: Path) -> None:
    edit(directory, "config.json", '"limit": 20', '"limit": "many"')
    found = only(validate(directory))
    assert (found.kind, found.where, found.value) == (
        "wrong_type",
        "training.stopping_rules[0].limit",
        '"many"',
    )


def test_all_files_are_looked_at(directory: Path) -> None:
    (directory / "penalties.json").unlink()
    (directory / "system/buses.json").write_text("{")
    edit(directory, "stages.json", '"num_openings": 2', '"num_openings": 2.5')
    (directory / "scenarios/load_seasonal_stats.parquet").write_bytes(b"PAR1 nonsense")
    kinds = {(f.kind, f.file) for f in validate(directory) if f.severity is Severity.ERROR}
    assert kinds == {
        ("missing_file", "penalties.json"),
        ("malformed_json", "system/buses.json"),
        ("wrong_type", "stages.json"),
        ("malformed_parquet", "scenarios/load_seasonal_stats.parquet"),
    }
    with pytest.raises(CaseError, match=r"4 errors:\n  error \[missing_file\] penalties.json") as caught:
        load_case(directory)
    assert sum(f.severity is Severity.ERROR for f in caught.value.findings) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"buses": [], "buses": []}', "the key 'buses' twice in one object"),
        ('{"buses": NaN}', "NaN, which is not a JSON number"),
        ("[" * 100000, "RecursionError|recursion"),
    ],
)
def test_json_that_is_not_json(directory: Path, text: str, said: str) -> None:
    (directory / "system/buses.json").write_text(text)
    found = next(f for f in validate(directory) if f.kind == "malformed_json")
    assert any(part in found.value for part in said.split("|"))


def rewrite(directory: Path, file: str, **columns: object) -> None:
    table = pq.read_table(directory / file)
    for name, values in columns.items():
        index = table.column_names.index(name) if name in table.column_names else None
        if values is None:
            table = table.remove_column(index)
        elif index is None:
            table = table.append_column(name, values)
        else:
            table = table.set_column(index, name, values)
    pq.write_table(table, directory / file, compression="zstd")


STATS = "scenarios/inflow_seasonal_stats.parquet"


@pytest.mark.parametrize(
    ("columns", "kind", "where"),
    [
        ({"mean_m3s": None}, "missing_column", "mean_m3s"),
        ({"mean_m3s": pa.array(["a", "b", "c"])}, "wrong_type", "mean_m3s"),
        ({"mean_m3s": pa.array([1.0, None, 2.0])}, "null", "mean_m3s, row 1"),
        ({"mean_m3s": pa.array([1.0, 2.0, float("inf")])}, "not_finite", "mean_m3s, row 2"),
        ({"stage_id": pa.array([0, 1, 2**40])}, "out_of_range", "stage_id, row 2"),
    ],
)
def test_columns_that_do_not_fit(directory: Path, columns: dict[str, object], kind: str, where: str) -> None:
    rewrite(directory, STATS, **columns)
    found = only(validate(directory))
    assert (found.kind, found.file, found.where, found.layer) == (kind, STATS, where, Layer.SCHEMA)


def test_doubtful_files_are_warnings(directory: Path) -> None:
    table = pq.read_table(directory / STATS).append_column("remark", pa.array(["x", "y", "z"]))
    pq.write_table(table, directory / STATS, compression="snappy")
    (directory / "scenarios/notes.json").write_text("{}")
    (directory / "output").mkdir()
    findings = [f for f in validate(directory) if f.kind != "no_observations" and f.kind != "lags_are_states"]
    assert {f.kind for f in findings} == {"snappy_codec", "unknown_column", "unknown_file"}
    assert {f.severity for f in findings} == {Severity.WARNING}
    assert len(load_case(directory).inflow_stats) == 3


def test_misspelt_folders_are_errors(directory: Path) -> None:
    (directory / "scenarios").rename(directory / "scenario")
    found = next(f for f in validate(directory) if f.kind == "unknown_folder")
    assert (found.file, found.suggestion) == ("scenario", "Did you mean 'scenarios'?")
    with pytest.raises(CaseError, match="unknown_folder"):
        load_case(directory)


def test_what_is_not_supported_is_refused_by_name(directory: Path) -> None:
    (directory / "post_study_stages.json").write_text("{}")
    assert "post-study stages are not supported yet" in str(only(validate(directory)))


def test_overrides_by_dotted_path(case: Case) -> None:
    changed = with_overrides(case, {"training.tree_seed": 7, "simulation.enabled": True})
    assert changed.config.training.tree_seed == 7
    assert changed.config.simulation.enabled
    assert case.config.training.tree_seed is None
    with pytest.raises(
        OptionError,
        match=r"training.tre_seed: there is no key 'tre_seed' in 'training'\. Did you mean",
    ):
        with_overrides(case, {"training.tre_seed": 7})
    with pytest.raises(OptionError, match="'enabled' is not a group of settings"):
        with_overrides(case, {"training.enabled.very": True})


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        # A case that has been read holds every setting, so the right name is among those that are there.
        ({"training.stoping_rules": []}, r"in 'training'\. Did you mean 'training.stopping_rules'\?"),
        ({"trainin.stopping_rules": []}, r"in the configuration\. Did you mean 'training.stopping_rules'\?"),
        ({"forward_passes": 2}, r"Did you mean 'training.selection.forward_passes'\?"),
        (
            {"training": {"selection": {"forward_pases": 2}}},
            r"Did you mean 'training.selection.forward_passes'\?",
        ),
        ({"zzz": 1}, "There are: estimation, exports"),
        ({"training.tree_seed": "x"}, 'training.tree_seed: input should be a valid integer, got "x"'),
        (
            {"training.stopping_rules.limit": 3},
            "'stopping_rules' is not a group of settings, got 'limit' in it",
        ),
        ({1: 2}, "expected a dotted path, got int"),
        ("training", "expected a mapping of dotted paths to values"),
        ({"training.tree_seed": object()}, "expected values that JSON can hold"),
    ],
)
def test_wrong_overrides_name_the_path_and_the_nearest_one(overrides: Any, text: str, case: Case) -> None:
    with pytest.raises(OptionError, match=text):
        with_overrides(case, overrides)


def test_a_mapping_replaces_what_it_names_and_another_variant_begins_anew(case: Case) -> None:
    changed = with_overrides(case, {"training": {"tree_seed": np.int64(9)}})
    assert changed.config.training == replace(case.config.training, tree_seed=9)
    chosen = {"training.cut_selection.selection": {"method": "level1", "check_frequency": 2}}
    selected = with_overrides(case, chosen)
    again = with_overrides(selected, {"training.cut_selection.selection": {"method": "dynamic"}})
    assert again.config.training.cut_selection.selection == DynamicSelection()


def test_a_directory_that_is_not_there() -> None:
    with pytest.raises(CaseError, match="expected a case directory"):
        load_case("no/such/place")


def test_integers_of_any_width_are_ids(directory: Path) -> None:
    rewrite(
        directory,
        STATS,
        stage_id=pa.array(np.arange(3), pa.int64()),
        hydro_id=pa.array([0, 0, 0], pa.uint8()),
    )
    assert not [f for f in validate(directory) if f.severity is Severity.ERROR]
