"""One reservoir, three thermal plants, one year: small enough to follow every number."""

from __future__ import annotations

import numpy as np

from pycobre.hydro.examples.parts import (
    bus,
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
from pycobre.hydro.model.scenarios import InflowStats, LoadStats

__all__ = ["one_reservoir"]

#: Mean inflow by month, m³/s: a wet summer and a dry winter.
INFLOW = (170.0, 180.0, 160.0, 120.0, 85.0, 65.0, 50.0, 40.0, 45.0, 70.0, 105.0, 145.0)
LOAD_MW = 150.0


def one_reservoir() -> Case:
    """The case."""
    stage, only = np.arange(12, dtype=np.int32), np.zeros(12, dtype=np.int32)
    return Case(
        name="one-reservoir",
        config=settings(passes=4, iterations=40, scenarios=200),
        penalties=usual_penalties(deficit_cost=3000.0),
        policy_graph=PolicyGraph(type="finite_horizon", annual_discount_rate=0.08),
        stages=months(12, openings=12),
        season_definitions=seasons(),
        initial_conditions=InitialConditions(
            storage=(InitialStorage(hydro_id=0, value_hm3=350.0),), filling_storage=()
        ),
        buses=(bus(0, "System"),),
        thermals=(
            thermal(0, "Gas", 0, most_mw=40.0, cost=60.0),
            thermal(1, "Coal", 0, most_mw=30.0, cost=110.0),
            thermal(2, "Oil", 0, most_mw=25.0, cost=380.0),
        ),
        hydros=(
            hydro(
                0,
                "Lake",
                0,
                storage_hm3=(50.0, 900.0),
                turbined_m3s=160.0,
                productivity_mw_per_m3s=0.9,
                min_outflow_m3s=20.0,
            ),
        ),
        production_models=(productivity(0, 0.9),),
        inflow_stats=InflowStats(
            hydro_id=only,
            stage_id=stage,
            mean_m3s=np.array(INFLOW),
            std_m3s=np.round(0.35 * np.array(INFLOW), 3),
        ),
        load_stats=LoadStats(bus_id=only, stage_id=stage, mean_mw=np.full(12, LOAD_MW), std_mw=np.zeros(12)),
    )
