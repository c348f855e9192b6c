"""Exact dynamic programming on a lattice: a second opinion that shares no code with what it judges.

All numbers of these one-state problems are multiples of one step, so every breakpoint of a cost-to-go
function is one too, and minimising over the lattice loses nothing. Fractions keep it exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any


def expected(outcomes: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    return sum((p * value for p, value in outcomes), start=Fraction(0))


def reservoir_stage(x: int, inflow: int, demand: int, future: Sequence[Fraction]) -> Fraction:
    """In steps of 2.5: storage 2…6, release what the next storage leaves, spill the excess at 10."""
    options = []
    for after in range(2, 7):
        out = x + inflow - after
        if out >= 0:
            released = min(out, demand)
            options.append(Fraction(5, 2) * (demand - released + 10 * (out - released)) + future[after])
    return min(options)


def reservoir_value(stages: int) -> Fraction:
    future = [Fraction(0)] * 7
    for _ in range(stages):
        now = [Fraction(0)] * 7
        for x in range(2, 7):
            now[x] = expected(
                (Fraction(1, 3), reservoir_stage(x, i, d, future)) for i, d in ((0, 3), (2, 2), (4, 1))
            )
        future = now
    return future[4]


def reservoir_for_ever_value(turns: int) -> float:
    """Value iteration in floats; after n turns what is left out is below 0.9ⁿ · 1000."""
    future = [0.0] * 7
    for _ in range(turns):
        kept: Any = [0.9 * v for v in future]
        for x in range(2, 7):
            openings = [reservoir_stage(x, i, d, kept) for i, d in ((0, 3), (2, 2), (4, 1))]
            future[x] = float(sum(openings)) / 3.0
    return future[4]


def hydro_thermal_value(volume: int, prices: Sequence[Fraction] = (Fraction(1),) * 3) -> Fraction:
    """In steps of 50; `prices` multiply the cost with each inflow."""
    future = [Fraction(0)] * 5
    for t in (3, 2, 1):
        now = []
        for v in range(5):
            values = []
            for w, price in enumerate(prices):
                options = [
                    price * 50 * t * 50 * (3 - min(v + w - after, 3)) + future[after]
                    for after in range(5)
                    if v + w - after >= 0
                ]
                values.append((Fraction(1, 3), min(options)))
            now.append(expected(values))
        future = now
    return future[volume]


def one_stock_value(stages: int) -> float:
    """In steps of 1/30; the costs are sines, so floats."""
    future = [0.0] * 31
    for t in range(stages, 0, -1):
        unit = (math.sin(3.0 * t) - 1.0) / 30.0
        future = [
            math.fsum(
                min(unit * sold + future[x - sold + w] for sold in range(16) if 0 <= x - sold + w <= 30)
                for w in range(10)
            )
            / 10.0
            for x in range(31)
        ]
    return future[15]


def air_conditioners_value(first_demand: Sequence[int]) -> Fraction:
    """In steps of 100."""
    future = [Fraction(0)] * 2
    for demands in ((1, 3), (1, 3), first_demand):
        now = []
        for x in range(2):
            values = []
            for d in demands:
                options = [
                    Fraction(100 * (100 * made + 300 * (after + d - x - made) + 50 * after)) + future[after]
                    for after, made in product(range(2), range(3))
                    if after + d - x - made >= 0
                ]
                values.append((Fraction(1, len(demands)), min(options)))
            now.append(expected(values))
        future = now
    return future[0]


def trader_value() -> Fraction:
    """The profit is concave and piecewise linear in x, with breakpoints at multiples of 1/2."""

    def profit(x: Fraction) -> Fraction:
        total = -2 * x
        for p, m, price, demand, contract in (
            (Fraction(1, 2), Fraction(1), 4, 3, 2),
            (Fraction(1, 4), Fraction(1, 2), 6, 5, 1),
            (Fraction(1, 4), Fraction(2), -1, 4, 4),
        ):
            harvest = m * x
            total += p * max(
                price * (min(harvest - delivered, demand) if price > 0 else 0) - 5 * (contract - delivered)
                for delivered in (Fraction(k, 4) for k in range(4 * contract + 1))
                if delivered <= harvest
            )
        return total

    return max(profit(Fraction(k, 2)) for k in range(21))


def regimes_value() -> Fraction:
    demand = [[(Fraction(1, 2), 0), (Fraction(1, 2), 2)], [(Fraction(3, 4), 2), (Fraction(1, 4), 6)]]
    chain = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    even = [[Fraction(1, 2)] * 2] * 2

    def value(t: int, regime: int, stock: int) -> Fraction:
        outcomes = []
        for p, d in demand[regime]:
            options = []
            for order in range(5):
                after = stock + order - d
                kept = after if t < 3 else -after
                pay = Fraction(2 * order + (kept if after > 0 else -3 * after))
                if t < 3:
                    matrix = chain if t == 1 else even
                    pay += expected((q, value(t + 1, j, after)) for j, q in enumerate(matrix[regime]))
                options.append(pay)
            outcomes.append((p, min(options)))
        return expected(outcomes)

    return expected((Fraction(1, 2), value(1, regime, 1)) for regime in (0, 1))


def seasons_value(years: int) -> float:
    """Value iteration; what is left out after n years is below (0.9² · 0.8)ⁿ · 100."""
    wet = [0.0] * 5
    for _ in range(years):
        dry = [
            min(4.0 * max(0, 2 - (x - after)) + 0.9 * 0.8 * wet[after] for after in range(x + 1))
            for x in range(5)
        ]
        wet = [
            sum(
                p * min(max(0, 2 - (x + w - after)) + 0.9 * dry[after] for after in range(min(4, x + w) + 1))
                for p, w in ((0.25, 1), (0.75, 3))
            )
            for x in range(5)
        ]
    return wet[2]
