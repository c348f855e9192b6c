"""From what people write to data: run the author's function for every node and collect what it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pycobre.errors import ProblemError
from pycobre.problem.api import Arcs, Node, Noise, Problem, Sense, State
from pycobre.problem.check import check_stages
from pycobre.problem.expression import Amount
from pycobre.problem.policy_graph import Graph, GraphNode
from pycobre.problem.stage import Stage
from pycobre.problem.validate import raise_if_any
from pycobre.solver.api import LpTemplate, PatchPlan, Target

__all__ = ["build"]

ROUNDING = 1e-12  # a mean this small beside the largest of its values is zero
Bound: TypeAlias = "float | Callable[[Hashable], float] | None"


def build(
    graph: Graph,
    stage: Callable[[Stage, Any], object],
    *,
    lower_bound: Bound = None,
    upper_bound: Bound = None,
    name: str = "problem",
    check: bool = True,
) -> Problem:
    """Build a problem by calling `stage(sp, key)` once for every node of the graph.

    `lower_bound` (to minimise) or `upper_bound` (to maximise) is a bound on all that follows a node, as
    a number or as a function of the node's key. With `check`, LPs are solved to find nodes that are
    infeasible or unbounded whatever happens.

    On error: ProblemError with every finding, of all nodes.
    """
    if lower_bound is not None and upper_bound is not None:
        raise ProblemError(
            f"problem {name!r}: expected lower_bound (to minimise) or upper_bound (to maximise), got both."
        )
    found: list[str] = []
    stages: list[Stage] = []
    nodes = graph.nodes()
    for node in nodes:
        sp = Stage(node.name)
        try:
            stage(sp, node.key)
        except ProblemError as error:
            place = f"node {node.name!r}: "
            found.extend(
                text if text.startswith(place) else place + text for text in error.findings or (str(error),)
            )
        stages.append(sp)
    raise_if_any(name, found)

    sense = _sense(stages, lower_bound, upper_bound)
    found.extend(_disagreements(stages, sense, lower_bound is not None or upper_bound is not None))
    raise_if_any(name, found)

    states = _states(stages)
    arcs = graph.arcs()
    ends = set(range(len(nodes))) - {source for source, _, p in arcs if p > 0.0}
    bound = upper_bound if sense is Sense.MAXIMISE else lower_bound
    problem = Problem(
        states=states,
        nodes=tuple(
            _node(sp, node, states, sense, None if position in ends else _theta(bound, node.key, sense))
            for position, (sp, node) in enumerate(zip(stages, nodes, strict=True))
        ),
        arcs=Arcs.of(arcs),
        sense=sense,
        name=name,
    )
    if check:
        check_stages(problem)
    return problem


def _sense(stages: list[Stage], lower_bound: Bound, upper_bound: Bound) -> Sense:
    if lower_bound is None and upper_bound is None:
        return Sense(next((sp.sense for sp in stages if sp.sense), "minimise"))
    return Sense.MINIMISE if upper_bound is None else Sense.MAXIMISE


def _disagreements(stages: list[Stage], sense: Sense, bounded: bool) -> Iterator[str]:
    """Find what the nodes say differently from one another."""
    names = list(dict.fromkeys(name for sp in stages for name in sp.states))
    for sp in stages:
        if sp.sense is not None and sp.sense != sense.value:
            needs = (
                f"{'upper' if sp.sense == 'maximise' else 'lower'}_bound"
                if bounded
                else "one sense for all nodes"
            )
            yield f"node {sp.name!r}: objective: expected to {sense.value}, got {sp.sense}. Give {needs}."
        for name in names:
            if name not in sp.states:
                yield (
                    f"node {sp.name!r}: state {name!r}: expected at every node, got it not here. "
                    "Declare it with sp.state, and a row if it is carried on."
                )
    for name in names:
        given = [sp.states[name][0] for sp in stages if name in sp.states]
        different = sorted({value for value in given if value is not None})
        if len(different) > 1:
            yield f"state {name!r}: expected one initial value, got {different}."


def _states(stages: list[Stage]) -> tuple[State, ...]:
    names = list(dict.fromkeys(name for sp in stages for name in sp.states))
    initial = {
        name: next((sp.states[name][0] for sp in stages if sp.states[name][0] is not None), None)
        for name in names
    }
    return tuple(State(name, initial[name]) for name in names)  # type: ignore[arg-type]  # None is a finding


def _theta(bound: Bound, key: Hashable, sense: Sense) -> float | None:
    value = bound(key) if callable(bound) else bound
    return None if value is None else sense.sign * float(value)


class _Patches:
    """Collects the places that the noise writes to while the template takes a representative value."""

    def __init__(self, sp: Stage) -> None:
        self._sizes = [len(source.outcomes) for source in sp.sources]
        weights = np.ones(1)
        for source in sp.sources:
            weights = np.outer(weights, source.probability).reshape(-1)
        self.probability = weights
        self._places: list[tuple[int, int, int]] = []
        self._values: list[NDArray[np.float64]] = []
        self._sources = sp.sources

    def put(self, amount: Amount, kind: Target, row: int = -1, col: int = -1) -> float:
        """Return the amount's number, or its mean after noting its place (and 0.0 for −0.0).

        What rounding leaves of a mean that cancels is none: as a size to scale by it would spoil the LP.
        """
        if not amount.random:
            return float(amount.values) + 0.0
        values = amount.over(self._sizes) + 0.0
        self._places.append((kind, row, col))
        self._values.append(values)
        happens = self.probability > 0.0
        # Added in order: a BLAS product would depend on the processor in its last bit.
        terms = (values[happens] * self.probability[happens]).tolist()
        mean = sum(terms) if terms else float(values[0])
        largest = float(values[np.argmax(np.abs(values))])
        if abs(mean) <= ROUNDING * abs(largest) < math.inf:
            return largest if kind is Target.COEFFICIENT else 0.0  # a place in the matrix needs an entry
        return mean

    def noise(self) -> Noise:
        if not self._sources:
            return Noise.none()
        kinds, rows, cols = zip(*self._places, strict=True) if self._places else ((), (), ())
        named = [
            Amount((axis,), source.outcomes[:, column]).over(self._sizes)
            for axis, source in enumerate(self._sources)
            for column in range(len(source.names))
        ]
        return Noise(
            PatchPlan(np.array(kinds, np.int8), np.array(rows, np.int32), np.array(cols, np.int32)),
            np.stack(self._values, axis=1) if self._values else np.zeros((len(self.probability), 0)),
            self.probability,
            tuple(name for source in self._sources for name in source.names),
            np.stack(named, axis=1),
        )


def _node(
    sp: Stage, node: GraphNode, states: tuple[State, ...], sense: Sense, theta_lower: float | None
) -> Node:
    patches = _Patches(sp)
    lower = [patches.put(column.lower, Target.COL_LOWER, col=j) for j, column in enumerate(sp.columns)]
    upper = [patches.put(column.upper, Target.COL_UPPER, col=j) for j, column in enumerate(sp.columns)]
    row_lower, row_upper = [], []
    entries: list[dict[int, float]] = [{} for _ in sp.columns]
    for i, row in enumerate(sp.rows):
        one_sided = (
            row.lower is row.upper or _infinite(row.lower, -math.inf) or _infinite(row.upper, math.inf)
        )
        kinds = (Target.RHS, Target.RHS) if one_sided else (Target.ROW_LOWER, Target.ROW_UPPER)
        row_lower.append(patches.put(row.lower, kinds[0], row=i))
        row_upper.append(row_lower[-1] if row.lower is row.upper else patches.put(row.upper, kinds[1], row=i))
        for j, amount in row.terms.items():
            entries[j][i] = patches.put(amount, Target.COEFFICIENT, row=i, col=j)
    cost = np.zeros(len(sp.columns))
    objective = sp.objective if sense is Sense.MINIMISE else -sp.objective
    for j, amount in objective.terms.items():
        cost[j] = patches.put(amount, Target.COST, col=j)
    offset = patches.put(objective.constant, Target.OFFSET)
    return Node(
        name=node.name,
        stage=node.stage,
        discount=node.discount,
        theta_lower=theta_lower,
        noise=patches.noise(),
        state_in=np.array([sp.states[state.name][1] for state in states], np.int32),
        state_out=np.array([sp.states[state.name][2] for state in states], np.int32),
        template=LpTemplate(
            cost=cost,
            col_lower=np.array(lower, np.float64),
            col_upper=np.array(upper, np.float64),
            row_lower=np.array(row_lower, np.float64),
            row_upper=np.array(row_upper, np.float64),
            starts=np.cumsum([0, *(len(column) for column in entries)], dtype=np.int32),
            rows=np.array([i for column in entries for i in column], np.int32),
            values=np.array([value for column in entries for value in column.values()], np.float64),
            offset=offset,
            col_names=tuple(column.name for column in sp.columns),
            row_names=tuple(row.name for row in sp.rows),
        ),
    )


def _infinite(amount: Amount, value: float) -> bool:
    return not amount.random and float(amount.values) == value
