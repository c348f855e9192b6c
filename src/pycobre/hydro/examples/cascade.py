"""Five plants on two rivers that join, inflows that remember two months, three load blocks.

Springs ── Canyon ──┐
                    ├── Junction ── Delta
Fork ───────────────┘
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
    months_before,
    productivity,
    seasons,
    seasons_by_stage,
    settings,
    thermal,
    usual_penalties,
)
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import Geometry
from pycobre.hydro.model.horizon import PolicyGraph
from pycobre.hydro.model.initial import InflowObservation, InitialConditions, InitialStorage
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    BlockFactor,
    InflowStats,
    LoadFactors,
    LoadStats,
)
from pycobre.hydro.model.system import Line, LineCapacity

__all__ = ["cascade"]

STAGES, LAGS = 12, 2
HILLS, COAST = 0, 1
MONTHS = (1.55, 1.6, 1.45, 1.1, 0.85, 0.7, 0.6, 0.5, 0.55, 0.75, 1.0, 1.35)
COEFFICIENTS = (0.5, 0.15)
EVAPORATION_MM = (120.0, 110.0, 105.0, 90.0, 75.0, 65.0, 70.0, 85.0, 100.0, 115.0, 120.0, 125.0)
LOAD_MW = {HILLS: 420.0, COAST: 980.0}
BLOCK_FACTORS = (1.25, 1.06, 0.807)


@dataclass(frozen=True)
class Plant:
    name: str
    downstream: int | None
    bus: int
    storage_hm3: tuple[float, float]
    turbined_m3s: float
    mw_per_m3s: float
    inflow_m3s: float  # of its own stretch of the river
    deviation: float


PLANTS = (
    Plant("Springs", 1, HILLS, (300.0, 3800.0), 420.0, 0.62, 260.0, 0.35),
    Plant("Canyon", 3, HILLS, (120.0, 140.0), 460.0, 0.85, 40.0, 0.4),
    Plant("Fork", 3, HILLS, (150.0, 1500.0), 240.0, 0.7, 140.0, 0.45),
    Plant("Junction", 4, COAST, (200.0, 900.0), 720.0, 0.4, 60.0, 0.4),
    Plant("Delta", None, COAST, (80.0, 80.0), 760.0, 0.22, 30.0, 0.4),
)

#: Neighbouring stretches of a river swell together.
CORRELATION = (
    (1.0, 0.8, 0.5, 0.6, 0.5),
    (0.8, 1.0, 0.5, 0.7, 0.6),
    (0.5, 0.5, 1.0, 0.6, 0.5),
    (0.6, 0.7, 0.6, 1.0, 0.8),
    (0.5, 0.6, 0.5, 0.8, 1.0),
)


def cascade() -> Case:
    """The case."""
    before = months_before(LAGS)
    stages = months(STAGES, openings=10, blocks=3, lags=True)
    season = seasons_by_stage(before, stages)
    ids = sorted(season)
    plants = range(len(PLANTS))
    means = np.array([[p.inflow_m3s * MONTHS[season[t]] for t in ids] for p in PLANTS])
    load = np.array(
        [[mw * (1.0 + 0.04 * np.cos(2.0 * np.pi * t / 12)) for t in range(STAGES)] for mw in LOAD_MW.values()]
    )
    return Case(
        name="cascade",
        config=settings(passes=4, iterations=30, scenarios=100),
        penalties=usual_penalties(deficit_cost=4000.0),
        policy_graph=PolicyGraph(type="finite_horizon", annual_discount_rate=0.1),
        stages=stages,
        pre_study_stages=before,
        season_definitions=seasons(),
        initial_conditions=InitialConditions(
            storage=tuple(
                InitialStorage(hydro_id=i, value_hm3=round(sum(PLANTS[i].storage_hm3) / 2.0, 3))
                for i in plants
            ),
            filling_storage=(),
            recent_observations=tuple(
                InflowObservation(
                    hydro_id=i,
                    start_date=month.start_date,
                    end_date=month.end_date,
                    value_m3s=round(0.85 * PLANTS[i].inflow_m3s * MONTHS[season[month.id]], 3),
                )
                for i in plants
                for month in before
            ),
        ),
        buses=(bus(HILLS, "Hills"), bus(COAST, "Coast")),
        lines=(
            Line(
                id=0,
                name="Hills-Coast",
                operational_start_date=IN_SERVICE,
                source_bus_id=HILLS,
                target_bus_id=COAST,
                capacity=LineCapacity(direct_mw=450.0, reverse_mw=450.0),
            ),
        ),
        thermals=tuple(
            thermal(i, f"Thermal {i + 1}", (HILLS, COAST)[i % 2 or i > 3], most_mw, cost, least_mw)
            for i, (most_mw, cost, least_mw) in enumerate(
                (
                    (120.0, 45.0, 40.0),
                    (180.0, 55.0, 60.0),
                    (90.0, 95.0, 0.0),
                    (150.0, 130.0, 0.0),
                    (120.0, 210.0, 0.0),
                    (110.0, 340.0, 0.0),
                    (90.0, 620.0, 0.0),
                )
            )
        ),
        hydros=tuple(
            hydro(
                i,
                p.name,
                p.bus,
                storage_hm3=p.storage_hm3,
                turbined_m3s=p.turbined_m3s,
                productivity_mw_per_m3s=p.mw_per_m3s,
                downstream_id=p.downstream,
                min_outflow_m3s=round(0.15 * p.inflow_m3s, 3),
                evaporation_mm=EVAPORATION_MM if p.name == "Springs" else None,
            )
            for i, p in enumerate(PLANTS)
        ),
        production_models=tuple(productivity(i, p.mw_per_m3s) for i, p in enumerate(PLANTS)),
        geometry=Geometry(
            hydro_id=np.zeros(4, dtype=np.int32),
            volume_hm3=np.array([300.0, 1200.0, 2500.0, 3800.0]),
            height_m=np.array([410.0, 428.0, 441.0, 449.0]),
            area_km2=np.array([32.0, 71.0, 108.0, 137.0]),
        ),
        inflow_stats=InflowStats(
            hydro_id=np.repeat(plants, len(ids)),
            stage_id=np.tile(ids, len(PLANTS)),
            mean_m3s=np.round(means, 3),
            std_m3s=np.round(means * np.array([[p.deviation] for p in PLANTS]), 3),
        ),
        ar_coefficients=ArCoefficients(
            hydro_id=np.repeat(plants, STAGES * LAGS),
            stage_id=np.tile(np.repeat(np.arange(STAGES), LAGS), len(PLANTS)),
            lag=np.tile(np.arange(1, LAGS + 1), STAGES * len(PLANTS)),
            coefficient=np.tile(COEFFICIENTS, STAGES * len(PLANTS)),
        ),
        load_stats=LoadStats(
            bus_id=np.repeat(list(LOAD_MW), STAGES),
            stage_id=np.tile(np.arange(STAGES), len(LOAD_MW)),
            mean_mw=np.round(load, 3),
            std_mw=np.zeros(load.size),
        ),
        load_factors=tuple(
            LoadFactors(
                bus_id=place,
                stage_id=t,
                block_factors=tuple(
                    BlockFactor(block_id=k, factor=factor) for k, factor in enumerate(BLOCK_FACTORS)
                ),
            )
            for place in LOAD_MW
            for t in range(STAGES)
        ),
        correlation=correlated(plants, CORRELATION),
    )
