"""What a policy costs along given paths, with realisations that need not be among the openings of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from pycobre._util.arrays import F64
from pycobre.problem import Problem
from pycobre.sddp.policy import Policy
from pycobre.sddp.simulation.decision import DecisionRule
from pycobre.solver import SolverOptions

__all__ = ["PathStep", "path_costs"]


class PathStep(Protocol):
    """A node and what is observed there, as the node's patch vector."""

    @property
    def node(self) -> str: ...

    @property
    def noise(self) -> ArrayLike: ...


def path_costs(
    problem: Problem,
    policy: Policy,
    paths: Sequence[Sequence[PathStep]],
    solver: SolverOptions | None = None,
) -> F64:
    """The discounted cost of every path, as the problem's author sees it; the policy decides node by node.

    `pycobre.problem.formats.read_validation` gives such paths. Raises `SolverError` where an LP has no solution.
    """
    costs = np.zeros(len(paths))
    discounts = {node.name: node.discount for node in problem.nodes}
    with DecisionRule(problem, policy, solver) as rule:
        for position, path in enumerate(paths):
            state, weight = problem.initial, 1.0
            for step in path:
                decision = rule.decide(step.node, state, noise=step.noise)
                costs[position] += weight * decision.cost
                state, weight = decision.state, weight * discounts[step.node]
    return costs
