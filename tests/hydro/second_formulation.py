"""The LP of a stage once more, written from the equations on paper: dense, by dictionary, slow.

It shares nothing with the package but the case's data and the deviation of the inflows' residuals. It knows
parallel blocks only, and the features that `random_case` draws but entries and exits, and CVaR, which is not
a matter of the stage.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from pycobre.hydro.model.case import Case
from pycobre.hydro.model.table import NO_ID

HM3 = 0.0036
Terms = dict[Any, float]


class Dense:
    """min c·x with rows given as {variable: coefficient}."""

    def __init__(self) -> None:
        self.place: dict[Any, int] = {}
        self.cost: list[float] = []
        self.bounds: list[tuple[float | None, float | None]] = []
        self.equal: list[tuple[Terms, float]] = []
        self.most: list[tuple[Terms, float]] = []

    def var(self, key: Any, low: float | None, high: float | None, cost: float = 0.0) -> None:
        self.place[key] = len(self.cost)
        self.cost.append(cost)
        self.bounds.append((low, high))

    def optimum(self) -> float:
        def matrix(rows: list[tuple[Terms, float]]) -> tuple[Any, Any]:
            a = np.zeros((len(rows), len(self.cost)))
            for i, (terms, _) in enumerate(rows):
                for key, value in terms.items():
                    a[i, self.place[key]] += value
            return (a, [b for _, b in rows]) if rows else (None, None)

        a_eq, b_eq = matrix(self.equal)
        a_ub, b_ub = matrix(self.most)
        found = linprog(self.cost, a_ub, b_ub, a_eq, b_eq, self.bounds, method="highs")
        assert found.status == 0, found.message
        return float(found.fun)


def rows_of(table: Any, **wanted: int) -> list[int]:
    mask = np.ones(len(table), dtype=bool)
    for column, value in wanted.items():
        mask &= getattr(table, column) == value
    return np.flatnonzero(mask).tolist()


def given(table: Any, column: str, default: float, **wanted: int) -> float:
    """The value of a sparse table's row, or the default."""
    for row in rows_of(table, **wanted):
        if not np.isnan(getattr(table, column)[row]):
            return float(getattr(table, column)[row])
    return default


class SecondStage:
    """One stage of a case as a dense LP for a state and a noise vector; the last stage: nothing follows."""

    def __init__(
        self,
        case: Case,
        t: int,
        sigma: np.ndarray,
        storage: Any,
        lags: Any,
        noise: Any,
        committed: dict[int, float] | None = None,
    ) -> None:
        self.case, self.t, self.lp = case, t, Dense()
        self.committed = committed or {}
        self.stage = case.stages[t]
        self.hours = [block.hours for block in self.stage.blocks]
        self.total = sum(self.hours)
        self.blocks = range(len(self.hours))
        self.storage, self.lags, self.noise, self.sigma = storage, lags, noise, sigma
        self.costs = case.penalties.hydro
        self.pairs = [(h.id, b) for h in case.hydros for b in sorted({g.bus_id for g in h.unit_groups})]
        self.water()
        self.limits()
        self.power()
        self.generic()

    def own(self, table: Any, column: str, default: float, k: int | None = None, **ids: int) -> float:
        """The row of the stage replaces an entity's value, and the row of a block that of the stage."""
        value = given(table, column, default, stage_id=self.t, block_id=NO_ID, **ids)
        return value if k is None else given(table, column, value, stage_id=self.t, block_id=k, **ids)

    def bound(self, hydro: int, column: str, default: float, k: int | None = None) -> float:
        return self.own(self.case.hydro_bounds, column, default, k, hydro_id=hydro)

    def productivity(self, hydro: int) -> float | None:
        model = next(m for m in self.case.production_models if m.hydro_id == hydro)
        for span in model.stage_ranges:
            if span.start_stage_id <= self.t and (span.end_stage_id is None or self.t <= span.end_stage_id):
                return span.productivity_mw_per_m3s
        raise AssertionError

    def penalty(self, hydro: Any, name: str) -> float:
        own = getattr(hydro.penalties, name, None) if hydro.penalties else None
        base = getattr(self.costs, name) if own is None else own
        return given(self.case.hydro_penalties, name, base, hydro_id=hydro.id, stage_id=self.t)

    def group_sum(self, hydro: Any, bus: int, name: str, k: int | None = None) -> float:
        table = self.case.unit_group_bounds
        return sum(
            getattr(g, name)
            if k is None
            else self.own(table, name, getattr(g, name), k, hydro_id=hydro.id, hydro_unit_group_id=g.id)
            for g in hydro.unit_groups
            if g.bus_id == bus
        )

    def inflow(self, h: int, i: int) -> float:
        """z = base + Σ psi·lag + sigma·η, a number since the state is given."""
        case, stats = self.case, self.case.inflow_stats

        def moments(stage: int) -> tuple[float, float]:
            row = rows_of(stats, hydro_id=h, stage_id=stage)[0]
            return float(stats.mean_m3s[row]), float(stats.std_m3s[row])

        mean, std = moments(self.t)
        value = mean + self.sigma[i] * self.noise[i]
        for lag in range(1, len(self.lags) + 1):
            phi = given(case.ar_coefficients, "coefficient", 0.0, hydro_id=h, stage_id=self.t, lag=lag)
            before, spread = moments(self.t - lag)
            value += phi * std / spread * (self.lags[lag - 1][i] - before)
        return value

    def water(self) -> None:
        lp, case = self.lp, self.case
        slack = case.config.modeling.inflow_non_negativity.method == "penalty"
        balance: dict[int, Terms] = {}
        for i, h in enumerate(case.hydros):
            v = ("v", h.id)
            low = self.bound(h.id, "min_storage_hm3", h.reservoir.min_storage_hm3)
            high = self.bound(h.id, "max_storage_hm3", h.reservoir.max_storage_hm3)
            lp.var(v, 0.0 if h.filling else low, high)
            if h.filling:
                self.storage_target(h, low)
            terms = balance.setdefault(h.id, {})
            terms[v] = 1.0
            for k, hours in enumerate(self.hours):
                least, most = (
                    self.bound(h.id, f"{side}_spillage_m3s", default, k)
                    for side, default in (("min", 0.0), ("max", np.inf))
                )
                lp.var(("s", h.id, k), least, most, self.penalty(h, "spillage_cost") * hours)
                terms["s", h.id, k] = HM3 * hours
                if h.diversion:
                    cost = self.penalty(h, "diversion_cost") * hours
                    lp.var(("u", h.id, k), 0.0, h.diversion.max_flow_m3s, cost)
                    terms["u", h.id, k] = HM3 * hours
            if slack:
                lp.var(("sig", h.id), 0.0, None, self.penalty(h, "inflow_nonnegativity_cost") * self.total)
                terms["sig", h.id] = -HM3 * self.total
            drawn = self.bound(h.id, "water_withdrawal_m3s", 0.0)
            if drawn:
                lp.var(
                    ("w-", h.id),
                    0.0,
                    drawn if drawn > 0.0 else None,
                    self.costs.water_withdrawal_violation_neg_cost * self.total,
                )
                lp.var(
                    ("w+", h.id),
                    0.0,
                    -drawn if drawn < 0.0 else None,
                    self.costs.water_withdrawal_violation_pos_cost * self.total,
                )
                terms["w-", h.id], terms["w+", h.id] = -HM3 * self.total, HM3 * self.total
            if h.evaporation:
                self.evaporation(h, i, high)
                terms["ev", h.id] = HM3 * self.total
            right = self.storage[i] + HM3 * self.total * (self.inflow(h.id, i) - drawn)
            lp.equal.append((terms, right))
        for h, bus in self.pairs:
            self.turbine(h, bus)
            for k, hours in enumerate(self.hours):
                balance[h]["q", h, bus, k] = HM3 * hours
        for h in case.hydros:
            for k, hours in enumerate(self.hours):
                if h.downstream_id is not None:
                    balance[h.downstream_id]["s", h.id, k] = -HM3 * hours
                    for _, bus in [pair for pair in self.pairs if pair[0] == h.id]:
                        balance[h.downstream_id]["q", h.id, bus, k] = -HM3 * hours
                if h.diversion:
                    balance[h.diversion.downstream_id]["u", h.id, k] = -HM3 * hours
        for p in case.pumping_stations:
            for k, hours in enumerate(self.hours):
                least, most = (
                    self.own(case.pumping_bounds, f"{side}_m3s", default, k, pumping_station_id=p.id)
                    for side, default in (("min", p.flow.min_m3s), ("max", p.flow.max_m3s))
                )
                lp.var(("p", p.id, k), least, most)
                balance[p.source_hydro_id]["p", p.id, k] = HM3 * hours
                balance[p.destination_hydro_id]["p", p.id, k] = -HM3 * hours

    def filling(self, h: Any) -> bool:
        return h.filling is not None and h.filling.start_stage_id <= self.t < h.entry_stage_id

    def storage_target(self, h: Any, low: float) -> None:
        """The dead volume as the plant enters, before that less what the rate still brings; after it the minimum."""
        target, cost = low, self.penalty(h, "storage_violation_below_cost")
        if self.filling(h):
            later = sum(s.hours for s in self.case.stages[self.t + 1 : h.entry_stage_id])
            target = h.reservoir.min_storage_hm3 - HM3 * h.filling.filling_min_rate_m3s * later
            cost = self.penalty(h, "filling_target_violation_cost")
        self.soft({("v", h.id): 1.0}, target, cost, 1.0)

    def evaporation(self, h: Any, i: int, high: float) -> None:
        """c mm over the surface, which is a straight line around the middle of the reservoir."""
        rows = rows_of(self.case.geometry, hydro_id=h.id)
        volume, area = self.case.geometry.volume_hm3[rows], self.case.geometry.area_km2[rows]
        middle = (h.reservoir.min_storage_hm3 + h.reservoir.max_storage_hm3) / 2.0
        j = max(n for n in range(len(volume) - 1) if volume[n] <= middle)
        slope = (area[j + 1] - area[j]) / (volume[j + 1] - volume[j])
        per_area = h.evaporation.coefficients_mm[self.stage.season_id] / (
            3.6 * 24.0 * (self.stage.end_date - self.stage.start_date).days
        )
        kv = per_area * slope
        k0 = per_area * (area[j] + slope * (middle - volume[j])) - kv * middle
        most = 2.0 * abs(k0 + kv * high)
        self.lp.var(("ev", h.id), -most, most)
        self.lp.var(("ev-", h.id), 0.0, None, self.costs.evaporation_violation_neg_cost * self.total)
        self.lp.var(("ev+", h.id), 0.0, None, self.costs.evaporation_violation_pos_cost * self.total)
        terms = {("ev", h.id): 1.0, ("v", h.id): -kv / 2.0, ("ev-", h.id): 1.0, ("ev+", h.id): -1.0}
        self.lp.equal.append((terms, k0 + kv / 2.0 * self.storage[i]))

    def turbine(self, hydro: int, bus: int) -> None:
        h = next(x for x in self.case.hydros if x.id == hydro)
        i = self.case.hydros.index(h)
        rho = self.productivity(hydro)
        share = self.group_sum(h, bus, "max_turbined_m3s") / sum(g.max_turbined_m3s for g in h.unit_groups)
        for k, hours in enumerate(self.hours):
            cap = min(
                self.group_sum(h, bus, "max_turbined_m3s", k),
                self.bound(hydro, "max_turbined_m3s", h.generation.max_turbined_m3s, k),
            )
            power = min(
                self.group_sum(h, bus, "max_generation_mw", k),
                self.bound(hydro, "max_generation_mw", h.generation.max_generation_mw, k),
            )
            q = ("q", hydro, bus, k)
            most = cap if rho is None else min(cap, power / rho)
            most = 0.0 if self.filling(h) else most
            self.lp.var(q, 0.0, most, self.penalty(h, "turbined_cost") * hours)
            self.lp.var(("g", hydro, bus, k), 0.0, 0.0 if self.filling(h) else power)
            if rho is not None:
                self.lp.equal.append(({("g", hydro, bus, k): 1.0, q: -rho}, 0.0))
                continue
            planes = self.case.fpha_planes
            for row in rows_of(planes, hydro_id=hydro):
                terms = {
                    ("g", hydro, bus, k): 1.0,
                    q: -planes.gamma_q[row],
                    ("s", hydro, k): -share * planes.gamma_s[row],
                    ("v", hydro): -share * planes.gamma_v[row] / 2.0,
                }
                right = planes.kappa[row] * planes.gamma_0[row] + planes.gamma_v[row] / 2.0 * self.storage[i]
                self.lp.most.append((terms, share * right))

    def soft(self, terms: Terms, limit: float, cost: float, sign: float) -> None:
        """Σ + slack ≥ limit (sign 1), or Σ − slack ≤ limit (sign −1)."""
        slack = ("soft", len(self.lp.cost))
        self.lp.var(slack, 0.0, None, cost)
        self.lp.most.append(
            ({key: -sign * value for key, value in terms.items()} | {slack: -1.0}, -sign * limit)
        )

    def limits(self) -> None:
        for h in self.case.hydros:
            buses = [bus for plant, bus in self.pairs if plant == h.id]
            for k, hours in enumerate(self.hours):
                least = self.bound(h.id, "min_outflow_m3s", h.outflow.min_outflow_m3s, k)
                most = self.bound(h.id, "max_outflow_m3s", h.outflow.max_outflow_m3s or np.inf, k)
                out: Terms = {("q", h.id, bus, k): 1.0 for bus in buses} | {("s", h.id, k): 1.0}
                if least > 0.0:
                    cost = self.penalty(h, "outflow_violation_below_cost")
                    self.soft(out, least, cost * hours, 1.0)
                if most < np.inf:
                    cost = self.penalty(h, "outflow_violation_above_cost")
                    self.soft(out, most, cost * hours, -1.0)
                for bus in [] if self.filling(h) else buses:
                    for kind, name, unit in (("q", "turbined", "m3s"), ("g", "generation", "mw")):
                        low = self.group_sum(h, bus, f"min_{name}_{unit}", k)
                        cost = self.penalty(h, f"{name}_violation_below_cost")
                        if low > 0.0:
                            self.soft({(kind, h.id, bus, k): 1.0}, low, cost * hours, 1.0)
                plant = self.bound(h.id, "max_turbined_m3s", h.generation.max_turbined_m3s, k)
                self.lp.most.append(({("q", h.id, bus, k): 1.0 for bus in buses}, plant))

    def power(self) -> None:
        case, lp = self.case, self.lp
        balance: dict[tuple[int, int], Terms] = {(b.id, k): {} for b in case.buses for k in self.blocks}
        for h, bus in self.pairs:
            for k in self.blocks:
                balance[bus, k]["g", h, bus, k] = 1.0
        for p in case.pumping_stations:
            for k in self.blocks:
                balance[p.bus_id, k]["p", p.id, k] = -p.consumption_mw_per_m3s
        for g in case.thermals:
            for k, hours in enumerate(self.hours):
                low, high, cost = (
                    self.own(case.thermal_bounds, column, default, k, thermal_id=g.id)
                    for column, default in (
                        ("min_generation_mw", g.generation.min_mw),
                        ("max_generation_mw", g.generation.max_mw),
                        ("cost_per_mwh", g.cost_per_mwh),
                    )
                )
                lp.var(("t", g.id, k), low, high, 0.0 if g.id in self.committed else cost * hours)
                balance[g.bus_id, k]["t", g.id, k] = 1.0
            if g.id in self.committed:  # energy of the blocks is that of the commitment
                energy = {("t", g.id, k): hours for k, hours in enumerate(self.hours)}
                lp.equal.append((energy, self.total * self.committed[g.id]))
        for e in case.lines:
            for k, hours in enumerate(self.hours):
                for side, sign, most in (
                    ("direct", 1.0, e.capacity.direct_mw),
                    ("reverse", -1.0, e.capacity.reverse_mw),
                ):
                    cap = self.own(case.line_bounds, f"{side}_mw", most, k, line_id=e.id)
                    lp.var((side, e.id, k), 0.0, cap, (e.exchange_cost or 0.0) * hours)
                    balance[e.source_bus_id, k][side, e.id, k] = -sign
                    balance[e.target_bus_id, k][side, e.id, k] = sign
        for c in case.energy_contracts:
            for k, hours in enumerate(self.hours):
                low, high, price = (
                    self.own(case.contract_bounds, column, default, k, contract_id=c.id)
                    for column, default in (
                        ("min_mw", c.limits.min_mw),
                        ("max_mw", c.limits.max_mw),
                        ("price_per_mwh", c.price_per_mwh),
                    )
                )
                lp.var(("c", c.id, k), low, high, price * hours)
                balance[c.bus_id, k]["c", c.id, k] = 1.0 if c.type == "import" else -1.0
        self.sources(balance)
        for b in case.buses:
            segments = b.deficit_segments or case.penalties.bus.deficit_segments
            for k, hours in enumerate(self.hours):
                for s, segment in enumerate(segments):
                    lp.var(("d", b.id, s, k), 0.0, segment.depth_mw, segment.cost * hours)
                    balance[b.id, k]["d", b.id, s, k] = 1.0
                lp.var(("x", b.id, k), 0.0, None, case.penalties.bus.excess_cost * hours)
                balance[b.id, k]["x", b.id, k] = -1.0
                lp.equal.append((balance[b.id, k], self.load(b.id, k)))

    def sources(self, balance: dict[tuple[int, int], Terms]) -> None:
        stats = self.case.source_stats
        first = len(self.case.hydros) + len(self.random_buses())
        random = sorted(set(stats.ncs_id.tolist()))
        for r in self.case.non_controllable_sources:
            ready = 1.0
            if r.id in random:
                row = rows_of(stats, ncs_id=r.id, stage_id=self.t)[0]
                ready = float(
                    np.clip(stats.mean[row] + stats.std[row] * self.noise[first + random.index(r.id)], 0, 1)
                )
            most = r.max_generation_mw * ready
            for k, hours in enumerate(self.hours):
                low = 0.0 if r.allow_curtailment else most
                self.lp.var(("n", r.id, k), low, most, -(r.curtailment_cost or 0.0) * hours)
                balance[r.bus_id, k]["n", r.id, k] = 1.0

    def random_buses(self) -> list[int]:
        stats = self.case.load_stats
        return sorted(set(stats.bus_id[stats.std_mw > 0.0].tolist()))

    def load(self, bus: int, k: int) -> float:
        stats, random = self.case.load_stats, self.random_buses()
        row = rows_of(stats, bus_id=bus, stage_id=self.t)[0]
        mean = float(stats.mean_mw[row])
        if bus in random:
            mean = max(0.0, mean + stats.std_mw[row] * self.noise[len(self.case.hydros) + random.index(bus)])
        for entry in self.case.load_factors:
            if (entry.bus_id, entry.stage_id) == (bus, self.t):
                return mean * entry.block_factors[k].factor
        return mean

    def generic(self) -> None:
        """The two expressions that `random_case` writes."""
        bounds = self.case.generic_bounds
        for constraint in self.case.generic_constraints:
            row = rows_of(bounds, constraint_id=constraint.id, stage_id=self.t)[0]
            for k, hours in enumerate(self.hours):
                price = constraint.slack.penalty * hours
                if constraint.name == "both":
                    terms: Terms = {("t", 1, k): 1.0}
                    terms |= {("g", 0, bus, k): 0.7 for h, bus in self.pairs if h == 0}
                    self.soft(terms, float(bounds.bound_upper[row]), price, -1.0)
                else:
                    terms = {("s", 1, k): 2.0, ("direct", 0, k): -1.0, ("reverse", 0, k): 1.0}
                    terms |= {("q", 1, bus, k): 2.0 for h, bus in self.pairs if h == 1}
                    self.soft(terms, float(bounds.bound_lower[row]), price, 1.0)
