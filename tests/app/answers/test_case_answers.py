"""Differences that were planted are found, edits do what they say, listings name what is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pycobre
from pycobre.app.answers.case_differences import diff_cases
from pycobre.app.answers.case_edits import edit_case, edited
from pycobre.app.answers.case_records import CaseDifferences, Change
from pycobre.app.answers.cases import describe_case, list_cases, schema_text, validate_case
from pycobre.app.answers.failure import explain_failure
from pycobre.app.answers.run_comparison import compare_runs
from pycobre.app.answers.run_estimate import estimate_run
from pycobre.app.answers.run_index import find_run, run_entries, run_state
from pycobre.app.answers.run_tables import RunTables
from pycobre.errors import CaseError, OptionError, OutputError, SolverError
from pycobre.hydro.files import load_case
from pycobre.hydro.model import Case
from pycobre.hydro.model.constraints import ThermalBounds
from pycobre.problem import Graph, Problem, build

pytestmark = pytest.mark.xdist_group("answers")


@pytest.fixture(scope="module")
def case(root: Path) -> Case:
    return load_case(root / "cascade")


def found(a: Case, b: Case) -> CaseDifferences:
    return diff_cases(a, b, ("january", "february"))


def test_equal_cases_have_no_differences(case: Case) -> None:
    assert found(case, replace(case)).equal
    assert found(case, case).sentences == ["The two cases say the same."]


def test_planted_differences_are_found_and_nothing_else(case: Case) -> None:
    load = case.load_stats
    own = load.bus_id == case.buses[0].id
    mean = load.mean_mw.copy()
    mean[own] *= 1.03
    storage = case.initial_conditions.storage
    last = case.thermals[-1]
    outage = ThermalBounds(
        thermal_id=[last.id], stage_id=[2], min_generation_mw=[0.0], max_generation_mw=[0.0]
    )
    before = replace(
        case, thermal_bounds=replace(outage, max_generation_mw=np.array([last.generation.max_mw]))
    )
    after = replace(
        before,
        load_stats=replace(load, mean_mw=mean),
        initial_conditions=replace(
            case.initial_conditions,
            storage=(replace(storage[0], value_hm3=storage[0].value_hm3 + 100.0), *storage[1:]),
        ),
        thermals=(replace(case.thermals[0], cost_per_mwh=99.0), *case.thermals[1:]),
        lines=tuple(replace(line, capacity=replace(line.capacity, direct_mw=1.0)) for line in case.lines[:1])
        + case.lines[1:],
        thermal_bounds=outage,
        config=replace(case.config, training=replace(case.config.training, tree_seed=5)),
    )
    differences = found(before, after)
    name = case.hydros[0].name
    assert {(each.category, each.section, each.entity, each.field) for each in differences.differences} == {
        ("load", "load_stats", f"{case.buses[0].name} ({case.buses[0].id})", "mean_mw"),
        ("storage", "initial_conditions.storage", f"{name} ({storage[0].hydro_id})", "value_hm3"),
        ("cost", "thermals", f"{case.thermals[0].name} ({case.thermals[0].id})", "cost_per_mwh"),
        ("limit", "lines", f"{case.lines[0].name} ({case.lines[0].id})", "capacity.direct_mw"),
        ("outage", "thermal_bounds", f"{last.name} ({last.id})", "max_generation_mw"),
        ("setting", "config", "", "training.tree_seed"),
    }
    by_section = {each.section: each for each in differences.differences}
    assert by_section["load_stats"].rows == own.sum()
    assert by_section["load_stats"].mean_after == pytest.approx(mean[own].mean())
    assert by_section["initial_conditions.storage"].largest_change == pytest.approx(100.0)
    text = "\n".join(differences.sentences)
    assert "(+3.00 %)" in text
    assert "Out of service." in text
    assert f"Thermal plant {case.thermals[0].name} (0): cost_per_mwh" in text


def test_a_plant_that_is_gone_is_named(case: Case) -> None:
    differences = found(case, replace(case, thermals=case.thermals[1:]))
    assert differences.sentences == [f"Thermal plant {case.thermals[0].name} (0) is gone."]


def test_an_edit_is_shown_and_then_written(root: Path, case: Case, tmp_path: Path) -> None:
    changes = [
        Change("config.training.tree_seed", 7),
        Change("hydros.Springs.reservoir.max_storage_hm3", factor=1.5),
        Change("load_stats.Coast.*.mean_mw", factor=1.1),
        Change("load_stats.Coast.3.std_mw", 0.0),
        Change("initial_conditions.storage.Fork.value_hm3", 1000.0),
        Change("thermals.0.cost_per_mwh", 42.0),
    ]
    names = ("cascade", "dry")
    shown = edit_case(root / "cascade", tmp_path / "dry", names, changes)
    assert not shown.written
    assert not (tmp_path / "dry").exists()
    with pytest.raises(OptionError, match="Look at the preview again"):
        edit_case(root / "cascade", tmp_path / "dry", names, changes, confirm="0" * 16)
    with pytest.raises(OptionError, match="Look at the preview again"):
        edit_case(root / "cascade", tmp_path / "dry", names, changes[1:], confirm=shown.confirm)
    assert edit_case(root / "cascade", tmp_path / "dry", names, changes, confirm=shown.confirm).written
    made = load_case(tmp_path / "dry")
    assert made.config.training.tree_seed == 7
    assert made.hydros[0].reservoir.max_storage_hm3 == 1.5 * case.hydros[0].reservoir.max_storage_hm3
    coast = case.load_stats.bus_id == 1
    assert made.load_stats.mean_mw[coast] == pytest.approx(1.1 * case.load_stats.mean_mw[coast])
    assert made.thermals[0].cost_per_mwh == 42.0
    with pytest.raises(OutputError, match="expected a name that is free"):
        edit_case(root / "cascade", tmp_path / "dry", names, changes, confirm=shown.confirm)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change("hydro.Springs.name", "x"), "Did you mean 'hydros'"),
        (Change("hydros.Sprngs.reservoir.max_storage_hm3", 1.0), "Did you mean 'Springs'"),
        (Change("hydros.Springs.reservoir.max_storag_hm3", 1.0), "Did you mean 'max_storage_hm3'"),
        (Change("hydros.Springs", 1.0), "expected a field of an entity"),
        (Change("load_stats.Coast.*.mean", 1.0), "with a column of mean_mw, std_mw"),
        (Change("load_stats.Coast.99.mean_mw", 1.0), "expected rows to change, got none"),
        (Change("load_stats.Coast.x.mean_mw", 1.0), "the id of a stage or"),
        (Change("config.training.tree_sed", 1), "tree_seed"),
        (Change("config.training.tree_seed", factor=2.0), "expected a value for a setting"),
        (Change("thermals.0.cost_per_mwh"), "expected a value or a factor"),
        (Change("thermals.0.name", factor=2.0), "expected a number to multiply"),
    ],
)
def test_an_edit_that_leads_nowhere_says_where_to(case: Case, change: Change, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        edited(case, [change])


def test_an_edit_that_makes_no_sense_is_refused_with_findings(case: Case) -> None:
    with pytest.raises(CaseError, match="minimum is not above the maximum"):
        edited(case, [Change("hydros.Springs.reservoir.min_storage_hm3", 1e9)])
    with pytest.raises(OptionError, match="at least one"):
        edited(case, [])


def test_cases_and_runs_are_listed_described_and_found(root: Path, tables: RunTables) -> None:
    cases = list_cases(root)
    assert [(each.case, each.runs) for each in cases.cases] == [("cascade", True)]
    described = describe_case(root / "cascade", "cascade", "hydros", limit=2)
    assert (described.stages, described.counts["hydros"], described.entities_total) == (12, 5, 5)
    assert described.truncated
    with pytest.raises(OptionError, match="Did you mean 'hydros'"):
        describe_case(root / "cascade", "cascade", "hydro")
    assert validate_case(root / "cascade", "cascade").valid
    (entry,) = run_entries(root).runs
    assert (entry.run, entry.state, entry.scenarios) == (tables.run, "finished", 24)
    assert find_run(root, entry.run[:12])[0] == entry.run
    assert run_state(root, *find_run(root, entry.run)).directory == "cascade/output"
    for wrong in (
        "",
        "\0",
        "\ud800",
        "x" * 5000,
        "nonsense",
        "../" + root.name,
        str(root / "cascade/output"),
    ):
        with pytest.raises(OutputError, match="`list_runs` names them"):
            find_run(root, wrong)
    assert run_entries(root, case="nothing").total == 0


def test_schemas_have_names() -> None:
    assert "system/hydros.json" in schema_text().available
    assert schema_text("hydros").json_schema["title"] == "system/hydros.json"
    assert schema_text("status").json_schema["title"].startswith("status.json")
    with pytest.raises(OptionError, match="expected one of"):
        schema_text("nonsense")


def test_an_estimate_counts_the_lps_that_a_run_solves(root: Path, tables: RunTables) -> None:
    limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 12}]}
    estimate = estimate_run(root / "cascade", "cascade", limit, workers=2)
    assert estimate.lps_per_iteration == tables.results.convergence["lp_solves"][5].as_py()
    assert estimate.lps_training == 12 * estimate.lps_per_iteration
    assert estimate.measured_iterations > 0
    assert estimate.training_s is not None
    assert estimate.training_with_workers_s == estimate.training_s / 2
    assert estimate_run(root / "cascade", "cascade", measure=False).seconds_per_lp is None


def test_a_run_compared_with_itself_has_no_differences(tables: RunTables) -> None:
    same = compare_runs(tables, tables, 10)
    assert same.sentences == ["The two runs have the same figures."]
    assert all(not each.change for each in same.quantities)
    assert same.truncated
    means = {
        (each.quantity, each.entity): each.a
        for each in compare_runs(tables, tables).quantities
        if each.stage is None
    }
    costs = tables.results.simulation("costs")
    expected = np.sum(costs["discount_factor"].to_numpy() * costs["stage_cost"].to_numpy()) / 24
    assert means[("stage_cost", "")] == pytest.approx(expected)


def test_a_run_that_did_not_fail_says_so(tables: RunTables) -> None:
    told = explain_failure(tables.run, tables.results)
    assert not told.failed
    assert told.summary == "The run did not fail: its state is finished."


def infeasible() -> Problem:
    """Two stages: what the first leaves is too little for the second, if the loss is large."""

    def stage(sp: Any, number: int) -> None:
        volume = sp.state("volume", initial=10.0, upper=10.0)
        used = sp.variable("used", upper=8.0)
        loss = sp.noise([0.0, 9.0], name="loss") if number == 2 else 0.0
        sp.add(volume.out == volume.in_ - used - loss, "balance")
        sp.minimise(-used)

    return build(Graph.linear(2), stage, lower_bound=-100.0)


def test_a_run_that_failed_is_explained_from_its_bundle(tmp_path: Path) -> None:
    """The row and the bounds that cannot hold together are named, as the run saw them and from its bundle."""
    with pytest.raises(SolverError):
        pycobre.train(infeasible(), {"iteration_limit": 2}, output=tmp_path / "run")
    run, results = find_run(tmp_path, "run")
    told = explain_failure(run, results)
    assert told.failed
    assert told.kind == "SolverError"
    assert told.bundle is not None
    assert (tmp_path / "run" / told.bundle).is_file()
    assert told.lp is not None
    assert told.lp["rows"] == 1
    assert told.conflict is not None
    assert told.rows == told.conflict.rows == ["balance"]
    assert told.conflict.columns
    assert told.stage == "2"
    assert told.incoming == {"volume.in": 2.0}
    assert "These cannot hold together: balance." in told.summary
    assert told.remedy is not None
    assert "pycobre replay" in told.remedy
    assert told.last_events[-1]["kind"] == "run_failed"
