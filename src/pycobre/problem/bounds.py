"""A bound on all that follows a node, from the subproblems alone: for problems whose files give none.

What follows node i costs at least θ_i = Σ_j p_ij (L_j + discount_j θ_j), where L_j is the mean over the openings of
the least cost of node j's LP for any incoming state within its limits. Where an LP is unbounded because a state has
no limits, the least and the largest value that the state can take are found first, node by node.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre.errors import ProblemError
from pycobre.problem.api import Node, Problem
from pycobre.problem.check import check_stages, incoming_limits, with_incoming
from pycobre.problem.graph import ROOT
from pycobre.solver.highspy_lp import silent_highs, solve_lp
from pycobre.solver.patch import patched

__all__ = ["with_derived_bounds"]

Limits = NDArray[np.float64]
_DIGITS = 4
_ROUNDS = 100_000


def with_derived_bounds(problem: Problem) -> Problem:
    """The problem with a valid bound at every node that others follow.

    Raises ProblemError where an LP is unbounded within what the states can be: the author has to give a bound.
    """
    least = _least_costs(problem)
    theta = _solved(problem, least)
    nodes = [
        node if node.theta_lower is None else replace(node, theta_lower=_rounded_down(theta[position]))
        for position, node in enumerate(problem.nodes)
    ]
    return replace(problem, nodes=tuple(nodes))


def _least_costs(problem: Problem) -> list[float]:
    """L of every node that a path reaches."""
    low, high = incoming_limits(problem)
    highs = silent_highs()
    least: list[float | None] = [
        _least_cost(node, low[i], high[i], highs) if problem.shape.reachable[i] else 0.0
        for i, node in enumerate(problem.nodes)
    ]
    if None in least:
        check_stages(problem)  # what has no solution at all has a better explanation
    if None in least and not problem.shape.cyclic:
        low, high = _tightened(problem, low, high, highs)
        for i, node in enumerate(problem.nodes):
            if least[i] is None:
                least[i] = _least_cost(node, low[i], high[i], highs)
    found: list[float] = []
    for node, value in zip(problem.nodes, least, strict=True):
        if value is None:
            raise ProblemError(
                f"problem {problem.name!r}: node {node.name!r}: expected costs that are bounded within the limits of "
                "its states, got none. Give a bound on all that follows a node."
            )
        found.append(value)
    return found


def _least_cost(node: Node, low: Limits, high: Limits, highs: Any) -> float | None:
    """The mean over the openings of the least cost for any incoming state; None where there is no least."""
    total = 0.0
    for opening in np.flatnonzero(node.noise.probability > 0.0).tolist():
        lp = with_incoming(
            patched(node.template, node.noise.plan, node.noise.values[opening]), node, low, high
        )
        solution = solve_lp(lp, highs)
        if solution.status != "optimal":
            return None
        total += float(node.noise.probability[opening]) * solution.objective
    return total


def _tightened(problem: Problem, low: Limits, high: Limits, highs: Any) -> tuple[Limits, Limits]:
    """The limits of what comes into every node, from what the nodes before it can hand on."""
    low, high = np.full_like(low, np.inf), np.full_like(high, -np.inf)
    for j in problem.shape.successors(ROOT)[0].tolist():
        low[j] = high[j] = problem.initial
    for i in problem.shape.order.tolist():
        if not problem.shape.reachable[i]:
            continue
        least, most = _handed_on(problem.nodes[i], low[i], high[i], highs)
        for j in problem.shape.successors(i)[0].tolist():
            low[j], high[j] = np.minimum(low[j], least), np.maximum(high[j], most)
    return low, high


def _handed_on(node: Node, low: Limits, high: Limits, highs: Any) -> tuple[Limits, Limits]:
    """The least and the largest value of every state after a node, over all openings."""
    least, most = np.full(len(low), np.inf), np.full(len(low), -np.inf)
    for opening in np.flatnonzero(node.noise.probability > 0.0).tolist():
        lp = with_incoming(
            patched(node.template, node.noise.plan, node.noise.values[opening]), node, low, high
        )
        for state, column in enumerate(node.state_out.tolist()):
            bounds = []
            for sign in (1.0, -1.0):
                declared = lp.col_lower[column] if sign > 0 else lp.col_upper[column]
                if math.isfinite(declared):
                    bounds.append(float(declared))
                    continue
                cost = np.zeros(lp.num_cols)
                cost[column] = sign
                solution = solve_lp(replace(lp, cost=cost, offset=0.0), highs)
                bounds.append(sign * solution.objective if solution.status == "optimal" else -sign * math.inf)
            least[state], most[state] = min(least[state], bounds[0]), max(most[state], bounds[1])
    return least, most


def _solved(problem: Problem, least: list[float]) -> list[float]:
    """θ of every node: backwards where there is no way back, else repeated until nothing changes."""
    theta = [0.0] * len(problem.nodes)
    backwards = problem.shape.order.tolist()[::-1]
    for _ in range(_ROUNDS if problem.shape.cyclic else 1):
        largest_change = 0.0
        for i in backwards:
            value = 0.0
            targets, probability = problem.shape.successors(i)
            for j, p in zip(targets.tolist(), probability.tolist(), strict=True):
                value += p * (least[j] + problem.nodes[j].discount * theta[j])
            largest_change = max(largest_change, abs(value - theta[i]) / max(1.0, abs(value)))
            theta[i] = value
        if largest_change <= 1e-12:
            return theta
    if problem.shape.cyclic:
        raise ProblemError(
            f"problem {problem.name!r}: expected a cycle whose costs fade (a probability or a discount below 1), got "
            "one whose bound does not settle. Give the bound."
        )
    return theta


def _rounded_down(value: float) -> float:
    """A little less, to a few digits: a bound need not be sharp, and should not depend on a last bit."""
    value -= 1e-6 * max(1.0, abs(value))
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - _DIGITS + 1) if value else 1.0
    return math.floor(value / unit) * unit
