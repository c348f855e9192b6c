"""Cuts: growing tables θ ≥ intercept + slope·x, one per node, stored once per machine.

The numbers live in a shared region that the leader writes and all ranks read. A slot keeps its meaning for
the whole run; slots are handed out in the order (iteration, depth from the last to the first, trajectory), so
they do not depend on who computed what. On a linear graph with M trajectories in every iteration
slot = (iteration − 1) · M + trajectory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32, U8
from pycobre._util.frozen import frozen
from pycobre.comm import SharedMemoryProvider, SharedRegion
from pycobre.problem import Boundary
from pycobre.sddp.plan import Plan
from pycobre.solver.api import CutView

__all__ = ["CutPool", "CutRecords", "Cuts", "StoredCuts"]

Scalar = TypeVar("Scalar", bound=np.generic)


@frozen(eq=False, repr=False)
class Cuts:
    """The cuts of one node as arrays, slot by slot; what a policy and a checkpoint hold."""

    intercept: F64  #: [cuts]
    slope: F64  #: [cuts, states]
    iteration: I32  #: [cuts]
    trajectory: I32  #: [cuts]
    depth: I32  #: [cuts], of the visit that made the cut
    active: U8  #: [cuts], 0 where a selection has switched the cut off

    def __len__(self) -> int:
        return len(self.intercept)

    def __repr__(self) -> str:
        return f"<Cuts: {len(self)} of {self.slope.shape[1]} states, {int(np.count_nonzero(self.active))} active>"

    def view(self) -> CutView:
        """What the solver reads."""
        masked = bool(np.any(self.active == 0))
        return CutView(self.intercept, self.slope, len(self), self.active if masked else None)

    @classmethod
    def of_boundary(cls, boundary: Boundary) -> Cuts:
        """A boundary's functions, as cuts that were there before the first iteration."""
        count = len(boundary)
        zero, number = np.zeros(count, np.int32), np.arange(count, dtype=np.int32)
        return cls(boundary.intercept, boundary.slope, zero, number, zero, np.ones(count, np.uint8))

    def as_beginning(self) -> Cuts:
        """Marked as made before a training's first iteration; slots keep their order."""
        zero = np.zeros(len(self), np.int32)
        return replace(self, iteration=zero, trajectory=np.arange(len(self), dtype=np.int32), depth=zero)

    @classmethod
    def none(cls, states: int) -> Cuts:
        nothing = np.zeros(0, np.int32)
        return cls(np.zeros(0), np.zeros((0, states)), nothing, nothing, nothing, np.zeros(0, np.uint8))


@frozen(eq=False)
class CutRecords:
    """New cuts as they travel between ranks: rows [intercept | slope | state], one per cut.

    The state, at which the cut was made, is there only where a selection needs it.
    """

    rows: F64  #: [cuts, width]
    states: int  #: numbers in a slope

    @staticmethod
    def width(states: int, *, with_state: bool) -> int:
        """Numbers per record."""
        return 1 + states * (2 if with_state else 1)

    @classmethod
    def pack(cls, intercept: F64, slope: F64, state: F64 | None) -> CutRecords:
        parts = (intercept[:, None], slope) if state is None else (intercept[:, None], slope, state)
        return cls(np.concatenate(parts, axis=1), slope.shape[1])

    @property
    def intercept(self) -> F64:
        return self.rows[:, 0]

    @property
    def slope(self) -> F64:
        return self.rows[:, 1 : 1 + self.states]

    @property
    def state(self) -> F64:
        return self.rows[:, 1 + self.states :]

    def take(self, at: NDArray[np.int64] | slice) -> CutRecords:
        """The records at these positions."""
        return CutRecords(self.rows[at], self.states)


@frozen(eq=False)
class StoredCuts:
    """The cuts that a pool held at one moment: views of what never changes, next to nothing copied."""

    intercept: F64
    slope: F64
    keys: I32  #: [cuts, 3]: iteration, trajectory, depth
    active: U8 | None  #: None: all

    def cuts(self) -> Cuts:
        """The same as arrays of their own, but for the coefficients."""
        count = len(self.intercept)
        active = np.ones(count, np.uint8) if self.active is None else self.active
        iteration, trajectory, depth = (np.ascontiguousarray(self.keys[:, part]) for part in range(3))
        return Cuts(self.intercept, self.slope, iteration, trajectory, depth, active)


class CutPool:
    """The cuts of one node during training. Every rank calls the same methods with the same arguments.

    With `keep_points` the states at which they were made are kept beside them, for a selection.
    """

    def __init__(
        self,
        provider: SharedMemoryProvider,
        states: int,
        capacity: int,
        expected: int | None = None,
        *,
        keep_points: bool = False,
    ) -> None:
        self._provider = provider
        self._states = states
        self._keep_points = keep_points
        self._first_point = 0  # slots before it hold another policy's cuts, whose points are not known
        self._expected = expected  # cuts by the end of the run, where that is known: no need to grow beyond
        self.count = 0
        self._capacity = 0
        self._region: SharedRegion | None = None
        self._keys = np.zeros((0, 3), np.int32)
        self.active: U8 = np.zeros(0, np.uint8)
        self._masked = False
        self._intercept: F64
        self._slope: F64
        self._points: F64
        self._reserve(max(1, capacity))

    @classmethod
    def of_nodes(
        cls,
        provider: SharedMemoryProvider,
        plan: Plan,
        per_iteration: Callable[[int], int],
        limit: int | None,
        *,
        keep_points: bool = False,
    ) -> dict[int, CutPool]:
        """Pools of all nodes that hold cuts, for a training of at most `limit` iterations where that is known.

        `per_iteration` says of a node how many cuts it gets in an iteration, or at most.
        """
        first = 32 if limit is None else min(32, limit)
        pools = {}
        for node in plan.nodes:
            if node.boundary is not None:
                pools[node.index] = cls(provider, plan.states, len(node.boundary), len(node.boundary))
            elif node.has_future:
                count = per_iteration(node.index)
                pools[node.index] = cls(
                    provider,
                    plan.states,
                    first * count,
                    limit and limit * count,
                    keep_points=keep_points,
                )
        return pools

    @staticmethod
    def of_all_nodes(pools: Mapping[int, CutPool], plan: Plan) -> tuple[Cuts, ...]:
        """The cuts of every node, none where nothing follows."""
        nothing = Cuts.none(plan.states)
        return tuple(pools[node.index].cuts() if node.index in pools else nothing for node in plan.nodes)

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def active_count(self) -> int:
        return int(np.count_nonzero(self.active[: self.count])) if self._masked else self.count

    def view(self) -> CutView:
        """What the solver reads."""
        return CutView(self._intercept, self._slope, self.count, self.active if self._masked else None)

    def append(self, records: CutRecords, iteration: int, trajectory: I32, depth: int) -> None:
        """Store cuts in the next slots; readable on every rank when this returns (collective)."""
        new = len(records.rows)
        if self.count + new > self._capacity:
            doubled = 2 * self._capacity
            if self._expected is not None:
                doubled = min(doubled, self._expected)
            self._reserve(max(self.count + new, doubled))
        slots = slice(self.count, self.count + new)
        self._write(slots, records.intercept, records.slope, records.state)
        self._keys[slots, 0] = iteration
        self._keys[slots, 1] = trajectory
        self._keys[slots, 2] = depth
        self.active[slots] = 1
        self.count += new

    def restore(self, cuts: Cuts, points: F64 | None = None) -> None:
        """Take over the cuts of an earlier run, with the points of the last of them; the pool must be empty
        (collective)."""
        assert self.count == 0
        known = np.zeros((0, self._states)) if points is None else points
        self._first_point = len(cuts) - len(known)
        if len(cuts) > self._capacity:
            self._reserve(len(cuts))
        slots = slice(0, len(cuts))
        self._write(slots, cuts.intercept, cuts.slope, known)
        self._keys[slots] = np.stack([cuts.iteration, cuts.trajectory, cuts.depth], axis=1)
        self.count = len(cuts)
        self.active[slots] = cuts.active
        self._masked = bool(np.any(cuts.active == 0))

    def select(self, active: U8) -> None:
        """Switch cuts on and off; `active` has one entry per slot."""
        self.active[: self.count] = active
        self._masked = True

    def points(self) -> F64:
        """The states at which cuts were made, without copying them; none where they are not kept."""
        return self._points[self._first_point : self.count]

    def stored(self) -> StoredCuts:
        """What is stored now; it stays so whatever is appended, selected or moved later."""
        slots = slice(0, self.count)
        active = self.active[slots].copy() if self._masked else None
        return StoredCuts(self._intercept[slots], self._slope[slots], self._keys[slots], active)

    def cuts(self) -> Cuts:
        """Everything stored, without copying the coefficients."""
        return self.stored().cuts()

    def close(self) -> None:
        if self._region is not None:
            self._region.close()
            self._region = None

    def _write(self, slots: slice, intercept: F64, slope: F64, points: F64) -> None:
        assert self._region is not None
        if self._provider.is_leader:
            writable_intercept, writable_slope, writable_points = self._parts(self._region.as_mut_array())
            writable_intercept[slots] = intercept
            writable_slope[slots] = slope
            if self._keep_points:
                writable_points[slots.stop - len(points) : slots.stop] = points
        self._region.fence()

    def _reserve(self, capacity: int) -> None:
        """Move to a larger region. Views taken before stay valid: they keep the old memory until dropped."""
        width = 1 + self._states * (1 + self._keep_points)
        region = self._provider.create_shared_region(capacity * width, np.float64)
        old, self._capacity = self._region, capacity
        if old is not None and self._provider.is_leader:
            new_intercept, new_slope, new_points = self._parts(region.as_mut_array())
            new_intercept[: self.count] = self._intercept[: self.count]
            new_slope[: self.count] = self._slope[: self.count]
            new_points[: self.count] = self._points[: self.count]
        region.fence()
        self._region = region
        self._intercept, self._slope, self._points = self._parts(region.as_array())
        if old is not None:
            old.close()
        self._keys = _grown(self._keys, capacity)
        self.active = _grown(self.active, capacity)

    def _parts(self, array: F64) -> tuple[F64, F64, F64]:
        """Slopes first, so that rows of eight states start on cache lines; then intercepts, then points."""
        slopes, points = self._capacity * self._states, self._capacity * self._keep_points
        intercepts = slopes + self._capacity
        return (
            array[slopes:intercepts],
            array[:slopes].reshape(self._capacity, self._states),
            array[intercepts:].reshape(points, self._states),
        )


def _grown(array: NDArray[Scalar], capacity: int) -> NDArray[Scalar]:
    larger = np.zeros((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
