"""The LP of a node in one opening as plain numbers, in the author's sense: what writers of formats start from."""

from __future__ import annotations

from collections.abc import Mapping

from pycobre._util.frozen import frozen
from pycobre.problem.api import Node, Problem
from pycobre.solver.api import LpTemplate
from pycobre.solver.patch import patched

__all__ = ["PlainLp", "column_names", "plain_lp", "row_names"]


@frozen(eq=False)
class PlainLp:
    """Costs of the author's sense; rows as (lower, entries by column, upper)."""

    cost: list[float]
    lower: list[float]
    upper: list[float]
    rows: list[tuple[float, Mapping[int, float], float]]
    offset: float


def plain_lp(problem: Problem, node: Node, opening: int) -> PlainLp:
    """The LP with the numbers of one opening written in."""
    return of_template(
        patched(node.template, node.noise.plan, node.noise.values[opening]), problem.sense.sign
    )


def of_template(lp: LpTemplate, sign: int) -> PlainLp:
    """The LP of a template; `sign` −1 turns minimised costs into earnings."""
    entries: list[dict[int, float]] = [{} for _ in range(lp.num_rows)]
    for column in range(lp.num_cols):
        for at in range(lp.starts[column], lp.starts[column + 1]):
            entries[lp.rows[at]][column] = float(lp.values[at])
    return PlainLp(
        cost=[sign * value + 0.0 for value in lp.cost.tolist()],
        lower=lp.col_lower.tolist(),
        upper=lp.col_upper.tolist(),
        rows=list(zip(lp.row_lower.tolist(), entries, lp.row_upper.tolist(), strict=True)),
        offset=sign * lp.offset + 0.0,
    )


def column_names(node: Node, taken: set[str]) -> list[str]:
    """A name of its own for every column, none of `taken`."""
    return _unique([node.template.col_name(j) for j in range(node.template.num_cols)], taken)


def row_names(node: Node) -> list[str]:
    """A name of its own for every row."""
    return _unique([node.template.row_name(i) for i in range(node.template.num_rows)], set())


def _unique(names: list[str], taken: set[str]) -> list[str]:
    used, found = set(taken), []
    for name in names:
        made, count = name, 2
        while made in used:
            made, count = f"{name}_{count}", count + 1
        used.add(made)
        found.append(made)
    return found
