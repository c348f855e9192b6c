"""A whole study in memory: what a case directory says, immutable, and independent of the order of its lists.

A field's name is the name of its section; `SECTIONS` says which file that is. Everything here can be
written by hand in Python just as well as read from files.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.hydro.model import constraints as con
from pycobre.hydro.model import scenarios as sce
from pycobre.hydro.model.canonical import canonical
from pycobre.hydro.model.config import Config
from pycobre.hydro.model.horizon import PolicyGraph, PreStudyStage, SeasonDefinitions, Stage
from pycobre.hydro.model.initial import InitialConditions
from pycobre.hydro.model.penalties import Penalties
from pycobre.hydro.model.production import (
    AngleReduction,
    DistanceReduction,
    ProductionModel,
    SeasonalProduction,
    StageRangeProduction,
)
from pycobre.hydro.model.system import (
    Bus,
    EnergyContract,
    Hydro,
    Line,
    NonControllableSource,
    PumpingStation,
    Thermal,
)
from pycobre.hydro.model.table import Table

__all__ = ["SECTIONS", "Case"]

SECTIONS: dict[str, str] = {
    "config": "config.json",
    "penalties": "penalties.json",
    "stages": "stages.json",
    "pre_study_stages": "stages.json",
    "season_definitions": "stages.json",
    "policy_graph": "stages.json",
    "initial_conditions": "initial_conditions.json",
    "buses": "system/buses.json",
    "lines": "system/lines.json",
    "thermals": "system/thermals.json",
    "hydros": "system/hydros.json",
    "non_controllable_sources": "system/non_controllable_sources.json",
    "pumping_stations": "system/pumping_stations.json",
    "energy_contracts": "system/energy_contracts.json",
    "production_models": "system/hydro_production_models.json",
    "fpha_plane_reduction": "system/hydro_production_models.json",
    "geometry": "system/hydro_geometry.parquet",
    "fpha_planes": "system/fpha_hyperplanes.parquet",
    "energy_productivity": "system/hydro_energy_productivity.parquet",
    "inflow_stats": "scenarios/inflow_seasonal_stats.parquet",
    "ar_coefficients": "scenarios/inflow_ar_coefficients.parquet",
    "annual_components": "scenarios/inflow_annual_component.parquet",
    "inflow_history": "scenarios/inflow_history.parquet",
    "load_stats": "scenarios/load_seasonal_stats.parquet",
    "load_factors": "scenarios/load_factors.json",
    "source_stats": "scenarios/non_controllable_stats.parquet",
    "source_factors": "scenarios/non_controllable_factors.json",
    "correlation": "scenarios/correlation.json",
    "external_inflows": "scenarios/external_inflow_scenarios.parquet",
    "external_loads": "scenarios/external_load_scenarios.parquet",
    "external_sources": "scenarios/external_ncs_scenarios.parquet",
    "noise_openings": "scenarios/noise_openings.parquet",
    "thermal_bounds": "constraints/thermal_bounds.parquet",
    "hydro_bounds": "constraints/hydro_bounds.parquet",
    "unit_group_bounds": "constraints/hydro_unit_group_bounds.parquet",
    "line_bounds": "constraints/line_bounds.parquet",
    "source_bounds": "constraints/ncs_bounds.parquet",
    "pumping_bounds": "constraints/pumping_bounds.parquet",
    "contract_bounds": "constraints/contract_bounds.parquet",
    "bus_penalties": "constraints/penalty_overrides_bus.parquet",
    "line_penalties": "constraints/penalty_overrides_line.parquet",
    "hydro_penalties": "constraints/penalty_overrides_hydro.parquet",
    "source_penalties": "constraints/penalty_overrides_ncs.parquet",
    "generic_constraints": "constraints/generic_constraints.json",
    "generic_expressions": "constraints/generic_constraints.json",
    "generic_parameters": "constraints/generic_parameters.json",
    "generic_bounds": "constraints/generic_constraint_bounds.parquet",
}
"""Section name to file, relative to the case directory."""


def _table(cls: type[Table]) -> Any:
    return field(default_factory=cls.empty)


@frozen(kw_only=True, eq=False)
class Case:
    """A study. Lists, also those inside records, are kept sorted, so that no result depends on their order."""

    config: Config
    penalties: Penalties
    policy_graph: PolicyGraph
    stages: tuple[Stage, ...]
    initial_conditions: InitialConditions
    buses: tuple[Bus, ...]
    lines: tuple[Line, ...] = ()
    thermals: tuple[Thermal, ...] = ()
    hydros: tuple[Hydro, ...] = ()
    non_controllable_sources: tuple[NonControllableSource, ...] = ()
    pumping_stations: tuple[PumpingStation, ...] = ()
    energy_contracts: tuple[EnergyContract, ...] = ()
    pre_study_stages: tuple[PreStudyStage, ...] = ()
    season_definitions: SeasonDefinitions | None = None
    production_models: tuple[ProductionModel, ...] = ()
    fpha_plane_reduction: AngleReduction | DistanceReduction | None = None
    geometry: con.Geometry = _table(con.Geometry)
    fpha_planes: con.FphaPlanes = _table(con.FphaPlanes)
    energy_productivity: con.EnergyProductivity = _table(con.EnergyProductivity)
    inflow_stats: sce.InflowStats = _table(sce.InflowStats)
    ar_coefficients: sce.ArCoefficients = _table(sce.ArCoefficients)
    annual_components: sce.AnnualComponents = _table(sce.AnnualComponents)
    inflow_history: sce.InflowHistory = _table(sce.InflowHistory)
    load_stats: sce.LoadStats = _table(sce.LoadStats)
    load_factors: tuple[sce.LoadFactors, ...] = ()
    source_stats: sce.SourceStats = _table(sce.SourceStats)
    source_factors: tuple[sce.SourceFactors, ...] = ()
    correlation: sce.Correlation | None = None
    external_inflows: sce.ExternalInflows = _table(sce.ExternalInflows)
    external_loads: sce.ExternalLoads = _table(sce.ExternalLoads)
    external_sources: sce.ExternalSources = _table(sce.ExternalSources)
    noise_openings: sce.NoiseOpenings = _table(sce.NoiseOpenings)
    thermal_bounds: con.ThermalBounds = _table(con.ThermalBounds)
    hydro_bounds: con.HydroBounds = _table(con.HydroBounds)
    unit_group_bounds: con.UnitGroupBounds = _table(con.UnitGroupBounds)
    line_bounds: con.LineBounds = _table(con.LineBounds)
    source_bounds: con.SourceBounds = _table(con.SourceBounds)
    pumping_bounds: con.PumpingBounds = _table(con.PumpingBounds)
    contract_bounds: con.ContractBounds = _table(con.ContractBounds)
    bus_penalties: con.BusPenaltyTable = _table(con.BusPenaltyTable)
    line_penalties: con.LinePenaltyTable = _table(con.LinePenaltyTable)
    hydro_penalties: con.HydroPenaltyTable = _table(con.HydroPenaltyTable)
    source_penalties: con.SourcePenaltyTable = _table(con.SourcePenaltyTable)
    generic_constraints: tuple[con.GenericConstraint, ...] = ()
    generic_expressions: tuple[con.NamedExpression, ...] = ()
    generic_parameters: tuple[con.ScalarParameter, ...] = ()
    generic_bounds: con.GenericBounds = _table(con.GenericBounds)
    name: str = "case"

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, list | tuple):
                value = tuple(canonical(item) for item in sorted(value, key=_order))
            object.__setattr__(self, f.name, canonical(value))

    @property
    def num_stages(self) -> int:
        return len(self.stages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and all(
            getattr(self, f.name) == getattr(other, f.name) for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]


def _order(item: Any) -> tuple[Any, ...]:
    match item:
        case StageRangeProduction() | SeasonalProduction():
            return (item.hydro_id,)
        case sce.LoadFactors():
            return (item.bus_id, item.stage_id)
        case sce.SourceFactors():
            return (item.ncs_id, item.stage_id)
        case con.NamedExpression():
            return (item.name,)
        case _:
            return (item.id,)
