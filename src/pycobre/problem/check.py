"""What only solving can tell about a problem before any algorithm runs: nodes that can never work.

Two questions for every node and opening, whose answers do not depend on what an algorithm will do: is there
any incoming state within the limits for which the LP is feasible? And is it then bounded? (By duality a
feasible LP is unbounded either for every incoming state or for none.) A node that is feasible for some states
only passes: whether those are the ones that occur is for the run to find out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre.problem.api import Node, Problem
from pycobre.problem.graph import ROOT
from pycobre.problem.validate import raise_if_any
from pycobre.solver.api import LpTemplate, Target
from pycobre.solver.explicit import find_conflict, find_ray
from pycobre.solver.highspy_lp import silent_highs, solve_lp
from pycobre.solver.patch import patched

__all__ = ["check_stages", "incoming_limits", "with_incoming"]

SHOWN = 8  # names listed in a finding


def check_stages(problem: Problem) -> None:
    """Solve every reachable node and opening; raise ProblemError for those that can never be solved."""
    raise_if_any(problem.name, _findings(problem))


def _findings(problem: Problem) -> Iterator[str]:
    highs = silent_highs()
    low, high = incoming_limits(problem)
    for position, node in enumerate(problem.nodes):
        if not problem.shape.reachable[position]:
            continue
        for opening in np.flatnonzero(node.noise.probability > 0.0).tolist():
            finding = _judge(node, opening, low[position], high[position], highs)
            if finding:
                where = f", opening {opening}" if node.noise.openings > 1 else ""
                yield f"node {node.name!r}{where}: {finding}"
                break


def _judge(
    node: Node, opening: int, low: NDArray[np.float64], high: NDArray[np.float64], highs: Any
) -> str | None:
    lp = patched(node.template, node.noise.plan, node.noise.values[opening])
    relaxed = with_incoming(lp, node, low, high)
    if solve_lp(relaxed, highs).status == "optimal":
        return None  # feasible for some incoming state, and bounded for all of them
    feasible = solve_lp(replace(relaxed, cost=np.zeros(lp.num_cols), offset=0.0), highs)
    if feasible.status == "infeasible":
        states = (
            "for every incoming state" if (low < high).any() else f"from the initial state {low.tolist()}"
        )
        return (
            f"expected a feasible LP, got one that is infeasible {states}{_conflict(relaxed)}. Relax a row, or "
            "add a slack with a cost."
        )
    if feasible.status == "optimal":
        given = feasible.primal[node.state_in]
        fixed = with_incoming(lp, node, given, given)
        priced = solve_lp(fixed, highs)
        if priced.status == "optimal":
            return None
        if priced.status == "unbounded":
            along = find_ray(fixed)
            where = f" along {', '.join(along[:SHOWN])}" if along else ""
            return (
                f"expected a bounded LP, got one whose cost falls for ever{where}. Bound the columns that earn "
                "money, or check the signs of the objective."
            )
    return f"expected a solvable LP, got {feasible.status!r} from HiGHS. Look at the sizes of its numbers."


def _conflict(lp: LpTemplate) -> str:
    """The rows and columns that cannot hold together, as a clause; empty where HiGHS names none."""
    found = find_conflict(lp)
    if found is None:
        return ""
    parts = [
        f"{what} {', '.join(names[:SHOWN])}"
        for what, names in (("rows", found.rows), ("the bounds of", found.cols))
        if names
    ]
    return f": {' and '.join(parts)} contradict each other"


def with_incoming(
    lp: LpTemplate, node: Node, low: NDArray[np.float64], high: NDArray[np.float64]
) -> LpTemplate:
    """The LP whose incoming states are free between two limits."""
    lower, upper = lp.col_lower.copy(), lp.col_upper.copy()
    lower[node.state_in], upper[node.state_in] = low, high
    return replace(lp, col_lower=lower, col_upper=upper)


def incoming_limits(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the smallest box around every state that may come in, for each node."""
    count, width = len(problem.nodes), len(problem.states)
    low, high = np.full((count, width), np.inf), np.full((count, width), -np.inf)
    for j in problem.shape.successors(ROOT)[0].tolist():
        low[j] = high[j] = problem.initial
    for i, node in enumerate(problem.nodes):
        if not problem.shape.reachable[i]:
            continue
        least, most = _outgoing_limits(node)
        for j in problem.shape.successors(i)[0].tolist():
            low[j], high[j] = np.minimum(low[j], least), np.maximum(high[j], most)
    return low, high


def _outgoing_limits(node: Node) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    lower, upper = node.template.col_lower.copy(), node.template.col_upper.copy()
    plan = node.noise.plan
    for k, (kind, col) in enumerate(zip(plan.kind.tolist(), plan.col.tolist(), strict=True)):
        if kind == Target.COL_LOWER:
            lower[col] = node.noise.values[:, k].min()
        if kind == Target.COL_UPPER:
            upper[col] = node.noise.values[:, k].max()
    carried = np.isin(node.state_out, node.state_in)  # limited by what came in, which is not known here
    least, most = lower[node.state_out], upper[node.state_out]
    return np.where(carried, -np.inf, least), np.where(carried, np.inf, most)
