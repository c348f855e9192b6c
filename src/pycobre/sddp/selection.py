"""Cut selection: which cuts stay in play, judged by their value at the states that training visited.

The rules look at the trial points at which cuts were made. Level-1 keeps a cut that is best (within
`tolerance`) at one of them at least; limited-memory Level-1 keeps for every point only the oldest cut that is
best there; domination keeps every cut within a tolerance in units of cost. A cut switched off may come back:
switching is a mask, nothing is deleted.

Selection makes LPs smaller and results slightly different: a cut that is best nowhere visited may still be
best somewhere. The lazy default needs no selection and is exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from pycobre._util.arrays import F64, I64, U8
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.sddp.numbers import cut_values
from pycobre.solver.api import CutView

__all__ = ["Domination", "Level1", "LimitedMemoryLevel1", "Selection", "SelectionMemory"]


@frozen()
class Selection(ABC):
    """A rule, applied after every `every` iterations."""

    every: int = 5
    tolerance: float = 1e-10  #: relative to max(1, |value|): what counts as equally good

    def __post_init__(self) -> None:
        if self.every < 1:
            raise OptionError(f"selection every: expected at least 1 iteration, got {self.every}.")
        if not 0.0 <= self.tolerance < 1.0:
            raise OptionError(f"selection tolerance: expected a number from 0 to 1, got {self.tolerance}.")

    def level(self, best: F64) -> F64:
        """The least value that counts as good beside the best."""
        return best - self.tolerance * np.maximum(1.0, np.abs(best))

    @abstractmethod
    def kept(self, point: I64, slot: I64) -> I64:
        """The slots to keep, given all pairs of a point and a cut best there, sorted by (point, slot)."""


@frozen()
class Level1(Selection):
    """Every cut that is best at some visited state."""

    def kept(self, point: I64, slot: I64) -> I64:
        return slot


@frozen()
class Domination(Selection):
    """Every cut that is within `tolerance`, in units of cost, of the best at some visited state."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise OptionError(f"selection every: expected at least 1 iteration, got {self.every}.")
        if not 0.0 <= self.tolerance < np.inf:
            raise OptionError(f"selection tolerance: expected a number of at least 0, got {self.tolerance}.")

    def level(self, best: F64) -> F64:
        return best - self.tolerance

    def kept(self, point: I64, slot: I64) -> I64:
        return slot


@frozen()
class LimitedMemoryLevel1(Selection):
    """For every visited state the oldest of the cuts that are best there (LML1)."""

    def kept(self, point: I64, slot: I64) -> I64:
        first = np.ones(len(point), np.bool_)
        first[1:] = point[1:] != point[:-1]
        return slot[first]


class SelectionMemory:
    """Which cuts of one node are best at which visited states.

    Only what is new is evaluated: new cuts at old points, all cuts at new points. A pair that has fallen
    behind the best cut of its point never comes back, because the best only rises; so the result is that of
    evaluating everything at once, and a resumed run may do just that.
    """

    def __init__(self) -> None:
        self._cuts = self._points = 0
        self._best: F64 = np.zeros(0)
        self._point: I64 = np.zeros(0, np.int64)
        self._slot: I64 = np.zeros(0, np.int64)
        self._value: F64 = np.zeros(0)

    def choose(self, rule: Selection, pool: CutView, points: F64) -> U8:
        """The mask of cuts to keep, given all points so far: those of the last call, and new ones after them."""
        old_points, old_cuts, count = self._points, self._cuts, pool.count
        self._best = np.concatenate([self._best, np.full(len(points) - old_points, -np.inf)])
        intercept, slope = pool.intercept[:count], pool.slope[:count]
        self._meet(rule, intercept[old_cuts:], slope[old_cuts:], points, 0, old_points, old_cuts)
        self._meet(rule, intercept, slope, points, old_points, len(points), 0)
        self._cuts, self._points = count, len(points)
        self._drop(rule)
        mask = np.zeros(count, np.uint8)
        mask[rule.kept(self._point, self._slot)] = 1
        return mask

    def _meet(
        self,
        rule: Selection,
        intercept: F64,
        slope: F64,
        points: F64,
        begin: int,
        end: int,
        first_slot: int,
    ) -> None:
        """Evaluate cuts at points `begin … end − 1`, some points at a time so that memory stays flat."""
        if not len(intercept):
            return
        step = max(1, 4_000_000 // len(intercept))
        for first in range(begin, end, step):
            last = min(first + step, end)
            values = cut_values(intercept, slope, points[first:last])
            best = self._best[first:last]
            np.maximum(best, values.max(axis=1), out=best)
            point, slot = np.nonzero(values >= rule.level(best)[:, None])
            self._point = np.concatenate([self._point, point + first])
            self._slot = np.concatenate([self._slot, slot + first_slot])
            self._value = np.concatenate([self._value, values[point, slot]])

    def _drop(self, rule: Selection) -> None:
        """Forget pairs that are no longer best, and sort the others."""
        still = self._value >= rule.level(self._best)[self._point]
        point, slot, value = self._point[still], self._slot[still], self._value[still]
        order = np.lexsort((slot, point))
        self._point, self._slot, self._value = point[order], slot[order], value[order]
