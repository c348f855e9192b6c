"""Errors of changes against NumPy on the tables, and stages of two months beside each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

import pycobre
from pycobre.app.answers.case_differences import diff_cases
from pycobre.app.answers.run_comparison import compare_runs
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.significance import Sample, standard_error
from pycobre.hydro.files import load_case

pytestmark = pytest.mark.xdist_group("answers")

COST = ("cost", "stage_cost", "", None, "$")


def sample(
    values: list[float], inflows: list[float] | None, probability: list[float] | None = None
) -> Sample:
    return Sample(
        {COST: np.array(values)},
        None if inflows is None else np.array(inflows),
        None if probability is None else np.array(probability),
    )


def test_the_error_is_that_of_differences_where_scenarios_are_the_same() -> None:
    a, b = [10.0, 20.0, 60.0], [11.0, 22.0, 61.0]
    water = [1.0, 2.0, 3.0]
    paired = standard_error(COST, sample(a, water), sample(b, water))
    assert paired == pytest.approx(np.std([1.0, 2.0, 1.0], ddof=1) / np.sqrt(3))
    apart = standard_error(COST, sample(a, water), sample(b, [3.0, 2.0, 1.0]))
    assert apart == pytest.approx(np.sqrt(np.var(a, ddof=1) / 3 + np.var(b, ddof=1) / 3))
    exact = standard_error(COST, sample(a, water, [0.2, 0.3, 0.5]), sample(b, None))
    assert exact == pytest.approx(np.std(b, ddof=1) / np.sqrt(3))
    every = sample(a, water, [0.2, 0.3, 0.5])
    assert standard_error(COST, every, every) == 0.0
    assert dict(every.means()) == {COST: pytest.approx(38.0)}
    assert standard_error(COST, sample([1.0], None), sample([2.0], None)) is None
    assert standard_error(COST, sample(a, None), Sample({}, None, None)) is None


@pytest.fixture(scope="module")
def other(root: Path, tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    """The same scenarios of a policy that was trained less."""
    settings = {
        "training.stopping_rules": [{"type": "iteration_limit", "limit": 2}],
        "simulation.selection.num_scenarios": 24,
    }
    output = tmp_path_factory.mktemp("other") / "output"
    pycobre.start(root / "cascade", settings, output=output).result(timeout=300)
    return RunTables("other", pycobre.open_results(output))


def per_scenario(tables: RunTables) -> Any:
    rows = parquet.read_table(tables.results.directory / "simulation" / "costs.parquet").to_pylist()
    cost = np.zeros(24)
    for row in rows:
        cost[row["scenario_id"]] += row["stage_cost"] * row["discount_factor"]
    return cost


def test_a_worse_policy_costs_more_by_what_its_scenarios_say(tables: RunTables, other: RunTables) -> None:
    found = {each.quantity: each for each in compare_runs(tables, other).quantities if each.group == "cost"}
    more = per_scenario(other) - per_scenario(tables)
    row = found["total cost: mean"]
    assert row.error == pytest.approx(np.std(more, ddof=1) / np.sqrt(24))
    assert row.change == pytest.approx(more.mean(), rel=1e-6)
    assert row.significant == (abs(more.mean()) > 1.96 * np.std(more, ddof=1) / np.sqrt(24))


def test_stages_of_two_months_are_matched_by_their_day(tables: RunTables) -> None:
    stages = tables.results.metadata["stages"]
    # The second study begins a month later: its stage 0 is the first one's stage 1.
    later = [{**each, "id": each["id"] - 1} for each in stages]
    moved = RunTables("moved", replace(tables.results, metadata={**tables.results.metadata, "stages": later}))
    rows = {
        each.stage: each
        for each in compare_runs(tables, moved, 100_000).quantities
        if (each.quantity, each.entity) == ("mean storage", "all reservoirs")
    }
    assert rows[3].b == rows[2].a
    assert rows[0].b is None


def test_differences_name_the_months_that_they_are_about(root: Path) -> None:
    case = load_case(root / "cascade")
    load = case.load_stats
    mean = load.mean_mw.copy()
    mean[(load.bus_id == case.buses[0].id) & np.isin(load.stage_id, [2, 3, 4])] += 5.0
    mean[(load.bus_id == case.buses[1].id) & (load.stage_id == 6)] += 5.0
    found = diff_cases(case, replace(case, load_stats=replace(load, mean_mw=mean)), ("a", "b"))
    months = [stage.start_date.isoformat()[:7] for stage in case.stages]
    assert [each.when for each in found.differences] == [f"{months[2]} to {months[4]}", months[6]]
    assert f"({months[2]} to {months[4]}): mean_mw" in found.sentences[0]
