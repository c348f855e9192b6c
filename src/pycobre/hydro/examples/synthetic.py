"""Invented systems of any size, the same for the same arguments, to measure and to test with.

Rivers with plants one below the other, some with tributaries, reservoirs of weeks to months beside run-of-river
plants, wet and dry seasons by river; hydro covers about seven tenths of the load in a mean year and thermal
plants, from cheap to dear, the rest; a network of lines joins the buses. Every stage has a solution, since all
that could be short has a price.
"""

from __future__ import annotations

import numpy as np

from pycobre.errors import OptionError
from pycobre.hydro.examples.draw import Draw
from pycobre.hydro.examples.network import Network
from pycobre.hydro.examples.parts import (
    bus,
    months,
    months_before,
    productivity,
    seasons,
    settings,
    usual_penalties,
)
from pycobre.hydro.examples.water import Water
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import PolicyGraph

__all__ = ["synthetic"]


def synthetic(
    *,
    hydros: int = 20,
    cascades: int | None = None,
    lags: int = 1,
    thermals: int = 15,
    buses: int = 3,
    sources: int = 0,
    blocks: int = 3,
    stages: int = 12,
    openings: int = 10,
    seed: int = 0,
    forward_passes: int = 4,
    iterations: int = 20,
) -> Case:
    """A system with so many of everything; `cascades` rivers share the hydros (one for every eight)."""
    rivers = max(1, hydros // 8) if cascades is None else cascades
    _check_sizes(
        hydros=(hydros, 0),
        cascades=(rivers, 1),
        lags=(lags, 0),
        thermals=(thermals, 0),
        buses=(buses, 1),
        sources=(sources, 0),
        blocks=(blocks, 1),
        stages=(stages, 1),
        openings=(openings, 1),
        seed=(seed, 0),
        forward_passes=(forward_passes, 1),
        iterations=(iterations, 1),
    )
    draw = Draw(seed)
    water = Water.drawn(draw, hydros, rivers)
    home = np.arange(rivers) % buses  # the bus of a river's plants
    power = np.zeros(buses)
    np.add.at(power, home[water.river], water.energy_mw)
    network = Network.drawn(draw, power, thermals, sources)
    lag_months = lags if hydros else 0
    return Case(
        name="synthetic",
        config=settings(forward_passes, iterations, scenarios=0),
        penalties=usual_penalties(deficit_cost=5000.0),
        policy_graph=PolicyGraph(type="finite_horizon", annual_discount_rate=0.1),
        stages=months(stages, openings, blocks, lags=lag_months > 0),
        pre_study_stages=months_before(lag_months),
        season_definitions=seasons(),
        initial_conditions=water.initial(draw, lag_months),
        buses=tuple(bus(b, f"B{b}") for b in range(buses)),
        lines=network.lines,
        thermals=network.thermals,
        hydros=water.plants(home),
        production_models=tuple(productivity(h, rho) for h, rho in enumerate(water.rho.tolist())),
        non_controllable_sources=network.sources,
        source_stats=network.source_stats(stages),
        inflow_stats=water.inflow_stats(draw, stages, lag_months),
        ar_coefficients=water.ar_coefficients(draw, stages, lag_months),
        correlation=water.correlation(),
        load_stats=network.load_stats(stages),
        load_factors=network.load_factors(stages, blocks),
    )


def _check_sizes(**sizes: tuple[int, int]) -> None:
    for name, (value, least) in sizes.items():
        if value < least:
            raise OptionError(f"synthetic system: {name}: expected at least {least}, got {value}.")
    if sizes["cascades"][0] > max(1, sizes["hydros"][0]):
        raise OptionError(
            f"synthetic system: cascades: expected at most one per hydro ({sizes['hydros'][0]}), "
            f"got {sizes['cascades'][0]}."
        )
