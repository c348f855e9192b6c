"""What the report shows, as plain numbers: quantile bands by plant and stage, cost samples, timing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.app.plot.inflow import InflowPicture, inflow_picture
from pycobre.app.results.directory import Results
from pycobre.sddp.timing import sums_by_rank

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["QUANTILES", "Band", "Summary", "cube_of", "summarise"]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Band:
    """Quantiles over the scenarios for every stage: `values[q, stage]`, of one entity."""

    entity: int
    name: str
    values: F64


@dataclass(frozen=True)
class Summary:
    """Everything the pictures need; a part is empty where the run did not write its table."""

    metadata: dict[str, Any]
    stages: list[str]
    convergence: dict[str, F64]
    scenario_costs: F64
    cost_parts: dict[str, F64]
    storage: list[Band]
    hydro_generation: list[Band]
    thermal_generation: list[Band]
    marginal_cost: list[Band]
    timing: dict[str, F64]
    inflow: InflowPicture = field(default_factory=InflowPicture)


def summarise(results: Results, only: Collection[str] | None = None) -> Summary:
    """Read the tables of a run, or `only` some of them, and reduce them to what the report draws."""
    metadata = results.metadata
    simulated = [name for name in results.simulated if only is None or name in only]
    entities = metadata.get("entities", {})
    scenario_costs, cost_parts, stages = _costs(results) if "costs" in simulated else (np.empty(0), {}, [])

    def bands(table: str, key: str, value: str, *, weigh: bool) -> list[Band]:
        if table not in simulated:
            return []
        names = {int(i): str(name) for i, name in entities.get(table, [])}
        return _bands(results.simulation(table), key, value, names, weigh=weigh)

    labels = {int(stage["id"]): str(stage["label"]) for stage in metadata.get("stages", [])}
    return Summary(
        metadata=metadata,
        stages=[labels.get(stage, str(stage)) for stage in stages],
        convergence=_columns(results.convergence) if results.trained else {},
        scenario_costs=scenario_costs,
        cost_parts=cost_parts,
        storage=bands("hydros", "hydro_id", "storage_final_hm3", weigh=False),
        hydro_generation=bands("hydros", "hydro_id", "generation_mw", weigh=True),
        thermal_generation=bands("thermals", "thermal_id", "generation_mw", weigh=True),
        marginal_cost=bands("buses", "bus_id", "marginal_cost", weigh=True),
        timing=_timing(_columns(results.timing)) if results.trained else {},
        inflow=inflow_picture(results),
    )


def _columns(table: pa.Table) -> dict[str, F64]:
    return {name: table[name].to_numpy().astype(np.float64) for name in table.column_names}


def _costs(results: Results) -> tuple[F64, dict[str, F64], list[int]]:
    """Discounted total per scenario, mean of every part of the cost per stage, and the stages."""
    columns = _columns(results.simulation("costs"))
    scenarios, scenario_at = np.unique(columns["scenario_id"], return_inverse=True)
    stages, stage_at = np.unique(columns["stage_id"], return_inverse=True)
    total = _sums(scenario_at, columns["discount_factor"] * columns["stage_cost"], scenarios.size)
    parts = {}
    for name, values in columns.items():
        if name.endswith("_cost") and name not in ("stage_cost", "future_cost"):
            mean = _sums(stage_at, values, stages.size) / max(1, scenarios.size)
            if np.any(mean != 0.0):
                parts[name.removesuffix("_cost")] = mean
    return total, parts, [int(stage) for stage in stages]


def cube_of(
    table: pa.Table, key: str, value: str, *, stage: str = "stage_id", weigh: bool
) -> tuple[NDArray[Any], NDArray[Any], F64]:
    """Entities, stages, and a value by entity, stage and scenario.

    Blocks are averaged by their hours, or the last one is taken. An empty `key` is a table without entities.
    """
    scenario = table["scenario_id"].to_numpy()
    entity = table[key].to_numpy() if key else np.zeros(len(scenario), np.int64)
    entities, entity_at = np.unique(entity, return_inverse=True)
    scenarios, scenario_at = np.unique(scenario, return_inverse=True)
    stages, stage_at = np.unique(table[stage].to_numpy(), return_inverse=True)
    values = table[value].to_numpy()
    shape = (entities.size, stages.size, scenarios.size)
    if not values.size:
        return entities, stages, np.zeros(shape)
    cell = np.ravel_multi_index((entity_at, stage_at, scenario_at), shape)
    if weigh:
        hours = table["hours"].to_numpy()
        count = int(np.prod(shape))
        weight = np.maximum(_sums(cell, hours, count), 1e-300)
        return entities, stages, (_sums(cell, values * hours, count) / weight).reshape(shape)
    cube = np.zeros(shape)
    cube.reshape(-1)[cell] = values
    return entities, stages, cube


def _bands(table: pa.Table, key: str, value: str, names: dict[int, str], *, weigh: bool) -> list[Band]:
    """Quantiles over scenarios per entity and stage."""
    entities, _, cube = cube_of(table, key, value, weigh=weigh)
    quantiles = np.quantile(cube, QUANTILES, axis=2)
    return [
        Band(int(number), names.get(int(number), str(number)), quantiles[:, i])
        for i, number in enumerate(entities)
    ]


def _timing(columns: dict[str, F64]) -> dict[str, F64]:
    """Seconds per rank, summed over the iterations."""
    ranks = sums_by_rank(columns)
    parts = ("rank", "solve_s", "communicate_s", "wait_s", "other_s")
    return {name: np.array([getattr(each, name) for each in ranks]) for name in parts}


def _sums(index: NDArray[np.intp], values: F64, count: int) -> F64:
    return np.bincount(index, values, count).astype(np.float64)
