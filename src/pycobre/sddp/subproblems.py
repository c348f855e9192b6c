"""The algorithm's one door to the solver: nodes instead of models, errors that say where they happened."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I64
from pycobre.errors import SolverError
from pycobre.sddp.openings import Openings
from pycobre.sddp.plan import NodePlan, Plan
from pycobre.sddp.timing import Ledger
from pycobre.solver import BasisBlock, Block, CutView, Engine, SolveCall

__all__ = ["Solving", "Viewable", "Who"]


class Viewable(Protocol):
    """Anything that can show its cuts to the solver."""

    def view(self) -> CutView: ...


class Who(NamedTuple):
    """Whose solves these are, for the case that one fails: chain i is scenario `first + rows[i]`."""

    iteration: int
    first: int
    rows: I64 | None  #: None: chain i is scenario `first + i`
    openings: NDArray[np.int32] | None = (
        None  #: of each chain, where it has one LP only; −1: not in the support
    )


class Solving:
    """Solves nodes of a plan with the cuts of the pools."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        openings: Openings,
        pools: Mapping[int, Viewable],
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

    def one_each(
        self,
        node: int,
        x: F64,
        values: F64,
        start: BasisBlock | None,
        seed: F64 | None,
        who: Who,
        *,
        want_basis: bool = True,
        want_primal: bool = False,
    ) -> Block:
        """One LP per scenario, each with its own patch vector: `values` [scenarios, places]."""
        return self._solve(node, x, values[:, None, :], start, seed, who, None, want_basis, want_primal)

    def every_opening(
        self,
        node: int,
        x: F64,
        start: BasisBlock,
        seed: F64,
        who: Who,
        positions: NDArray[np.intp] | None = None,
        dealt: I64 | None = None,
    ) -> Block:
        """All openings of a node for every scenario, in chain order, or at `positions` [scenarios, k].

        With `dealt` the scenarios are shared with other ranks (see `Engine.solve`).
        """
        ordered = self._openings.ordered[node]
        values = ordered if positions is None else ordered[positions]
        return self._solve(node, x, values, start, seed, who, positions, False, False, dealt)

    def _solve(
        self,
        node: int,
        x: F64,
        values: F64,
        start: BasisBlock | None,
        seed: F64 | None,
        who: Who,
        positions: NDArray[np.intp] | None,
        want_basis: bool,
        want_primal: bool,
        dealt: I64 | None = None,
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
                    trial_point=seed if cuts is not None else None,
                    lazy=self._lazy,
                    want_basis=want_basis,
                    want_primal=want_primal,
                    work_counter=dealt,
                )
            )
        except SolverError as error:
            chain, position = error.chain or 0, error.opening or 0
            raise _located(error, plan, who, chain, position, positions) from error
        finally:
            self._ledger.solve_s += time.perf_counter() - begin
        iterations, retries = block.iterations, block.retries
        if block.solved_here is not None:
            mine = block.solved_here.view(np.bool_)
            iterations, retries = iterations[mine], retries[mine]
        self._ledger.lp_solves += iterations.size
        self._ledger.simplex_iterations += int(np.add.reduce(iterations, axis=None))
        self._ledger.retries += int(np.add.reduce(retries, axis=None))
        return block


def _located(
    error: SolverError,
    plan: NodePlan,
    who: Who,
    chain: int,
    position: int,
    positions: NDArray[np.intp] | None,
) -> SolverError:
    """The same error, saying at which node of which scenario, and under which noise, it happened."""
    scenario = who.first + (chain if who.rows is None else int(who.rows[chain]))
    opening: int | None
    if who.openings is not None:
        opening = int(who.openings[chain])
    else:
        opening = int(plan.order[position if positions is None else positions[chain, position]])
    noise = f"opening {opening}"
    if opening < 0:
        opening, noise = None, "noise from outside the support"
    # The solver's own words name the position in the block, which says nothing out here.
    what = error.message.removeprefix(f"LP of chain {chain}, opening {position}: ")
    return SolverError(
        f"node {plan.name!r}, iteration {who.iteration}, scenario {scenario}, {noise}: {what}",
        stage=plan.name,
        iteration=who.iteration,
        scenario=scenario,
        opening=opening,
        chain=error.chain,
        status=error.status,
        bundle=error.bundle,
        rows=error.rows,
        incoming=error.incoming,
    )
