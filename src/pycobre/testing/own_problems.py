"""Problems of our own making, for what the literature's small examples do not exercise.

The tests recompute their values by dynamic programming over the lattice that all their numbers lie on.
"""

from __future__ import annotations

import math
from typing import Any

from pycobre.problem import Graph, Problem, Stage, build

__all__ = ["detour", "regimes", "seasons", "trader"]


def trader() -> Problem:
    """Maximise, with one joint noise in a cost, a bound, a right-hand side and a coefficient at once.

    Plant x ≤ 10 at 2 each; then harvest m·x⁻, sell at most d of it at price p, and deliver a contract c,
    where what is missing is bought at 5: sold + delivered ≤ m·x⁻, delivered + bought = c.
    """
    outcomes = [
        {"yield": 1.0, "price": 4.0, "demand": 3.0, "contract": 2.0},
        {"yield": 0.5, "price": 6.0, "demand": 5.0, "contract": 1.0},
        {"yield": 2.0, "price": -1.0, "demand": 4.0, "contract": 4.0},
    ]

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("planted", initial=0.0, upper=10.0)
        if t == 1:
            sp.maximise(-2.0 * x.out)
            return
        w = sp.joint_noise(outcomes, [0.5, 0.25, 0.25])
        sold = sp.variable("sold", upper=w["demand"])
        delivered, bought = sp.variables("delivered bought")
        sp.add(sold + delivered <= w["yield"] * x.in_, "harvest")
        sp.add(delivered + bought == w["contract"], "contract")
        sp.add(x.out == 0.0, "end")
        sp.maximise(w["price"] * sold - 5.0 * bought)

    return build(Graph.linear(2), stage, upper_bound=100.0, name="trader")


def regimes() -> Problem:
    """A stock that may be owed (a free state) under a Markov chain of demands, with an unreachable regime.

    Order u ≤ 4 at 2; demand by regime calm {0, 2}, busy {2, 6} (3 : 1), mad {99}; pay 1 for each unit kept
    and 3 for each unit owed; at the end earn 1 for each unit kept.
    """
    demand = [([0.0, 2.0], [0.5, 0.5]), ([2.0, 6.0], [0.75, 0.25]), ([99.0], [1.0])]
    chain = [[[0.5, 0.5]], [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]], [[0.5, 0.5, 0.0]] * 3]

    def stage(sp: Stage, node: Any) -> None:
        t, i = node
        stock = sp.state("stock", initial=1.0, lower=-math.inf)
        order = sp.variable("order", upper=4.0)
        kept, owed = sp.variables("kept owed")
        values, probability = demand[i]
        wanted = sp.noise(values, probability, name="demand")
        sp.add(stock.out == stock.in_ + order - wanted, "balance")
        sp.add(kept - owed == stock.out, "split")
        sp.minimise(2.0 * order + kept + 3.0 * owed - (2.0 * kept if t == 3 else 0.0))

    return build(Graph.markov(chain), stage, lower_bound=-30.0, name="regimes")


def detour() -> Problem:
    """A graph with arcs of several lengths and discounts, a path that stops early, and constants only: 4.5.

    a (1) goes to b (2) with 0.5, to c (4) with 0.25 and discount 0.5, else stops; b goes to c.
    """
    graph = Graph()
    for key in "abc":
        graph.add_node(key)
    graph.add_arc("root", "a")
    graph.add_arc("a", "b", 0.5)
    graph.add_arc("a", "c", 0.25, discount=0.5)
    graph.add_arc("b", "c")

    def stage(sp: Stage, key: Any) -> None:
        x = sp.state("x", initial=0.0)
        sp.add(x.out == x.in_, "carry")
        sp.minimise({"a": 1.0, "b": 2.0, "c": 4.0}[key])

    return build(graph, stage, lower_bound=0.0, name="detour")


def seasons() -> Problem:
    """A ring of a wet and a dry season for ever: storage x ≤ 4, demand 2, discount 0.9, return with 0.8.

    Wet: inflow 1 or 3 (1 : 3), thermal power at 1. Dry: no inflow, thermal power at 4. Spilling is free.
    """

    def stage(sp: Stage, t: Any) -> None:
        x = sp.state("storage", initial=2.0, upper=4.0)
        released, spilled, thermal = sp.variables("released spilled thermal")
        inflow = sp.noise([1.0, 3.0], [0.25, 0.75], name="inflow") if t == 1 else 0.0
        sp.add(x.out == x.in_ - released - spilled + inflow, "balance")
        sp.add(released + thermal == 2.0, "demand")
        sp.minimise((1.0 if t == 1 else 4.0) * thermal)

    return build(Graph.cyclic(2, probability=0.8, discount=0.9), stage, lower_bound=0.0, name="seasons")
