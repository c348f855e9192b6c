"""LPs like our users': a reservoir system over a few stages, and row pools grown by a short training run.

`small` is nearly as large as the four-reservoir case (183 columns × 25 rows), `large` about 2,200 × 1,200.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pycobre.solver import (
    BasisBlock,
    CutView,
    LpModel,
    LpTemplate,
    PatchPlan,
    SolveCall,
    SolverOptions,
    Target,
    create_engine,
)

INF = np.inf


class Rows:
    """A sparse LP under construction."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.entries: list[list[tuple[int, float]]] = []
        self.row_lower: list[float] = []
        self.row_upper: list[float] = []

    def col(self, cost: float, lower: float, upper: float) -> int:
        self.cost.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.entries.append([])
        return len(self.cost) - 1

    def row(self, lower: float, upper: float, *terms: tuple[int, float]) -> int:
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        for col, value in terms:
            self.entries[col].append((len(self.row_lower) - 1, value))
        return len(self.row_lower) - 1

    def template(self) -> LpTemplate:
        starts = np.cumsum([0] + [len(e) for e in self.entries])
        rows = [r for e in self.entries for r, _ in e]
        values = [v for e in self.entries for _, v in e]
        return LpTemplate(
            self.cost, self.lower, self.upper, self.row_lower, self.row_upper, starts, rows, values
        )


@dataclass(frozen=True)
class System:
    models: list[LpModel]
    openings: list[np.ndarray]
    initial: np.ndarray


def system(
    plants: int, buses: int, lines: int, thermals: int, blocks: int, stages: int, openings: int
) -> System:
    """Reservoirs in pairs, buses in a ring, random costs and inflows; the same at every call."""
    rng = np.random.default_rng(7)
    hours = 730.0 / blocks
    storage = rng.uniform(1e4, 2e5, plants)
    mean = rng.uniform(500, 30000, plants) * 20 / (20 + plants)
    rho = rng.uniform(0.4, 1.0, plants)
    bus_of = np.arange(plants) % buses
    fuel = np.sort(rng.uniform(20, 900, thermals))
    size = rng.uniform(50, 900, thermals) * 30 / (10 + buses)
    demand = np.zeros(buses)
    for h in range(plants):
        demand[bus_of[h]] += mean[h] * rho[h]
    demand += size.sum() / buses * 0.5
    models, noise = [], []
    for t in range(stages):
        lp = Rows()
        before = [lp.col(0.0, -INF, INF) for _ in range(plants)]
        after = [lp.col(0.0, 0.0, storage[h]) for h in range(plants)]
        inflow = [lp.col(0.0, -INF, INF) for _ in range(plants)]
        theta = lp.col(0.99, 0.0, INF)
        turbine = [[lp.col(0.01 * hours, 0.0, 2.2 * mean[h]) for _ in range(blocks)] for h in range(plants)]
        spill = [[lp.col(0.1 * hours, 0.0, INF) for _ in range(blocks)] for _ in range(plants)]
        balance = []
        for h in range(plants):
            zeta, tau = 0.0036 * 730, 0.0036 * hours
            terms = [(after[h], 1.0), (before[h], -1.0), (inflow[h], -zeta)]
            for k in range(blocks):
                terms += [(turbine[h][k], tau), (spill[h][k], tau)]
                if h % 2 == 1:
                    terms += [(turbine[h - 1][k], -tau), (spill[h - 1][k], -tau)]
            lp.row(0.0, 0.0, *terms)
            balance.append(lp.row(0.0, 0.0, (inflow[h], 1.0)))
            for k in range(blocks):
                for least, terms in (
                    (0.1 * mean[h], [(turbine[h][k], 1.0), (spill[h][k], 1.0)]),
                    (0.05 * mean[h], [(turbine[h][k], 1.0)]),
                    (0.05 * mean[h] * rho[h], [(turbine[h][k], rho[h])]),
                ):
                    lp.row(least, INF, *terms, (lp.col(500.0 * hours, 0.0, INF), 1.0))
        for k in range(blocks):
            bus_terms: list[list[tuple[int, float]]] = [[] for _ in range(buses)]
            for h in range(plants):
                bus_terms[bus_of[h]].append((turbine[h][k], rho[h]))
            for g in range(thermals):
                bus_terms[g % buses].append((lp.col(fuel[g] * hours, 0.0, size[g]), 1.0))
            for e in range(lines):
                for sign in (1.0, -1.0):
                    flow = lp.col(0.1 * hours, 0.0, 0.3 * demand.mean())
                    bus_terms[e % buses].append((flow, -sign))
                    bus_terms[(e + 1 + e // buses) % buses].append((flow, sign))
            for b in range(buses):
                deficit, excess = lp.col(1420.0 * hours, 0.0, INF), lp.col(0.1 * hours, 0.0, INF)
                load = demand[b] * (1.1 + 0.2 * np.sin(t + b)) * (0.8 + 0.4 * k / max(1, blocks - 1))
                lp.row(load, load, *bus_terms[b], (deficit, 1.0), (excess, -1.0))
        plan = PatchPlan(np.full(plants, Target.RHS), balance, np.full(plants, -1))
        models.append(LpModel(lp.template(), before, after, plan, None, theta))
        noise.append(mean * np.exp(rng.normal(0.0, 0.5, (openings, plants))))
    return System(models, noise, 0.6 * storage)


def small(stages: int = 4, openings: int = 20) -> System:
    return system(4, 5, 5, 126, 1, stages, openings)


def large(stages: int = 3, openings: int = 10) -> System:
    return system(100, 20, 30, 120, 3, stages, openings)


@dataclass(frozen=True)
class Call:
    """One backward call late in training: the arguments of `Engine.solve`."""

    model: LpModel
    x: np.ndarray
    values: np.ndarray
    pool: CutView
    start: BasisBlock
    trial_point: np.ndarray


def train(given: System, rows: int, passes: int, stage: int = 1) -> Call:
    """Train until the pool of `stage` holds `rows`, then return what its next backward call would be."""
    stages = len(given.models)
    states = given.initial.size
    capacity = rows + passes
    intercept = np.zeros((stages, capacity))
    slope = np.zeros((stages, capacity, states))
    rng = np.random.default_rng(1)
    count = 0
    with create_engine(SolverOptions()) as engine:
        while True:
            pools = [CutView(intercept[t], slope[t], count) for t in range(stages)]
            x = np.tile(given.initial, (passes, 1))
            visited, bases, outputs = [], [], []
            for t, model in enumerate(given.models):
                chosen = given.openings[t][rng.integers(0, len(given.openings[t]), passes)][:, None]
                block = engine.solve(SolveCall(model, x, chosen, pools[t], want_basis=True))
                visited.append(x)
                bases.append(block.basis)
                outputs.append(block.output[:, 0])
                x = block.output[:, 0]
            if count >= rows:
                pool = CutView(intercept[stage], slope[stage], rows)
                start = bases[stage]
                assert start is not None
                return Call(
                    given.models[stage], visited[stage], given.openings[stage], pool, start, outputs[stage]
                )
            new = count + passes
            for t in range(stages - 1, 0, -1):
                pool = CutView(intercept[t], slope[t], new if t < stages - 1 else 0)
                block = engine.solve(
                    SolveCall(
                        given.models[t],
                        visited[t],
                        given.openings[t],
                        pool,
                        start=bases[t],
                        trial_point=outputs[t],
                    )
                )
                gradient = block.gradient.mean(axis=1)
                slope[t - 1, count:new] = gradient
                intercept[t - 1, count:new] = block.objective.mean(axis=1) - (gradient * visited[t]).sum(
                    axis=1
                )
            count = new
