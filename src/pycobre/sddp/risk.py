"""Risk measures: how the costs of several outcomes become one number and one cut.

A measure answers one question: with which weights, and which constant, are the outcomes combined?

    risk(costs) = Σ_k weight_k · cost_k + offset        and the same weights combine the outcomes' gradients,

because a convex risk measure is a supremum of such combinations, attained at the weights returned. Everything
is a cost to be made small; a maximised problem is negated before it comes here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.sddp.numbers import ordered_exp, ordered_log, ordered_sum

__all__ = [
    "CVaR",
    "ConvexCombination",
    "Entropic",
    "Expectation",
    "RiskMeasure",
    "Weights",
    "WorstCase",
    "expectation_and_cvar",
    "risk_weights",
]


class Weights(NamedTuple):
    """`weight` [rows, outcomes] and `offset` [rows] of the combination above, one row per vector of costs."""

    weight: F64
    offset: F64


class RiskMeasure(ABC):
    """One method to write for a new measure; it is called with many cost vectors at once."""

    @abstractmethod
    def weights(self, probability: F64, costs: F64) -> Weights:
        """Weights of each row of `costs` [rows, outcomes] under `probability` [outcomes].

        Each row is answered on its own: a row's bits must not depend on the other rows. Outcomes of
        probability zero get weight zero.
        """

    def value(self, probability: ArrayLike, costs: ArrayLike) -> float:
        """The risk of one vector of costs."""
        row = np.atleast_2d(np.asarray(costs, dtype=np.float64))
        found = self.weights(np.asarray(probability, dtype=np.float64), row)
        return float(ordered_sum(found.weight * row)[0] + found.offset[0])


@frozen()
class Expectation(RiskMeasure):
    """The mean. The only measure for which the simulated cost estimates what the bound bounds."""

    def weights(self, probability: F64, costs: F64) -> Weights:
        weight = np.empty(costs.shape)
        weight[:] = probability
        return Weights(weight, np.zeros(len(costs)))


@frozen()
class WorstCase(RiskMeasure):
    """The largest cost among outcomes that can happen; of equals the first."""

    def weights(self, probability: F64, costs: F64) -> Weights:
        possible = np.where(probability > 0.0, costs, -np.inf)
        weight = np.zeros(costs.shape)
        weight[np.arange(len(costs)), np.argmax(possible, axis=1)] = 1.0
        return Weights(weight, np.zeros(len(costs)))


@frozen()
class CVaR(RiskMeasure):
    """Mean of the worst outcomes that together have probability `tail` (average value at risk).

    tail = 1 is the expectation, tail = 0 the worst case:

        CVaR_tail(Z) = min_t  t + E[max(Z − t, 0)] / tail
    """

    tail: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.tail <= 1.0:
            raise OptionError(f"CVaR tail: expected a probability from 0 to 1, got {self.tail}.")

    def weights(self, probability: F64, costs: F64) -> Weights:
        if self.tail == 0.0:
            return WorstCase().weights(probability, costs)
        if self.tail == 1.0:
            return Expectation().weights(probability, costs)
        # Stable sort of the negated costs: the worst first, equals in the order of the outcomes.
        worst_first = np.argsort(-costs, axis=1, kind="stable")
        mass = probability[worst_first]
        before = np.cumsum(mass, axis=1) - mass
        taken = np.clip(self.tail - before, 0.0, mass) / self.tail
        weight = np.empty(costs.shape)
        np.put_along_axis(weight, worst_first, taken, axis=1)
        return Weights(weight, np.zeros(len(costs)))


@frozen()
class Entropic(RiskMeasure):
    """(1/γ) log E[exp(γ Z)], with γ = `gamma` > 0: between the mean (γ → 0) and the worst case (γ → ∞).

    Not positively homogeneous: γ has the unit of one over cost.
    """

    gamma: float

    def __post_init__(self) -> None:
        if not (self.gamma > 0.0 and np.isfinite(self.gamma)):
            raise OptionError(f"Entropic gamma: expected a finite number above 0, got {self.gamma}.")

    def weights(self, probability: F64, costs: F64) -> Weights:
        top = np.max(np.where(probability > 0.0, costs, -np.inf), axis=1)
        # Outcomes that cannot happen may cost more than `top`: keep their exponent from overflowing.
        tilt = probability * ordered_exp(np.minimum(self.gamma * (costs - top[:, None]), 0.0))
        total = ordered_sum(tilt)
        weight = tilt / total[:, None]
        # risk = sup_q E_q[Z] − KL(q‖p)/γ, so the offset is what is missing from E_q[Z].
        risk = top + ordered_log(total) / self.gamma
        return Weights(weight, risk - ordered_sum(weight * costs))


@frozen()
class ConvexCombination(RiskMeasure):
    """Σ_i share_i · measure_i, with shares that are not negative and sum to one."""

    parts: tuple[tuple[float, RiskMeasure], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple((float(share), measure) for share, measure in self.parts))
        shares = [share for share, _ in self.parts]
        if not shares or min(shares) < 0.0 or abs(sum(shares) - 1.0) > 1e-9:
            raise OptionError(
                f"ConvexCombination shares: expected numbers ≥ 0 that sum to 1, got {shares}. "
                "Divide them by their sum."
            )

    def weights(self, probability: F64, costs: F64) -> Weights:
        weight, offset = np.zeros(costs.shape), np.zeros(len(costs))
        for share, measure in self.parts:
            part = measure.weights(probability, costs)
            weight += share * part.weight
            offset += share * part.offset
        return Weights(weight, offset)


def expectation_and_cvar(share: float, tail: float) -> RiskMeasure:
    """(1 − share) · expectation + share · CVaR(tail), the usual measure of power-system planning."""
    return ConvexCombination(((1.0 - share, Expectation()), (share, CVaR(tail))))


def risk_weights(
    measure: RiskMeasure, probability: ArrayLike, values: ArrayLike, *, maximise: bool = False
) -> F64:
    """Weights of one vector of outcomes as an author sees it: costs, or rewards with `maximise`."""
    costs = np.atleast_2d(np.asarray(values, dtype=np.float64))
    found = measure.weights(np.asarray(probability, dtype=np.float64), -costs if maximise else costs)
    weight: F64 = found.weight[0]
    return weight
