"""Four regions and a node without load between them, in the style of the Brazilian system.

Every region has an equivalent reservoir, some have run-of-river plants and wind, and all have a ladder of
thermal plants. Numbers are invented; their proportions are the real system's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pycobre.hydro.examples.parts import (
    IN_SERVICE,
    bus,
    correlated,
    hydro,
    months,
    productivity,
    seasons,
    settings,
    thermal,
    usual_penalties,
)
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import PolicyGraph
from pycobre.hydro.model.initial import InitialConditions, InitialStorage
from pycobre.hydro.model.scenarios import (
    BlockFactor,
    InflowStats,
    LoadFactors,
    LoadStats,
    SourceStats,
)
from pycobre.hydro.model.system import Line, LineCapacity, NonControllableSource, Thermal

__all__ = ["four_regions"]

STAGES = 12
SOUTHEAST, SOUTH, NORTHEAST, NORTH, NODE = range(5)
REGIONS = ("Southeast", "South", "Northeast", "North", "Node")

#: Mean load by region (MW), and what each block takes of it.
LOAD_MW = (40000.0, 12500.0, 12000.0, 6500.0, 0.0)
BLOCK_FACTORS = (1.2, 1.05, 0.843)

WET_SUMMER = (1.62, 1.7, 1.58, 1.27, 0.95, 0.78, 0.65, 0.54, 0.52, 0.6, 0.78, 1.21)
WET_WINTER = (0.82, 0.92, 0.82, 0.78, 0.98, 1.18, 1.26, 1.12, 1.22, 1.4, 1.02, 0.78)
WET_AUTUMN = (1.25, 1.6, 1.95, 1.95, 1.45, 0.75, 0.45, 0.3, 0.25, 0.3, 0.45, 0.8)


@dataclass(frozen=True)
class Plant:
    name: str
    region: int
    storage_hm3: float
    turbined_m3s: float
    mw_per_m3s: float
    inflow_m3s: float
    deviation: float  # relative to the mean
    months: tuple[float, ...]


PLANTS = (
    Plant("Paranaiba", SOUTHEAST, 110000.0, 26000.0, 1.42, 15600.0, 0.2, WET_SUMMER),
    Plant("Iguacu", SOUTH, 19000.0, 11500.0, 1.25, 6000.0, 0.42, WET_WINTER),
    Plant("Sao Roque", NORTHEAST, 50000.0, 7800.0, 1.1, 3600.0, 0.28, WET_SUMMER),
    Plant("Araguari", NORTH, 12500.0, 8200.0, 1.05, 6400.0, 0.24, WET_AUTUMN),
    Plant("Border Falls", SOUTHEAST, 0.0, 11000.0, 1.0, 9200.0, 0.18, WET_SUMMER),
    Plant("Great Bend", NORTH, 0.0, 9500.0, 0.8, 7000.0, 0.3, WET_AUTUMN),
)

#: Thermal plants by region: how many, their capacity together (MW), cheapest and dearest ($/MWh).
THERMALS = (
    (28, 13500.0, 35.0, 1150.0),
    (11, 3000.0, 70.0, 900.0),
    (14, 5200.0, 80.0, 1100.0),
    (9, 3200.0, 60.0, 700.0),
)

#: From, to, forward and backward capacity (MW).
LINES = (
    (SOUTHEAST, SOUTH, 7000.0, 6500.0),
    (SOUTHEAST, NORTHEAST, 1500.0, 3000.0),
    (SOUTHEAST, NODE, 4000.0, 5500.0),
    (NORTHEAST, NODE, 3500.0, 3000.0),
    (NORTH, NODE, 8000.0, 4000.0),
)

#: Wind and sun: region, capacity (MW), mean availability by month, deviation.
SOURCES = (
    (
        "Northeast wind",
        NORTHEAST,
        14000.0,
        (0.36, 0.3, 0.26, 0.27, 0.35, 0.44, 0.51, 0.56, 0.56, 0.51, 0.45, 0.4),
        0.05,
    ),
    (
        "Southeast sun",
        SOUTHEAST,
        9000.0,
        (0.27, 0.27, 0.25, 0.23, 0.21, 0.2, 0.21, 0.24, 0.25, 0.26, 0.27, 0.27),
        0.0,
    ),
)

CORRELATION = (
    (1.0, -0.1, 0.45, 0.3, 0.8, 0.25),
    (-0.1, 1.0, -0.15, -0.1, 0.05, -0.1),
    (0.45, -0.15, 1.0, 0.4, 0.3, 0.3),
    (0.3, -0.1, 0.4, 1.0, 0.2, 0.7),
    (0.8, 0.05, 0.3, 0.2, 1.0, 0.2),
    (0.25, -0.1, 0.3, 0.7, 0.2, 1.0),
)


def four_regions() -> Case:
    """The case."""
    stage = np.arange(STAGES)
    plants = range(len(PLANTS))
    means = np.array([[p.inflow_m3s * p.months[t % 12] for t in stage] for p in PLANTS])
    deviations = means * np.array([[p.deviation] for p in PLANTS])
    return Case(
        name="four-regions",
        config=settings(passes=4, iterations=25, scenarios=100),
        penalties=usual_penalties(deficit_cost=6500.0),
        policy_graph=PolicyGraph(type="finite_horizon", annual_discount_rate=0.0),
        stages=months(STAGES, openings=10, blocks=3),
        season_definitions=seasons(),
        initial_conditions=InitialConditions(
            storage=tuple(
                InitialStorage(hydro_id=i, value_hm3=round(0.45 * PLANTS[i].storage_hm3, 3)) for i in plants
            ),
            filling_storage=(),
        ),
        buses=tuple(bus(i, name) for i, name in enumerate(REGIONS)),
        lines=tuple(
            Line(
                id=i,
                name=f"{REGIONS[source]}-{REGIONS[target]}",
                operational_start_date=IN_SERVICE,
                source_bus_id=source,
                target_bus_id=target,
                capacity=LineCapacity(direct_mw=forward, reverse_mw=backward),
            )
            for i, (source, target, forward, backward) in enumerate(LINES)
        ),
        thermals=_thermals(),
        hydros=tuple(
            hydro(
                i,
                p.name,
                p.region,
                storage_hm3=(round(0.1 * p.storage_hm3, 3), p.storage_hm3),
                turbined_m3s=p.turbined_m3s,
                productivity_mw_per_m3s=p.mw_per_m3s,
                min_outflow_m3s=round(0.1 * p.inflow_m3s, 3),
            )
            for i, p in enumerate(PLANTS)
        ),
        production_models=tuple(productivity(i, p.mw_per_m3s) for i, p in enumerate(PLANTS)),
        non_controllable_sources=tuple(
            NonControllableSource(
                id=i,
                name=name,
                operational_start_date=IN_SERVICE,
                bus_id=region,
                max_generation_mw=capacity,
            )
            for i, (name, region, capacity, _, _) in enumerate(SOURCES)
        ),
        source_stats=SourceStats(
            ncs_id=np.repeat(np.arange(len(SOURCES)), STAGES),
            stage_id=np.tile(stage, len(SOURCES)),
            mean=np.array([[source[3][t % 12] for t in stage] for source in SOURCES]),
            std=np.repeat([source[4] for source in SOURCES], STAGES),
        ),
        inflow_stats=InflowStats(
            hydro_id=np.repeat(plants, STAGES),
            stage_id=np.tile(stage, len(PLANTS)),
            mean_m3s=np.round(means, 3),
            std_m3s=np.round(deviations, 3),
        ),
        load_stats=LoadStats(
            bus_id=np.repeat(np.arange(len(LOAD_MW)), STAGES),
            stage_id=np.tile(stage, len(LOAD_MW)),
            mean_mw=np.repeat(LOAD_MW, STAGES),
            std_mw=np.zeros(len(LOAD_MW) * STAGES),
        ),
        load_factors=tuple(
            LoadFactors(
                bus_id=region,
                stage_id=int(t),
                block_factors=tuple(
                    BlockFactor(block_id=k, factor=factor) for k, factor in enumerate(BLOCK_FACTORS)
                ),
            )
            for region in range(len(LOAD_MW))
            for t in stage
        ),
        correlation=correlated(plants, CORRELATION),
    )


def _thermals() -> tuple[Thermal, ...]:
    """Plants of each region, dearer and smaller from one to the next; the cheapest must run at a third."""
    found: list[Thermal] = []
    for region, (count, total_mw, cheapest, dearest) in enumerate(THERMALS):
        sizes = np.linspace(1.8, 0.2, count)
        ladder = np.linspace(0.0, 1.0, count)
        for i in range(count):
            capacity = round(float(total_mw * sizes[i] / sizes.sum()), 1)
            cost = round(float(cheapest * (dearest / cheapest) ** ladder[i]), 2)
            must = round(capacity / 3.0, 1) if i < count // 5 else 0.0
            name = f"{REGIONS[region]} {i + 1}"
            found.append(thermal(len(found), name, region, capacity, cost, must))
    return tuple(found)
