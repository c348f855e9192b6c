"""How many trajectories an iteration has: all of them, or few at first.

Early cuts are poor, and many of them of the same kind are no better than a few. A growing number spends the
iterations' time where the policy is good already. The number is a function of the iteration alone, so that it is the
same on every rank and after a resume.
"""

from __future__ import annotations

from pycobre._util.frozen import frozen
from pycobre.errors import OptionError

__all__ = ["GrowingTrajectories"]


@frozen()
class GrowingTrajectories:
    """`initial` trajectories in the first `every` iterations, twice as many in the next, up to all of them."""

    initial: int = 1
    every: int = 5

    def __post_init__(self) -> None:
        for name in ("initial", "every"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise OptionError(f"trajectories {name}: expected a whole number from 1 on, got {value!r}.")

    def count(self, iteration: int, most: int) -> int:
        """Trajectories of an iteration, counted from 1; never more than `most`."""
        doublings = min((iteration - 1) // self.every, most.bit_length())
        return min(most, self.initial << doublings)
