"""Stopping rules: when training ends.

Rules are asked after every iteration, on rank 0 only, and the answer is broadcast: a rule may look at a
clock or at any other local source, and the ranks still agree. Costs are minimised here whatever the
problem's sense.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.sddp.numbers import spread

__all__ = [
    "AllOf",
    "AnyOf",
    "BoundStalling",
    "Gap",
    "IterationLimit",
    "Progress",
    "SimulatedGap",
    "Stop",
    "StoppingRule",
    "TimeLimit",
    "relative_gap",
]


@frozen(eq=False)
class Progress:
    """What a rule may look at: one entry per finished iteration, the latest last."""

    lower_bounds: F64
    upper_bounds: F64
    stds: F64  #: sample standard deviation behind each upper bound
    elapsed_s: float  #: of this run
    simulated: F64 | None = None  #: costs of the scenarios that a rule asked for, after this iteration

    @property
    def iteration(self) -> int:
        return len(self.lower_bounds)


class Stop(NamedTuple):
    """Why to stop, and whether that means the policy has converged."""

    reason: str
    converged: bool


class StoppingRule(ABC):
    @abstractmethod
    def check(self, progress: Progress) -> Stop | None:
        """Say why to stop now, or None to go on."""

    def simulations(self, iteration: int) -> int:
        """Scenarios to simulate after `iteration` for this rule; every rank must get the same answer."""
        return 0

    @property
    def iteration_limit(self) -> int | None:
        """The iteration after which this rule certainly stops, where it knows one."""
        return None


def relative_gap(lower: float, upper: float) -> float:
    """(upper − lower) / max(1, |lower|), both of the minimised problem."""
    return (upper - lower) / max(1.0, abs(lower))


def _positive(rule: str, field: str, value: float) -> None:
    if not value > 0:
        raise OptionError(f"{rule} {field}: expected a number above 0, got {value}.")


@frozen()
class IterationLimit(StoppingRule):
    """Stop after `limit` iterations in all, those before a resume included."""

    limit: int

    def __post_init__(self) -> None:
        _positive("IterationLimit", "limit", self.limit)

    def check(self, progress: Progress) -> Stop | None:
        return Stop("iteration_limit", False) if progress.iteration >= self.limit else None

    @property
    def iteration_limit(self) -> int | None:
        return self.limit


@frozen()
class TimeLimit(StoppingRule):
    """Stop after the first iteration that ends `seconds` or more after this run began."""

    seconds: float

    def __post_init__(self) -> None:
        _positive("TimeLimit", "seconds", self.seconds)

    def check(self, progress: Progress) -> Stop | None:
        return Stop("time_limit", False) if progress.elapsed_s >= self.seconds else None


@frozen()
class BoundStalling(StoppingRule):
    """Stop when |LB_k − LB_{k−w+1}| / max(1, |LB_k|) < tolerance, with w = `iterations`.

    A stalled bound is not a proof of convergence: with few trajectories it also stalls between lucky samples.
    """

    iterations: int
    tolerance: float

    def __post_init__(self) -> None:
        if self.iterations < 2:
            raise OptionError(f"BoundStalling iterations: expected at least 2, got {self.iterations}.")
        _positive("BoundStalling", "tolerance", self.tolerance)

    def check(self, progress: Progress) -> Stop | None:
        bounds = progress.lower_bounds
        if len(bounds) < self.iterations:
            return None
        last, first = float(bounds[-1]), float(bounds[-self.iterations])
        stalled = abs(last - first) / max(1.0, abs(last)) < self.tolerance
        return Stop("bound_stalling", True) if stalled else None


@frozen()
class Gap(StoppingRule):
    """Stop when (UB − LB) / max(1, |LB|) ≤ tolerance, or where `absolute` is given when UB − LB ≤ absolute.

    UB is the mean of the iteration's trajectories: exact where they are all there are (every path is enumerated, or
    nothing is random); a noisy guess where they are a small sample, for which `SimulatedGap` is the honest rule.
    Without enumeration it is meaningless with a risk measure other than expectation.
    """

    tolerance: float | None = None
    absolute: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("tolerance", self.tolerance), ("absolute", self.absolute)):
            if value is not None and not value >= 0:
                raise OptionError(f"Gap {name}: expected a number from 0 on, got {value}.")
        if self.tolerance is None and self.absolute is None:
            raise OptionError("Gap: expected a tolerance, an absolute one, or both, got none.")

    def check(self, progress: Progress) -> Stop | None:
        lower, upper = float(progress.lower_bounds[-1]), float(progress.upper_bounds[-1])
        relative = self.tolerance is not None and relative_gap(lower, upper) <= self.tolerance
        absolute = self.absolute is not None and upper - lower <= self.absolute
        return Stop("gap", True) if relative or absolute else None


@frozen()
class SimulatedGap(StoppingRule):
    """Every `every` iterations simulate `scenarios` and stop when the bound is in their confidence interval.

    Stops when LB ≥ mean − z · std/√n − tolerance · max(1, |LB|). The more scenarios, the harder it is to
    pass.
    """

    scenarios: int
    every: int = 10
    z: float = 1.96
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        _positive("SimulatedGap", "every", self.every)
        if self.scenarios < 2:
            raise OptionError(f"SimulatedGap scenarios: expected at least 2, got {self.scenarios}.")

    def simulations(self, iteration: int) -> int:
        return self.scenarios if iteration % self.every == 0 else 0

    def check(self, progress: Progress) -> Stop | None:
        if progress.simulated is None or not self.simulations(progress.iteration):
            return None
        costs = progress.simulated[: self.scenarios]
        lower = float(progress.lower_bounds[-1])
        mean, std, _ = spread(costs)
        half_width = self.z * std / math.sqrt(len(costs))
        closed = lower >= mean - half_width - self.tolerance * max(1.0, abs(lower))
        return Stop("simulation", True) if closed else None


@frozen()
class AnyOf(StoppingRule):
    """Stop when any of the rules does; the first in the list gives the reason."""

    rules: tuple[StoppingRule, ...]

    def __init__(self, *rules: StoppingRule) -> None:
        object.__setattr__(self, "rules", _several("AnyOf", rules))

    def check(self, progress: Progress) -> Stop | None:
        return next((stop for rule in self.rules if (stop := rule.check(progress))), None)

    def simulations(self, iteration: int) -> int:
        return max(rule.simulations(iteration) for rule in self.rules)

    @property
    def iteration_limit(self) -> int | None:
        limits = [limit for rule in self.rules if (limit := rule.iteration_limit) is not None]
        return min(limits, default=None)


@frozen()
class AllOf(StoppingRule):
    """Stop when all the rules do in the same iteration."""

    rules: tuple[StoppingRule, ...]

    def __init__(self, *rules: StoppingRule) -> None:
        object.__setattr__(self, "rules", _several("AllOf", rules))

    def check(self, progress: Progress) -> Stop | None:
        stops = [rule.check(progress) for rule in self.rules]
        agreed = [stop for stop in stops if stop is not None]
        if len(agreed) < len(stops):
            return None
        return Stop(" and ".join(stop.reason for stop in agreed), any(stop.converged for stop in agreed))

    def simulations(self, iteration: int) -> int:
        return max(rule.simulations(iteration) for rule in self.rules)


def _several(name: str, rules: tuple[StoppingRule, ...]) -> tuple[StoppingRule, ...]:
    if not rules:
        raise OptionError(f"{name}: expected at least one stopping rule, got none.")
    return tuple(rules)
