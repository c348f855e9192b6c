"""A whole study in memory: what a case directory says, immutable, and independent of the order of its lists.

A field's name is the name of its section, and its declaration says which file that is. Everything here can be
written by hand in Python just as well as read from files.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from pycobre._util.frozen import frozen
from pycobre.hydro.model import constraints as con
from pycobre.hydro.model import scenarios as sce
from pycobre.hydro.model.boundary import BoundaryCuts
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
from pycobre.hydro.model.record import Tagged
from pycobre.hydro.model.section import Section, section, section_of, table
from pycobre.hydro.model.system import (
    Bus,
    EnergyContract,
    Hydro,
    Line,
    NonControllableSource,
    PumpingStation,
    Thermal,
)

__all__ = ["SECTIONS", "Case"]

_CHECKED = "_checked"  # not a field: copies with other content do not have it


@frozen(kw_only=True, eq=False)
class Case:
    """A study. Lists, also those inside records, are kept sorted, so that no result depends on their order."""

    config: Config = section("config.json", required=True)
    penalties: Penalties = section("penalties.json", required=True)
    policy_graph: PolicyGraph = section("stages.json", "policy_graph", required=True)
    stages: tuple[Stage, ...] = section("stages.json", "stages", required=True)
    initial_conditions: InitialConditions = section("initial_conditions.json", required=True)
    buses: tuple[Bus, ...] = section("system/buses.json", "buses", required=True)
    lines: tuple[Line, ...] = section("system/lines.json", "lines", default=(), required=True)
    thermals: tuple[Thermal, ...] = section("system/thermals.json", "thermals", default=(), required=True)
    hydros: tuple[Hydro, ...] = section("system/hydros.json", "hydros", default=(), required=True)
    non_controllable_sources: tuple[NonControllableSource, ...] = section(
        "system/non_controllable_sources.json", "non_controllable_sources", default=()
    )
    pumping_stations: tuple[PumpingStation, ...] = section(
        "system/pumping_stations.json", "pumping_stations", default=()
    )
    energy_contracts: tuple[EnergyContract, ...] = section(
        "system/energy_contracts.json", "contracts", default=()
    )
    pre_study_stages: tuple[PreStudyStage, ...] = section(
        "stages.json", "pre_study_stages", default=(), required=True, optional=True, nullable=True
    )
    season_definitions: SeasonDefinitions | None = section(
        "stages.json", "season_definitions", default=None, required=True, optional=True
    )
    production_models: tuple[ProductionModel, ...] = section(
        "system/hydro_production_models.json", "production_models", default=()
    )
    fpha_plane_reduction: Annotated[AngleReduction | DistanceReduction, Tagged("method")] | None = section(
        "system/hydro_production_models.json", "fpha_plane_reduction", default=None, optional=True
    )
    geometry: con.Geometry = table("system/hydro_geometry.parquet", con.Geometry)
    tailrace_curves: con.TailraceCurves = table("system/tailrace_curves.parquet", con.TailraceCurves)
    fpha_planes: con.FphaPlanes = table("system/fpha_hyperplanes.parquet", con.FphaPlanes)
    energy_productivity: con.EnergyProductivity = table(
        "system/hydro_energy_productivity.parquet", con.EnergyProductivity
    )
    inflow_stats: sce.InflowStats = table("scenarios/inflow_seasonal_stats.parquet", sce.InflowStats)
    ar_coefficients: sce.ArCoefficients = table(
        "scenarios/inflow_ar_coefficients.parquet", sce.ArCoefficients
    )
    annual_components: sce.AnnualComponents = table(
        "scenarios/inflow_annual_component.parquet", sce.AnnualComponents
    )
    inflow_history: sce.InflowHistory = table("scenarios/inflow_history.parquet", sce.InflowHistory)
    load_stats: sce.LoadStats = table("scenarios/load_seasonal_stats.parquet", sce.LoadStats)
    load_factors: tuple[sce.LoadFactors, ...] = section(
        "scenarios/load_factors.json", "load_factors", default=()
    )
    source_stats: sce.SourceStats = table("scenarios/non_controllable_stats.parquet", sce.SourceStats)
    source_factors: tuple[sce.SourceFactors, ...] = section(
        "scenarios/non_controllable_factors.json", "non_controllable_factors", default=()
    )
    correlation: sce.Correlation | None = section("scenarios/correlation.json", default=None)
    external_inflows: sce.ExternalInflows = table(
        "scenarios/external_inflow_scenarios.parquet", sce.ExternalInflows
    )
    external_loads: sce.ExternalLoads = table("scenarios/external_load_scenarios.parquet", sce.ExternalLoads)
    external_sources: sce.ExternalSources = table(
        "scenarios/external_ncs_scenarios.parquet", sce.ExternalSources
    )
    noise_openings: sce.NoiseOpenings = table("scenarios/noise_openings.parquet", sce.NoiseOpenings)
    thermal_bounds: con.ThermalBounds = table("constraints/thermal_bounds.parquet", con.ThermalBounds)
    hydro_bounds: con.HydroBounds = table("constraints/hydro_bounds.parquet", con.HydroBounds)
    unit_group_bounds: con.UnitGroupBounds = table(
        "constraints/hydro_unit_group_bounds.parquet", con.UnitGroupBounds
    )
    line_bounds: con.LineBounds = table("constraints/line_bounds.parquet", con.LineBounds)
    source_bounds: con.SourceBounds = table("constraints/ncs_bounds.parquet", con.SourceBounds)
    pumping_bounds: con.PumpingBounds = table("constraints/pumping_bounds.parquet", con.PumpingBounds)
    contract_bounds: con.ContractBounds = table("constraints/contract_bounds.parquet", con.ContractBounds)
    bus_penalties: con.BusPenaltyTable = table(
        "constraints/penalty_overrides_bus.parquet", con.BusPenaltyTable
    )
    line_penalties: con.LinePenaltyTable = table(
        "constraints/penalty_overrides_line.parquet", con.LinePenaltyTable
    )
    hydro_penalties: con.HydroPenaltyTable = table(
        "constraints/penalty_overrides_hydro.parquet", con.HydroPenaltyTable
    )
    source_penalties: con.SourcePenaltyTable = table(
        "constraints/penalty_overrides_ncs.parquet", con.SourcePenaltyTable
    )
    generic_constraints: tuple[con.GenericConstraint, ...] = section(
        "constraints/generic_constraints.json", "constraints", default=()
    )
    generic_expressions: tuple[con.NamedExpression, ...] = section(
        "constraints/generic_constraints.json", "expressions", default=(), optional=True
    )
    generic_parameters: tuple[con.ScalarParameter, ...] = section(
        "constraints/generic_parameters.json", "scalar_parameters", default=()
    )
    generic_bounds: con.GenericBounds = table(
        "constraints/generic_constraint_bounds.parquet", con.GenericBounds
    )
    boundary_cuts: BoundaryCuts = table("constraints/boundary_cuts.parquet", BoundaryCuts)
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

    @property
    def checked(self) -> bool:
        """Whether `pycobre.hydro.checks` has found no error in this object; a changed copy is another object."""
        return _CHECKED in self.__dict__

    def mark_checked(self) -> Case:
        """Note that no error was found, so that nobody looks again; returns itself."""
        self.__dict__[_CHECKED] = True
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and all(
            getattr(self, f.name) == getattr(other, f.name) for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]


SECTIONS: dict[str, Section] = {f.name: found for f in fields(Case) if (found := section_of(f)) is not None}
"""What a case consists of, by name."""


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
