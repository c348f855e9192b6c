"""The result of a training run, and the interface of a checkpoint writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from pycobre._util.frozen import frozen
from pycobre.sddp.policy import Policy, bound_name
from pycobre.sddp.timing import TimingTable
from pycobre.sddp.training.state import History, TrainingState

__all__ = ["Checkpointer", "HoldsStates", "Receipt", "TrainingOutcome"]


@frozen()
class Receipt:
    """What a checkpointer wrote."""

    path: str
    size_bytes: int


class Checkpointer(Protocol):
    """Writes training states. Both methods are called on rank 0 only."""

    def due(self, iteration: int, *, last: bool) -> bool:
        """Whether to write after this iteration; `last` when training ends with it."""
        ...

    def write(self, state: TrainingState) -> Receipt: ...


@runtime_checkable
class HoldsStates(Protocol):
    """A checkpointer that is also given what it needs to write a state later, when the ranks cannot be asked."""

    def holds(self) -> bool:
        """Whether to be given the state after this iteration."""
        ...

    def hold(self, iteration: int, state: Callable[[], TrainingState], cost_s: float) -> None:
        """Remember how to make the state after `iteration`; `state` may be called on any thread.

        `cost_s` are the seconds that rank 0 has spent on this.
        """
        ...


@frozen(eq=False, repr=False)
class TrainingOutcome:
    """The same on every rank. Amounts are as the problem's author sees them."""

    policy: Policy
    reason: str
    converged: bool
    history: History  #: minimised, as it goes into checkpoints
    timing: TimingTable
    warnings: tuple[str, ...]
    estimate: str | None = None  #: why `bound` is an estimate and not a bound; None where it is one

    def __repr__(self) -> str:
        return (
            f"<TrainingOutcome after {self.iterations} iterations ({self.reason}): {self.bound_name} "
            f"{self.bound:.10g}, simulated {self.simulated:.10g}, {self.policy.total_cuts} cuts>"
        )

    @property
    def iterations(self) -> int:
        return len(self.history)

    @property
    def bound(self) -> float:
        """The bound on the optimal value: from below, or from above for a maximised problem (`bound_name`)."""
        return self.policy.sense.sign * self.history.final_lower_bound

    @property
    def bound_name(self) -> str:
        """On which side `bound` is: "lower bound" or "upper bound", "estimate of the …" where it is none."""
        return bound_name(self.policy.sense, estimate=self.estimate is not None)

    @property
    def simulated(self) -> float:
        """Mean simulated cost (or reward) of the last iteration's trajectories."""
        return self.policy.sense.sign * self.history.final_upper_bound

    @property
    def lower_bound(self) -> float:
        """The same as `bound`; the name is that of a minimised problem."""
        return self.bound

    @property
    def upper_bound(self) -> float:
        """The same as `simulated`; the name is that of a minimised problem."""
        return self.simulated

    @property
    def gap(self) -> float:
        return self.history.final_gap
