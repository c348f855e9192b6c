"""Costs of what the system should rather not do; the defaults under every entity's own values."""

from __future__ import annotations

from pycobre.hydro.model.record import record
from pycobre.hydro.model.system import DeficitSegment

__all__ = ["BusPenalties", "HydroPenalties", "LinePenalties", "Penalties", "SourcePenalties"]

DEFAULT_INFLOW_NONNEGATIVITY_COST = 1000.0


@record
class BusPenalties:
    """$/MWh."""

    deficit_segments: tuple[DeficitSegment, ...]
    excess_cost: float


@record
class LinePenalties:
    """$/MWh."""

    exchange_cost: float


@record
class HydroPenalties:
    """Flows in $/(m³/s·h), generation in $/MWh, storage in $/hm³.

    A directional cost (`_pos_`, `_neg_`) that is None takes its symmetric one.
    """

    spillage_cost: float
    turbined_cost: float
    diversion_cost: float
    storage_violation_below_cost: float
    filling_target_violation_cost: float
    turbined_violation_below_cost: float
    outflow_violation_below_cost: float
    outflow_violation_above_cost: float
    generation_violation_below_cost: float
    evaporation_violation_cost: float
    water_withdrawal_violation_cost: float
    evaporation_violation_pos_cost: float | None = None
    evaporation_violation_neg_cost: float | None = None
    water_withdrawal_violation_pos_cost: float | None = None
    water_withdrawal_violation_neg_cost: float | None = None
    inflow_nonnegativity_cost: float | None = None


@record
class SourcePenalties:
    """$/MWh."""

    curtailment_cost: float


@record
class Penalties:
    bus: BusPenalties
    line: LinePenalties
    hydro: HydroPenalties
    non_controllable_source: SourcePenalties
