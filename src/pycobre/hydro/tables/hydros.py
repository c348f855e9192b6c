"""The tables of hydro plants: operation of every plant, and what it gives to every bus."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.production import productions
from pycobre.hydro.equations.stage_builder import HM3_PER_M3S_HOUR
from pycobre.hydro.tables.stage_view import Columns, StageView

__all__ = ["hydro_buses", "hydros"]


_PLANT_SLACKS = ("outflow_below", "outflow_above", "plant_turbined_below", "plant_generation_below")
_PAIR_SLACKS = ("turbined_below", "generation_below")


def hydros(s: StageView) -> Columns:
    """Operation of every plant."""
    plants, case, hydro = len(s.case.hydros), s.case, s.numbers.hydro
    turbined, generation = _by_plant(s, s.values("turbined")), _by_plant(s, _generation(s))
    spilled = s.values("spillage")
    diverted, evaporated = np.zeros_like(turbined), np.zeros_like(turbined)
    diverted[:, [h for h, plant in enumerate(case.hydros) if plant.diversion]] = s.values("diversion")
    evaporated[:, s.lp.places["evaporation"]] = s.values("evaporation")
    drawn, slack = np.zeros((2, s.count, plants, 1))
    drawn[:, :, 0] = np.where(hydro.exists, hydro.withdrawal, 0.0)
    drawn[:, s.lp.places["withdrawal"], 0] += s.values("withdrawal_over") - s.values("withdrawal_under")
    if "inflow_slack" in s.lp.columns:
        slack[:, :, 0] = s.values("inflow_slack")
    coming = np.zeros((s.count, plants, 1))
    for column, slot in enumerate(() if s.model.travel is None else s.model.travel.slots):
        coming[:, slot.below, 0] += s.values("transit")[:, column]
    ends = s.values("storage_by_block")
    begins = np.concatenate([s.values("storage_in")[:, :, None], ends[:, :, :-1]], axis=2)
    return s.table(
        {"hydro_id": [plant.id for plant in case.hydros]},
        storage_initial_hm3=begins,
        storage_final_hm3=ends,
        inflow_m3s=_inflow(s),
        turbined_m3s=turbined,
        spilled_m3s=spilled,
        diverted_m3s=diverted,
        outflow_m3s=turbined + spilled,
        generation_mw=generation,
        evaporated_m3s=evaporated,
        withdrawn_m3s=drawn,
        inflow_slack_m3s=slack,
        in_transit_hm3=coming,
        violation=_violations(s),
        water_value=-s.duals("water_balance"),
    )


def hydro_buses(s: StageView) -> Columns:
    """Flow through the turbines of every plant on every bus, and their power."""
    pairs = s.model.index.pairs
    ids = {
        "hydro_id": [s.case.hydros[pair.hydro].id for pair in pairs],
        "bus_id": [s.case.buses[pair.bus].id for pair in pairs],
    }
    return s.table(ids, turbined_m3s=s.values("turbined"), generation_mw=_generation(s))


def _generation(s: StageView) -> F64:
    """MW of every (plant, bus) pair."""
    index = s.model.index
    generation = s.values("turbined").copy()
    local = {int(p): i for i, p in enumerate(s.lp.places["fpha_generation"])}
    planes = s.values("fpha_generation")
    models = productions(s.case, s.numbers.stage)
    for p, pair in enumerate(index.pairs):
        if p in local:
            generation[:, p] = planes[:, local[p]]
        else:
            generation[:, p] *= models[pair.hydro].productivity or 0.0
    return generation


def _by_plant(s: StageView, of_pairs: F64) -> F64:
    total = np.zeros((s.count, len(s.case.hydros), s.blocks))
    for p, pair in enumerate(s.model.index.pairs):
        total[:, pair.hydro] += of_pairs[:, p]
    return total


def _inflow(s: StageView) -> F64:
    """The inflow column where there are lags; else what the balance's right-hand side holds of it.

    There, the inflow of a plant that does not exist counts for the plant that takes it in.
    """
    if "inflow" in s.lp.columns:
        return s.values("inflow")[:, :, None]
    rows, tau = s.lp.rows["water_balance"], HM3_PER_M3S_HOUR * s.hours
    if rows.shape[1] > 1 and np.array_equal(rows[:, 0], rows[:, -1]):  # one balance for all blocks
        tau = tau.sum(keepdims=True)
    drawn = np.where(s.numbers.hydro.exists, s.numbers.hydro.withdrawal, 0.0)[:, None]
    return s.activity("water_balance") / tau + drawn


def _violations(s: StageView) -> F64:
    total = np.zeros((s.count, len(s.case.hydros), s.blocks))
    for group in (*_PLANT_SLACKS, *_PAIR_SLACKS):
        slack = s.values(group)
        for i, (entity, block) in enumerate(s.lp.places[group].tolist()):
            plant = int(s.model.index.pair_hydro[entity]) if group in _PAIR_SLACKS else entity
            total[:, plant, block] += slack[:, i]
    return total
