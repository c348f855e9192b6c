"""A whole problem as one LP: the tree of everything that can happen, written out.

The deterministic equivalent (extensive form): a reference solution of problems whose scenario tree is small.
Vertex (path, node, opening) gets the
node's LP with that opening written in, its costs times the probability of the path and the discounts on it,
and rows that tie its incoming state to the outgoing state of the vertex before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError, SolverError
from pycobre.problem.api import Node, Problem
from pycobre.problem.graph import ROOT
from pycobre.solver.api import LpTemplate
from pycobre.solver.highspy_lp import solve_lp
from pycobre.solver.patch import patched

__all__ = ["extensive_form", "solve_extensive_form", "tree_size"]

MAX_VERTICES = 200_000


def tree_size(problem: Problem) -> int:
    """Return how many (path, node, opening) vertices the tree of a problem has.

    On error: ProblemError if the graph is cyclic, for its tree has no end.
    """
    shape = problem.shape
    if shape.cyclic:
        raise ProblemError(
            f"extensive form of problem {problem.name!r}: expected a graph without cycles, got a cyclic one, "
            "whose tree has no end. Unroll it to a linear graph of finitely many stages."
        )
    below = [0] * len(problem.nodes)
    for i in reversed(shape.order.tolist()):
        openings = int(np.count_nonzero(problem.nodes[i].noise.probability > 0.0))
        below[i] = openings * (1 + sum(below[j] for j in shape.successors(i)[0].tolist()))
    return sum(below[j] for j in shape.successors(ROOT)[0].tolist())


@frozen(eq=False)
class _Vertex:
    path: str
    node: int
    opening: int
    weight: float
    parent: int


def extensive_form(problem: Problem, *, max_vertices: int = MAX_VERTICES) -> LpTemplate:
    """Write the problem as one LP, minimised as everything inside (see `Problem.as_seen`).

    A name reads `node.opening/…/node.opening/name`, the path from the first node on. What happens with
    probability zero is left out.

    On error: ProblemError if the graph is cyclic, a node has right-hand-side corrections (which are not
    linear), or the tree has more than `max_vertices` vertices.
    """
    size = tree_size(problem)
    if size > max_vertices:
        raise ProblemError(
            f"extensive form of problem {problem.name!r}: expected at most {max_vertices} nodes in the tree, "
            f"got {size}. Shorten the horizon, take fewer openings, or raise max_vertices."
        )
    for node in problem.nodes:
        if node.rhs_corrections is not None and len(node.rhs_corrections):
            raise ProblemError(
                f"extensive form of problem {problem.name!r}, node {node.name!r}: expected an LP, got "
                "right-hand-side corrections, which depend on the state. Build the problem without them."
            )
    return _assemble(problem, _vertices(problem))


def solve_extensive_form(problem: Problem, *, max_vertices: int = MAX_VERTICES) -> float:
    """Solve the problem as one LP and return its optimal value, as its author sees it."""
    solution = solve_lp(extensive_form(problem, max_vertices=max_vertices))
    if solution.status != "optimal":
        raise SolverError(
            f"extensive form of problem {problem.name!r}: expected an optimum, got {solution.status}. "
            "Run pycobre.problem.check_stages to see whether one node alone is at fault.",
            status=solution.status,
        )
    return problem.as_seen(solution.objective)


def _vertices(problem: Problem) -> list[_Vertex]:
    vertices: list[_Vertex] = []

    def grow(path: str, before: int, weight: float, parent: int) -> None:
        for j, p in zip(*problem.shape.successors(before), strict=True):
            noise = problem.nodes[j].noise
            for k in np.flatnonzero(noise.probability > 0.0).tolist():
                vertices.append(
                    _Vertex(
                        f"{path}{problem.nodes[j].name}.{k}/",
                        int(j),
                        k,
                        weight * float(p) * float(noise.probability[k]),
                        parent,
                    )
                )

    grow("", ROOT, 1.0, ROOT)
    position = 0
    while position < len(vertices):
        vertex = vertices[position]
        grow(vertex.path, vertex.node, vertex.weight * problem.nodes[vertex.node].discount, position)
        position += 1
    return vertices


def _assemble(problem: Problem, vertices: list[_Vertex]) -> LpTemplate:
    known: dict[tuple[int, int], LpTemplate] = {}
    blocks: list[LpTemplate] = []
    for vertex in vertices:
        key = (vertex.node, vertex.opening)
        if key not in known:
            node = problem.nodes[vertex.node]
            lp = patched(node.template, node.noise.plan, node.noise.values[vertex.opening])
            known[key] = lp if node.boundary is None else _with_boundary(lp, node)
        blocks.append(known[key])
    columns = np.cumsum([0, *(block.num_cols for block in blocks)])
    rows = np.cumsum([0, *(block.num_rows for block in blocks)])

    lower = np.concatenate([block.col_lower for block in blocks])
    upper = np.concatenate([block.col_upper for block in blocks])
    links: list[tuple[int, int, int]] = []  # (row, incoming column, outgoing column of the parent)
    for position, vertex in enumerate(vertices):
        incoming = columns[position] + problem.nodes[vertex.node].state_in
        if vertex.parent == ROOT:
            lower[incoming] = upper[incoming] = problem.initial
        else:
            lower[incoming], upper[incoming] = -np.inf, np.inf
            outgoing = columns[vertex.parent] + problem.nodes[vertices[vertex.parent].node].state_out
            for i, o in zip(incoming.tolist(), outgoing.tolist(), strict=True):
                links.append((int(rows[-1]) + len(links), i, o))

    row, col, value = _triplets(blocks, rows, columns, links)
    order = np.lexsort((row, col))
    starts = np.searchsorted(col[order], np.arange(columns[-1] + 1)).astype(np.int32)
    zeros = np.zeros(len(links))
    return LpTemplate(
        cost=np.concatenate([v.weight * block.cost for v, block in zip(vertices, blocks, strict=True)]),
        col_lower=lower,
        col_upper=upper,
        row_lower=np.concatenate([*(block.row_lower for block in blocks), zeros]),
        row_upper=np.concatenate([*(block.row_upper for block in blocks), zeros]),
        starts=starts,
        rows=row[order].astype(np.int32),
        values=value[order],
        offset=sum(v.weight * block.offset for v, block in zip(vertices, blocks, strict=True)),
        col_names=_names(vertices, blocks, LpTemplate.col_name, [b.num_cols for b in blocks]),
        row_names=(
            *_names(vertices, blocks, LpTemplate.row_name, [b.num_rows for b in blocks]),
            *_link_names(problem, vertices),
        ),
    )


def _with_boundary(lp: LpTemplate, node: Node) -> LpTemplate:
    """The LP with a column for what lies beyond, which is not below any of the boundary's functions."""
    boundary = node.boundary
    assert boundary is not None
    count, theta = len(boundary), lp.num_cols
    rows: list[list[int]] = [[] for _ in range(lp.num_cols + 1)]
    values: list[list[float]] = [[] for _ in range(lp.num_cols + 1)]
    for column in range(lp.num_cols):
        span = slice(lp.starts[column], lp.starts[column + 1])
        rows[column], values[column] = lp.rows[span].tolist(), lp.values[span].tolist()
    for state, column in enumerate(node.state_out.tolist()):
        rows[column] += range(lp.num_rows, lp.num_rows + count)
        values[column] += (-boundary.slope[:, state]).tolist()
    rows[theta], values[theta] = list(range(lp.num_rows, lp.num_rows + count)), [1.0] * count
    floor = -np.inf if node.theta_lower is None else node.theta_lower
    return LpTemplate(
        cost=np.append(lp.cost, node.discount),
        col_lower=np.append(lp.col_lower, floor),
        col_upper=np.append(lp.col_upper, np.inf),
        row_lower=np.concatenate([lp.row_lower, boundary.intercept]),
        row_upper=np.concatenate([lp.row_upper, np.full(count, np.inf)]),
        starts=np.cumsum([0, *(len(each) for each in rows)]).astype(np.int32),
        rows=np.array([row for each in rows for row in each], np.int32),
        values=np.array([value for each in values for value in each]),
        offset=lp.offset,
        col_names=(*lp.col_names, "beyond") if lp.col_names else (),
        row_names=(*lp.row_names, *(f"boundary {k}" for k in range(count))) if lp.row_names else (),
    )


def _triplets(
    blocks: list[LpTemplate],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    links: list[tuple[int, int, int]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    link = np.array(links, dtype=np.int64).reshape(-1, 3)
    row = [block.rows + start for block, start in zip(blocks, rows, strict=False)]
    col = [
        np.repeat(np.arange(block.num_cols), np.diff(block.starts)) + start
        for block, start in zip(blocks, columns, strict=False)
    ]
    ones = np.ones(len(link))
    return (
        np.concatenate([*row, link[:, 0], link[:, 0]]),
        np.concatenate([*col, link[:, 1], link[:, 2]]),
        np.concatenate([*(block.values for block in blocks), ones, -ones]),
    )


def _names(
    vertices: list[_Vertex],
    blocks: list[LpTemplate],
    name: Callable[[LpTemplate, int], str],
    counts: list[int],
) -> tuple[str, ...]:
    return tuple(
        f"{vertex.path}{name(block, k)}"
        for vertex, block, count in zip(vertices, blocks, counts, strict=True)
        for k in range(count)
    )


def _link_names(problem: Problem, vertices: list[_Vertex]) -> tuple[str, ...]:
    return tuple(
        f"{vertex.path}link {state.name}"
        for vertex in vertices
        if vertex.parent != ROOT
        for state in problem.states
    )
