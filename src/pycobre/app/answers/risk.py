"""How likely load is shed and reservoirs are empty, scenario by scenario."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.app.answers.answer_records import DeficitRisk, ReservoirLevel, ReservoirRisk, StageRisk
from pycobre.app.answers.grouping import sums
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.table_scan import Columns, Comparison
from pycobre.app.results.files import read_json
from pycobre.app.results.layout import STUDY
from pycobre.errors import OptionError

__all__ = ["deficit_risk", "reservoir_risk"]

LARGEST = 4_000_000
"""Scenarios times stages that are held at once."""


def deficit_risk(tables: RunTables, bus: str | int | None = None, threshold_mwh: float = 0.0) -> DeficitRisk:
    """Energy not served by stage: how likely more than `threshold_mwh`, how much on average and at worst."""
    name, where = "all buses", []
    if bus is not None:
        number, name = tables.entity("buses", bus)
        where = [Comparison("bus_id", "==", (float(number),))]
    table = tables.open("buses")
    grid = _Grid(table.span("scenario_id"), table.span("stage_id"))
    energy = np.zeros(grid.cells)

    def reduce(columns: Columns) -> F64:
        return sums(grid.at(columns), columns["deficit_mw"] * columns["hours"], grid.cells)

    for part in table.reduced(("scenario_id", "stage_id", "hours", "deficit_mw"), where, reduce):
        energy += part
    shed = energy.reshape(grid.shape)
    short = shed > max(threshold_mwh, 1e-6)
    total = np.sort(shed.sum(axis=1))
    worst = max(1, round(0.05 * len(total)))
    return DeficitRisk(
        run=tables.run,
        bus=name,
        threshold_mwh=threshold_mwh,
        scenarios=grid.shape[0],
        probability_any=float(short.any(axis=1).mean()),
        eens_mwh=float(total.mean()),
        cvar95_mwh=float(total[-worst:].mean()),
        stages=[
            StageRisk(
                stage=grid.stages[0] + t,
                probability=float(short[:, t].mean()),
                mean_mwh=float(shed[:, t].mean()),
                p95_mwh=float(np.quantile(shed[:, t], 0.95)),
                worst_mwh=float(shed[:, t].max()),
                worst_scenario=grid.scenarios[0] + int(shed[:, t].argmax()),
            )
            for t in range(grid.shape[1])
        ],
        sources=[tables.source("buses")],
    )


def reservoir_risk(
    tables: RunTables, plant: str | int | None = None, level_percent: float = 20.0
) -> ReservoirRisk:
    """Storage at the end of each stage: how likely below a level, in percent of the usable volume.

    Without `plant` the storages of all reservoirs are added.
    """
    if not 0.0 <= level_percent <= 100.0:
        raise OptionError(f"level_percent: expected 0 to 100, got {level_percent}.")
    name, where = "all reservoirs", []
    limits = _reservoirs(tables)
    if plant is not None:
        number, name = tables.entity("hydros", plant)
        where = [Comparison("hydro_id", "==", (float(number),))]
        limits = {number: limits[number]}
    low = sum(each[0] for each in limits.values())
    high = sum(each[1] for each in limits.values())
    level = low + level_percent / 100.0 * (high - low)
    table = tables.open("hydros")
    grid = _Grid(table.span("scenario_id"), table.span("stage_id"))
    last = _last_blocks(tables)
    stored = np.zeros(grid.cells)

    def reduce(columns: Columns) -> F64:
        ends = columns["block_id"] == last[columns["stage_id"] - grid.stages[0]]
        chosen = {key: column[ends] for key, column in columns.items()}
        return sums(grid.at(chosen), chosen["storage_final_hm3"], grid.cells)

    wanted = ("scenario_id", "stage_id", "block_id", "storage_final_hm3")
    for part in table.reduced(wanted, where, reduce):
        stored += part
    storage = stored.reshape(grid.shape)
    below = storage < level - 1e-9 * max(1.0, abs(level))
    return ReservoirRisk(
        run=tables.run,
        plant=name,
        level_hm3=float(level),
        scenarios=grid.shape[0],
        probability_any=float(below.any(axis=1).mean()),
        stages=[
            ReservoirLevel(
                stage=grid.stages[0] + t,
                probability_below=float(below[:, t].mean()),
                p05_hm3=float(np.quantile(storage[:, t], 0.05)),
                p50_hm3=float(np.quantile(storage[:, t], 0.5)),
                p95_hm3=float(np.quantile(storage[:, t], 0.95)),
                lowest_hm3=float(storage[:, t].min()),
                lowest_scenario=grid.scenarios[0] + int(storage[:, t].argmin()),
            )
            for t in range(grid.shape[1])
        ],
        sources=[tables.source("hydros")],
    )


class _Grid:
    """Scenarios by stages."""

    def __init__(self, scenarios: tuple[int, int], stages: tuple[int, int]) -> None:
        self.scenarios, self.stages = scenarios, stages
        self.shape = (scenarios[1] - scenarios[0] + 1, stages[1] - stages[0] + 1)
        self.cells = self.shape[0] * self.shape[1]
        if self.cells > LARGEST:
            raise OptionError(
                f"risk: expected at most {LARGEST:,} scenarios times stages, got {self.cells:,}. "
                "Use query_table with filters."
            )

    def at(self, columns: Columns) -> NDArray[np.int64]:
        """The cell of every row."""
        scenario = columns["scenario_id"].astype(np.int64) - self.scenarios[0]
        cells: NDArray[np.int64] = scenario * self.shape[1] + (columns["stage_id"] - self.stages[0])
        return cells


def _last_blocks(tables: RunTables) -> NDArray[np.int64]:
    """The last block of every stage: where blocks follow each other, storage at its end is that of the stage."""
    table = tables.open("hydros")
    low, high = table.span("stage_id")
    last = np.full(high - low + 1, -1, np.int64)
    first = [Comparison("scenario_id", "==", (float(table.span("scenario_id")[0]),))]

    def reduce(columns: Columns) -> NDArray[np.int64]:
        found = np.full(high - low + 1, -1, np.int64)
        np.maximum.at(found, columns["stage_id"] - low, columns["block_id"])
        return found

    for part in table.reduced(("stage_id", "block_id"), first, reduce):
        last = np.maximum(last, part)
    return last


def _reservoirs(tables: RunTables) -> dict[int, tuple[float, float]]:
    """Least and largest storage by plant, as the run noted them."""
    system = read_json(tables.results.directory / STUDY).get("system", {})
    return {
        int(each["id"]): (float(each["min_storage_hm3"]), float(each["max_storage_hm3"]))
        for each in system.get("hydros", [])
    }
