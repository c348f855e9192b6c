"""Small multistage problems whose optimal values are known, for tests of anything that claims to solve them.

Most are from the literature. `known_problems()` lists them all with their values; each is also a function of
its own, with the parameters that give the other published values. In the docstrings `x⁻` comes in, `x` goes
out, `w` is noise; variables are ≥ 0 unless said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pycobre.problem import Graph, Problem, Stage, build
from pycobre.testing.own_problems import detour, regimes, seasons, trader

__all__ = [
    "KnownProblem",
    "air_conditioners",
    "constant_loop",
    "detour",
    "farmer",
    "free_loop",
    "fuel_price",
    "hydro_reward",
    "hydro_thermal",
    "known_problems",
    "newsvendor",
    "noisy_bounds",
    "one_stock",
    "production",
    "regimes",
    "reservoir",
    "reservoir_for_ever",
    "seasons",
    "stocks_and_bonds",
    "trader",
    "valley",
    "wrong_bound",
]


@dataclass(frozen=True)
class KnownProblem:
    """A problem and the optimal value its author would see; `cyclic` ones have no finite tree."""

    name: str
    make: Callable[[], Problem]
    value: float
    cyclic: bool = False


def hydro_thermal(initial: float = 200.0) -> Problem:
    """Three stages of rhs noise: v = v⁻ − h − s + w, h + g = 150, cost c_t·g. From 200: 25000/3.

    By initial volume: 0 → 25277.7…, 50 → 20000, 100 → 15277.7…, 150 → 11388.8…
    """

    def stage(sp: Stage, t: Any) -> None:
        volume = sp.state("volume", initial=initial, upper=200.0)
        thermal, turbined, spill = sp.variables("thermal turbined spill")
        inflow = sp.noise([0.0, 50.0, 100.0], name="inflow")
        sp.add(volume.out == volume.in_ - turbined - spill + inflow, "balance")
        sp.add(turbined + thermal == 150.0, "demand")
        sp.minimise(50.0 * t * thermal)

    return build(Graph.linear(3), stage, lower_bound=0.0, name="hydro-thermal")


def fuel_price() -> Problem:
    """`hydro_thermal` with a fuel-price multiplier joint with the inflow: 10625."""

    def stage(sp: Stage, t: Any) -> None:
        volume = sp.state("volume", initial=200.0, upper=200.0)
        thermal, turbined, spill = sp.variables("thermal turbined spill")
        inflow, price = sp.joint_noise([(0.0, 1.5), (50.0, 1.0), (100.0, 0.75)], names=("inflow", "price"))
        sp.add(volume.out == volume.in_ - turbined - spill + inflow, "balance")
        sp.add(turbined + thermal == 150.0, "demand")
        sp.minimise(price * (50.0 * t) * thermal)

    return build(Graph.linear(3), stage, lower_bound=0.0, name="fuel price")


def newsvendor() -> Problem:
    """Buy at 1, sell at 2 at most w ∈ {2, 3}, a noise in a bound: −2."""

    def stage(sp: Stage, t: Any) -> None:
        papers = sp.state("papers", initial=0.0)
        if t == 1:
            sp.minimise(papers.out)
        else:
            sold = sp.variable("sold", upper=sp.noise([2.0, 3.0], name="demand"))
            sp.add(sold <= papers.in_, "stock")
            sp.minimise(-2.0 * sold)

    return build(Graph.linear(2), stage, lower_bound=-5.0, name="newsvendor")


def hydro_reward() -> Problem:
    """Maximise −5p with p + y ≥ 6 and x ≤ x⁻ − y + w: −10."""

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=0.0, upper=8.0)
        y, p = sp.variables("y p")
        sp.add(p + y >= 6.0, "demand")
        inflow = 6.0 if t == 1 else sp.noise([2.0, 10.0], name="inflow")
        sp.add(x.out <= x.in_ - y + inflow, "balance")
        sp.maximise(-5.0 * p)

    return build(Graph.linear(2), stage, upper_bound=0.0, name="hydro reward")


def production() -> Problem:
    """Two products over three stages with a joint limit on sales: −23.96."""

    def stage(sp: Stage, t: Any) -> None:
        first, second = sp.state("first", initial=0.0), sp.state("second", initial=0.0)
        sold = sp.variables("sold_first sold_second")
        demand = 0.0 if t == 1 else sp.noise([2.0, 10.0], name="demand")
        sp.add(sold[0] <= first.in_, "stock_first")
        sp.add(sold[1] <= second.in_, "stock_second")
        sp.add(sold[0] + sold[1] <= demand, "demand")
        sp.minimise(0.2 * first.out + 0.7 * second.out - 2.33 * sold[0] - 2.54 * sold[1])

    return build(Graph.linear(3), stage, lower_bound=-50.0, name="production")


def air_conditioners(first_demand: Sequence[float] = (100.0,)) -> Problem:
    """Produce, overtime, store: 62500; with `first_demand=(100, 300)` 85000, at worst at the root 107500."""

    def stage(sp: Stage, t: Any) -> None:
        stored = sp.state("stored", initial=0.0, upper=100.0)
        produced = sp.variable("produced", upper=200.0)
        overtime = sp.variable("overtime")
        demand = sp.noise(first_demand if t == 1 else [100.0, 300.0], name="demand")
        sp.add(stored.out == stored.in_ + produced + overtime - demand, "balance")
        sp.minimise(100.0 * produced + 300.0 * overtime + 50.0 * stored.out)

    return build(Graph.linear(3), stage, lower_bound=0.0, name="air conditioners")


def stocks_and_bonds() -> Problem:
    """Four stages of a Markov chain whose matrices differ by node: 1.5140846429."""
    even = [[0.5, 0.5], [0.5, 0.5]]
    stock_return, bond_return = (1.25, 1.06), (1.14, 1.12)

    def stage(sp: Stage, node: Any) -> None:
        t, i = node
        stocks, bonds = sp.state("stocks", initial=0.0), sp.state("bonds", initial=0.0)
        wealth = stock_return[i] * stocks.in_ + bond_return[i] * bonds.in_
        if t == 1:
            sp.add(stocks.out + bonds.out == 55.0, "budget")
        elif t < 4:
            sp.add(wealth == stocks.out + bonds.out, "budget")
        else:
            over, short = sp.variables("over short")
            sp.add(wealth - over + short == 80.0, "goal")
            sp.minimise(-over + 4.0 * short)

    graph = Graph.markov([[[1.0]], [[0.5, 0.5]], even, even])
    return build(graph, stage, lower_bound=-1000.0, name="stocks and bonds")


def valley(inflows: bool = True, prices: bool = True) -> Problem:
    """Maximise the income of two reservoirs in series over three stages.

    835 with neither, 838.3333333 with random inflows, 851.8 with Markov prices, 855 with both. The chain's
    third state is unreachable on purpose.
    """
    price = [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [3.0, 4.0, 0.0]]
    power, flow = (55.0, 65.0, 70.0), (50.0, 60.0, 70.0)
    chain = [[[1.0]], [[0.6, 0.4]], [[0.6, 0.4, 0.0], [0.3, 0.7, 0.0]]] if prices else [[[1.0]]] * 3

    def stage(sp: Stage, node: Any) -> None:
        t, i = node
        upper, lower = (sp.state(name, initial=200.0, upper=200.0) for name in ("upper", "lower"))
        support = [(0.0, 0.0), (20.0, 0.0), (50.0, 20.0)] if inflows and t > 1 else [(0.0, 0.0)]
        limit = sp.joint_noise(support, names=("upper_inflow", "lower_inflow"))
        inflow = [sp.variable(f"inflow{r}", upper=limit[r]) for r in range(2)]
        outflow, spill = sp.variables("outflow0 outflow1"), sp.variables("spill0 spill1")
        generation: Any = 0.0
        for r in range(2):
            mix = sp.variables([f"mix{r}{k}" for k in range(3)], upper=1.0)
            sp.add(outflow[r] == sum(f * m for f, m in zip(flow, mix, strict=True)), f"turbine{r}")
            sp.add(mix[0] + mix[1] + mix[2] <= 1.0, f"mix{r}")
            generation += sum(p * m for p, m in zip(power, mix, strict=True))
        sp.add(upper.out == upper.in_ + inflow[0] - outflow[0] - spill[0], "upper_balance")
        sp.add(
            lower.out == lower.in_ + inflow[1] - outflow[1] - spill[1] + outflow[0] + spill[0],
            "lower_balance",
        )
        sp.maximise(price[t - 1][i] * generation - 1000.0 * (spill[0] + spill[1]))

    return build(Graph.markov(chain), stage, upper_bound=1e6, name="valley")


def farmer() -> Problem:
    """Maximise with noise in matrix coefficients: areas (170, 80, 250) earn 108390."""
    crops = ("wheat", "corn", "beet")

    def stage(sp: Stage, t: Any) -> None:
        area = [sp.state(crop, initial=0.0) for crop in crops]
        if t == 1:
            sp.add(area[0].out + area[1].out + area[2].out <= 500.0, "land")
            sp.maximise(-sum(c * a.out for c, a in zip((150.0, 230.0, 260.0), area, strict=True)))
            return
        weather = sp.noise([1.2, 1.0, 0.8], name="weather")
        reward: Any = 0.0
        for c, crop in enumerate(crops):
            sold = sp.variable(f"sold_{crop}", upper=6000.0 if crop == "beet" else math.inf)
            surplus, bought, grown = sp.variables(f"surplus_{crop} bought_{crop} grown_{crop}")
            sp.add(grown == (2.5, 3.0, 20.0)[c] * weather * area[c].in_, f"yield_{crop}")
            sp.add(grown + bought - sold - surplus >= (200.0, 240.0, 0.0)[c], f"need_{crop}")
            reward += (170.0, 150.0, 36.0)[c] * sold + (0.0, 0.0, 10.0)[c] * surplus
            reward -= (238.0, 210.0, 1000.0)[c] * bought
        sp.maximise(reward)

    return build(Graph.linear(2), stage, upper_bound=500_000.0, name="farmer")


def _reservoir_stage(sp: Stage, t: Any) -> None:
    x = sp.state("reservoir", initial=10.0, lower=5.0, upper=15.0)
    turbined, spill, thermal = sp.variables("turbined spill thermal")
    inflow, demand = sp.joint_noise([(0.0, 7.5), (5.0, 5.0), (10.0, 2.5)], names=("inflow", "demand"))
    sp.add(x.out == x.in_ - turbined - spill + inflow, "balance")
    sp.add(turbined + thermal == demand, "demand")
    sp.minimise(thermal + 10.0 * spill)


def reservoir(stages: int = 4) -> Problem:
    """One reservoir: 385/18 over 2 stages, 275/6 over 4, 4345/18 over 20."""
    return build(Graph.linear(stages), _reservoir_stage, lower_bound=0.0, name=f"reservoir {stages}")


def reservoir_for_ever() -> Problem:
    """`reservoir` on one node that follows itself with probability 0.9: 715/6 (without any future: 55/6)."""
    graph = Graph.cyclic(probability=0.9)
    return build(graph, _reservoir_stage, lower_bound=0.0, name="reservoir for ever")


def one_stock(stages: int = 5) -> Problem:
    """Sell from one stock with ten openings in each of five stages: −1.4710749176."""

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("stock", initial=0.5, upper=1.0)
        sold = sp.variable("sold", upper=0.5)
        sp.add(x.out == x.in_ - sold + sp.noise([k / 30.0 for k in range(10)], name="arrivals"), "balance")
        sp.minimise((math.sin(3.0 * t) - 1.0) * sold)

    return build(Graph.linear(stages), stage, lower_bound=-2.0, name="one stock")


def noisy_bounds() -> Problem:
    """Two stages, free x ≥ w with w ∈ {t, 3t}, cost x: 6."""

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=0.0, lower=sp.noise([1.0 * t, 3.0 * t], name="w"))
        sp.minimise(x.out)

    return build(Graph.linear(2), stage, lower_bound=0.0, name="noisy bounds")


def constant_loop() -> Problem:
    """One node that follows itself with probability 0.9 and pays 2: 20."""

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=0.0)
        sp.add(x.out == x.in_, "carry")
        sp.minimise(2.0)

    return build(Graph.cyclic(probability=0.9), stage, lower_bound=0.0, name="constant loop")


def free_loop() -> Problem:
    """One node that follows itself with probability 0.5 and pays its free state x = x⁻ = 1: 2."""

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=1.0, lower=-math.inf)
        sp.add(x.out == x.in_, "carry")
        sp.minimise(x.out)

    return build(Graph.cyclic(probability=0.5), stage, lower_bound=0.0, name="free loop")


def wrong_bound(lower_bound: float = 0.0) -> Problem:
    """Three stages without noise: 3.5; with a bound of 10 on the cost to go, which is wrong, 11."""

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=2.0)
        u, v = sp.variables("u v")
        sp.add(x.out == x.in_ - u, "balance")
        sp.add(u + v == 1.5, "demand")
        sp.minimise(1.0 * t * v)

    return build(Graph.linear(3), stage, lower_bound=lower_bound, name="wrong bound")


def known_problems() -> tuple[KnownProblem, ...]:
    """Return every problem with the value it is known to have."""
    return (
        KnownProblem("hydro-thermal", hydro_thermal, 25000 / 3),
        *(
            KnownProblem(f"hydro-thermal from {v:g}", lambda v=v: hydro_thermal(v), value)  # type: ignore[misc]
            for v, value in ((0.0, 227500 / 9), (50.0, 20000.0), (100.0, 137500 / 9), (150.0, 102500 / 9))
        ),
        KnownProblem("fuel price", fuel_price, 10625.0),
        KnownProblem("newsvendor", newsvendor, -2.0),
        KnownProblem("hydro reward", hydro_reward, -10.0),
        KnownProblem("production", production, -23.96),
        KnownProblem("air conditioners", air_conditioners, 62500.0),
        KnownProblem("air conditioners, random start", lambda: air_conditioners((100.0, 300.0)), 85000.0),
        KnownProblem("stocks and bonds", stocks_and_bonds, 1.5140846429),
        KnownProblem("valley", lambda: valley(False, False), 835.0),
        KnownProblem("valley, inflows", lambda: valley(True, False), 2515 / 3),
        KnownProblem("valley, prices", lambda: valley(False, True), 851.8),
        KnownProblem("valley, inflows and prices", valley, 855.0),
        KnownProblem("farmer", farmer, 108390.0),
        KnownProblem("reservoir 2", lambda: reservoir(2), 385 / 18),
        KnownProblem("reservoir 4", reservoir, 275 / 6),
        KnownProblem("reservoir 20", lambda: reservoir(20), 4345 / 18),
        KnownProblem("reservoir for ever", reservoir_for_ever, 715 / 6, cyclic=True),
        KnownProblem("one stock", one_stock, -1.4710749176),
        KnownProblem("noisy bounds", noisy_bounds, 6.0),
        KnownProblem("constant loop", constant_loop, 20.0, cyclic=True),
        KnownProblem("free loop", free_loop, 2.0, cyclic=True),
        KnownProblem("wrong bound", wrong_bound, 3.5),
        KnownProblem("trader", trader, -1.5),
        KnownProblem("regimes", regimes, 3021 / 256),
        KnownProblem("detour", detour, 4.5),
        KnownProblem("seasons", seasons, 3.2932113636363636, cyclic=True),
    )
