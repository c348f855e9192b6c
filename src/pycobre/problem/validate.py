"""Everything about a problem that can be known to be wrong by looking at it, found in one go.

No LP is solved here (see `check`); a finding is one sentence of the form
`<what> <where>: expected <x>, got <y>. <next step>`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from pycobre.errors import ProblemError
from pycobre.problem.graph import ROOT, Shape
from pycobre.problem.validate_node import PROBABILITY_TOLERANCE, node_findings

if TYPE_CHECKING:
    from pycobre.problem.api import Node, Problem

__all__ = ["findings", "raise_if_any", "require_valid"]

SHOWN = 20
"""How many findings the text of an error holds; its `findings` hold all."""


def require_valid(problem: Problem) -> None:
    """Raise ProblemError with every finding, or return."""
    raise_if_any(problem.name, findings(problem))


def raise_if_any(name: str, found: Iterable[str]) -> None:
    """Raise ProblemError if there is a finding."""
    every = tuple(found)
    if every:
        more = [f"… and {len(every) - SHOWN} more"] if len(every) > SHOWN else []
        raise ProblemError(
            f"problem {name!r} has {len(every)} finding{'s' if len(every) > 1 else ''}:\n  "
            + "\n  ".join([*every[:SHOWN], *more]),
            every,
        )


def findings(problem: Problem) -> Iterator[str]:
    """Yield what is wrong with the problem."""
    yield from _states(problem)
    if not problem.nodes:
        yield "nodes: expected at least one, got none. Add a node."
    for name in repeated(node.name for node in problem.nodes):
        yield f"node {name!r}: expected a name of its own, got it twice. Rename one."
    for node in problem.nodes:
        for finding in node_findings(node, len(problem.states)):
            yield f"node {node.name!r}: {finding}"
    yield from _graph(problem)


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once, in order of first occurrence."""
    return [name for name, count in Counter(names).items() if count > 1]


def _states(problem: Problem) -> Iterator[str]:
    for name in repeated(state.name for state in problem.states):
        yield f"state {name!r}: expected a name of its own, got it twice. Rename one."
    for state in problem.states:
        if not isinstance(state.initial, int | float | np.number) or not math.isfinite(state.initial):
            yield (
                f"state {state.name!r}: expected a finite initial value, got {state.initial}. "
                "Say what the first node receives."
            )


def _graph(problem: Problem) -> Iterator[str]:
    arcs, names = problem.arcs, [node.name for node in problem.nodes]
    count = len(names)
    if not len(arcs.source) == len(arcs.target) == len(arcs.probability):
        yield (
            "arcs: expected source, target and probability of one length, got "
            f"{len(arcs.source)}, {len(arcs.target)} and {len(arcs.probability)}."
        )
        return
    broken = False
    for i, j, p in zip(arcs.source.tolist(), arcs.target.tolist(), arcs.probability.tolist(), strict=True):
        if not ROOT <= i < count or not 0 <= j < count:
            broken = True
            yield (
                f"arc {i} → {j}: expected nodes from 0 to {count - 1} ({ROOT}, the root, as a source only). "
                "Use the positions of the nodes."
            )
        elif not 0.0 <= p <= 1.0:
            broken = True
            yield f"arc {label(names, i)} → {label(names, j)}: expected a probability from 0 to 1, got {p}."
    if broken:
        return
    for i, j in repeated_pairs(arcs.source.tolist(), arcs.target.tolist()):
        yield (
            f"arc {label(names, i)} → {label(names, j)}: expected once, got twice. "
            "Add up the probabilities in one arc."
        )
    shape = Shape.of(count, arcs.source, arcs.target, arcs.probability)
    leaving = np.zeros(count + 1)
    np.add.at(leaving, arcs.source + 1, arcs.probability)
    if count and abs(leaving[0] - 1.0) > PROBABILITY_TOLERANCE:
        yield (
            f"root: expected the probabilities of the arcs that leave it to sum to 1, got {leaving[0]:.12g}. "
            "Every path starts somewhere."
        )
    for i, node in enumerate(problem.nodes):
        if leaving[i + 1] > 1.0 + PROBABILITY_TOLERANCE:
            yield (
                f"node {node.name!r}: expected the probabilities of the arcs that leave it to sum to at most "
                f"1, got {leaving[i + 1]:.12g}."
            )
        if not shape.connected[i]:
            yield (
                f"node {node.name!r}: expected a path from the root, got none. Add an arc to it (of "
                "probability 0 if it is unreachable on purpose), or remove the node."
            )
        if node.boundary is not None:
            yield from _boundary(node, bool(len(shape.successors(i)[0])), len(problem.states))
        ahead = len(shape.successors(i)[0]) or node.boundary is not None
        if ahead and (node.theta_lower is None or not math.isfinite(node.theta_lower)):
            side = "an upper bound on the reward" if problem.sense.sign < 0 else "a lower bound on the cost"
            yield (
                f"node {node.name!r}: expected {side} to go, got {node.theta_lower}. Give a finite number "
                "that no policy can beat."
            )
    yield from _endless(problem, shape)


def _boundary(node: Node, followed: bool, states: int) -> Iterator[str]:
    boundary = node.boundary
    assert boundary is not None
    if followed:
        yield f"node {node.name!r}: expected a boundary where no arc leaves only, got one. Remove it or the arcs."
    if boundary.slope.shape != (len(boundary), states):
        yield (
            f"node {node.name!r}: expected boundary slopes of {len(boundary)} functions and {states} states, got "
            f"{boundary.slope.shape[0]} and {boundary.slope.shape[1]}."
        )
    if not (np.isfinite(boundary.intercept).all() and np.isfinite(boundary.slope).all()):
        yield f"node {node.name!r}: expected finite boundary functions, got NaN or infinity among them."


def _endless(problem: Problem, shape: Shape) -> Iterator[str]:
    """Find cycles whose costs never fade: a component where every node keeps all of its weight inside."""
    if not shape.cyclic:
        return
    for number in sorted(set(shape.component.tolist())):
        members = np.flatnonzero(shape.component == number)
        kept = []
        for i in members.tolist():
            targets, probability = shape.successors(i)
            kept.append(
                float(probability[shape.component[targets] == number].sum()) * problem.nodes[i].discount
            )
        if min(kept) >= 1.0 - PROBABILITY_TOLERANCE:
            names = ", ".join(repr(problem.nodes[i].name) for i in members.tolist())
            yield (
                f"cycle through {names}: expected a discount below 1 or a probability of stopping, got "
                "neither. Costs would add up for ever."
            )


def label(names: list[str], node: int) -> str:
    return "root" if node == ROOT else repr(names[node])


def repeated_pairs(source: list[int], target: list[int]) -> list[tuple[int, int]]:
    return [pair for pair, count in Counter(zip(source, target, strict=True)).items() if count > 1]
