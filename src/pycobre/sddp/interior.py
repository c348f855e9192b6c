"""Cuts at interior points: where the backward pass solves, between a trial point and the middle of the state space.

Trial points of the forward pass are often extreme (reservoirs empty or full), where penalties make slopes so steep
that a cut is of no use a short way off. With x the trial point, m the middle of the state's bounds and a weight
λ_k that goes to 0, iteration k solves at

    x' = x + λ_k (m − x)        λ_k = initial / √k   or   initial / k

and takes the ordinary cut there. A cut made at any point is valid everywhere, so every bound is one; because λ_k
goes to 0 the points approach the trial points, as the method without it needs them. States without two finite
bounds keep their trial point: those of an autoregressive inflow, for instance, are what they are.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.sddp.plan import Plan

__all__ = ["InteriorPoints", "middles"]

Decay = Literal["sqrt", "harmonic"]


@frozen()
class InteriorPoints:
    """A schedule of weights: `initial` in the first iteration, falling as 1/√k ("sqrt") or 1/k ("harmonic").

    After `last` iterations, if it is given, the weight is 0.
    """

    initial: float = 0.5
    decay: Decay = "harmonic"
    last: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.initial, int | float) or not 0.0 < self.initial <= 1.0:
            raise OptionError(
                f"interior initial: expected a weight above 0 and up to 1, got {self.initial!r}. "
                "Use None instead of InteriorPoints for cuts at the trial points."
            )
        if self.decay not in get_args(Decay):
            raise OptionError(f"interior decay: expected 'sqrt' or 'harmonic', got {self.decay!r}.")
        if self.last is not None and (type(self.last) is not int or self.last < 1):
            raise OptionError(f"interior last: expected an iteration from 1 on, or None, got {self.last!r}.")

    def weight(self, iteration: int) -> float:
        """λ of an iteration, counted from 1."""
        if self.last is not None and iteration > self.last:
            return 0.0
        return self.initial / (math.sqrt(iteration) if self.decay == "sqrt" else iteration)


def middles(plan: Plan) -> tuple[F64, ...]:
    """Per family, the middle of the bounds on the states that its members hand on; NaN where a state has none.

    Where members differ, the middle of what their bounds have in common.
    """
    found = []
    for family in plan.families:
        lower, upper = np.full(plan.states, -np.inf), np.full(plan.states, np.inf)
        for member in family.members:
            node = plan.problem.nodes[member]
            lower = np.maximum(lower, node.template.col_lower[node.state_out])
            upper = np.minimum(upper, node.template.col_upper[node.state_out])
        bounded = np.isfinite(lower) & np.isfinite(upper) & (lower <= upper)
        middle = np.full(plan.states, np.nan)
        middle[bounded] = 0.5 * lower[bounded] + 0.5 * upper[bounded]
        found.append(middle)
    return tuple(found)
