"""StochOptFormat 1.0: a policy graph whose nodes share subproblems in MathOptFormat, and validation scenarios.

root          initial values of the states, and where a path begins
nodes         subproblem, realisations of its random variables, successors
subproblems   the columns of every state (in, out), random variables, the problem itself
validation_scenarios   paths with realisations that need not be among those of the nodes
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.api import Node, Noise, Problem
from pycobre.problem.build import build
from pycobre.problem.expression import Expression
from pycobre.problem.formats.json_values import Json, read_json
from pycobre.problem.formats.moi import add_constraint, expression_of, variable_bounds
from pycobre.problem.policy_graph import Graph
from pycobre.problem.stage import Stage

__all__ = ["ValidationStep", "read_sof"]

Support = Mapping[str, float]


@frozen(eq=False)
class ValidationStep:
    """One node of a validation scenario."""

    node: str
    support: Support  #: the realisation by name; empty where the node has no random variables
    noise: F64  #: the same as the node's patch vector, as decision rules take it


def read_sof(path: Path, *, relax: bool) -> tuple[Problem, tuple[tuple[ValidationStep, ...], ...]]:
    """The problem, whose bounds are still to be found, and the validation scenarios."""
    file = _File(read_json(path), relax)
    name = file.root.key("name").text() if file.root.has("name") else path.name.split(".")[0]
    bound = {"upper_bound": 0.0} if file.maximise else {"lower_bound": 0.0}
    whole = build(file.graph(), file.fill, **bound, name=name, check=False)
    nodes = tuple(_without_validation(node, file.realisations(node.name)) for node in whole.nodes)
    vectors = {node.name: node.noise.values for node in whole.nodes}
    scenarios = tuple(
        tuple(ValidationStep(step.node, step.support, vectors[step.node][step.position]) for step in scenario)
        for scenario in file.scenarios
    )
    return replace(whole, nodes=nodes), scenarios


@frozen(eq=False)
class _Step:
    node: str
    support: Support
    position: int  #: among the realisations of the node and, behind them, those of the scenarios


class _File:
    def __init__(self, root: Json, relax: bool) -> None:
        self.root, self._relax = root, relax
        version = root.key("version")
        if version.key("major").count() != 1:
            version.fail("version 1 of StochOptFormat")
        self._initial = {
            name: value.number() for name, value in root.key("root").key("state_variables").items()
        }
        self._nodes = dict(root.key("nodes").items())
        self._subproblems = dict(root.key("subproblems").items())
        for node in self._nodes.values():
            if node.key("subproblem").text() not in self._subproblems:
                node.key("subproblem").fail("a subproblem of the file")
        self._given = {name: self._realisations(node) for name, node in self._nodes.items()}
        self._further: dict[str, list[Support]] = {name: [] for name in self._nodes}
        self.scenarios = [
            [self._step(step) for step in scenario.list()]
            for scenario in (
                root.key("validation_scenarios").list() if root.has("validation_scenarios") else ()
            )
        ]
        senses = {self._sense(subproblem) for subproblem in self._subproblems.values()} - {"feasibility"}
        if len(senses) > 1:
            root.key("subproblems").fail("one sense in all subproblems, min or max")
        self.maximise = senses == {"max"}

    def realisations(self, node: str) -> int:
        """How many a node has."""
        return len(self._given[node])

    def graph(self) -> Graph:
        """The policy graph, its stages counted along the first path to each node."""
        stages = self._stages()
        graph = Graph()
        for name in self._nodes:
            graph.add_node(name, stage=stages.get(name, 1))
        for source, holder in (("root", self.root.key("root")), *self._nodes.items()):
            for target, probability in self._successors(holder):
                graph.add_arc(source, target, probability)
        return graph

    def fill(self, sp: Stage, name: str) -> None:
        """Write the subproblem of a node."""
        subproblem = self._subproblems[self._nodes[name].key("subproblem").text()]
        model = subproblem.key("subproblem")
        bounds, rows = variable_bounds(model.key("constraints"), relax=self._relax)
        columns = self._states(sp, subproblem, bounds)
        columns |= self._noise(sp, name)
        for variable in model.key("variables").list():
            label = variable.key("name").text()
            if label not in columns:
                low, high = bounds.get(label, (-math.inf, math.inf))
                columns[label] = sp.variable(label, lower=low, upper=high)
        for row in rows:
            add_constraint(sp, row, columns, relax=self._relax)
        objective = model.key("objective")
        if self._sense(subproblem) != "feasibility":
            cost = expression_of(objective.key("function"), columns)
            (sp.maximise if self.maximise else sp.minimise)(cost)

    def _states(
        self, sp: Stage, subproblem: Json, bounds: Mapping[str, tuple[float, float]]
    ) -> dict[str, Expression]:
        columns: dict[str, Expression] = {}
        declared = dict(subproblem.key("state_variables").items())
        if set(declared) != set(self._initial):
            subproblem.key("state_variables").fail(f"the states of the root: {sorted(self._initial)}")
        for name in sorted(declared):
            incoming, outgoing = (declared[name].key(end).text() for end in ("in", "out"))
            low, high = bounds.get(outgoing, (-math.inf, math.inf))
            state = sp.state(name, initial=self._initial[name], lower=low, upper=high)
            columns[incoming], columns[outgoing] = state.in_, state.out
            low, high = bounds.get(incoming, (-math.inf, math.inf))
            if math.isfinite(low):
                sp.add(state.in_ >= low)
            if math.isfinite(high):
                sp.add(state.in_ <= high)
        return columns

    def _noise(self, sp: Stage, name: str) -> dict[str, Expression]:
        """The random variables; realisations of validation scenarios follow the node's own, with probability zero."""
        rows = [*self._given[name], *((0.0, support) for support in self._further[name])]
        if not rows[0][1]:
            return {}
        noise = sp.joint_noise([dict(support) for _, support in rows], [p for p, _ in rows])
        return dict(zip(noise.names, noise, strict=True))

    def _realisations(self, node: Json) -> list[tuple[float, Support]]:
        subproblem = self._subproblems[node.key("subproblem").text()]
        names = (
            [name.text() for name in subproblem.key("random_variables").list()]
            if subproblem.has("random_variables")
            else []
        )
        if not node.has("realizations"):
            if names:
                node.fail(f"realizations of its random variables {names}")
            return [(1.0, {})]
        found = [
            (each.key("probability").number(), self._support(each.key("support"), names))
            for each in node.key("realizations").list()
        ]
        if not found:
            node.key("realizations").fail("at least one")
        return found if names else [(math.fsum(p for p, _ in found), {})]

    @staticmethod
    def _support(given: Json, names: list[str]) -> Support:
        support = {name: value.number() for name, value in given.items()}
        if set(support) != set(names):
            given.fail(f"a value of each random variable {names}")
        return {name: support[name] for name in names}

    def _step(self, step: Json) -> _Step:
        name = step.key("node").text()
        if name not in self._nodes:
            step.key("node").fail("a node of the file")
        names = list(self._given[name][0][1])
        support = self._support(step.key("support"), names) if step.has("support") else {}
        if names and not support:
            step.fail(f"a support with a value of each random variable {names}")
        if not names:
            return _Step(name, {}, 0)
        self._further[name].append(support)
        return _Step(name, support, len(self._given[name]) + len(self._further[name]) - 1)

    @staticmethod
    def _sense(subproblem: Json) -> str:
        objective = subproblem.key("subproblem").key("objective")
        return objective.key("sense").choice(("min", "max", "feasibility"))

    def _successors(self, holder: Json) -> list[tuple[str, float]]:
        if not holder.has("successors"):
            return []
        found = []
        for name, probability in holder.key("successors").items():
            if name not in self._nodes:
                holder.key("successors").fail(f"nodes of the file, none of them {name!r}")
            found.append((name, probability.number()))
        return found

    def _stages(self) -> dict[str, int]:
        stages: dict[str, int] = {}
        waiting = [(name, 1) for name, _ in self._successors(self.root.key("root"))]
        while waiting:
            name, stage = waiting.pop(0)
            if name not in stages:
                stages[name] = stage
                waiting += [(other, stage + 1) for other, _ in self._successors(self._nodes[name])]
        return stages


def _without_validation(node: Node, count: int) -> Node:
    """The node with its own realisations only."""
    noise = node.noise
    if noise.openings == count:
        return node
    if count < 1:
        raise ProblemError(f"node {node.name!r}: expected realisations, got none.")
    own = Noise(
        noise.plan, noise.values[:count], noise.probability[:count], noise.names, noise.outcomes[:count]
    )
    return replace(node, noise=own)
