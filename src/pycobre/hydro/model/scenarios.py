"""What is known about the future: statistics, history, correlation, external scenarios, factors by block."""

from __future__ import annotations

from typing import ClassVar, Literal

from pycobre._util.frozen import frozen
from pycobre.hydro.model.record import record
from pycobre.hydro.model.table import DAY, F64, I32, Table, counts, dates, floats, ids

__all__ = [
    "AnnualComponents",
    "ArCoefficients",
    "BlockFactor",
    "Correlation",
    "CorrelationEntity",
    "CorrelationGroup",
    "CorrelationProfile",
    "CorrelationSchedule",
    "ExternalInflows",
    "ExternalLoads",
    "ExternalSources",
    "InflowHistory",
    "InflowStats",
    "LoadFactors",
    "LoadStats",
    "NoiseOpenings",
    "SourceFactors",
    "SourceStats",
]


@frozen(eq=False, kw_only=True)
class InflowStats(Table):
    """Mean and standard deviation of each plant's inflow by stage; negative stages are before the study."""

    KEY: ClassVar = ("hydro_id", "stage_id")
    hydro_id: I32 = ids()
    stage_id: I32 = ids()
    mean_m3s: F64 = floats()
    std_m3s: F64 = floats()


@frozen(eq=False, kw_only=True)
class ArCoefficients(Table):
    """Standardised autoregressive coefficients; lags count from 1."""

    KEY: ClassVar = ("hydro_id", "stage_id", "lag")
    hydro_id: I32 = ids()
    stage_id: I32 = ids()
    lag: I32 = ids()
    coefficient: F64 = floats()


@frozen(eq=False, kw_only=True)
class AnnualComponents(Table):
    """The annual term of a PAR(p)-A model."""

    KEY: ClassVar = ("hydro_id", "stage_id")
    hydro_id: I32 = ids()
    stage_id: I32 = ids()
    annual_coefficient: F64 = floats()
    annual_mean_m3s: F64 = floats()
    annual_std_m3s: F64 = floats()


@frozen(eq=False, kw_only=True)
class InflowHistory(Table):
    """Observed mean inflow over [start_date, end_date)."""

    KEY: ClassVar = ("hydro_id", "start_date")
    hydro_id: I32 = ids()
    start_date: DAY = dates()
    end_date: DAY = dates()
    value_m3s: F64 = floats()


@frozen(eq=False, kw_only=True)
class LoadStats(Table):
    """Mean and standard deviation of each bus's load; a bus with deviation in any stage is random."""

    KEY: ClassVar = ("bus_id", "stage_id")
    bus_id: I32 = ids()
    stage_id: I32 = ids()
    mean_mw: F64 = floats()
    std_mw: F64 = floats()


@frozen(eq=False, kw_only=True)
class SourceStats(Table):
    """Mean and standard deviation of a source's availability, as a fraction of its capacity."""

    KEY: ClassVar = ("ncs_id", "stage_id")
    ncs_id: I32 = ids()
    stage_id: I32 = ids()
    mean: F64 = floats()
    std: F64 = floats()


@frozen(eq=False, kw_only=True)
class ExternalInflows(Table):
    KEY: ClassVar = ("stage_id", "scenario_id", "hydro_id")
    stage_id: I32 = ids()
    scenario_id: I32 = ids()
    hydro_id: I32 = ids()
    value_m3s: F64 = floats()


@frozen(eq=False, kw_only=True)
class ExternalLoads(Table):
    KEY: ClassVar = ("stage_id", "scenario_id", "bus_id")
    stage_id: I32 = ids()
    scenario_id: I32 = ids()
    bus_id: I32 = ids()
    value_mw: F64 = floats()


@frozen(eq=False, kw_only=True)
class ExternalSources(Table):
    """Availability as a fraction of capacity."""

    KEY: ClassVar = ("stage_id", "scenario_id", "ncs_id")
    stage_id: I32 = ids()
    scenario_id: I32 = ids()
    ncs_id: I32 = ids()
    availability_factor: F64 = floats()


@frozen(eq=False, kw_only=True)
class NoiseOpenings(Table):
    """Standardised noise of every opening.

    Entities are hydros by `operational_start_date` and id, then random loads and random sources by id.
    """

    KEY: ClassVar = ("stage_id", "opening_index", "entity_index")
    stage_id: I32 = ids()
    opening_index: I32 = counts()
    entity_index: I32 = counts()
    value: F64 = floats()


@record
class BlockFactor:
    block_id: int
    factor: float


@record
class LoadFactors:
    """Multipliers of one bus's load in the blocks of one stage; blocks not named have 1."""

    bus_id: int
    stage_id: int
    block_factors: tuple[BlockFactor, ...]


@record
class SourceFactors:
    """Multipliers of one source's availability in the blocks of one stage; blocks not named have 1."""

    ncs_id: int
    stage_id: int
    block_factors: tuple[BlockFactor, ...]


@record
class CorrelationEntity:
    type: Literal["inflow", "load", "ncs"]
    id: int


@record
class CorrelationGroup:
    """Entities of one type and the matrix of their correlations, rows in the order of the entities."""

    name: str
    entities: tuple[CorrelationEntity, ...]
    matrix: tuple[tuple[float, ...], ...]


@record
class CorrelationProfile:
    correlation_groups: tuple[CorrelationGroup, ...]


@record
class CorrelationSchedule:
    stage_id: int
    profile_name: str


@record
class Correlation:
    """Named profiles, and which stage uses which."""

    method: Literal["spectral"]
    profiles: dict[str, CorrelationProfile]
    schedule: tuple[CorrelationSchedule, ...] | None = None
