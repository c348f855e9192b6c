"""Options of a training run, checked at construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.problem import ROOT, Problem
from pycobre.sddp.enumeration import count_paths
from pycobre.sddp.interior import DEFAULT as DEFAULT_INTERIOR
from pycobre.sddp.interior import InteriorPoints
from pycobre.sddp.node_keys import node_position
from pycobre.sddp.risk import Expectation, RiskMeasure
from pycobre.sddp.selection import Selection
from pycobre.sddp.stopping import IterationLimit, StoppingRule
from pycobre.sddp.trajectories import GrowingTrajectories
from pycobre.solver.api import SolverOptions
from pycobre.stochastic.streams import DEFAULT_SEED

__all__ = ["TrainOptions"]

SAME_BITS = ("threads", "native", "bundles")
"""Options of the solver that change no number."""


@frozen()
class TrainOptions:
    """How to train. Threads and ranks change no bit of the result; everything else may."""

    forward_passes: int = 10  #: trajectories per iteration, M
    stopping: StoppingRule = field(default_factory=lambda: IterationLimit(100))
    risk: RiskMeasure | Mapping[Any, RiskMeasure] = field(default_factory=Expectation)
    """Measure of the cost-to-go of every node, or by key of the node looking ahead (else expectation)."""
    root_risk: RiskMeasure = field(default_factory=Expectation)  #: over the outcomes of the first node
    lazy: bool = True  #: LPs start with a few cuts and take in violated ones; False: every LP holds all cuts
    selection: Selection | None = None  #: switches cuts off by a rule; None keeps all of them in play
    seed: int = DEFAULT_SEED  #: of the in-sample forward paths
    max_depth: int | None = None  #: longest in-sample path on a cyclic graph
    persistence: float = 0.0  #: see `InSample`: above 0 favours extremes, and biases the upper bound
    threads: int = 1  #: of each rank
    solver: SolverOptions = field(default_factory=SolverOptions)
    interior: InteriorPoints | None = DEFAULT_INTERIOR
    """Where the backward pass solves: between trial points and the middle of the bounds; None: at trial points."""
    trajectories: GrowingTrajectories | None = None  #: fewer than M at first; None: M in every iteration
    enumerated: bool = False
    """Walk every path of the graph in every iteration: the upper bound is exact. M is then the number of paths."""

    def __post_init__(self) -> None:
        for name in ("forward_passes", "threads"):
            _whole(name, getattr(self, name), 1)
        if self.max_depth is not None:
            _whole("max_depth", self.max_depth, 1)
        _whole("seed", self.seed, None)
        if not isinstance(self.lazy, bool | np.bool_):
            raise OptionError(f"lazy: expected True or False, got {self.lazy!r}.")
        if not isinstance(self.solver, SolverOptions):
            raise OptionError(f"solver: expected SolverOptions, got {type(self.solver).__name__}.")
        if not isinstance(self.persistence, float | int | np.number) or not 0.0 <= self.persistence < 1.0:
            raise OptionError(f"persistence: expected a probability below 1, got {self.persistence!r}.")
        if self.selection is not None and not isinstance(self.selection, Selection):
            raise OptionError(
                f"selection: expected a Selection or None, got {type(self.selection).__name__}. "
                "Use Level1() or LimitedMemoryLevel1()."
            )
        if self.trajectories is not None and not isinstance(self.trajectories, GrowingTrajectories):
            raise OptionError(
                f"trajectories: expected GrowingTrajectories or None, got {type(self.trajectories).__name__}. "
                "The number of all trajectories is forward_passes."
            )
        if self.enumerated and (self.trajectories is not None or self.persistence):
            raise OptionError(
                "enumerated: expected no growing trajectories and no persistence, got one of them. Every path is "
                "walked in every iteration."
            )
        if self.interior is not None and not isinstance(self.interior, InteriorPoints):
            raise OptionError(
                f"interior: expected InteriorPoints or None, got {type(self.interior).__name__}. "
                "Use InteriorPoints() for cuts at interior points."
            )
        if not isinstance(self.stopping, StoppingRule):
            raise OptionError(
                f"stopping: expected a StoppingRule, got {type(self.stopping).__name__}. "
                "Use IterationLimit(n), or AnyOf(rule, rule, …) for several."
            )
        measures = self.risk.values() if isinstance(self.risk, Mapping) else [self.risk]
        for measure in (*measures, self.root_risk):
            if not isinstance(measure, RiskMeasure):
                raise OptionError(f"risk: expected a RiskMeasure, got {type(measure).__name__}.")

    def resolved(self, problem: Problem) -> TrainOptions:
        """The same options with the number of paths as `forward_passes`, where they are enumerated."""
        return replace(self, forward_passes=count_paths(problem)) if self.enumerated else self

    def trajectories_in(self, iteration: int) -> int:
        """Trajectories of an iteration, counted from 1."""
        if self.trajectories is None:
            return self.forward_passes
        return self.trajectories.count(iteration, self.forward_passes)

    def measures(self, problem: Problem) -> dict[int, RiskMeasure]:
        """The measure of every node and of the root; names that do not exist raise OptionError."""
        names = [node.name for node in problem.nodes]
        found: dict[int, RiskMeasure] = {ROOT: self.root_risk}
        if not isinstance(self.risk, Mapping):
            found.update((index, self.risk) for index in range(len(names)))
            return found
        found.update((index, Expectation()) for index in range(len(names)))
        for key, measure in self.risk.items():
            where = f"risk in problem {problem.name!r}"
            found[node_position(names, key, where, OptionError)] = measure
        return found

    def key(self) -> dict[str, str]:
        """What the bits of a result depend on, by name: equal keys may continue each other's training."""
        solver = {item.name: getattr(self.solver, item.name) for item in fields(self.solver)}
        decisive = {
            "forward_passes": self.forward_passes,
            "trajectories": self.trajectories,
            "risk": self.risk,
            "root_risk": self.root_risk,
            "lazy": self.lazy,
            "selection": self.selection,
            "interior": self.interior,
            "seed": self.seed,
            "max_depth": self.max_depth,
            "persistence": self.persistence,
            "enumerated": self.enumerated,
            **{f"solver.{name}": value for name, value in solver.items() if name not in SAME_BITS},
        }
        return {name: _describe(value) for name, value in decisive.items()}

    def settings(self) -> dict[str, str]:
        """What was set, in words for people: the key, and when to stop."""
        return {**self.key(), "stopping": _describe(self.stopping)}


def _whole(name: str, value: object, least: int | None) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise OptionError(f"{name}: expected a whole number, got {value!r}.")
    if least is not None and value < least:
        raise OptionError(f"{name}: expected at least {least}, got {value}.")


def _describe(value: object) -> str:
    """A text that is the same in every process: objects by class and fields, never by address."""
    if is_dataclass(value) and not isinstance(value, type):
        inside = ", ".join(f"{item.name}={_describe(getattr(value, item.name))}" for item in fields(value))
        return f"{type(value).__qualname__}({inside})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_describe(value[key])}" for key in sorted(value, key=str)) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_describe(item) for item in value) + "]"
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    inside = ", ".join(
        f"{name}={_describe(held)}" for name, held in sorted(getattr(value, "__dict__", {}).items())
    )
    return f"{type(value).__qualname__}({inside})"
