"""What can be computed with, and is hardly what the author of a case meant.

A missing load, months that do not join, numbers in another unit, and penalties that make it cheaper to create water
than to shed load.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, warning
from pycobre.hydro.model.config import Config
from pycobre.hydro.model.constraints import ComputedParameter, EnergyProductivity
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.parameters import PlantData
from pycobre.hydro.model.penalties import DEFAULT_INFLOW_NONNEGATIVITY_COST, Penalties
from pycobre.hydro.model.production import ProductionModel
from pycobre.hydro.model.scenarios import LoadStats
from pycobre.hydro.model.system import Bus, EnergyContract, Hydro, NonControllableSource, Thermal

PHYSICAL = Layer.PHYSICAL
MOST_HOURS = 1.1  # of blocks, in hours of the calendar
MOST_LOAD = 10.0  # in what all plants can give
MOST_PRODUCTIVITY = 20.0  # MW per m³/s: a head of 2,000 m


@check
def load_is_there(load_stats: LoadStats, buses: tuple[Bus, ...]) -> Findings:
    if buses and not len(load_stats):
        rule = "buses have a load: without this file it is 0 everywhere"
        yield warning(PHYSICAL, "no_load", "load_stats", rule)


@check
def stages_join(stages: tuple[Stage, ...]) -> Findings:
    """The calendar of a study has no holes, and no day twice."""
    ordered = sorted(stages, key=lambda stage: stage.id)
    for before, after in pairwise(ordered):
        if before.start_date < before.end_date != after.start_date:
            yield warning(
                PHYSICAL,
                "stage_gap" if before.end_date < after.start_date else "stage_overlap",
                "stages",
                f"a stage starts when the one before ends, on {before.end_date}",
                entity=f"stage {after.id}",
                value=after.start_date,
            )


@check
def hours_fit_the_calendar(stages: tuple[Stage, ...]) -> Findings:
    for stage in stages:
        if stage.days > 0 and stage.hours > MOST_HOURS * 24.0 * stage.days:
            yield warning(
                PHYSICAL,
                "stage_hours",
                "stages",
                f"blocks have the {24 * stage.days} hours from {stage.start_date} to {stage.end_date}",
                entity=f"stage {stage.id}",
                value=f"{stage.hours:g}",
            )


@check
def load_fits_the_system(
    load_stats: LoadStats,
    hydros: tuple[Hydro, ...],
    thermals: tuple[Thermal, ...],
    non_controllable_sources: tuple[NonControllableSource, ...],
    energy_contracts: tuple[EnergyContract, ...],
) -> Findings:
    """A load that all plants together could not carry a part of is in another unit."""
    most = sum(h.generation.max_generation_mw for h in hydros) + sum(t.generation.max_mw for t in thermals)
    most += sum(s.max_generation_mw for s in non_controllable_sources)
    most += sum(c.limits.max_mw for c in energy_contracts if c.type == "import")
    for stage in np.unique(load_stats.stage_id).tolist() if most > 0.0 else ():
        load = float(load_stats.mean_mw[load_stats.stage_id == stage].sum())
        if load > MOST_LOAD * most:
            yield warning(
                PHYSICAL,
                "load_magnitude",
                "load_stats",
                f"load is in MW, and plants can give {most:g} MW together",
                entity=f"stage {stage}",
                value=f"{load:g} MW",
            )
            return


@check
def productivities_are_possible(
    hydros: tuple[Hydro, ...],
    stages: tuple[Stage, ...],
    production_models: tuple[ProductionModel, ...],
    energy_productivity: EnergyProductivity,
) -> Findings:
    plants = PlantData(hydros, production_models, energy_productivity)
    for hydro in hydros if stages else ():
        spec = ComputedParameter(tag="equivalent_productivity", hydro_id=hydro.id)
        value = plants.value(spec, stages[0])
        if value is not None and value > MOST_PRODUCTIVITY:
            yield warning(
                PHYSICAL,
                "productivity_magnitude",
                "production_models",
                f"a productivity is in MW per m³/s, and no head gives more than {MOST_PRODUCTIVITY:g}",
                entity=f"hydro {hydro.id}",
                value=f"{value:g}",
            )


@check
def water_is_not_cheaper_than_deficit(
    config: Config,
    penalties: Penalties,
    buses: tuple[Bus, ...],
    hydros: tuple[Hydro, ...],
    stages: tuple[Stage, ...],
    production_models: tuple[ProductionModel, ...],
    energy_productivity: EnergyProductivity,
) -> Findings:
    """The slack of inflows is not limited to what is missing to 0: where it is cheap, a plan creates water."""
    if (
        config.modeling.inflow_non_negativity.method not in ("penalty", "truncation_with_penalty")
        or not stages
    ):
        return
    segments = [bus.deficit_segments or penalties.bus.deficit_segments for bus in buses]
    deficit = max((segment.cost for each in segments for segment in each), default=0.0)
    common = penalties.hydro.inflow_nonnegativity_cost
    plants, found = PlantData(hydros, production_models, energy_productivity), []
    for hydro in hydros:
        own = hydro.penalties.inflow_nonnegativity_cost if hydro.penalties is not None else None
        price = own if own is not None else DEFAULT_INFLOW_NONNEGATIVITY_COST if common is None else common
        spec = ComputedParameter(tag="accumulated_productivity", hydro_id=hydro.id)
        worth = deficit * (plants.value(spec, stages[0]) or 0.0)
        if price < worth:
            found.append((hydro.id, price, worth))
    if found:
        first, price, worth = max(found, key=lambda item: item[2] - item[1])
        others = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield warning(
            PHYSICAL,
            "cheap_water",
            "penalties",
            f"inflow_nonnegativity_cost is at least what the water saves in deficit, {worth:g} per m³/s and hour",
            where="hydro.inflow_nonnegativity_cost",
            entity=f"hydro {first}{others}",
            value=f"{price:g}",
            suggestion="A plan may create water instead of shedding load; look at inflow_slack_m3s.",
        )
