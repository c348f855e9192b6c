"""What changes by stage (and block): bounds, penalties, and linear constraints written by the user."""

from __future__ import annotations

from typing import ClassVar, Literal

from pycobre._util.frozen import frozen
from pycobre.hydro.model.record import record
from pycobre.hydro.model.table import F64, I32, Table, floats, ids

__all__ = [
    "BusPenaltyTable",
    "ComputedParameter",
    "ContractBounds",
    "EnergyProductivity",
    "FphaPlanes",
    "GenericBounds",
    "GenericConstraint",
    "Geometry",
    "HydroBounds",
    "HydroPenaltyTable",
    "LineBounds",
    "LinePenaltyTable",
    "NamedExpression",
    "PumpingBounds",
    "ScalarParameter",
    "Slack",
    "SourceBounds",
    "SourcePenaltyTable",
    "TailraceCurves",
    "ThermalBounds",
    "UnitGroupBounds",
]


@frozen(eq=False, kw_only=True)
class ThermalBounds(Table):
    """Null keeps the plant's value; a null block means every block of the stage."""

    KEY: ClassVar = ("thermal_id", "stage_id", "block_id")
    thermal_id: I32 = ids()
    stage_id: I32 = ids()
    block_id: I32 = ids(optional=True)
    min_generation_mw: F64 = floats(optional=True)
    max_generation_mw: F64 = floats(optional=True)
    cost_per_mwh: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class HydroBounds(Table):
    """Null keeps the plant's value; a null block means every block of the stage."""

    KEY: ClassVar = ("hydro_id", "stage_id", "block_id")
    hydro_id: I32 = ids()
    stage_id: I32 = ids()
    block_id: I32 = ids(optional=True)
    min_turbined_m3s: F64 = floats(optional=True)
    max_turbined_m3s: F64 = floats(optional=True)
    min_storage_hm3: F64 = floats(optional=True)
    max_storage_hm3: F64 = floats(optional=True)
    min_outflow_m3s: F64 = floats(optional=True)
    max_outflow_m3s: F64 = floats(optional=True)
    min_generation_mw: F64 = floats(optional=True)
    max_generation_mw: F64 = floats(optional=True)
    min_diversion_m3s: F64 = floats(optional=True)
    max_diversion_m3s: F64 = floats(optional=True)
    min_spillage_m3s: F64 = floats(optional=True)
    max_spillage_m3s: F64 = floats(optional=True)
    filling_min_rate_m3s: F64 = floats(optional=True)
    water_withdrawal_m3s: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class UnitGroupBounds(Table):
    KEY: ClassVar = ("hydro_id", "hydro_unit_group_id", "stage_id", "block_id")
    hydro_id: I32 = ids()
    hydro_unit_group_id: I32 = ids()
    stage_id: I32 = ids()
    block_id: I32 = ids(optional=True)
    min_turbined_m3s: F64 = floats(optional=True)
    max_turbined_m3s: F64 = floats(optional=True)
    min_generation_mw: F64 = floats(optional=True)
    max_generation_mw: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class LineBounds(Table):
    KEY: ClassVar = ("line_id", "stage_id", "block_id")
    line_id: I32 = ids()
    stage_id: I32 = ids()
    block_id: I32 = ids(optional=True)
    direct_mw: F64 = floats(optional=True)
    reverse_mw: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class SourceBounds(Table):
    KEY: ClassVar = ("ncs_id", "stage_id")
    ncs_id: I32 = ids()
    stage_id: I32 = ids()
    available_generation_mw: F64 = floats()


@frozen(eq=False, kw_only=True)
class PumpingBounds(Table):
    KEY: ClassVar = ("pumping_station_id", "stage_id", "block_id")
    pumping_station_id: I32 = ids()
    stage_id: I32 = ids()
    block_id: I32 = ids(optional=True)
    min_m3s: F64 = floats(optional=True)
    max_m3s: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class ContractBounds(Table):
    KEY: ClassVar = ("contract_id", "stage_id", "block_id")
    contract_id: I32 = ids()
    stage_id: I32 = ids()
    block_id: I32 = ids(optional=True)
    min_mw: F64 = floats(optional=True)
    max_mw: F64 = floats(optional=True)
    price_per_mwh: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class BusPenaltyTable(Table):
    KEY: ClassVar = ("bus_id", "stage_id")
    bus_id: I32 = ids()
    stage_id: I32 = ids()
    excess_cost: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class LinePenaltyTable(Table):
    KEY: ClassVar = ("line_id", "stage_id")
    line_id: I32 = ids()
    stage_id: I32 = ids()
    exchange_cost: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class HydroPenaltyTable(Table):
    KEY: ClassVar = ("hydro_id", "stage_id")
    hydro_id: I32 = ids()
    stage_id: I32 = ids()
    spillage_cost: F64 = floats(optional=True)
    turbined_cost: F64 = floats(optional=True)
    diversion_cost: F64 = floats(optional=True)
    storage_violation_below_cost: F64 = floats(optional=True)
    filling_target_violation_cost: F64 = floats(optional=True)
    turbined_violation_below_cost: F64 = floats(optional=True)
    outflow_violation_below_cost: F64 = floats(optional=True)
    outflow_violation_above_cost: F64 = floats(optional=True)
    generation_violation_below_cost: F64 = floats(optional=True)
    evaporation_violation_cost: F64 = floats(optional=True)
    evaporation_violation_pos_cost: F64 = floats(optional=True)
    evaporation_violation_neg_cost: F64 = floats(optional=True)
    water_withdrawal_violation_cost: F64 = floats(optional=True)
    water_withdrawal_violation_pos_cost: F64 = floats(optional=True)
    water_withdrawal_violation_neg_cost: F64 = floats(optional=True)
    inflow_nonnegativity_cost: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class SourcePenaltyTable(Table):
    KEY: ClassVar = ("ncs_id", "stage_id")
    ncs_id: I32 = ids()
    stage_id: I32 = ids()
    curtailment_cost: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class Geometry(Table):
    """Height and area of a reservoir by volume."""

    KEY: ClassVar = ("hydro_id", "volume_hm3")
    hydro_id: I32 = ids()
    volume_hm3: F64 = floats()
    height_m: F64 = floats()
    area_km2: F64 = floats()


@frozen(eq=False, kw_only=True)
class TailraceCurves(Table):
    """Level of the tailrace by outflow q: Σ coefficient_i·qⁱ from `outflow_min_m3s` to `outflow_max_m3s`.

    The segments of a family follow each other; a family holds for one level of the reservoir below.
    """

    KEY: ClassVar = ("hydro_id", "family_id", "segment_id")
    hydro_id: I32 = ids()
    family_id: I32 = ids()
    segment_id: I32 = ids()
    outflow_min_m3s: F64 = floats()
    outflow_max_m3s: F64 = floats()
    coefficient_0: F64 = floats()
    coefficient_1: F64 = floats()
    coefficient_2: F64 = floats()
    coefficient_3: F64 = floats()
    coefficient_4: F64 = floats()
    downstream_reference_level_m: F64 = floats(optional=True, always=True)


@frozen(eq=False, kw_only=True)
class FphaPlanes(Table):
    """generation ≤ kappa·gamma_0 + gamma_v·(mean volume) + gamma_q·turbined + gamma_s·spilled.

    A null stage means all stages.
    """

    KEY: ClassVar = ("hydro_id", "stage_id", "plane_id")
    hydro_id: I32 = ids()
    plane_id: I32 = ids()
    gamma_0: F64 = floats()
    gamma_v: F64 = floats()
    gamma_q: F64 = floats()
    gamma_s: F64 = floats()
    stage_id: I32 = ids(optional=True)
    kappa: F64 = floats(optional=True)
    valid_v_min_hm3: F64 = floats(optional=True)
    valid_v_max_hm3: F64 = floats(optional=True)
    valid_q_max_m3s: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class EnergyProductivity(Table):
    """A null stage means all stages that have no row of their own."""

    KEY: ClassVar = ("hydro_id", "stage_id")
    hydro_id: I32 = ids()
    stage_id: I32 = ids(optional=True, always=True)
    equivalent_productivity_mw_per_m3s: F64 = floats(optional=True)
    reference_outflow_m3s: F64 = floats(optional=True)
    specific_productivity_mw_per_m3s_per_m: F64 = floats(optional=True)


@frozen(eq=False, kw_only=True)
class GenericBounds(Table):
    """Sides of a user constraint in a stage; a null block means every block."""

    KEY: ClassVar = ("constraint_id", "stage_id", "block_id")
    constraint_id: I32 = ids()
    stage_id: I32 = ids()
    block_id: I32 = ids(optional=True)
    bound_lower: F64 = floats(optional=True)
    bound_upper: F64 = floats(optional=True)


@record
class Slack:
    enabled: bool
    penalty: float | None = None


@record
class GenericConstraint:
    """A linear form over the system's variables, e.g. `2.5 * thermal_generation(5) - hydro_generation(3)`."""

    id: int
    name: str
    expression: str
    slack: Slack
    description: str | None = None


@record
class NamedExpression:
    name: str
    expression: str
    description: str | None = None


ComputedTag = Literal[
    "equivalent_productivity",
    "accumulated_productivity",
    "reference_volume",
    "reference_turbine",
    "min_storage",
    "max_storage",
    "specific_productivity",
    "integrated_equivalent_productivity",
    "integrated_accumulated_productivity",
    "max_stored_energy",
]


@record
class ComputedParameter:
    """A quantity of a plant that its other data give."""

    tag: ComputedTag
    hydro_id: int


@record
class ScalarParameter:
    """A coefficient that expressions call `@name`."""

    id: int
    name: str
    kind: Literal["constant", "per_stage", "seasonal", "computed", "per_stage_block"]
    value: float | None = None
    values: tuple[tuple[int, float], ...] | None = None
    block_values: tuple[tuple[int, int, float], ...] | None = None
    computed_spec: ComputedParameter | None = None
