"""One iteration as a point of a plot; many of them within bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pycobre.app.tui.reading.numbers import number, whole

__all__ = ["History", "Point", "point_of", "strictly_rising"]

RECENT = 2000
SAMPLED = 3000


class Point(NamedTuple):
    """What a plot needs of an iteration. NaN: not known."""

    iteration: int
    at: float  #: seconds since 1970
    total_s: float  #: since training began
    lower: float
    upper: float
    half_width: float
    gap: float
    elapsed_s: float
    lp_solves: float
    cuts: float

    @property
    def lps_per_s(self) -> float:
        return self.lp_solves / self.elapsed_s if self.elapsed_s > 0 else number(None)


def point_of(event: Mapping[str, Any]) -> Point | None:
    """The point of an event `iteration_finished`; None for any other line."""
    iteration = whole(event.get("iteration"))
    if event.get("kind") != "iteration_finished" or iteration is None:
        return None
    names = ("at", "total_s", "lower_bound", "upper_bound", "half_width", "gap", "elapsed_s", "lp_solves")
    return Point(iteration, *(number(event.get(name)) for name in (*names, "cuts_active")))


class History:
    """The iterations of a run: the last ones all, of those before a sample."""

    def __init__(self) -> None:
        self._recent: deque[Point] = deque(maxlen=RECENT)
        self._sampled: list[Point] = []
        self._every = 1  #: one of so many is kept of those that are no longer recent
        self._passed = 0

    def begin_with(self, sample: Iterable[Point]) -> None:
        """What is known of the time before the points that will be added one by one."""
        self._sampled = list(sample)

    def add(self, point: Point) -> None:
        """The next iteration. A resumed run begins with those after its checkpoint again: the later ones count."""
        while self._recent and self._recent[-1].iteration >= point.iteration:
            self._recent.pop()
        if not self._recent:
            while self._sampled and self._sampled[-1].iteration >= point.iteration:
                self._sampled.pop()
        if len(self._recent) == RECENT:
            if self._passed % self._every == 0:
                self._sampled.append(self._recent[0])
            self._passed += 1
            if len(self._sampled) > SAMPLED:
                self._sampled = self._sampled[::2]
                self._every *= 2
        self._recent.append(point)

    def points(self, last: int | None = None) -> list[Point]:
        """In the order of iterations: all that are kept, or those of the last so many iterations."""
        found = [*self._sampled, *self._recent]
        if last is None or not found:
            return found
        first = found[-1].iteration - last
        return [point for point in found if point.iteration > first]

    @property
    def latest(self) -> Point | None:
        return self._recent[-1] if self._recent else self._sampled[-1] if self._sampled else None


def strictly_rising(points: Iterable[Point]) -> list[Point]:
    """The points of a file in its order, without those that a later session replaced."""
    kept: list[Point] = []
    for point in points:
        while kept and kept[-1].iteration >= point.iteration:
            kept.pop()
        kept.append(point)
    return kept
