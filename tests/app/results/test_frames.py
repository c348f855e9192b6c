"""Frames and exports against the Parquet tables that they come from, by plain loops."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

import pycobre
from pycobre.app.results import export
from pycobre.app.results.directory import Results
from pycobre.app.results.export import export_tables
from pycobre.app.results.frame import Shape
from pycobre.app.results.schemas import Column
from pycobre.app.results.summaries import over_scenarios
from pycobre.app.results.workbook import Sheet, write_workbook
from pycobre.errors import OptionError, OutputError
from pycobre.problem import Graph, build

pytestmark = pytest.mark.xdist_group("answers")


@pytest.fixture
def results(root: Path) -> Results:
    return pycobre.open_results(root / "cascade" / "output")


def rows_of(results: Results, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(
        results.directory / "simulation" / f"{name}.parquet"
    ).to_pylist()
    return rows


def test_rows_have_names_dates_bus_and_units_beside_their_ids(results: Results) -> None:
    case = pycobre.load_case(results.directory.parent)
    plants = {plant.id: plant for plant in case.hydros}
    buses = {bus.id: bus.name for bus in case.buses}
    stages = {stage.id: stage for stage in case.stages}
    frame = results.frame("hydros", "arrow")
    plain = rows_of(results, "hydros")
    assert frame.num_rows == len(plain) > 0
    for found, row in zip(frame.to_pylist(), plain, strict=True):
        assert {name: found[name] for name in row} == row
        plant, stage = plants[row["hydro_id"]], stages[row["stage_id"]]
        assert found["hydro"] == plant.name
        assert found["bus"] == " + ".join(sorted({buses[group.bus_id] for group in plant.unit_groups}))
        assert found["stage"] == stage.start_date.strftime("%Y-%m")
        assert (found["start_date"], found["end_date"]) == (stage.start_date, stage.end_date)
    assert frame.schema.field("storage_final_hm3").metadata[b"unit"] == b"hm3"
    assert results.units("hydros")["generation_mw"] == "MW"
    line = results.frame("exchanges", "arrow").to_pylist()[0]
    assert (line["from_bus"], line["to_bus"]) == tuple(
        buses[end] for end in (case.lines[0].source_bus_id, case.lines[0].target_bus_id)
    )


def test_pandas_and_polars_hold_the_same_rows(results: Results) -> None:
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    pytest.importorskip("polars", reason="the extra frames is not installed")
    arrow = results.frame("thermals", "arrow")
    pandas, polars = results.frame("thermals"), results.frame("thermals", "polars")
    assert list(pandas.columns) == polars.columns == arrow.column_names
    assert polars.to_dicts() == arrow.to_pylist()
    assert pandas["generation_mw"].tolist() == arrow["generation_mw"].to_pylist()
    assert pandas["thermal"].tolist() == arrow["thermal"].to_pylist()
    assert pandas["start_date"].iloc[0].date() == arrow["start_date"][0].as_py()
    assert pandas.attrs["units"]["cost"] == "$"


def test_a_stage_is_made_of_its_blocks_by_the_rule_of_each_unit(results: Results) -> None:
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows_of(results, "hydros"):
        groups[row["scenario_id"], row["stage_id"], row["hydro_id"]].append(row)
    found = results.frame("hydros", "arrow", per="stage").to_pylist()
    assert len(found) == len(groups)
    for row in found:
        blocks = sorted(
            groups[row["scenario_id"], row["stage_id"], row["hydro_id"]], key=lambda each: each["block_id"]
        )
        hours = sum(each["hours"] for each in blocks)
        assert row["hours"] == pytest.approx(hours)
        assert row["storage_initial_hm3"] == blocks[0]["storage_initial_hm3"]
        assert row["storage_final_hm3"] == blocks[-1]["storage_final_hm3"]
        for name in ("generation_mw", "turbined_m3s", "water_value"):
            mean = sum(each[name] * each["hours"] for each in blocks) / hours
            assert row[name] == pytest.approx(mean, rel=1e-12, abs=1e-12), name
    costs: dict[Any, float] = defaultdict(float)
    for row in rows_of(results, "thermals"):
        costs[row["scenario_id"], row["stage_id"], row["thermal_id"]] += row["cost"]
    for row in results.frame("thermals", "arrow", per="stage").to_pylist():
        assert row["cost"] == pytest.approx(costs[row["scenario_id"], row["stage_id"], row["thermal_id"]])


def test_quantiles_are_those_of_numpy(results: Results) -> None:
    groups: dict[Any, list[float]] = defaultdict(list)
    for row in rows_of(results, "buses"):
        groups[row["stage_id"], row["block_id"], row["bus_id"]].append(row["marginal_cost"])
    levels = {"p10": 0.1, "p50": 0.5, "p97.5": 0.975}
    frame = results.frame("buses", "arrow", quantiles=tuple(levels.values())).to_pylist()
    assert len(frame) == 4 * len(groups)
    for row in frame:
        values = groups[row["stage_id"], row["block_id"], row["bus_id"]]
        statistic = row["statistic"]
        expected = np.mean(values) if statistic == "mean" else np.quantile(values, levels[statistic])
        assert row["marginal_cost"] == pytest.approx(expected, rel=1e-12)


def test_scenarios_of_unequal_probability_count_by_it() -> None:
    described = {
        "scenario_id": Column("scenario_id", "int32", "", ""),
        "x": Column("x", "float64", "MW", ""),
    }
    columns: dict[str, Any] = {"scenario_id": np.arange(3, dtype=np.int32), "x": np.array([30.0, 10.0, 20.0])}
    found, words = over_scenarios(columns, described, (0.5, 0.6, 1.0), {0: 0.2, 1: 0.5, 2: 0.3})
    assert words == ["mean", "p50", "p60", "p100"]
    assert found["x"].tolist() == pytest.approx([17.0, 10.0, 20.0, 30.0])


@pytest.mark.parametrize("total", ["bus", "system"])
def test_totals_add_up_plants(results: Results, total: Any) -> None:
    case = pycobre.load_case(results.directory.parent)
    buses = {bus.id: bus.name for bus in case.buses}
    bus_of = {plant.id: buses[plant.bus_id] for plant in case.thermals}
    sums: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows_of(results, "thermals"):
        where = bus_of[row["thermal_id"]] if total == "bus" else ""
        entry = sums[row["scenario_id"], row["stage_id"], row["block_id"], where]
        entry[0] += row["generation_mw"]
        entry[1] += row["cost"]
    found = results.frame("thermals", "arrow", total=total).to_pylist()
    assert len(found) == len(sums)
    for row in found:
        key = (row["scenario_id"], row["stage_id"], row["block_id"], row.get("bus", ""))
        assert [row["generation_mw"], row["cost"]] == pytest.approx(sums[key])


def test_the_energy_balance_closes_on_every_bus(results: Results) -> None:
    hydro = sum(row["generation_mw"] * row["hours"] for row in rows_of(results, "hydros"))
    rows = results.frame("balance", "arrow").to_pylist()
    for row in rows:
        given = row["hydro_mw"] + row["thermal_mw"] + row["source_mw"] + row["import_mw"] + row["exchange_mw"]
        taken = row["load_mw"] + row["export_mw"] + row["pumping_mw"] + row["excess_mw"]
        assert given + row["deficit_mw"] == pytest.approx(taken, abs=1e-6)
    assert sum(row["hydro_mw"] * row["hours"] for row in rows) == pytest.approx(hydro)
    assert any(row["exchange_mw"] for row in rows)


def test_csv_files_read_back_to_the_tables(results: Results, tmp_path: Path) -> None:
    written = export_tables(results, "csv", tmp_path)
    assert {name for _, name, _ in written} == {*results.simulated, "balance", "convergence"}
    with (tmp_path / "hydros.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert "storage_final_hm3 [hm3]" in header
    assert "hydro" in header
    plain = rows_of(results, "hydros")
    at = {name.partition(" [")[0]: place for place, name in enumerate(header)}
    assert len(rows) == len(plain)
    for text, row in zip(rows, plain, strict=True):
        assert {name: float(text[at[name]]) for name in row} == row
    assert date.fromisoformat(rows[0][at["start_date"]])


def test_a_workbook_reads_back_to_the_frames(results: Results, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra frames is not installed")
    target = tmp_path / "tables.xlsx"
    shape = Shape("stage", "", (0.1,))
    export_tables(results, "xlsx", target, (), shape)
    book = openpyxl.load_workbook(target, read_only=True)
    assert book.sheetnames[0] == "columns"
    header, *rows = book["hydros"].iter_rows(values_only=True)
    frame = results.frame("hydros", "arrow", per="stage", quantiles=(0.1,))
    names = [name.partition(" [")[0] for name in header]
    assert names == frame.column_names
    for found, row in zip(rows, frame.to_pylist(), strict=True):
        for name, value in zip(names, found, strict=True):
            expected = row[name]
            assert (value.date() if isinstance(expected, date) else value) == expected


def test_totals_are_exported_where_there_are_any(results: Results, tmp_path: Path) -> None:
    rows = {name: rows for _, name, rows in export_tables(results, "csv", tmp_path, (), Shape(total="bus"))}
    assert rows["thermals"] == rows["balance"] == rows["buses"]
    assert rows["exchanges"] == len(rows_of(results, "exchanges"))
    assert rows["costs"] == len(rows_of(results, "costs"))


def test_states_of_a_problem_have_names_and_quantiles(tmp_path: Path) -> None:
    def stage(sp: Any, number: int) -> None:
        volume = sp.state("volume", initial=10.0, upper=10.0)
        used = sp.variable("used", upper=4.0)
        loss = sp.noise([0.0, 1.0], name="loss")
        sp.add(volume.out == volume.in_ - used - loss, "balance")
        sp.minimise(-used)

    problem = build(Graph.linear(2), stage, lower_bound=-100.0)
    policy = pycobre.train(problem, {"iteration_limit": 2}, output=tmp_path).policy
    pycobre.simulate(problem, policy, 4, output=tmp_path)
    results = pycobre.open_results(tmp_path)
    rows = results.frame("states", "arrow", quantiles=(0.5,)).to_pylist()
    assert [(row["depth"], row["state"], row["statistic"]) for row in rows] == [
        (depth, "volume", statistic) for depth in (0, 1) for statistic in ("mean", "p50")
    ]
    values = results.simulation("states").to_pylist()
    assert rows[0]["value"] == pytest.approx(np.mean([row["value"] for row in values if row["depth"] == 0]))


def test_text_in_a_workbook_is_never_a_formula(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra frames is not installed")
    path = tmp_path / "book.xlsx"
    path.write_bytes(write_workbook([Sheet("a", ["=1+1"], [["=2+2"], [float("nan")]])]))
    page = openpyxl.load_workbook(path)["a"]
    assert [page["A1"].data_type, page["A2"].data_type] == ["s", "s"]
    assert (page["A2"].value, page["A3"].value) == ("=2+2", None)


@pytest.mark.parametrize(
    ("ask", "kind", "text"),
    [
        (lambda r: r.frame("hydro"), OutputError, "got 'hydro'. Did you mean 'hydros'?"),
        (lambda r: r.frame("hydros", "excel"), OptionError, "expected one of pandas, polars, arrow"),
        (lambda r: r.frame("hydros", quantiles=(10,)), OptionError, "expected numbers from 0 to 1, got 10"),
        (lambda r: r.frame("hydros", per="month"), OptionError, "expected 'block' or 'stage', got 'month'"),
        (lambda r: r.frame("costs", total="system"), OptionError, "expected a table of plants"),
        (lambda r: r.frame("exchanges", total="bus"), OptionError, "Ask for total='system'."),
        (lambda r: r.frame("convergence", per="stage"), OptionError, "which are for simulated tables"),
    ],
)
def test_what_cannot_be_had_is_said(
    results: Results, ask: Callable[[Results], object], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        ask(results)
    assert text in str(caught.value)


def test_a_table_too_long_for_a_sheet_is_refused(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "LARGEST_SHEET", 10)
    with pytest.raises(OutputError, match=r"at most 9 rows.*--per stage --quantiles"):
        export_tables(results, "xlsx", tmp_path / "tables.xlsx", ("hydros",))
    assert not list(tmp_path.iterdir())
