"""Limits and penalties by stage and block, together with those of the entities they replace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from pycobre.hydro.checks.registry import Findings, HasId, StageTable, check, error
from pycobre.hydro.model.constraints import (
    BusPenaltyTable,
    ContractBounds,
    FphaPlanes,
    HydroBounds,
    HydroPenaltyTable,
    LineBounds,
    LinePenaltyTable,
    PumpingBounds,
    SourceBounds,
    SourcePenaltyTable,
    ThermalBounds,
    UnitGroupBounds,
)
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.system import EnergyContract, Hydro, PumpingStation, Thermal
from pycobre.hydro.model.table import F64, NO_ID

E = TypeVar("E", bound=HasId)

_MAY_BE_NEGATIVE = ("water_withdrawal_m3s", "price_per_mwh")


def _negative(section: str, table: StageTable, key: str) -> Findings:
    for name, values in vars(table).items():
        if values.dtype.kind != "f" or name in _MAY_BE_NEGATIVE:
            continue
        for row in np.flatnonzero(values < 0.0).tolist():
            yield error(
                Layer.PHYSICAL,
                "negative",
                section,
                f"{name} is not negative",
                where=f"{name}, row {row}",
                entity=f"{key} {getattr(table, key)[row]}, stage {table.stage_id[row]}",
                value=f"{values[row]:g}",
            )


def _in_force(table: StageTable, key: str, column: str, base: Mapping[int, float]) -> F64:
    """A column with its nulls replaced by what holds there: the row of the whole stage, or the entity's value."""
    values: F64 = np.array(getattr(table, column))
    ids, stages = getattr(table, key).tolist(), table.stage_id.tolist()
    blocks = getattr(table, "block_id", None)
    whole: dict[tuple[int, int], float] = {}
    if blocks is not None and np.any(blocks != NO_ID):
        rows = np.flatnonzero((blocks == NO_ID) & ~np.isnan(values)).tolist()
        whole = {(ids[row], stages[row]): float(values[row]) for row in rows}
    for row in np.flatnonzero(np.isnan(values)).tolist():
        values[row] = whole.get((ids[row], stages[row]), base.get(ids[row], np.nan))
    return values


def _inverted(
    section: str,
    table: StageTable,
    key: str,
    name: str,
    low: Mapping[int, float] | None = None,
    high: Mapping[int, float] | None = None,
) -> Findings:
    """min > max in a row; with the entities' own limits also where the row sets only one of them."""
    least = _in_force(table, key, f"min_{name}", low or {})
    most = _in_force(table, key, f"max_{name}", high or {})
    for row in np.flatnonzero(least > most).tolist():
        yield error(
            Layer.PHYSICAL,
            "inverted_bounds",
            section,
            f"min_{name} is not above max_{name}",
            entity=f"{key} {getattr(table, key)[row]}, stage {table.stage_id[row]}",
            value=f"{least[row]:g} and {most[row]:g}",
        )


def _by_id(entities: Iterable[E], value: Callable[[E], float | None]) -> dict[int, float]:
    found = {entity.id: value(entity) for entity in entities}
    return {id_: number for id_, number in found.items() if number is not None}


@check
def hydro_limits(
    hydro_bounds: HydroBounds, unit_group_bounds: UnitGroupBounds, hydros: tuple[Hydro, ...]
) -> Findings:
    """Storage, diversion and spillage have hard limits; the others may be broken at a price, but not in one row."""
    section, key = "hydro_bounds", "hydro_id"
    yield from _negative(section, hydro_bounds, key)
    yield from _negative("unit_group_bounds", unit_group_bounds, key)
    low = _by_id(hydros, lambda h: h.reservoir.min_storage_hm3)
    high = _by_id(hydros, lambda h: h.reservoir.max_storage_hm3)
    yield from _inverted(section, hydro_bounds, key, "storage_hm3", low, high)
    zero = _by_id(hydros, lambda h: 0.0)
    channel = _by_id(hydros, lambda h: h.diversion.max_flow_m3s if h.diversion else None)
    yield from _inverted(section, hydro_bounds, key, "diversion_m3s", zero, channel)
    yield from _inverted(section, hydro_bounds, key, "spillage_m3s", zero)
    for name in ("turbined_m3s", "outflow_m3s", "generation_mw"):
        yield from _inverted(section, hydro_bounds, key, name)
    for name in ("turbined_m3s", "generation_mw"):
        yield from _inverted("unit_group_bounds", unit_group_bounds, key, name)


@check
def other_limits(
    thermal_bounds: ThermalBounds,
    thermals: tuple[Thermal, ...],
    contract_bounds: ContractBounds,
    energy_contracts: tuple[EnergyContract, ...],
    pumping_bounds: PumpingBounds,
    pumping_stations: tuple[PumpingStation, ...],
) -> Findings:
    for section, table, key, name, low, high in (
        (
            "thermal_bounds",
            thermal_bounds,
            "thermal_id",
            "generation_mw",
            _by_id(thermals, lambda t: t.generation.min_mw),
            _by_id(thermals, lambda t: t.generation.max_mw),
        ),
        (
            "contract_bounds",
            contract_bounds,
            "contract_id",
            "mw",
            _by_id(energy_contracts, lambda c: c.limits.min_mw),
            _by_id(energy_contracts, lambda c: c.limits.max_mw),
        ),
        (
            "pumping_bounds",
            pumping_bounds,
            "pumping_station_id",
            "m3s",
            _by_id(pumping_stations, lambda p: p.flow.min_m3s),
            _by_id(pumping_stations, lambda p: p.flow.max_m3s),
        ),
    ):
        yield from _negative(section, table, key)
        yield from _inverted(section, table, key, name, low, high)


@check
def penalties_by_stage(
    line_bounds: LineBounds,
    source_bounds: SourceBounds,
    bus_penalties: BusPenaltyTable,
    line_penalties: LinePenaltyTable,
    hydro_penalties: HydroPenaltyTable,
    source_penalties: SourcePenaltyTable,
) -> Findings:
    yield from _negative("line_bounds", line_bounds, "line_id")
    yield from _negative("source_bounds", source_bounds, "ncs_id")
    yield from _negative("bus_penalties", bus_penalties, "bus_id")
    yield from _negative("line_penalties", line_penalties, "line_id")
    yield from _negative("hydro_penalties", hydro_penalties, "hydro_id")
    yield from _negative("source_penalties", source_penalties, "ncs_id")


@check
def planes_allow_generation(fpha_planes: FphaPlanes, hydros: tuple[Hydro, ...]) -> Findings:
    """A plane that is below zero wherever the plant can be leaves it no solution."""
    kappa = np.where(np.isnan(fpha_planes.kappa), 1.0, fpha_planes.kappa)
    for hydro in hydros:
        volumes = np.array([hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3])
        for row in np.flatnonzero(fpha_planes.hydro_id == hydro.id).tolist():
            head = float((fpha_planes.gamma_v[row] * volumes).max())
            flow = max(0.0, float(fpha_planes.gamma_q[row]) * hydro.generation.max_turbined_m3s)
            most = float(kappa[row] * fpha_planes.gamma_0[row]) + head + flow
            if most < 0.0 and fpha_planes.gamma_s[row] <= 0.0:
                yield error(
                    Layer.PHYSICAL,
                    "no_generation",
                    "fpha_planes",
                    "a plane allows generation at some volume and flow",
                    where=f"row {row}",
                    entity=f"hydro {hydro.id}, plane {fpha_planes.plane_id[row]}",
                    value=f"{most:g} MW at most",
                )
