"""Subproblems of a plan: the solver called by node instead of by model, errors located by node and scenario."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32, I64
from pycobre.errors import SolverError
from pycobre.sddp.openings import Openings
from pycobre.sddp.plan import NodePlan, Plan
from pycobre.sddp.timing import Ledger
from pycobre.solver import BasisBlock, Block, CutView, Engine, SolveCall

__all__ = ["HasCuts", "SolveContext", "SubproblemSolver"]


class HasCuts(Protocol):
    """Anything whose cuts the solver can read."""

    def view(self) -> CutView: ...


class SolveContext(NamedTuple):
    """Whose solves these are, for the case that one fails: chain i is scenario `first + rows[i]`."""

    iteration: int
    first: int
    rows: I64 | None  #: None: chain i is scenario `first + i`
    openings: I32 | None = None  #: of each chain, where it has one LP only; −1: not in the support


class SubproblemSolver:
    """Solves nodes of a plan with the cuts of the pools."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        openings: Openings,
        pools: Mapping[int, HasCuts],
        ledger: Ledger,
        *,
        lazy: bool,
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._openings = openings
        self._pools = pools
        self._ledger = ledger
        self._lazy = lazy

    def solve_sampled(
        self,
        node: int,
        x: F64,
        values: F64,
        start: BasisBlock | None,
        trial_point: F64 | None,
        context: SolveContext,
        *,
        want_basis: bool = True,
        want_primal: bool = False,
        counted: NDArray[np.bool_] | None = None,
    ) -> Block:
        """One LP per scenario, each with its own patch vector: `values` [scenarios, places].

        Those that are not `counted` are solved on another rank too, and are counted there.
        """
        return self._solve(
            node,
            x,
            values[:, None, :],
            start,
            trial_point,
            context,
            None,
            want_basis,
            want_primal,
            counted=counted,
        )

    def solve_all_openings(
        self,
        node: int,
        x: F64,
        start: BasisBlock,
        trial_point: F64,
        context: SolveContext,
        positions: NDArray[np.intp] | None = None,
        work_counter: I64 | None = None,
    ) -> Block:
        """All openings of a node for every scenario, in chain order, or at `positions` [scenarios, k].

        With `work_counter` the scenarios are shared with other ranks (see `Engine.solve`).
        """
        ordered = self._openings.ordered[node]
        values = ordered if positions is None else ordered[positions]
        return self._solve(
            node, x, values, start, trial_point, context, positions, False, False, work_counter
        )

    def _solve(
        self,
        node: int,
        x: F64,
        values: F64,
        start: BasisBlock | None,
        trial_point: F64 | None,
        context: SolveContext,
        positions: NDArray[np.intp] | None,
        want_basis: bool,
        want_primal: bool,
        work_counter: I64 | None = None,
        counted: NDArray[np.bool_] | None = None,
    ) -> Block:
        plan = self._plan.nodes[node]
        cuts = self._pools[node].view() if plan.has_future else None
        begin = time.perf_counter()
        try:
            block = self._engine.solve(
                SolveCall(
                    plan.model,
                    x,
                    values,
                    cuts,
                    start=start,
                    trial_point=trial_point if cuts is not None else None,
                    lazy=self._lazy,
                    want_basis=want_basis,
                    want_primal=want_primal,
                    work_counter=work_counter,
                )
            )
        except SolverError as error:
            chain, position = error.chain or 0, error.opening or 0
            raise _located(error, plan, context, chain, position, positions) from error
        finally:
            self._ledger.solve_s += time.perf_counter() - begin
        counts: list[NDArray[Any]] = [block.iterations, block.retries, block.rejected, block.certified]
        mine = counted if block.solved_here is None else block.solved_here.view(np.bool_)
        if mine is not None:
            counts = [count[mine] for count in counts]
        iterations, retries, rejected, certified = (int(np.add.reduce(count, axis=None)) for count in counts)
        self._ledger.lp_solves += counts[0].size
        self._ledger.simplex_iterations += iterations
        self._ledger.retries += retries
        self._ledger.rejected_answers += rejected
        self._ledger.uncertified_answers += counts[0].size - certified
        return block


def _located(
    error: SolverError,
    plan: NodePlan,
    context: SolveContext,
    chain: int,
    position: int,
    positions: NDArray[np.intp] | None,
) -> SolverError:
    """The same error, saying at which node of which scenario, and under which noise, it happened."""
    scenario = context.first + (chain if context.rows is None else int(context.rows[chain]))
    opening: int | None
    if context.openings is not None:
        opening = int(context.openings[chain])
    else:
        opening = int(plan.order[position if positions is None else positions[chain, position]])
    noise = f"opening {opening}"
    if opening < 0:
        opening, noise = None, "noise from outside the support"
    # The solver names the position in the block, which means nothing to the caller.
    what = error.message.removeprefix(f"LP of chain {chain}, opening {position}: ")
    return SolverError(
        f"node {plan.name!r}, iteration {context.iteration}, scenario {scenario}, {noise}: {what}",
        stage=plan.name,
        iteration=context.iteration,
        scenario=scenario,
        opening=opening,
        chain=error.chain,
        status=error.status,
        bundle=error.bundle,
        rows=error.rows,
        incoming=error.incoming,
    )
