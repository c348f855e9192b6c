"""The physical system: buses, lines, thermal plants, hydro plants and non-controllable sources.

Units are in the names: MW, m³/s, hm³, $/MWh. `operational_start_date` and entry/exit stages say when a thing
exists.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pycobre.hydro.model.record import Tagged, record

__all__ = [
    "AnticipatedHours",
    "AnticipatedStages",
    "Bus",
    "ConstantEfficiency",
    "ConstantLosses",
    "DeficitSegment",
    "Diversion",
    "EnergyContract",
    "Evaporation",
    "FactorLosses",
    "Filling",
    "Generation",
    "Hydro",
    "HydroPenaltyOverrides",
    "Line",
    "LineCapacity",
    "NonControllableSource",
    "Outflow",
    "PiecewiseTailrace",
    "PolynomialTailrace",
    "PowerLimits",
    "PumpingFlow",
    "PumpingStation",
    "Reservoir",
    "TailracePoint",
    "Thermal",
    "UnitGroup",
]


@record
class DeficitSegment:
    """Unserved load up to `depth_mw` (None: without end) at `cost` $/MWh."""

    cost: float
    depth_mw: float | None = None


@record
class Bus:
    """A place where generation meets load; its deficit segments replace the global ones completely."""

    id: int
    name: str
    operational_start_date: date
    deficit_segments: tuple[DeficitSegment, ...] | None = None


@record
class LineCapacity:
    direct_mw: float
    reverse_mw: float


@record
class Line:
    """A connection between two buses; direct flow goes from source to target."""

    id: int
    name: str
    operational_start_date: date
    source_bus_id: int
    target_bus_id: int
    capacity: LineCapacity
    exchange_cost: float | None = None
    losses_percent: float = 0.0
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


@record
class PowerLimits:
    min_mw: float
    max_mw: float


@record
class AnticipatedStages:
    lead_stages: int


@record
class AnticipatedHours:
    lead_time_hours: float


@record
class Thermal:
    """A plant that burns fuel at `cost_per_mwh`."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    cost_per_mwh: float
    generation: PowerLimits
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None
    anticipated_config: AnticipatedStages | AnticipatedHours | None = None


@record
class NonControllableSource:
    """Wind, sun and the like: what is available is generated, or curtailed where that is allowed."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    max_generation_mw: float
    curtailment_cost: float | None = None
    allow_curtailment: bool = True
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


@record
class EnergyContract:
    """Energy bought from (import) or sold to (export) outside the system."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    type: Literal["import", "export"]
    price_per_mwh: float
    limits: PowerLimits
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


@record
class PumpingFlow:
    min_m3s: float
    max_m3s: float


@record
class PumpingStation:
    """Moves water from one reservoir to another and draws power for it."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    source_hydro_id: int
    destination_hydro_id: int
    consumption_mw_per_m3s: float
    flow: PumpingFlow
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


@record
class Reservoir:
    min_storage_hm3: float
    max_storage_hm3: float


@record
class Outflow:
    min_outflow_m3s: float
    max_outflow_m3s: float | None = None


@record
class Generation:
    """The plant's production model and its envelope; unit groups share it out."""

    model: Literal["constant_productivity", "linearized_head", "fpha"]
    min_turbined_m3s: float
    max_turbined_m3s: float
    min_generation_mw: float
    max_generation_mw: float


@record
class UnitGroup:
    """Turbines of one plant that feed one bus."""

    id: int
    name: str
    bus_id: int
    min_turbined_m3s: float
    max_turbined_m3s: float
    min_generation_mw: float
    max_generation_mw: float


@record
class Evaporation:
    """Monthly evaporation in mm, January first, and the volumes around which area is linearised."""

    coefficients_mm: tuple[float, ...]
    reference_volumes_hm3: tuple[float, ...] | None = None


@record
class Diversion:
    downstream_id: int
    max_flow_m3s: float


@record
class Filling:
    start_stage_id: int
    filling_min_rate_m3s: float = 0.0


@record
class PolynomialTailrace:
    coefficients: tuple[float, ...]
    type: Literal["polynomial"] = "polynomial"


@record
class TailracePoint:
    outflow_m3s: float
    height_m: float


@record
class PiecewiseTailrace:
    points: tuple[TailracePoint, ...]
    type: Literal["piecewise"] = "piecewise"


@record
class FactorLosses:
    value: float
    type: Literal["factor"] = "factor"


@record
class ConstantLosses:
    value_m: float
    type: Literal["constant"] = "constant"


@record
class ConstantEfficiency:
    value: float
    type: Literal["constant"] = "constant"


@record
class HydroPenaltyOverrides:
    """Penalties of one plant; None keeps the global value."""

    spillage_cost: float | None = None
    turbined_cost: float | None = None
    diversion_cost: float | None = None
    storage_violation_below_cost: float | None = None
    filling_target_violation_cost: float | None = None
    turbined_violation_below_cost: float | None = None
    outflow_violation_below_cost: float | None = None
    outflow_violation_above_cost: float | None = None
    generation_violation_below_cost: float | None = None
    evaporation_violation_cost: float | None = None
    water_withdrawal_violation_cost: float | None = None
    inflow_nonnegativity_cost: float | None = None


@record
class Hydro:
    """A plant with its reservoir and its place in the cascade."""

    id: int
    name: str
    operational_start_date: date
    reservoir: Reservoir
    outflow: Outflow
    generation: Generation
    unit_groups: tuple[UnitGroup, ...]
    downstream_id: int | None = None
    diversion: Diversion | None = None
    evaporation: Evaporation | None = None
    filling: Filling | None = None
    penalties: HydroPenaltyOverrides | None = None
    tailrace: Annotated[PolynomialTailrace | PiecewiseTailrace, Tagged("type")] | None = None
    hydraulic_losses: Annotated[FactorLosses | ConstantLosses, Tagged("type")] | None = None
    efficiency: ConstantEfficiency | None = None
    specific_productivity_mw_per_m3s_per_m: float | None = None
    travel_time_hours: float | None = None
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None
