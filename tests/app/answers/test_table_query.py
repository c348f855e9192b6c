"""`query_table` against NumPy on the whole table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from numpy.typing import NDArray

from pycobre.app.answers.answer_records import Aggregate, Filter
from pycobre.app.answers.grouping import FUNCTIONS, Measure, grouped
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.table_query import query_table
from pycobre.app.answers.table_scan import Comparison, TableFile
from pycobre.errors import OptionError

pytestmark = pytest.mark.xdist_group("answers")

NUMPY: dict[str, Callable[[Any], Any]] = {
    "mean": np.mean,
    "sum": np.sum,
    "min": np.min,
    "max": np.max,
    "count": len,
    "std": lambda values: np.std(values, ddof=1),
    "quantile": lambda values: np.quantile(values, 0.9),
}


@pytest.mark.parametrize("pieces", [1, 7, 100_000])
def test_every_aggregate_is_that_of_numpy_however_the_file_is_cut(tmp_path: Path, pieces: int) -> None:
    random = np.random.default_rng(3)
    rows = 5000
    columns: dict[str, NDArray[Any]] = {
        "stage_id": random.integers(-2, 5, rows).astype(np.int32),
        "plant_id": random.integers(3, 9, rows).astype(np.int32),
        "value": random.normal(1e6, 3.0, rows),
        "hours": random.uniform(1.0, 9.0, rows),
    }
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=max(1, rows // pieces))
    measures = [Measure(name, "" if name == "count" else "value", 0.9) for name in FUNCTIONS]
    measures.append(Measure("sum", "value", weight="hours"))
    where = [Comparison("stage_id", ">=", (0.0,)), Comparison("plant_id", "in", (3.0, 4.0, 8.0))]
    keys, values, read = grouped(TableFile(path), ("stage_id", "plant_id"), measures, where)
    mask = (columns["stage_id"] >= 0) & np.isin(columns["plant_id"], [3, 4, 8])
    assert read == mask.sum()
    expected = sorted(
        set(zip(columns["stage_id"][mask].tolist(), columns["plant_id"][mask].tolist(), strict=True))
    )
    assert list(zip(keys["stage_id"].tolist(), keys["plant_id"].tolist(), strict=True)) == expected
    for place, (stage, plant) in enumerate(expected):
        own = mask & (columns["stage_id"] == stage) & (columns["plant_id"] == plant)
        for name, found in zip(FUNCTIONS, values, strict=False):
            assert found[place] == pytest.approx(NUMPY[name](columns["value"][own]), rel=1e-9), name
        weighted = (columns["value"][own] * columns["hours"][own]).sum()
        assert values[-1][place] == pytest.approx(weighted, rel=1e-12)


def test_the_answer_has_the_same_bits_every_time(tables: RunTables) -> None:
    aggregates = [Aggregate("mean", "storage_final_hm3"), Aggregate("std", "inflow_m3s")]
    answers = {
        str(query_table(tables, "hydros", group_by=("stage_id",), aggregates=aggregates).rows)
        for _ in range(5)
    }
    assert len(answers) == 1


def test_rows_are_filtered_by_name_ordered_and_limited(tables: RunTables) -> None:
    found = query_table(
        tables,
        "hydros",
        columns=("scenario_id", "stage_id", "storage_final_hm3"),
        where=[
            Filter("hydro_id", "==", "springs"),
            Filter("stage_id", "==", "2026-03"),
            Filter("block_id", "==", 0),
        ],
        order_by="storage_final_hm3",
        descending=True,
        limit=5,
    )
    table = tables.results.simulation("hydros").to_pydict()
    own = [
        (table["scenario_id"][i], table["storage_final_hm3"][i])
        for i in range(len(table["stage_id"]))
        if table["hydro_id"][i] == 0 and table["stage_id"][i] == 2 and table["block_id"][i] == 0
    ]
    own.sort(key=lambda each: (-each[1], each[0]))
    assert [(row[0], row[2]) for row in found.rows] == own[:5]
    assert (found.total, found.truncated) == (len(own), True)
    assert found.names["stage_id"] == {"2": "2026-03"}
    (source,) = found.sources
    assert source.digest == tables.results.files["simulation/hydros.parquet"]["sha256"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"table": "nonsense"}, "There are: convergence"),
        ({"columns": ("storage",)}, "there is no column 'storage'"),
        ({"where": [Filter("hydro_id", "==", "Sprngs")]}, "Did you mean 'Springs'"),
        ({"where": [Filter("hydro_id", "like", 1)]}, "expected one of ==, !="),
        ({"where": [Filter("hydro_id", "==", [1, 2])]}, "Use the op 'in'"),
        ({"where": [Filter("stage_id", "==", "2026")]}, "a label of several stages"),
        ({"aggregates": [Aggregate("median", "inflow_m3s")]}, "there is no function 'median'"),
        ({"aggregates": [Aggregate("quantile", "inflow_m3s", 1.5)]}, "expected q from 0 to 1"),
        ({"group_by": ("inflow_m3s",)}, "expected a column of ids"),
        ({"group_by": ("stage_id",), "columns": ("stage_id",)}, "expected none with group_by"),
        ({"limit": 0}, "expected 1 to 5000"),
        ({"order_by": "nothing"}, "there is no column 'nothing'"),
    ],
)
def test_a_question_that_makes_no_sense_says_what_would(
    tables: RunTables, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        query_table(tables, **({"table": "hydros"} | arguments))  # type: ignore[arg-type]


def test_too_many_groups_are_refused(tables: RunTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pycobre.app.answers.grouping.LARGEST_GRID", 10)
    with pytest.raises(OptionError, match="expected at most 10 groups"):
        query_table(tables, "hydros", group_by=("scenario_id", "stage_id"))


def test_a_quantile_of_too_many_rows_is_refused(tables: RunTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pycobre.app.answers.grouping.MOST_COLLECTED", 10)
    with pytest.raises(OptionError, match="Add filters"):
        query_table(tables, "hydros", aggregates=[Aggregate("quantile", "inflow_m3s", 0.5)])
