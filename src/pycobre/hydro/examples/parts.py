"""What the bundled cases are made of: months, seasons, plants of one unit group, usual penalties and settings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from pycobre.hydro.model.config import (
    Config,
    InflowNonNegativity,
    IterationLimit,
    ModelingConfig,
    SampledPasses,
    SampledScenarios,
    SimulationConfig,
    TrainingConfig,
)
from pycobre.hydro.model.horizon import Block, PreStudyStage, Season, SeasonDefinitions, Stage, StateVariables
from pycobre.hydro.model.penalties import (
    BusPenalties,
    HydroPenalties,
    LinePenalties,
    Penalties,
    SourcePenalties,
)
from pycobre.hydro.model.production import StageRange, StageRangeProduction
from pycobre.hydro.model.scenarios import Correlation, CorrelationEntity, CorrelationGroup, CorrelationProfile
from pycobre.hydro.model.system import (
    Bus,
    DeficitSegment,
    Evaporation,
    Generation,
    Hydro,
    Outflow,
    PowerLimits,
    Reservoir,
    Thermal,
    UnitGroup,
)

__all__ = [
    "FIRST_DAY",
    "IN_SERVICE",
    "block_shares",
    "bus",
    "correlated",
    "hydro",
    "months",
    "months_before",
    "productivity",
    "seasons",
    "seasons_by_stage",
    "settings",
    "thermal",
    "usual_penalties",
]

FIRST_DAY = date(2026, 1, 1)
IN_SERVICE = date(2000, 1, 1)

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_BLOCKS = {
    1: (("all", 1.0),),
    2: (("peak", 0.35), ("off-peak", 0.65)),
    3: (("heavy", 0.15), ("medium", 0.5), ("light", 0.35)),
}


def block_shares(count: int) -> tuple[tuple[str, float], ...]:
    """Names of load blocks and their share of a month's hours; many blocks are equally long."""
    return _BLOCKS.get(count) or tuple((f"block {k + 1}", 1.0 / count) for k in range(count))


def months(count: int, openings: int, blocks: int = 1, lags: bool = False) -> tuple[Stage, ...]:
    """Calendar months from `FIRST_DAY`, each in its season."""
    return tuple(_month(t, openings, blocks, lags) for t in range(count))


def _month(t: int, openings: int, blocks: int, lags: bool) -> Stage:
    start, end = _first_of(t), _first_of(t + 1)
    hours = 24.0 * (end - start).days
    return Stage(
        id=t,
        start_date=start,
        end_date=end,
        blocks=tuple(
            Block(id=k, name=name, hours=round(share * hours, 3))
            for k, (name, share) in enumerate(block_shares(blocks))
        ),
        num_openings=openings,
        season_id=start.month - 1,
        state_variables=StateVariables(inflow_lags=True) if lags else None,
    )


def months_before(count: int) -> tuple[PreStudyStage, ...]:
    """The months before the study, which lags refer to; ids −1, −2, …"""
    return tuple(
        PreStudyStage(
            id=-lag,
            start_date=_first_of(-lag),
            end_date=_first_of(1 - lag),
            season_id=_first_of(-lag).month - 1,
        )
        for lag in range(1, count + 1)
    )


def _first_of(month: int) -> date:
    """First day of the month so many after the study's first (before it: negative)."""
    number = FIRST_DAY.year * 12 + FIRST_DAY.month - 1 + month
    return date(number // 12, number % 12 + 1, 1)


def seasons() -> SeasonDefinitions:
    """The months of the year."""
    return SeasonDefinitions(
        cycle_type="monthly",
        seasons=tuple(Season(id=m, label=name, month_start=m + 1) for m, name in enumerate(MONTHS)),
    )


def seasons_by_stage(before: tuple[PreStudyStage, ...], stages: tuple[Stage, ...]) -> dict[int, int]:
    """Month of the year, from 0, by stage id."""
    first = {s.id: s.start_date.month - 1 for s in before}
    return first | {s.id: s.start_date.month - 1 for s in stages}


def bus(id: int, name: str) -> Bus:
    return Bus(id=id, name=name, operational_start_date=IN_SERVICE)


def thermal(id: int, name: str, bus_id: int, most_mw: float, cost: float, least_mw: float = 0.0) -> Thermal:
    return Thermal(
        id=id,
        name=name,
        operational_start_date=IN_SERVICE,
        bus_id=bus_id,
        cost_per_mwh=cost,
        generation=PowerLimits(min_mw=least_mw, max_mw=most_mw),
    )


def hydro(
    id: int,
    name: str,
    bus_id: int,
    *,
    storage_hm3: tuple[float, float],
    turbined_m3s: float,
    productivity_mw_per_m3s: float,
    downstream_id: int | None = None,
    min_outflow_m3s: float = 0.0,
    evaporation_mm: tuple[float, ...] | None = None,
) -> Hydro:
    """A plant with one unit group, whose power is what its flow gives."""
    most_mw = round(turbined_m3s * productivity_mw_per_m3s, 6)
    return Hydro(
        id=id,
        name=name,
        operational_start_date=IN_SERVICE,
        downstream_id=downstream_id,
        reservoir=Reservoir(min_storage_hm3=storage_hm3[0], max_storage_hm3=storage_hm3[1]),
        outflow=Outflow(min_outflow_m3s=min_outflow_m3s),
        generation=Generation(
            model="constant_productivity",
            min_turbined_m3s=0.0,
            max_turbined_m3s=turbined_m3s,
            min_generation_mw=0.0,
            max_generation_mw=most_mw,
        ),
        unit_groups=(
            UnitGroup(
                id=0,
                name=f"{name}-1",
                bus_id=bus_id,
                min_turbined_m3s=0.0,
                max_turbined_m3s=turbined_m3s,
                min_generation_mw=0.0,
                max_generation_mw=most_mw,
            ),
        ),
        evaporation=None if evaporation_mm is None else Evaporation(coefficients_mm=evaporation_mm),
    )


def productivity(hydro_id: int, mw_per_m3s: float) -> StageRangeProduction:
    """The same productivity in all stages."""
    span = StageRange(start_stage_id=0, model="constant_productivity", productivity_mw_per_m3s=mw_per_m3s)
    return StageRangeProduction(hydro_id=hydro_id, stage_ranges=(span,))


def correlated(plants: Iterable[int], matrix: tuple[tuple[float, ...], ...]) -> Correlation:
    """Inflows of all plants in one group, correlated alike in every season."""
    entities = tuple(CorrelationEntity(type="inflow", id=plant) for plant in plants)
    group = CorrelationGroup(name="rivers", entities=entities, matrix=matrix)
    return Correlation(
        method="spectral", profiles={"default": CorrelationProfile(correlation_groups=(group,))}
    )


def usual_penalties(deficit_cost: float) -> Penalties:
    """Deficit at one cost; small costs for spilling and exchange; large ones for soft limits.

    Water against negative inflows, or against evaporation, is dearer than any use of it down a long river, so that
    nobody buys it to turbine it.
    """
    return Penalties(
        bus=BusPenalties(deficit_segments=(DeficitSegment(cost=deficit_cost),), excess_cost=0.1),
        line=LinePenalties(exchange_cost=0.5),
        hydro=HydroPenalties(
            spillage_cost=0.01,
            turbined_cost=0.0,
            diversion_cost=0.1,
            storage_violation_below_cost=10000.0,
            filling_target_violation_cost=10000.0,
            turbined_violation_below_cost=500.0,
            outflow_violation_below_cost=500.0,
            outflow_violation_above_cost=500.0,
            generation_violation_below_cost=1000.0,
            evaporation_violation_cost=20.0 * deficit_cost,
            water_withdrawal_violation_cost=1000.0,
            inflow_nonnegativity_cost=20.0 * deficit_cost,
        ),
        non_controllable_source=SourcePenalties(curtailment_cost=0.01),
    )


def settings(passes: int, iterations: int, scenarios: int) -> Config:
    """Train so many iterations of so many trajectories, then simulate."""
    return Config(
        training=TrainingConfig(
            selection=SampledPasses(forward_passes=passes),
            stopping_rules=(IterationLimit(limit=iterations),),
            tree_seed=42,
        ),
        simulation=SimulationConfig(
            enabled=scenarios > 0,
            selection=SampledScenarios(num_scenarios=scenarios) if scenarios else None,
        ),
        modeling=ModelingConfig(inflow_non_negativity=InflowNonNegativity(method="penalty")),
    )
