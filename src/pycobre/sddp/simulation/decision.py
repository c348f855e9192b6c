"""The policy as a decision rule: a state and a noise in, a decision out."""

from __future__ import annotations

from collections.abc import Hashable
from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.problem import Problem
from pycobre.sddp.plan import Plan
from pycobre.sddp.policy import Policy, cuts_of
from pycobre.solver import SolveCall, SolverOptions, create_engine

__all__ = ["Decision", "DecisionRule"]


@frozen(eq=False)
class Decision:
    """What the policy does, as the problem's author sees it."""

    node: str
    cost: float  #: of this node, without what follows
    cost_to_go: float  #: θ: what the policy expects afterwards
    value: float  #: cost + discount · cost_to_go
    state: F64  #: handed on, in the order of the problem's states
    gradient: F64  #: of `value` in the incoming state
    variables: F64  #: in the order of the node's columns
    duals: F64  #: in the order of the node's rows
    names: tuple[str, ...]  #: of the variables; empty where the node names none

    def __getitem__(self, name: str) -> float:
        if name not in self.names:
            raise KeyError(
                f"node {self.node!r} has no variable {name!r}: its variables are {list(self.names)}"
            )
        return float(self.variables[self.names.index(name)])


class DecisionRule:
    """Decides at one state after the other. Close it, or use it as a context."""

    def __init__(self, problem: Problem, policy: Policy, solver: SolverOptions | None = None) -> None:
        policy.check(problem)
        self._problem, self._policy = problem, policy
        self._plan = Plan.of(problem)
        self._engine = create_engine(solver)

    def __enter__(self) -> DecisionRule:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._engine.close()

    def decide(
        self,
        node: Hashable | None = None,
        state: ArrayLike = (),
        *,
        index: int | None = None,
        opening: int | None = None,
        noise: ArrayLike | None = None,
    ) -> Decision:
        """The decision at `node` with the incoming `state`, after an opening or any patch vector is observed.

        `node` is the key of a node; `index`, instead, its position in the problem's list of nodes.
        A node with a single opening needs neither. Raises `SolverError` where the LP has no solution.
        """
        index = self._policy.index(node, index=index)
        prepared = self._plan.nodes[index]
        x = np.asarray(state, dtype=np.float64).reshape(1, -1)
        if x.shape[1] != self._plan.states:
            raise OptionError(f"state: expected {self._plan.states} values, got {x.shape[1]}.")
        cuts = cuts_of(prepared, self._policy).view() if prepared.has_future else None
        values = self._noise(index, opening, noise)[None]
        block = self._engine.solve(SolveCall(prepared.model, x, values, cuts, want_primal=True))
        assert block.primal is not None
        assert block.row_dual is not None
        sign = self._problem.sense.sign
        objective, theta = float(block.objective[0, 0]), float(block.theta[0, 0])
        template = self._problem.nodes[index].template
        return Decision(
            node=prepared.name,
            cost=sign * (objective - prepared.discount * theta),
            cost_to_go=sign * theta,
            value=sign * objective,
            state=block.output[0, 0],
            gradient=sign * block.gradient[0, 0],
            variables=block.primal[0, 0, : template.num_cols],
            duals=sign * block.row_dual[0, 0],
            names=tuple(template.col_names),
        )

    def _noise(self, index: int, opening: int | None, noise: ArrayLike | None) -> F64:
        prepared = self._plan.nodes[index]
        if noise is not None:
            vector = np.asarray(noise, dtype=np.float64).reshape(-1)
            if opening is not None or len(vector) != prepared.support.shape[1]:
                raise OptionError(
                    f"noise of node {prepared.name!r}: expected {prepared.support.shape[1]} values and no "
                    f"opening, got {len(vector)} values and opening {opening}."
                )
            return vector
        if opening is None:
            if prepared.openings > 1:
                raise OptionError(
                    f"node {prepared.name!r} has {prepared.openings} openings: expected one of "
                    "them, or a noise, got neither."
                )
            opening = 0
        if not 0 <= opening < prepared.openings:
            raise OptionError(
                f"opening of node {prepared.name!r}: expected 0 to {prepared.openings - 1}, got {opening}."
            )
        row: F64 = prepared.support[opening]
        return row
