"""Water: storage, flows, the balance of every reservoir, inflow, evaporation and outflow limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre.hydro.equations.period_step import PeriodStep
from pycobre.hydro.equations.rivers import add_outflows, receivers, send
from pycobre.hydro.equations.stage_builder import StageLpBuilder

__all__ = [
    "add_balance",
    "add_evaporation",
    "add_flows",
    "add_inflow",
    "add_outflow_limits",
    "add_state",
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
    add_outflows(d, rows)
    channels = [d.case.hydros[h].diversion for h in d.diverting]
    send(d, rows, receivers(d, [x.downstream_id if x else None for x in channels]), c["diversion"])
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
        send(d, rows, receivers(d, [h.id for h in d.case.hydros]), inflow)


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
