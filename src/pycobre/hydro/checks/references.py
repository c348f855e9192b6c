"""Every id is used once, and every reference leads somewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from pycobre.hydro.checks.registry import (
    Findings,
    HasId,
    check,
    check_of,
    check_reference,
    duplicate_ids,
    error,
)
from pycobre.hydro.model.constraints import UnitGroupBounds
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.initial import InitialConditions
from pycobre.hydro.model.production import ProductionModel
from pycobre.hydro.model.scenarios import Correlation, LoadFactors, SourceFactors
from pycobre.hydro.model.system import Bus, Hydro, NonControllableSource, PumpingStation
from pycobre.hydro.model.table import I32, NO_ID, Table

_LISTS = {
    "buses": "bus",
    "lines": "line",
    "thermals": "thermal",
    "hydros": "hydro",
    "non_controllable_sources": "source",
    "pumping_stations": "pumping station",
    "energy_contracts": "contract",
    "stages": "stage",
    "generic_constraints": "constraint",
    "generic_parameters": "parameter",
}


def _register_unique(section: str, what: str) -> None:
    def unique(**sections: tuple[HasId, ...]) -> Findings:
        yield from duplicate_ids(section, what, (item.id for item in sections[section]))

    check_of(unique, section)


for _section, _what in _LISTS.items():
    _register_unique(_section, _what)


@check
def unique_inside(
    hydros: tuple[Hydro, ...], stages: tuple[Stage, ...], production_models: tuple[ProductionModel, ...]
) -> Findings:
    for hydro in hydros:
        yield from duplicate_ids("hydros", f"hydro {hydro.id}, unit group", (g.id for g in hydro.unit_groups))
    for stage in stages:
        yield from duplicate_ids("stages", f"stage {stage.id}, block", (block.id for block in stage.blocks))
    yield from duplicate_ids(
        "production_models", "hydro", (m.hydro_id for m in production_models), "hydro_id"
    )


_BUS_FIELDS = {
    "lines": ("line", ("source_bus_id", "target_bus_id")),
    "thermals": ("thermal", ("bus_id",)),
    "non_controllable_sources": ("source", ("bus_id",)),
    "pumping_stations": ("pumping station", ("bus_id",)),
    "energy_contracts": ("contract", ("bus_id",)),
}


def _register_bus(section: str, what: str, names: tuple[str, ...]) -> None:
    def buses_exist(**sections: tuple[HasId, ...]) -> Findings:
        known = {bus.id for bus in sections["buses"]}
        for item in sections[section]:
            for name in names:
                yield from check_reference(
                    section, f"{what} {item.id}", name, getattr(item, name), known, "bus"
                )

    check_of(buses_exist, section, "buses")


for _section, (_what, _names) in _BUS_FIELDS.items():
    _register_bus(_section, _what, _names)


@check
def hydro_buses(hydros: tuple[Hydro, ...], buses: tuple[Bus, ...]) -> Findings:
    known = {bus.id for bus in buses}
    for hydro in hydros:
        for group in hydro.unit_groups:
            where = f"hydro {hydro.id}, unit group {group.id}"
            yield from check_reference("hydros", where, "bus_id", group.bus_id, known, "bus")


@check
def cascade(hydros: tuple[Hydro, ...]) -> Findings:
    known = {hydro.id for hydro in hydros}
    below = {}
    for hydro in hydros:
        entity = f"hydro {hydro.id}"
        yield from check_reference("hydros", entity, "downstream_id", hydro.downstream_id, known, "hydro")
        below[hydro.id] = hydro.downstream_id
        if hydro.diversion is not None:
            to = hydro.diversion.downstream_id
            yield from check_reference("hydros", entity, "diversion.downstream_id", to, known, "hydro")
            if to == hydro.id:
                yield error(
                    Layer.REFERENCES, "cascade_cycle", "hydros", "water is diverted elsewhere", entity=entity
                )
    reported: set[int] = set()
    for start in below:
        path: list[int] = []
        at: int | None = start
        while at is not None and at in below and at not in path:
            path.append(at)
            at = below[at]
        if at is not None and at in path and not reported & set(path):
            ring = [*path[path.index(at) :], at]
            reported |= set(ring)
            yield error(
                Layer.REFERENCES,
                "cascade_cycle",
                "hydros",
                "water flows down to the sea",
                entity=f"hydro {at}",
                value=" → ".join(str(h) for h in ring),
            )


@check
def hydro_references(
    hydros: tuple[Hydro, ...],
    production_models: tuple[ProductionModel, ...],
    initial_conditions: InitialConditions,
    pumping_stations: tuple[PumpingStation, ...],
) -> Findings:
    known = {hydro.id for hydro in hydros}
    for model in production_models:
        yield from check_reference("production_models", "model", "hydro_id", model.hydro_id, known, "hydro")
    for name in ("storage", "filling_storage", "recent_observations", "past_defluences"):
        for entry in getattr(initial_conditions, name):
            yield from check_reference("initial_conditions", name, "hydro_id", entry.hydro_id, known, "hydro")
    yield from duplicate_ids(
        "initial_conditions", "storage of hydro", (s.hydro_id for s in initial_conditions.storage), "hydro_id"
    )
    for station in pumping_stations:
        for field in ("source_hydro_id", "destination_hydro_id"):
            entity = f"pumping station {station.id}"
            yield from check_reference(
                "pumping_stations", entity, field, getattr(station, field), known, "hydro"
            )


_TABLES = {
    "geometry": ("hydros", "hydro_id"),
    "tailrace_curves": ("hydros", "hydro_id"),
    "fpha_planes": ("hydros", "hydro_id"),
    "energy_productivity": ("hydros", "hydro_id"),
    "inflow_stats": ("hydros", "hydro_id"),
    "ar_coefficients": ("hydros", "hydro_id"),
    "annual_components": ("hydros", "hydro_id"),
    "inflow_history": ("hydros", "hydro_id"),
    "load_stats": ("buses", "bus_id"),
    "source_stats": ("non_controllable_sources", "ncs_id"),
    "external_inflows": ("hydros", "hydro_id"),
    "external_loads": ("buses", "bus_id"),
    "external_sources": ("non_controllable_sources", "ncs_id"),
    "thermal_bounds": ("thermals", "thermal_id"),
    "hydro_bounds": ("hydros", "hydro_id"),
    "unit_group_bounds": ("hydros", "hydro_id"),
    "line_bounds": ("lines", "line_id"),
    "source_bounds": ("non_controllable_sources", "ncs_id"),
    "pumping_bounds": ("pumping_stations", "pumping_station_id"),
    "contract_bounds": ("energy_contracts", "contract_id"),
    "bus_penalties": ("buses", "bus_id"),
    "line_penalties": ("lines", "line_id"),
    "hydro_penalties": ("hydros", "hydro_id"),
    "source_penalties": ("non_controllable_sources", "ncs_id"),
    "generic_bounds": ("generic_constraints", "constraint_id"),
}
_BEFORE_STUDY = ("inflow_stats", "ar_coefficients", "annual_components")


def _register_table(section: str, entities: str, key: str) -> None:
    def rows_refer(stages: tuple[Stage, ...], **sections: Table | tuple[HasId, ...]) -> Findings:
        table, owners = sections[section], sections[entities]
        assert isinstance(table, Table)
        assert isinstance(owners, tuple)
        known = np.array([item.id for item in owners if abs(item.id) < 2**63], dtype=np.int64)
        column = getattr(table, key)
        strange = column[~np.isin(column, known)] if known.size or entities != "buses" else column[:0]
        for value in sorted(set(strange.tolist())):
            yield error(
                Layer.REFERENCES,
                "dangling_reference",
                section,
                f"{key} is an id in {entities}",
                where=f"{key}, row {int(np.flatnonzero(column == value)[0])}",
                value=value,
            )
        yield from _stage_rows(section, table, stages)
        yield from _repeated_rows(section, table)

    check_of(rows_refer, section, entities, "stages")


def _stage_rows(section: str, table: Table, stages: tuple[Stage, ...]) -> Findings:
    columns: dict[str, I32] = vars(table)
    if "stage_id" not in columns or not stages:
        return
    of_rows = columns["stage_id"]
    ids = {stage.id for stage in stages}
    blocks = {stage.id: {block.id for block in stage.blocks} for stage in stages}
    for stage in sorted(set(of_rows.tolist()) - ids - {NO_ID}):
        if stage < 0 and section in _BEFORE_STUDY:
            continue
        yield error(
            Layer.REFERENCES,
            "dangling_reference",
            section,
            "stage_id is the id of a stage",
            where=f"stage_id, row {int(np.flatnonzero(of_rows == stage)[0])}",
            value=stage,
        )
    if "block_id" not in columns:
        return
    for stage, block in sorted(set(zip(of_rows.tolist(), columns["block_id"].tolist(), strict=True))):
        if block != NO_ID and stage in blocks and block not in blocks[stage]:
            yield error(
                Layer.REFERENCES,
                "dangling_reference",
                section,
                "block_id is the id of a block of the stage",
                entity=f"stage {stage}",
                value=block,
            )


def _repeated_rows(section: str, table: Table) -> Findings:
    """Rows with the key of the row before: tables are sorted by their key."""
    if len(table) < 2:
        return
    columns = [getattr(table, name) for name in table.KEY]
    same = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    rows = np.flatnonzero(same).tolist()
    repeated = Counter(tuple(column[row].item() for column in columns) for row in rows)
    for key, times in repeated.items():
        named = ", ".join(f"{n} {'all' if v == NO_ID else v}" for n, v in zip(table.KEY, key, strict=True))
        yield error(
            Layer.REFERENCES,
            "duplicate_row",
            section,
            "every row has a key of its own",
            where=named,
            value=f"{times + 1} rows",
        )


for _section, (_entities, _key) in _TABLES.items():
    _register_table(_section, _entities, _key)


@check
def unit_group_rows(unit_group_bounds: UnitGroupBounds, hydros: tuple[Hydro, ...]) -> Findings:
    known = {(hydro.id, group.id) for hydro in hydros for group in hydro.unit_groups}
    plants = {hydro.id for hydro in hydros}
    pairs = zip(
        unit_group_bounds.hydro_id.tolist(), unit_group_bounds.hydro_unit_group_id.tolist(), strict=True
    )
    for hydro, group in sorted(set(pairs)):
        if hydro in plants and (hydro, group) not in known:
            yield error(
                Layer.REFERENCES,
                "dangling_reference",
                "unit_group_bounds",
                "hydro_unit_group_id is the id of a unit group of the hydro",
                entity=f"hydro {hydro}",
                value=group,
            )


def _factors(
    section: str,
    key: str,
    entries: Sequence[LoadFactors | SourceFactors],
    entities: Iterable[HasId],
    stages: tuple[Stage, ...],
) -> Findings:
    known = {item.id for item in entities}
    blocks = {stage.id: {block.id for block in stage.blocks} for stage in stages}
    for entry in entries:
        entity = f"{key} {getattr(entry, key)}, stage {entry.stage_id}"
        yield from check_reference(section, entity, key, getattr(entry, key), known, key.removesuffix("_id"))
        yield from check_reference(section, entity, "stage_id", entry.stage_id, set(blocks), "stage")
        for factor in entry.block_factors:
            inside = blocks.get(entry.stage_id, {factor.block_id})
            block = factor.block_id
            yield from check_reference(section, entity, "block_id", block, inside, "block of the stage")
    pairs = ((getattr(entry, key), entry.stage_id) for entry in entries)
    yield from duplicate_ids(section, f"({key}, stage_id)", pairs, "pair of ids")


@check
def load_factor_references(
    load_factors: tuple[LoadFactors, ...], buses: tuple[Bus, ...], stages: tuple[Stage, ...]
) -> Findings:
    yield from _factors("load_factors", "bus_id", load_factors, buses, stages)


@check
def source_factor_references(
    source_factors: tuple[SourceFactors, ...],
    non_controllable_sources: tuple[NonControllableSource, ...],
    stages: tuple[Stage, ...],
) -> Findings:
    yield from _factors("source_factors", "ncs_id", source_factors, non_controllable_sources, stages)


@check
def correlation_references(
    correlation: Correlation | None,
    hydros: tuple[Hydro, ...],
    buses: tuple[Bus, ...],
    non_controllable_sources: tuple[NonControllableSource, ...],
    stages: tuple[Stage, ...],
) -> Findings:
    if correlation is None:
        return
    known = {
        "inflow": {h.id for h in hydros},
        "load": {b.id for b in buses},
        "ncs": {s.id for s in non_controllable_sources},
    }
    for name, profile in correlation.profiles.items():
        seen: Counter[tuple[str, int]] = Counter()
        for group in profile.correlation_groups:
            entity = f"profile {name!r}, group {group.name!r}"
            for member in group.entities:
                seen[member.type, member.id] += 1
                yield from check_reference(
                    "correlation", entity, "id", member.id, known[member.type], member.type
                )
        for (kind, id_), times in seen.items():
            if times > 1:
                yield error(
                    Layer.REFERENCES,
                    "duplicate_id",
                    "correlation",
                    "an entity is in one group of a profile",
                    entity=f"profile {name!r}, {kind} {id_}",
                    value=f"{times} times",
                )
    ids = {stage.id for stage in stages}
    for entry in correlation.schedule or ():
        entity = f"schedule of stage {entry.stage_id}"
        yield from check_reference("correlation", entity, "stage_id", entry.stage_id, ids, "stage")
        if entry.profile_name not in correlation.profiles:
            yield error(
                Layer.REFERENCES,
                "dangling_reference",
                "correlation",
                "profile_name is the name of a profile",
                entity=entity,
                value=entry.profile_name,
            )
