"""Power: thermal plants, exchanges, deficit, excess, sources, contracts, and the balance of every bus."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.stage_builder import StageLpBuilder

__all__ = ["add_load_balance", "add_power"]


def add_power(d: StageLpBuilder) -> None:
    """Everything that is bought, sold, moved or lost, with its price.

    A source's curtailment cost is a reward for what it generates: the objective is lower by the cost of what
    could have been curtailed.
    """
    index, n, hours, lp, c = d.index, d.numbers, d.hours, d.lp, d.columns
    c["thermal"] = lp.columns(
        "thermal", [index.thermal_names, d.blocks], n.thermal_min, n.thermal_max, _thermal_price(d)
    )
    for name, cap in (("direct", n.line_direct), ("reverse", n.line_reverse)):
        c[name] = lp.columns(
            f"exchange_{name}", [index.line_names, d.blocks], 0.0, cap, n.exchange_cost[:, None] * hours
        )
    common = d.case.penalties.bus.deficit_segments
    segments = [
        (b, s, x)
        for b, bus in enumerate(d.case.buses)
        for s, x in enumerate(common if bus.deficit_segments is None else bus.deficit_segments)
    ]
    d.places["deficit"] = np.array([(b, s) for b, s, _ in segments], dtype=np.int32).reshape(-1, 2)
    depth = np.array([np.inf if x.depth_mw is None else x.depth_mw for _, _, x in segments])
    price = np.array([x.cost for _, _, x in segments])
    labels = [f"{index.bus_names[b]},{s}" for b, s, _ in segments]
    c["deficit"] = lp.columns("deficit", [labels, d.blocks], 0.0, depth[:, None], price[:, None] * hours)
    c["excess"] = lp.columns(
        "excess", [index.bus_names, d.blocks], 0.0, np.inf, n.excess_cost[:, None] * hours
    )
    fraction = np.clip(d.model.mean_availability, 0.0, 1.0)
    available = (n.source_capacity * fraction)[:, None] * n.source_factor
    must_run = np.array([not s.allow_curtailment for s in d.case.non_controllable_sources], dtype=bool)
    c["source"] = lp.columns(
        "source",
        [index.source_names, d.blocks],
        np.where(must_run[:, None], available, 0.0),
        available,
        -n.curtailment_cost[:, None] * hours,
    )
    c["contract"] = lp.columns(
        "contract",
        [index.contract_names, d.blocks],
        n.contract_min,
        n.contract_max,
        n.contract_price * hours,
    )


def _thermal_price(d: StageLpBuilder) -> F64:
    """Per MW and block; what was decided before has been paid for there."""
    price = d.numbers.thermal_cost * d.hours
    if d.model.anticipation is not None:
        price[sorted(d.model.anticipation.delivers[d.model.position])] = 0.0
    return price


def add_load_balance(d: StageLpBuilder) -> None:
    """Generation + arriving − leaving + deficit − excess = load, per bus and block."""
    lp, index, c, case = d.lp, d.index, d.columns, d.case
    load = d.model.mean_load[:, None] * d.numbers.load_factor
    rows = lp.rows("load_balance", [index.bus_names, d.blocks], load, load)
    d.rows["load_balance"] = rows

    def at(bus_ids: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        return rows[np.array([index.bus[b] for b in bus_ids], dtype=np.intp)]

    for pair, (columns, factor) in zip(index.pairs, d.generation, strict=True):
        lp.add(rows[pair.bus], columns, factor)
    lp.add(at([t.bus_id for t in case.thermals]), c["thermal"], 1.0)
    lp.add(at([s.bus_id for s in case.non_controllable_sources]), c["source"], 1.0)
    source, target = at([x.source_bus_id for x in case.lines]), at([x.target_bus_id for x in case.lines])
    for columns, to, away in ((c["direct"], target, source), (c["reverse"], source, target)):
        lp.add(to, columns, 1.0)
        lp.add(away, columns, -1.0)
    lp.add(rows[d.places["deficit"][:, 0]], c["deficit"], 1.0)
    lp.add(rows, c["excess"], -1.0)
    sign = np.array([1.0 if x.type == "import" else -1.0 for x in case.energy_contracts])
    lp.add(at([x.bus_id for x in case.energy_contracts]), c["contract"], sign[:, None])
    use = np.array([p.consumption_mw_per_m3s for p in case.pumping_stations])
    lp.add(at([p.bus_id for p in case.pumping_stations]), c["pumped"], -use[:, None])
