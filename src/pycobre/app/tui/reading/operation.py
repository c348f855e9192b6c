"""Quantities of a finished run as quantile bands over the scenarios, by plant, bus or source, from its tables.

Only the columns of the quantity are read, and of very large tables only the first scenarios: what a picture of a
terminal shows does not need more.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.app.plot.summary import QUANTILES, cube_of
from pycobre.app.results.directory import Results, open_results
from pycobre.app.results.schemas import TABLES
from pycobre.app.tui.reading.numbers import text
from pycobre.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Band", "Bands", "Quantity", "quantities", "read_bands"]

MOST_ROWS = 4_000_000
F64 = NDArray[np.float64]


@frozen(kw_only=True)
class Quantity:
    """What can be shown. `parts` are tables that are summed over their entities, one band for each."""

    title: str
    unit: str
    table: str = ""
    key: str = ""
    value: str = ""
    weigh: bool = True  #: blocks are averaged by their hours; else the last one counts
    stage: str = "stage_id"
    parts: tuple[tuple[str, Quantity], ...] = ()


@frozen()
class Band:
    """`values[q, stage]` are the quantiles of one entity."""

    name: str
    values: F64


@frozen(eq=False)
class Bands:
    """A quantity, read."""

    quantity: Quantity
    stages: tuple[str, ...]
    bands: tuple[Band, ...]
    note: str = ""  #: which part of the scenarios was read, where it is not all


def _quantity(title: str, unit: str, table: str, key: str, value: str, **more: Any) -> Quantity:
    return Quantity(title=title, unit=unit, table=table, key=key, value=value, **more)


_HYDRO = _quantity("Hydro generation", "MW", "hydros", "hydro_id", "generation_mw")
_THERMAL = _quantity("Thermal generation", "MW", "thermals", "thermal_id", "generation_mw")
_OTHERS = _quantity("Other sources", "MW", "non_controllables", "ncs_id", "generation_mw")
_DEFICIT = _quantity("Deficit", "MW", "buses", "bus_id", "deficit_mw")
_SOURCES = (("hydro", _HYDRO), ("thermal", _THERMAL), ("non-controllable", _OTHERS), ("deficit", _DEFICIT))
_ALL = (
    _quantity("Storage", "hm³", "hydros", "hydro_id", "storage_final_hm3", weigh=False),
    _quantity("Prices", "$/MWh", "buses", "bus_id", "marginal_cost"),
    Quantity(title="Generation by source", unit="MW", parts=_SOURCES),
    _DEFICIT,
    _HYDRO,
    _THERMAL,
    _OTHERS,
    _quantity("Spillage", "m³/s", "hydros", "hydro_id", "spilled_m3s"),
    _quantity("Inflow", "m³/s", "hydros", "hydro_id", "inflow_m3s"),
    _quantity("Exchange", "MW", "exchanges", "line_id", "net_mw"),
    _quantity("States", "", "states", "state_id", "value", weigh=False, stage="depth"),
    _quantity("Variables", "", "values", "column_id", "value", weigh=False, stage="depth"),
    _quantity("Stage cost", "", "paths", "", "stage_cost", weigh=False, stage="depth"),
)
_PATHS = {table.name: table.path for table in TABLES}


def quantities(directory: Path) -> list[Quantity]:
    """Those that the run has written tables of; raises `OutputError` where there are no results."""
    simulated = set(open_results(directory).simulated)
    return [
        each
        for each in _ALL
        if each.table in simulated or any(part.table in simulated for _, part in each.parts)
    ]


def read_bands(directory: Path, quantity: Quantity) -> Bands:
    """Read and reduce one quantity; raises `OutputError` for tables that cannot be read."""
    results = open_results(directory)
    notes: set[str] = set()
    if quantity.parts:
        there = [(name, part) for name, part in quantity.parts if part.table in results.simulated]
        stages: NDArray[Any] = np.empty(0)
        bands = []
        for name, part in there:
            _, stages, cube = _cube(results, part, notes)
            if cube.size and np.any(cube):
                bands.append(Band(name, np.quantile(cube.sum(axis=0), QUANTILES, axis=1)))
    else:
        entities, stages, cube = _cube(results, quantity, notes)
        names = _entity_names(results.metadata, quantity)
        found = np.quantile(cube, QUANTILES, axis=2) if cube.size else np.empty((5, 0, 0))
        bands = [Band(names.get(int(e), str(e)), found[:, i]) for i, e in enumerate(entities)]
    labels = {
        int(stage["id"]): text(stage["label"])
        for stage in results.metadata.get("stages", [])
        if quantity.stage == "stage_id"
    }
    said = tuple(labels.get(int(stage), str(stage + (quantity.stage == "depth"))) for stage in stages)
    return Bands(quantity, said, tuple(bands), "; ".join(sorted(notes)))


def _cube(results: Results, quantity: Quantity, notes: set[str]) -> tuple[NDArray[Any], NDArray[Any], F64]:
    """Entities, stages, and the values by entity, stage and scenario."""
    columns = [quantity.stage, "scenario_id", quantity.value]
    columns += [quantity.key] if quantity.key else []
    columns += ["hours"] if quantity.weigh else []
    table, complete = _read(results.directory / _PATHS[quantity.table], columns)
    if not complete:
        notes.add(f"the first {len(np.unique(table['scenario_id'].to_numpy())):,} scenarios")
    return cube_of(table, quantity.key, quantity.value, stage=quantity.stage, weigh=quantity.weigh)


def _read(path: Path, columns: list[str]) -> tuple[pa.Table, bool]:
    """The columns of a table, cut off after the last whole scenario where it is very large."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(path) as source:
            rows, kept = source.metadata.num_rows, 0
            if rows <= MOST_ROWS:
                return source.read(columns=columns, use_threads=False), True
            batches = []
            for batch in source.iter_batches(columns=columns, use_threads=False):
                batches.append(batch)
                kept += batch.num_rows
                if kept >= MOST_ROWS:
                    break
    except (OSError, pa.ArrowInvalid) as cause:
        raise OutputError(f"{path}: cannot read the table: {cause}") from cause
    table = pa.Table.from_batches(batches)
    scenario = table["scenario_id"].to_numpy()
    return table.slice(0, int(np.searchsorted(scenario, scenario[-1]))), False


def _entity_names(metadata: dict[str, Any], quantity: Quantity) -> dict[int, str]:
    if quantity.table == "states":
        return {i: text(name) for i, name in enumerate(metadata.get("states", []))}
    if quantity.table == "values":
        return {i: text(name) for i, name in enumerate(metadata.get("recorded", []))}
    if quantity.table == "paths":
        return {0: "all"}
    return {int(i): text(name) for i, name in metadata.get("entities", {}).get(quantity.table, [])}
