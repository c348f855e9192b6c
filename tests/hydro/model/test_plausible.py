"""Cases that can be computed with and are hardly meant so: each has its sentence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from small_case import config, hydro, loads, one_reservoir, penalties, productivity, stages

from pycobre.hydro.checks import check_case
from pycobre.hydro.files import validate, write_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.model.scenarios import LoadStats

PERIODS = stages(2)
STAGES = "warning [{}] stages.json: stage {}: "


def moved(days: int) -> Case:
    """The second stage starts days later than the first ends."""
    first, second = PERIODS
    start = second.start_date + timedelta(days)
    return one_reservoir((first, replace(second, start_date=start)))


def long_month() -> Case:
    first, second = PERIODS
    return one_reservoir((replace(first, blocks=(replace(first.blocks[0], hours=1349.0),)), second))


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (
            one_reservoir(load_stats=LoadStats.empty()),
            "warning [no_load] scenarios/load_seasonal_stats.parquet: "
            "buses have a load: without this file it is 0 everywhere.",
        ),
        (
            moved(3),
            STAGES.format("stage_gap", 1)
            + "a stage starts when the one before ends, on 2024-02-01, got 2024-02-04.",
        ),
        (
            moved(-3),
            STAGES.format("stage_overlap", 1)
            + "a stage starts when the one before ends, on 2024-02-01, got 2024-01-29.",
        ),
        (
            long_month(),
            STAGES.format("stage_hours", 0)
            + "blocks have the 744 hours from 2024-01-01 to 2024-02-01, got 1349.",
        ),
        (
            one_reservoir(load_stats=loads(PERIODS, {0: 80000.0})),
            "warning [load_magnitude] scenarios/load_seasonal_stats.parquet: stage 0: load is in MW, and plants "
            "can give 150 MW together, got 80000 MW.",
        ),
        (
            one_reservoir(production_models=productivity(hydro(0), value=1000.0)),
            "warning [productivity_magnitude] system/hydro_production_models.json: hydro 0: a productivity is in "
            "MW per m³/s, and no head gives more than 20, got 1000.",
        ),
        (
            one_reservoir(config=config("penalty"), penalties=penalties(inflow_nonnegativity_cost=900.0)),
            "warning [cheap_water] penalties.json: hydro.inflow_nonnegativity_cost: hydro 0: "
            "inflow_nonnegativity_cost is at least what the water saves in deficit, 1000 per m³/s and hour, got 900. "
            "A plan may create water instead of shedding load; look at inflow_slack_m3s.",
        ),
    ],
    ids=["no load", "gap", "overlap", "hours", "load", "productivity", "water"],
)
def test_each_trap_has_its_sentence(case: Case, sentence: str) -> None:
    assert sentence in [str(finding) for finding in check_case(case)]


def test_an_ordinary_case_has_none_of_them() -> None:
    assert check_case(one_reservoir()) == []


def test_a_table_in_another_format_is_not_passed_over(tmp_path: Path) -> None:
    write_case(one_reservoir(), tmp_path / "case")
    table = tmp_path / "case" / "scenarios" / "load_seasonal_stats.parquet"
    table.with_suffix(".csv").write_text("bus_id,stage_id,mean_mw,std_mw\n")
    said = {f.severity: str(f) for f in validate(tmp_path / "case") if f.kind == "unknown_file"}
    place = "[unknown_file] scenarios/load_seasonal_stats.csv: the file is not read: expected "
    assert said == {Severity.WARNING: f"warning {place}scenarios/load_seasonal_stats.parquet."}
    table.unlink()
    said = {f.severity: str(f) for f in validate(tmp_path / "case") if f.kind == "unknown_file"}
    expected = f"error {place}scenarios/load_seasonal_stats.parquet. Write it in that format."
    assert said == {Severity.ERROR: expected}
