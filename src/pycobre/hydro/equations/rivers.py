"""Where the water that leaves a plant goes: into the next balance at once, or into the state until it arrives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.stage_builder import StageLpBuilder
from pycobre.hydro.equations.travel import Travel
from pycobre.hydro.model.case import Case

__all__ = ["add_outflows", "receiver", "receivers", "send"]

Columns = NDArray[np.int32]


def receiver(case: Case, index: Index, exists: NDArray[np.bool_], hydro_id: int | None) -> int | None:
    """The plant at or below `hydro_id` that takes in water sent there; None: it leaves the system."""
    while hydro_id is not None:
        h = index.hydro[hydro_id]
        if exists[h]:
            return h
        hydro_id = case.hydros[h].downstream_id
    return None


def receivers(d: StageLpBuilder, ids: list[int | None]) -> NDArray[np.intp]:
    """The plants that take in water sent to these; −1: it leaves the system."""
    found = [receiver(d.case, d.index, d.numbers.hydro.exists, i) for i in ids]
    return np.array([-1 if h is None else h for h in found], dtype=np.intp)


def send(
    d: StageLpBuilder, rows: Columns, to: NDArray[np.intp], columns: Columns, share: ArrayLike = 1.0
) -> None:
    """Flows [sender, block], or a share of each sender's, arrive at the balances of their receivers."""
    there = to >= 0
    part = np.broadcast_to(share, to.shape)[there]
    d.lp.add(rows[to[there]], columns[there], -d.tau * part[:, None])


def add_outflows(d: StageLpBuilder, rows: Columns) -> None:
    """Turbined and spilled water, as far as it arrives in this stage; what is on its way joins the state.

    `rows` are the water balances [plant, block].
    """
    index, c, travel = d.index, d.columns, d.model.travel
    rivers = {} if travel is None else travel.shares[d.model.position]
    down = receivers(d, [h.downstream_id for h in d.case.hydros])
    # With one balance for all blocks one share holds for all of them; else blocks have shares of each other.
    whole = {h: 0.0 if d.chronological else float(river.at_once[0, 0]) for h, river in rivers.items()}
    at_once = np.array([whole.get(h, 1.0) for h in range(down.size)])
    send(d, rows, down[index.pair_hydro], c["turbined"], at_once[index.pair_hydro])
    send(d, rows, down, c["spillage"], at_once)
    for above, river in rivers.items() if d.chronological else ():
        if down[above] >= 0:
            for leaving, arriving in np.argwhere(river.at_once > 0.0).tolist():
                value = -d.tau[leaving] * river.at_once[leaving, arriving]
                d.lp.add(rows[down[above], arriving], _outflow(d, above)[:, leaving], value)
    if travel is not None and travel.slots:
        _add_transit(d, rows, travel)


def _outflow(d: StageLpBuilder, plant: int) -> Columns:
    """Its columns [turbines of a bus, or spillage; block]."""
    turbined = d.columns["turbined"][d.index.pair_hydro == plant]
    return np.concatenate([turbined, d.columns["spillage"][plant][None]])


def _add_transit(d: StageLpBuilder, balance: Columns, travel: Travel) -> None:
    """Water on its way: transit_b − transit_in_{b+1} − Σ_k τ_k·share_{k,b}·(turbined + spilled)_k = 0, b = 1, 2, …

    The first slot arrives now. What is on its way at the end of the study is worth nothing to it.
    """
    slots, c = travel.slots, d.columns
    labels = travel.labels(d.index)
    c["transit_in"] = d.lp.columns("transit_in", [labels], -np.inf, np.inf)
    c["transit"] = d.lp.columns("transit", [labels], -np.inf, np.inf)
    rows = d.lp.rows("transit", [labels], 0.0, 0.0)
    d.lp.add(rows, c["transit"], 1.0)
    place = {slot: i for i, slot in enumerate(slots)}
    reached = receivers(d, [d.case.hydros[slot.below].id for slot in slots])
    parts = len(d.blocks) if d.chronological else 1
    for slot, i in place.items():
        if slot.ahead > 1:
            row = rows[place[slot._replace(ahead=slot.ahead - 1)]]
            d.lp.add(row, c["transit_in"][i], -1.0)
        elif reached[i] >= 0 and slot.part < parts:
            d.lp.add(balance[reached[i], slot.part], c["transit_in"][i], -1.0)
    for above, river in travel.shares[d.model.position].items():
        for slot, share in river.later:
            leaving = share if d.chronological else np.repeat(share, len(d.blocks))
            d.lp.add(rows[place[slot]], _outflow(d, above), -d.tau * leaving)
