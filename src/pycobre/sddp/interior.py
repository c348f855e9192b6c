"""Cuts at interior points: where the backward pass solves, between a trial point and the middle of the state space.

Trial points of the forward pass are often extreme (reservoirs empty or full), where penalties make slopes so steep
that a cut is of no use a short way off. With x the trial point of trajectory m of M, c the middle of the state's
bounds and a weight λ_k that goes to 0, iteration k solves at

    x' = x + λ_k · m / (M − 1) · (c − x)        m = 0 … M − 1

and takes the ordinary cut there. A cut made at any point is valid everywhere, so every bound is one. The first
trajectory's cuts are made where it went, those of the others further and further inside: an iteration learns what
the plain method learns there, and what the future costs elsewhere. Because λ_k goes to 0 the points approach the
trial points, as the method without it needs them. States without two finite bounds keep their trial point: those of
an autoregressive inflow, for instance, are what they are.

Where few states have bounds the plain method covers them soon, and nothing is gained: by default (`DEFAULT`) points
move only where there are ten or more.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from pycobre._util.arrays import F64, I64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.sddp.plan import Plan

__all__ = ["DEFAULT", "InteriorPoints", "middles"]

Decay = Literal["geometric", "harmonic", "sqrt"]

LEAST = 0.01
"""A geometric weight below this is 0: from then on the method is the plain one."""


@frozen()
class InteriorPoints:
    """A schedule of weights: `initial` in the first iteration, then falling by `decay`.

    λ_k is initial / 2^(k−1) ("geometric", 0 once it is below 0.01), initial / k ("harmonic") or initial / √k
    ("sqrt"); after `last` iterations, if that is given, it is 0. With `graded` the trajectories of an iteration get
    weights from 0 to λ_k, and a single one gets λ_k in every other iteration, the first included; without, all get
    λ_k. Nodes that hand on fewer than `least_states` states with two finite bounds keep their trial points.
    """

    initial: float = 0.5
    decay: Decay = "geometric"
    last: int | None = None
    graded: bool = True
    least_states: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.initial, int | float) or not 0.0 < self.initial <= 1.0:
            raise OptionError(
                f"interior initial: expected a weight above 0 and up to 1, got {self.initial!r}. "
                "Use None instead of InteriorPoints for cuts at the trial points."
            )
        if self.decay not in get_args(Decay):
            raise OptionError(
                f"interior decay: expected 'geometric', 'harmonic' or 'sqrt', got {self.decay!r}."
            )
        if self.last is not None and (type(self.last) is not int or self.last < 1):
            raise OptionError(f"interior last: expected an iteration from 1 on, or None, got {self.last!r}.")
        if type(self.graded) is not bool:
            raise OptionError(f"interior graded: expected True or False, got {self.graded!r}.")
        if type(self.least_states) is not int or self.least_states < 1:
            raise OptionError(
                f"interior least_states: expected a whole number from 1 on, got {self.least_states!r}."
            )

    def weight(self, iteration: int) -> float:
        """λ of an iteration, counted from 1: the largest weight that its trajectories can have."""
        if self.last is not None and iteration > self.last:
            return 0.0
        if self.decay == "geometric":
            weight = math.ldexp(self.initial, 1 - iteration)
            return weight if weight >= LEAST else 0.0
        return self.initial / (math.sqrt(iteration) if self.decay == "sqrt" else iteration)

    def weights(self, iteration: int, trajectories: I64, count: int) -> F64:
        """The weights of these of an iteration's `count` trajectories."""
        weight = self.weight(iteration)
        if not self.graded:
            return np.full(len(trajectories), weight)
        if count == 1:
            return np.full(len(trajectories), weight if iteration % 2 else 0.0)
        return weight * trajectories / (count - 1)


DEFAULT = InteriorPoints(least_states=10)
"""What a training does that is not told otherwise."""


def middles(plan: Plan, least_states: int = 1) -> tuple[F64, ...]:
    """Per family, the middle of the bounds on the states that its members hand on; NaN where a state has none.

    Where members differ, the middle of what their bounds have in common. A family with fewer than `least_states`
    bounded states has no middle at all.
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
        if np.count_nonzero(bounded) >= least_states:
            middle[bounded] = 0.5 * lower[bounded] + 0.5 * upper[bounded]
        found.append(middle)
    return tuple(found)
