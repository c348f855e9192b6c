"""Forward sampling: which nodes and openings the trajectories visit.

A sampler is a pure function of (iteration, scenario): the same scenario gets the same path whichever rank asks, in
any order and in any block. Training iterations count from 1; simulation is iteration 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre._util.arrays import F64, I32, I64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.problem import ROOT, Problem
from pycobre.sddp.node_keys import node_position
from pycobre.stochastic.streams import Purpose, uniform

__all__ = [
    "Draw",
    "FixedSet",
    "Historical",
    "InSample",
    "OutOfSample",
    "Paths",
    "Sampler",
    "default_depth",
    "linear_nodes",
]


GIVEN = -1
"""In place of an opening's index: the values do not come from the node's support but from `Paths.values`."""

_AT_ONCE = 32
"""Depths whose random numbers are drawn in one call; the numbers are keyed, so it changes none of them."""


@frozen(eq=False)
class Paths:
    """Paths of consecutive scenarios, padded to the longest.

    `values[d]` holds the patch vectors of depth d where any opening there is `GIVEN`, else None; its columns
    are the places of the node's patch plan, in that order (the widest node decides the number of columns).
    """

    nodes: I32  #: [scenarios, depth]
    openings: I32  #: [scenarios, depth]
    lengths: I32  #: [scenarios]
    values: tuple[F64 | None, ...] = ()  #: per depth, [scenarios, width]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def depth(self) -> int:
        return int(self.lengths.max(initial=0))

    def take(self, rows: ArrayLike) -> Paths:
        """The paths at these positions, in that order."""
        index = np.asarray(rows, dtype=np.int64)
        values = tuple(None if given is None else given[index] for given in self.values)
        return Paths(self.nodes[index], self.openings[index], self.lengths[index], values)

    @classmethod
    def of(cls, problem: Problem, scenarios: Sequence[Sequence[tuple[Hashable, int | ArrayLike]]]) -> Paths:
        """Build paths from lists of (node, opening) or (node, patch vector); nodes by key."""
        names = [node.name for node in problem.nodes]
        count = len(scenarios)
        depth = max((len(path) for path in scenarios), default=0)
        nodes = np.zeros((count, depth), np.int32)
        openings = np.zeros((count, depth), np.int32)
        given: list[F64 | None] = [None] * depth
        width = max(len(node.noise.plan) for node in problem.nodes)
        for s, path in enumerate(scenarios):
            if not path:
                raise OptionError(f"path {s}: expected at least one node, got none.")
            for d, (name, noise) in enumerate(path):
                nodes[s, d] = index = node_position(names, name, f"path {s}, depth {d}", OptionError)
                support = problem.nodes[index].noise
                if isinstance(noise, int | np.integer):
                    if not 0 <= noise < support.openings:
                        raise OptionError(
                            f"path {s}, node {problem.nodes[index].name!r}: expected an opening from 0 to "
                            f"{support.openings - 1}, got {noise}."
                        )
                    openings[s, d] = noise
                    continue
                vector = np.asarray(noise, dtype=np.float64).reshape(-1)
                if len(vector) != len(support.plan) or not np.all(np.isfinite(vector)):
                    raise OptionError(
                        f"path {s}, node {problem.nodes[index].name!r}: expected {len(support.plan)} finite "
                        f"patch values, got {vector.tolist()}."
                    )
                openings[s, d] = GIVEN
                table = given[d]
                if table is None:
                    table = given[d] = np.zeros((count, width))
                table[s, : len(vector)] = vector
        return cls(nodes, openings, np.array([len(path) for path in scenarios], np.int32), tuple(given))


class Sampler(Protocol):
    """Gives scenarios `first … first + count − 1` of an iteration their paths."""

    def sample(self, iteration: int, first: int, count: int) -> Paths: ...


class Draw(Protocol):
    """Patch vectors for visits of one node, [scenarios, places]; a pure function of its arguments."""

    def __call__(self, node: int, iteration: int, scenarios: I64, depth: int) -> F64: ...


def default_depth(problem: Problem) -> int:
    """How long a path may get: the graph's horizon; on a cyclic graph 100 visits, or four rounds if more."""
    horizon = problem.shape.horizon
    return horizon if horizon is not None else max(100, 4 * len(problem.nodes))


def linear_nodes(problem: Problem) -> I32 | None:
    """The nodes of a linear graph, from first to last; None for any other graph."""
    shape = problem.shape
    order: list[int] = []
    node = ROOT
    while len(following := shape.successors(node)[0]) == 1 and len(order) < len(problem.nodes):
        node = int(following[0])
        order.append(node)
    certain = all(shape.stopping[i] < 1e-12 for i in order[:-1])
    return np.array(order, np.int32) if order and not len(following) and certain else None


class InSample:
    """Nodes by the arcs' probabilities, openings by the support's: what the policy is optimised for.

    On a cyclic graph a path ends where the arcs leave probability for stopping, at the latest after
    `max_depth` nodes; costs beyond that are missing from the simulated mean.

    Some optima hang on paths that are hardly ever drawn, such as twenty dry months in a row, and the bound
    then stalls just below them. With `persistence` a visit repeats the opening of the visit before with that
    probability (where its node has one of that number), which makes extremes frequent. Cuts stay valid, and
    the bound gets there; but the trajectories' mean cost is no longer an estimate of anything.
    """

    def __init__(
        self, problem: Problem, seed: int, *, max_depth: int | None = None, persistence: float = 0.0
    ) -> None:
        if max_depth is not None and max_depth < 1:
            raise OptionError(f"max_depth: expected at least 1, got {max_depth}.")
        if not 0.0 <= persistence < 1.0:
            raise OptionError(f"persistence: expected a probability below 1, got {persistence}.")
        self.persistence = persistence
        self._possible = [node.noise.probability > 0.0 for node in problem.nodes]
        self._linear = linear_nodes(problem)
        self._seed = seed
        self._depth = max_depth or default_depth(problem)
        if problem.shape.horizon is not None:
            self._depth = min(self._depth, problem.shape.horizon)
        shape = problem.shape
        self._next = {
            node: (targets, np.cumsum(probability))
            for node in range(ROOT, len(problem.nodes))
            for targets, probability in [shape.successors(node)]
        }
        # The start always leads somewhere, whatever rounding makes of its probabilities.
        self._next[ROOT][1][-1] = np.inf
        for node in range(len(problem.nodes)):
            if shape.stopping[node] < 1e-12 and len(self._next[node][1]):
                self._next[node][1][-1] = np.inf
        self._openings = [np.cumsum(node.noise.probability)[:-1] for node in problem.nodes]

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        scenarios = np.arange(first, first + count)
        current = np.full(count, ROOT, np.int32)
        alive = np.ones(count, bool)
        lengths = np.zeros(count, np.int32)
        nodes: list[I32] = []
        openings: list[I32] = []
        for depth in range(self._depth):
            if depth % _AT_ONCE == 0:
                steps = np.arange(depth, min(depth + _AT_ONCE, self._depth))[:, None]
                if self._linear is None:
                    turns = uniform(self._seed, Purpose.TRANSITION, iteration, scenarios, steps)
                chances = uniform(self._seed, Purpose.FORWARD, iteration, scenarios, steps)
                repeats = np.zeros(chances.shape, bool)
                if self.persistence:
                    again = uniform(self._seed, Purpose.PERSISTENCE, iteration, scenarios, steps)
                    repeats = again < self.persistence
            chance = chances[depth % _AT_ONCE]
            if self._linear is None:
                following = self._step(current, alive, turns[depth % _AT_ONCE])
            else:
                following = np.full(count, self._linear[depth], np.int32)
            if not alive.any():
                break
            opening = np.zeros(count, np.int32)
            for node in _present(following, alive):
                here = np.flatnonzero(alive & (following == node))
                opening[here] = np.searchsorted(self._openings[node], chance[here], side="right")
                if openings:
                    last, possible = openings[-1][here], self._possible[node]
                    there = repeats[depth % _AT_ONCE][here] & (last < len(possible))
                    there &= possible[np.minimum(last, len(possible) - 1)]
                    opening[here[there]] = last[there]
            current = following
            lengths += alive
            nodes.append(following)
            openings.append(opening)
        return Paths(_columns(nodes, count), _columns(openings, count), lengths)

    def _step(self, current: I32, alive: NDArray[np.bool_], turn: F64) -> I32:
        """The next node of every path; a path that ends here is no longer alive."""
        following = np.zeros(len(current), np.int32)
        for node in _present(current, alive):
            here = np.flatnonzero(alive & (current == node))
            targets, bounds = self._next[node]
            choice = np.searchsorted(bounds, turn[here], side="right")
            ends = choice == len(targets)
            alive[here[ends]] = False
            following[here[~ends]] = targets[choice[~ends]]
        return following


class OutOfSample:
    """Nodes as in sample, noise from elsewhere: `draw` gives each visit its patch vector.

    The simulated cost then estimates how the policy does in the real process; it need not be above the bound.
    """

    def __init__(self, problem: Problem, seed: int, draw: Draw, *, max_depth: int | None = None) -> None:
        self._inside = InSample(problem, seed, max_depth=max_depth)
        self._widths = [len(node.noise.plan) for node in problem.nodes]
        self._names = [node.name for node in problem.nodes]
        self._draw = draw

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        inside = self._inside.sample(iteration, first, count)
        given: list[F64 | None] = []
        for depth in range(inside.nodes.shape[1]):
            table = np.zeros((count, max(self._widths)))
            visiting = inside.lengths > depth
            for node in np.unique(inside.nodes[visiting, depth]).tolist():
                here = np.flatnonzero(visiting & (inside.nodes[:, depth] == node))
                drawn = np.asarray(self._draw(node, iteration, first + here, depth), dtype=np.float64)
                expected = (len(here), self._widths[node])
                if drawn.shape != expected or not np.all(np.isfinite(drawn)):
                    raise OptionError(
                        f"out-of-sample noise of node {self._names[node]!r}: expected finite values of shape "
                        f"{expected}, got shape {drawn.shape}."
                    )
                table[here, : self._widths[node]] = drawn
            given.append(table)
        return Paths(inside.nodes, np.full_like(inside.openings, GIVEN), inside.lengths, tuple(given))


class FixedSet:
    """Scenario s always takes path s modulo the number of paths, in every iteration."""

    def __init__(self, paths: Paths) -> None:
        self._paths = _some(paths)

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        return self._paths.take(np.arange(first, first + count) % len(self._paths))


class Historical:
    """Every scenario of every iteration draws one of the given paths, evenly or with given probabilities."""

    def __init__(self, paths: Paths, seed: int, probability: ArrayLike | None = None) -> None:
        self._paths = _some(paths)
        self._seed = seed
        chances = np.ones(len(paths)) if probability is None else np.asarray(probability, dtype=np.float64)
        if chances.shape != (len(paths),) or not np.all(chances >= 0) or not chances.sum() > 0:
            raise OptionError(
                f"historical probability: expected {len(paths)} numbers ≥ 0, not all 0, "
                f"got {chances.tolist()}."
            )
        self._bounds = np.cumsum(chances / chances.sum())[:-1]

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        chance = uniform(self._seed, Purpose.FORWARD, iteration, np.arange(first, first + count), 0)
        return self._paths.take(np.searchsorted(self._bounds, chance, side="right"))


def _present(nodes: I32, alive: NDArray[np.bool_]) -> list[int]:
    """The nodes of the living paths, in index order; one look is enough where all are at the same."""
    if len(nodes) and alive.all() and (nodes == nodes[0]).all():
        return [int(nodes[0])]
    return [int(node) for node in np.unique(nodes[alive])]


def _columns(columns: list[I32], count: int) -> I32:
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0), np.int32)


def _some(paths: Paths) -> Paths:
    if len(paths) == 0:
        raise OptionError("paths: expected at least one path, got none.")
    return paths
