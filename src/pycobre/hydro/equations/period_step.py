"""What the inflow equations need to know of a period of several stages, such as the weeks of a month."""

from __future__ import annotations

from pycobre._util.frozen import frozen

__all__ = ["PeriodStep"]


@frozen()
class PeriodStep:
    """A stage's part in its period: its days of it, the days of the whole, and whether it is the last."""

    days: float
    total: float
    last: bool

    @property
    def whole(self) -> bool:
        """Whether the stage is all of its period."""
        return self.last and self.days == self.total
