"""Water: storage, flows, the balance of every reservoir, inflow, evaporation and outflow limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.period_step import PeriodStep
from pycobre.hydro.equations.stage_builder import StageLpBuilder
from pycobre.hydro.model.case import Case

__all__ = [
    "add_balance",
    "add_evaporation",
    "add_flows",
    "add_inflow",
    "add_outflow_limits",
    "add_state",
    "receiver",
]


def add_state(d: StageLpBuilder) -> None:
    """Incoming and outgoing storage and lags; the solver fixes the incoming columns.

    A plant that does not exist keeps whatever storage it is given.
    """
    names, hydro, lp = d.index.hydro_names, d.numbers.hydro, d.lp
    d.columns["storage_in"] = lp.columns("storage_in", [names], -np.inf, np.inf)
    lower = np.where(hydro.exists, hydro.min_storage, -np.inf)
    upper = np.where(hydro.exists, hydro.max_storage, np.inf)
    if d.chronological:
        within = lp.columns("storage", [names, d.blocks], lower[:, None], upper[:, None])
    else:
        within = lp.columns("storage", [names], lower, upper)[:, None]
    d.columns["storage_by_block"] = within
    d.columns["storage"] = within[:, -1]
    if d.order:
        lags = [str(lag) for lag in range(1, d.order + 1)]
        d.columns["lag"] = lp.columns("inflow_lag", [lags, names], -np.inf, np.inf)
        d.columns["inflow"] = lp.columns("inflow", [names], -np.inf, np.inf)
        if d.model.period is not None:
            d.columns["accumulated_in"] = lp.columns("accumulated_in", [names], -np.inf, np.inf)
            running = np.inf if not d.model.period.last else 0.0
            d.columns["accumulated"] = lp.columns("accumulated", [names], -running, running)


def add_flows(d: StageLpBuilder) -> None:
    """Turbined, spilled, diverted and pumped water, and the slacks of inflow and withdrawal."""
    index, hydro, lp, cost = d.index, d.numbers.hydro, d.lp, d.numbers.hydro.penalty
    exists, operates, total = hydro.exists[:, None], hydro.operates[:, None], d.hours.sum()
    cap = np.minimum(hydro.pair_max_turbined, hydro.plant_max_turbined[index.pair_hydro])
    for p, pair in enumerate(index.pairs):
        rho = d.model.production[pair.hydro].productivity
        if rho is not None and rho > 0.0:
            most = np.minimum(hydro.pair_max_generation[p], hydro.plant_max_generation[pair.hydro])
            cap[p] = np.minimum(cap[p], most / rho)
    d.columns["turbined"] = lp.columns(
        "turbined",
        [index.pair_names, d.blocks],
        0.0,
        np.where(operates[index.pair_hydro], cap, 0.0),
        cost["turbined"][index.pair_hydro][:, None] * d.hours,
    )
    d.columns["spillage"] = lp.columns(
        "spillage",
        [index.hydro_names, d.blocks],
        np.where(exists, hydro.min_spillage, 0.0),
        np.where(exists, hydro.max_spillage, 0.0),
        cost["spillage"][:, None] * d.hours,
    )
    div = d.diverting
    d.columns["diversion"] = lp.columns(
        "diversion",
        [[index.hydro_names[h] for h in div], d.blocks],
        np.where(operates[div], hydro.min_diversion[div], 0.0),
        np.where(operates[div], hydro.max_diversion[div], 0.0),
        cost["diversion"][div][:, None] * d.hours,
    )
    d.columns["pumped"] = lp.columns(
        "pumped", [index.pump_names, d.blocks], d.numbers.pump_min, d.numbers.pump_max
    )
    if d.model.inflow_slack:
        d.columns["inflow_slack"] = lp.columns(
            "inflow_slack",
            [index.hydro_names],
            0.0,
            np.where(hydro.exists, np.inf, 0.0),
            cost["inflow_nonnegativity"] * total,
        )
    drawing = np.flatnonzero((hydro.withdrawal != 0.0) & hydro.exists)
    names = [index.hydro_names[h] for h in drawing]
    d.places["withdrawal"] = drawing.astype(np.int32)
    # What is not withdrawn is at most all of it (and what is not returned, where it is negative): a slack beyond
    # would make water of money.
    drawn = hydro.withdrawal[drawing]
    for name, penalty, most in (("under", "neg", drawn), ("over", "pos", -drawn)):
        price = cost[f"water_withdrawal_violation_{penalty}"][drawing] * total
        cap = np.where(most > 0.0, most, np.inf)
        d.columns[f"withdrawal_{name}"] = lp.columns(f"withdrawal_{name}", [names], 0.0, cap, price)


def add_balance(d: StageLpBuilder) -> None:
    """v − v_in + Σ_k τ_k (leaving − arriving)_k = Σ_k τ_k (inflow + slacks − withdrawal).

    Parallel blocks share one balance over the stage; chronological blocks have one each. Water sent to a
    plant that does not exist is lost.
    """
    lp, c, hydro, index = d.lp, d.columns, d.numbers.hydro, d.index
    drawn = -np.where(hydro.exists, hydro.withdrawal, 0.0)[:, None] * d.tau
    if d.chronological:
        rows = lp.rows("water_balance", [index.hydro_names, d.blocks], drawn, drawn)
        ends = rows
    else:
        whole = drawn.sum(axis=1)
        ends = lp.rows("water_balance", [index.hydro_names], whole, whole)[:, None]
        rows = np.repeat(ends, len(d.blocks), axis=1)
    d.rows["water_balance"] = rows
    within = c["storage_by_block"]
    lp.add(ends, within, 1.0)
    lp.add(ends[:, 0], c["storage_in"], -1.0)
    lp.add(ends[:, 1:], within[:, :-1], -1.0)
    lp.add(rows[index.pair_hydro], c["turbined"], d.tau)
    lp.add(rows, c["spillage"], d.tau)
    lp.add(rows[d.diverting], c["diversion"], d.tau)
    down = _receivers(d, [h.downstream_id for h in d.case.hydros])
    at_once = np.array([d.model.shares[h][0] if h in d.model.shares else 1.0 for h in range(down.size)])
    _send(d, rows, down[index.pair_hydro], c["turbined"], at_once[index.pair_hydro])
    _send(d, rows, down, c["spillage"], at_once)
    _add_transit(d, ends[:, 0])
    channels = [d.case.hydros[h].diversion for h in d.diverting]
    _send(d, rows, _receivers(d, [x.downstream_id if x else None for x in channels]), c["diversion"])
    for i, station in enumerate(d.case.pumping_stations):
        lp.add(rows[index.hydro[station.source_hydro_id]], c["pumped"][i], d.tau)
        lp.add(rows[index.hydro[station.destination_hydro_id]], c["pumped"][i], -d.tau)
    arriving = -d.tau * hydro.exists[:, None]
    if d.model.inflow_slack:
        lp.add(rows, c["inflow_slack"][:, None], arriving)
    drawing = d.places["withdrawal"]
    lp.add(rows[drawing], c["withdrawal_under"][:, None], -d.tau)
    lp.add(rows[drawing], c["withdrawal_over"][:, None], d.tau)
    if d.order:
        inflow = np.repeat(c["inflow"][:, None], len(d.blocks), axis=1)
        _send(d, rows, _receivers(d, [h.id for h in d.case.hydros]), inflow)


def _receivers(d: StageLpBuilder, ids: list[int | None]) -> NDArray[np.intp]:
    """The plants that take in water sent to these; −1: it leaves the system."""
    found = [receiver(d.case, d.index, d.numbers.hydro.exists, i) for i in ids]
    return np.array([-1 if h is None else h for h in found], dtype=np.intp)


def _send(
    d: StageLpBuilder,
    rows: NDArray[np.int32],
    to: NDArray[np.intp],
    columns: NDArray[np.int32],
    share: ArrayLike = 1.0,
) -> None:
    """Flows [sender, block], or a share of each sender's, arrive at the balances of their receivers."""
    there = to >= 0
    part = np.broadcast_to(share, to.shape)[there]
    d.lp.add(rows[to[there]], columns[there], -d.tau * part[:, None])


def _add_transit(d: StageLpBuilder, balance: NDArray[np.int32]) -> None:
    """Water on its way: transit_b − transit_in_{b+1} − Σ share_b·Σ_k τ_k (turbined + spilled)_k = 0, b = 1, 2, …

    The first slot arrives now. What is on its way at the end of the study is worth nothing to it.
    """
    slots, c, index = d.model.slots, d.columns, d.index
    if not slots:
        return
    labels = [f"{index.hydro_names[below]},{later}" for below, later in slots]
    c["transit_in"] = d.lp.columns("transit_in", [labels], -np.inf, np.inf)
    c["transit"] = d.lp.columns("transit", [labels], -np.inf, np.inf)
    rows = d.lp.rows("transit", [labels], 0.0, 0.0)
    d.lp.add(rows, c["transit"], 1.0)
    place = {slot: i for i, slot in enumerate(slots)}
    reached = _receivers(d, [d.case.hydros[below].id for below, _ in slots])
    for (below, later), i in place.items():
        if later > 1:
            d.lp.add(rows[place[below, later - 1]], c["transit_in"][i], -1.0)
        elif reached[i] >= 0:
            d.lp.add(balance[reached[i]], c["transit_in"][i], -1.0)
    for above, shares in d.model.shares.items():
        below_id = d.case.hydros[above].downstream_id
        assert below_id is not None
        turbines = np.flatnonzero(index.pair_hydro == above)
        for later in (np.flatnonzero(shares[1:]) + 1).tolist():
            row = rows[place[index.hydro[below_id], later]]
            d.lp.add(row, c["turbined"][turbines], -d.tau * shares[later])
            d.lp.add(row, c["spillage"][above], -d.tau * shares[later])


def receiver(case: Case, index: Index, exists: NDArray[np.bool_], hydro_id: int | None) -> int | None:
    """The plant at or below `hydro_id` that takes in water sent there; None: it leaves the system."""
    while hydro_id is not None:
        h = index.hydro[hydro_id]
        if exists[h]:
            return h
        hydro_id = case.hydros[h].downstream_id
    return None


def add_inflow(d: StageLpBuilder) -> None:
    """z − Σ_l psi_l·lag_l = base + sigma·η; the right-hand side is patched for every opening."""
    if not d.order:
        return
    rows = d.lp.rows("inflow_definition", [d.index.hydro_names], 0.0, 0.0)
    d.rows["inflow_definition"] = rows
    d.lp.add(rows, d.columns["inflow"], 1.0)
    d.lp.add(rows[None, :], d.columns["lag"], -d.model.psi)
    if d.model.period is not None:
        _add_period(d, d.model.period)


def _add_period(d: StageLpBuilder, step: PeriodStep) -> None:
    """What lag 1 becomes, and the inflow × days of the period so far.

    Before a period's last stage lags stay and the sum grows; there its mean becomes lag 1 and the sum is 0.
    """
    c, names = d.columns, d.index.hydro_names
    if step.whole:
        c["new_lag"] = c["inflow"]
        return
    if step.last:
        c["new_lag"] = d.lp.columns("period_inflow", [names], -np.inf, np.inf)
    rows = d.lp.rows("period", [names], 0.0, 0.0)
    d.lp.add(rows, c["new_lag"] if step.last else c["accumulated"], step.total if step.last else 1.0)
    d.lp.add(rows, c["accumulated_in"], -1.0)
    d.lp.add(rows, c["inflow"], -step.days)


def add_evaporation(d: StageLpBuilder) -> None:
    """Evaporation − kv/2 (v + v_in) + under − over = k0, soft on both sides.

    Once for the stage, or, where blocks follow each other, for each between its own storages.
    """
    lp, c, hydro = d.lp, d.columns, d.numbers.hydro
    wet = [(h, e) for h, e in enumerate(d.model.evaporation) if e is not None and hydro.exists[h]]
    plants = np.array([h for h, _ in wet], dtype=np.intp)
    names = [d.index.hydro_names[h] for h, _ in wet]
    d.places["evaporation"] = plants.astype(np.int32)
    labels, hours = ([names, d.blocks], d.hours) if d.chronological else ([names], d.hours.sum(keepdims=True))
    shape = (len(wet), hours.size)

    def columns(name: str, *bounds_and_price: ArrayLike) -> NDArray[np.int32]:
        size = [len(axis) for axis in labels]
        spread = [np.broadcast_to(x, shape).reshape(size) for x in bounds_and_price]
        return lp.columns(name, labels, *spread).reshape(shape)

    most = np.array([e.most(float(hydro.max_storage[h])) for h, e in wet])[:, None]
    c["evaporation"] = columns("evaporation", -most, most, 0.0)
    for name, penalty in (("under", "neg"), ("over", "pos")):
        price = hydro.penalty[f"evaporation_violation_{penalty}"][plants][:, None] * hours
        c[f"evaporation_{name}"] = columns(f"evaporation_{name}", 0.0, np.inf, price)
    k0 = np.repeat([e.k0 for _, e in wet], hours.size).reshape([len(axis) for axis in labels])
    half = np.array([e.kv for _, e in wet])[:, None] / 2.0
    rows = lp.rows("evaporation_definition", labels, k0, k0).reshape(shape)
    ends = c["storage_by_block"][plants]
    starts = np.concatenate([c["storage_in"][plants][:, None], ends[:, :-1]], axis=1)
    lp.add(rows, c["evaporation"], 1.0)
    lp.add(rows, ends, -half)
    lp.add(rows, starts, -half)
    lp.add(rows, c["evaporation_under"], 1.0)
    lp.add(rows, c["evaporation_over"], -1.0)
    lp.add(d.rows["water_balance"][plants], c["evaporation"], d.tau)


def add_outflow_limits(d: StageLpBuilder) -> None:
    """min ≤ turbined + spilled ≤ max in every block, each side with a penalised slack.

    Diverted water leaves by another way: it is no outflow, neither here nor in generic constraints.
    """
    hydro, index, c = d.numbers.hydro, d.index, d.columns
    exists = hydro.exists[:, None]
    for side, limit, active, sign in (
        ("below", hydro.min_outflow, exists & (hydro.min_outflow > 0.0), 1),
        ("above", hydro.max_outflow, exists & np.isfinite(hydro.max_outflow), -1),
    ):
        cost = hydro.penalty[f"outflow_violation_{side}"]
        rows = d.soft(f"outflow_{side}", index.hydro_names, limit, active, cost, sign)
        d.add_where(rows[index.pair_hydro], c["turbined"], 1.0)
        d.add_where(rows, c["spillage"], 1.0)
