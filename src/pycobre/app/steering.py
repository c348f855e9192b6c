"""Applying what other processes ask of a run, on rank 0 at the end of an iteration.

Only rank 0 asks stopping rules and decides about checkpoints, and all ranks do what it says; so what is asked reaches
every rank at the same iteration, and the bits until then are those of a run that nobody asked anything.
"""

from __future__ import annotations

from collections.abc import Callable

from pycobre.app.results.control import ControlFile
from pycobre.events import ControlApplied, Event, WarningRaised
from pycobre.sddp import AllOf, AnyOf, IterationLimit, StoppingRule
from pycobre.sddp.stopping import Progress, Stop
from pycobre.sddp.training.checkpoint import Checkpoints

__all__ = ["Steering"]


class Steering(StoppingRule):
    """The stopping rule of a run, as far as nobody has asked for another limit."""

    def __init__(
        self,
        rule: StoppingRule,
        control: ControlFile,
        checkpoints: Checkpoints,
        emit: Callable[[Event], object],
    ) -> None:
        self._first, self._rule = rule, rule
        self._control, self._checkpoints, self._emit = control, checkpoints, emit
        self.stop_requested = False

    def check(self, progress: Progress) -> Stop | None:
        requests, faults = self._control.poll()
        for fault in faults:
            self._emit(WarningRaised(message=fault, iteration=progress.iteration))
        for request in requests:
            if request.action == "checkpoint":
                self._checkpoints.request()
            elif request.action == "stop":
                self.stop_requested = True
            elif request.value is not None:
                self._rule = with_limit(self._rule, request.value)
            self._emit(
                ControlApplied(iteration=progress.iteration, action=request.action, value=request.value)
            )
        return self._rule.check(progress)

    def simulations(self, iteration: int) -> int:
        return self._first.simulations(iteration)

    @property
    def iteration_limit(self) -> int | None:
        """That of the beginning, which all ranks know."""
        return self._first.iteration_limit


def with_limit(rule: StoppingRule, limit: int) -> StoppingRule:
    """`rule` with another iteration limit, or with one where it had none."""
    if isinstance(rule, IterationLimit):
        return IterationLimit(limit)
    if isinstance(rule, AnyOf):
        others = [each for each in rule.rules if not isinstance(each, IterationLimit)]
        return AnyOf(*others, IterationLimit(limit)) if others else IterationLimit(limit)
    if isinstance(rule, AllOf) and rule.iteration_limit is not None:
        return AllOf(*(with_limit(each, limit) for each in rule.rules))
    return AnyOf(rule, IterationLimit(limit))
