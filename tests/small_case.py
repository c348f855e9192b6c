"""Cases written in Python for tests: one line says what is special about each."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import (
    Config,
    InflowNonNegativity,
    IterationLimit,
    ModelingConfig,
    SampledPasses,
    TrainingConfig,
)
from pycobre.hydro.model.horizon import Block, PolicyGraph, Season, SeasonDefinitions, Stage
from pycobre.hydro.model.initial import InitialConditions, InitialStorage
from pycobre.hydro.model.penalties import (
    BusPenalties,
    HydroPenalties,
    LinePenalties,
    Penalties,
    SourcePenalties,
)
from pycobre.hydro.model.production import StageRange, StageRangeProduction
from pycobre.hydro.model.scenarios import ArCoefficients, InflowStats, LoadStats
from pycobre.hydro.model.system import (
    Bus,
    DeficitSegment,
    Generation,
    Hydro,
    Outflow,
    PowerLimits,
    Reservoir,
    Thermal,
    UnitGroup,
)

START = date(2024, 1, 1)
LONG_AGO = date(2000, 1, 1)
DEFICIT = 1000.0


def penalties(**hydro: float) -> Penalties:
    costs = {
        "spillage_cost": 0.01,
        "turbined_cost": 0.0,
        "diversion_cost": 0.1,
        "storage_violation_below_cost": 10000.0,
        "filling_target_violation_cost": 10000.0,
        "turbined_violation_below_cost": 500.0,
        "outflow_violation_below_cost": 500.0,
        "outflow_violation_above_cost": 500.0,
        "generation_violation_below_cost": 500.0,
        "evaporation_violation_cost": 500.0,
        "water_withdrawal_violation_cost": 500.0,
    }
    return Penalties(
        bus=BusPenalties(deficit_segments=(DeficitSegment(cost=DEFICIT),), excess_cost=1.0),
        line=LinePenalties(exchange_cost=0.5),
        hydro=HydroPenalties(**(costs | hydro)),
        non_controllable_source=SourcePenalties(curtailment_cost=0.005),
    )


def stages(
    count: int, openings: int = 1, hours: tuple[float, ...] = (100.0,), **more: Any
) -> tuple[Stage, ...]:
    """Months with seasons, and blocks of the given hours."""
    made = []
    for t in range(count):
        month = START.year * 12 + START.month - 1 + t
        following = month + 1
        made.append(
            Stage(
                id=t,
                start_date=date(month // 12, month % 12 + 1, 1),
                end_date=date(following // 12, following % 12 + 1, 1),
                blocks=tuple(Block(id=k, name=f"b{k}", hours=h) for k, h in enumerate(hours)),
                num_openings=openings,
                season_id=month % 12,
                **more,
            )
        )
    return tuple(made)


def weeks(count: int, openings: int = 1) -> tuple[Stage, ...]:
    """Weeks that belong to the month in which they start."""
    made = []
    for t in range(count):
        start = START + timedelta(days=7 * t)
        made.append(
            Stage(
                id=t,
                start_date=start,
                end_date=start + timedelta(days=7),
                blocks=(Block(id=0, name="b", hours=168.0),),
                num_openings=openings,
                season_id=start.month - 1,
            )
        )
    return tuple(made)


MONTHS = SeasonDefinitions(
    cycle_type="monthly",
    seasons=tuple(Season(id=i, label=f"month {i + 1}", month_start=i + 1) for i in range(12)),
)


def hydro(id: int, *, bus: int = 0, most: float = 50.0, volume: float = 100.0, **more: Any) -> Hydro:
    """A plant with one unit group; `most` m³/s and MW, `volume` hm³."""
    limits = {
        "min_turbined_m3s": 0.0,
        "max_turbined_m3s": most,
        "min_generation_mw": 0.0,
        "max_generation_mw": most,
    }
    limits |= {name: more.pop(name) for name in list(more) if name in limits}
    defaults: dict[str, Any] = {
        "reservoir": Reservoir(min_storage_hm3=0.0, max_storage_hm3=volume),
        "outflow": Outflow(min_outflow_m3s=0.0),
        "unit_groups": (UnitGroup(id=0, name="g", bus_id=bus, **limits),),
    }
    return Hydro(
        id=id,
        name=f"H{id}",
        operational_start_date=LONG_AGO,
        generation=Generation(model="constant_productivity", **limits),
        **(defaults | more),
    )


def thermal(id: int, cost: float, most: float = 100.0, *, bus: int = 0, **more: Any) -> Thermal:
    return Thermal(
        id=id,
        name=f"T{id}",
        operational_start_date=LONG_AGO,
        bus_id=bus,
        cost_per_mwh=cost,
        generation=PowerLimits(min_mw=0.0, max_mw=most),
        **more,
    )


def bus(id: int, **more: Any) -> Bus:
    return Bus(id=id, name=f"B{id}", operational_start_date=LONG_AGO, **more)


def inflows(
    case_stages: tuple[Stage, ...], values: dict[int, tuple[float, float]], before: int = 0
) -> InflowStats:
    """(mean, deviation) of every plant, the same in all stages and in `before` stages before the study."""
    ids = [*range(-before, 0), *(s.id for s in case_stages)]
    rows = [(h, t, m, s) for h, (m, s) in values.items() for t in ids]
    h, t, m, s = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.zeros(0),) * 4
    return InflowStats(hydro_id=h, stage_id=t, mean_m3s=m, std_m3s=s)


def loads(case_stages: tuple[Stage, ...], values: dict[int, float], std: float = 0.0) -> LoadStats:
    rows = [(b, s.id, value, std) for b, value in values.items() for s in case_stages]
    b, t, m, s = (np.array(column) for column in zip(*rows, strict=True))
    return LoadStats(bus_id=b, stage_id=t, mean_mw=m, std_mw=s)


def lags(case_stages: tuple[Stage, ...], values: dict[int, tuple[float, ...]]) -> ArCoefficients:
    rows = [
        (h, s.id, lag, v) for h, phi in values.items() for s in case_stages for lag, v in enumerate(phi, 1)
    ]
    h, t, lag, v = (np.array(column) for column in zip(*rows, strict=True))
    return ArCoefficients(hydro_id=h, stage_id=t, lag=lag, coefficient=v)


def productivity(*hydros: Hydro, value: float = 1.0) -> tuple[StageRangeProduction, ...]:
    span = StageRange(start_stage_id=0, model="constant_productivity", productivity_mw_per_m3s=value)
    return tuple(StageRangeProduction(hydro_id=h.id, stage_ranges=(span,)) for h in hydros)


def config(method: str = "none", passes: int = 1, iterations: int = 20, **training: Any) -> Config:
    return Config(
        training=TrainingConfig(
            selection=SampledPasses(forward_passes=passes),
            stopping_rules=(IterationLimit(limit=iterations),),
            **training,
        ),
        modeling=ModelingConfig(inflow_non_negativity=InflowNonNegativity(method=method)),  # type: ignore[arg-type]
    )


def one_reservoir(periods: tuple[Stage, ...] | None = None, **changes: Any) -> Case:
    """One plant of 50 MW with 100 hm³, one thermal at 50 $/MWh, 80 MW of load, inflow of 20 m³/s."""
    periods = periods or stages(2)
    plants = changes.pop("hydros", (hydro(0),))
    values: dict[str, Any] = {
        "config": config(),
        "penalties": penalties(),
        "policy_graph": PolicyGraph(type="finite_horizon", annual_discount_rate=0.0),
        "stages": periods,
        "season_definitions": MONTHS,
        "initial_conditions": InitialConditions(
            storage=tuple(InitialStorage(hydro_id=h.id, value_hm3=50.0) for h in plants), filling_storage=()
        ),
        "buses": (bus(0),),
        "thermals": (thermal(0, 50.0),),
        "hydros": plants,
        "production_models": productivity(*plants),
        "inflow_stats": inflows(periods, {h.id: (20.0, 0.0) for h in plants}),
        "load_stats": loads(periods, {0: 80.0}),
        "name": "one reservoir",
    }
    return Case(**(values | changes))


def changed(case: Case, **changes: Any) -> Case:
    return replace(case, **changes)
