"""A problem prepared for the algorithm: LPs with cost-to-go column, ordered openings, outcomes, sharing.

Everything here is a function of the problem alone, computed once, the same on every rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen
from pycobre.problem import ROOT, Boundary, Node, Problem
from pycobre.sddp.sampling import Paths, linear_nodes
from pycobre.solver.api import LpModel, LpTemplate

__all__ = ["Family", "NodePlan", "Plan", "similarity_order"]


@frozen(eq=False)
class NodePlan:
    """One node: the LP it solves and its openings in the order in which a chain solves them."""

    index: int
    name: str
    model: LpModel
    discount: float
    theta_lower: float
    has_future: bool  #: whether an arc leaves it, or it has a boundary: then it holds cuts
    boundary: Boundary | None  #: cuts that no training adds to
    order: I32  #: position in a chain → opening; those of probability zero are never solved
    support: F64  #: values of all openings, as in the problem

    @property
    def openings(self) -> int:
        return len(self.support)

    @property
    def chain_length(self) -> int:
        """Openings that can happen."""
        return len(self.order)


@frozen(eq=False)
class Family:
    """Nodes with the same children: one set of solves at a state gives each of them a cut.

    The outcomes of a member are all openings of all children that can happen, child by child in index order,
    openings in the problem's order; where a member may stop, one more outcome of cost zero is the last. Members
    differ in the probabilities they give to the outcomes, and in their risk measure.
    """

    members: tuple[int, ...]
    children: tuple[int, ...]
    firsts: tuple[int, ...]  #: position of each child's first outcome
    outcomes: int  #: without stopping
    probability: dict[int, F64]  #: member → [outcomes] or [outcomes + 1]


@frozen(eq=False)
class Plan:
    """The whole problem, prepared."""

    problem: Problem
    nodes: tuple[NodePlan, ...]
    families: tuple[Family, ...]
    family_of: tuple[int, ...]  #: node → family, −1 where no arc leaves it
    root: Family  #: the outcomes of the start; its only member is ROOT
    linear_order: I32 | None  #: a linear graph's nodes from first to last, None for any other graph

    @property
    def states(self) -> int:
        return len(self.problem.states)

    def visits_linear_graph(self, paths: Paths) -> bool:
        """Whether these are the paths that every rank knows without asking: the whole of a linear graph."""
        return (
            self.linear_order is not None
            and paths.nodes.shape[1] == len(self.linear_order)
            and bool(np.all(paths.lengths == len(self.linear_order)))
            and bool(np.all(paths.nodes == self.linear_order))
        )

    @classmethod
    def of(cls, problem: Problem) -> Plan:
        models: dict[bytes, LpModel] = {}
        shape = problem.shape
        nodes = []
        for index, node in enumerate(problem.nodes):
            has_future = len(shape.successors(index)[0]) > 0 or node.boundary is not None
            model = _with_cost_to_go(node) if has_future else _terminal_model(node)
            # Nodes that solve the same LP share one model, hence one LP in the solver's memory.
            model = models.setdefault(_content(model), model)
            nodes.append(
                NodePlan(
                    index=index,
                    name=node.name,
                    model=model,
                    discount=node.discount if has_future else 0.0,
                    theta_lower=_lower(node) if has_future else 0.0,
                    has_future=has_future,
                    boundary=node.boundary,
                    order=_chain_order(node),
                    support=node.noise.values,
                )
            )
        families, family_of = _families(problem)
        return cls(problem, tuple(nodes), families, family_of, _root(problem), linear_nodes(problem))


def similarity_order(values: F64) -> I32:
    """Openings ordered so that neighbours are alike: a hot-started solve then has little left to do.

    From the opening nearest the mean on, always the nearest one not yet taken (ties: the lowest index),
    distances measured in standard deviations of each place.
    """
    count = len(values)
    order = np.arange(count, dtype=np.int32)
    spread = values.std(axis=0) if count else np.zeros(0)
    moving = spread > 1e-12 * np.maximum(1.0, np.abs(values).max(axis=0, initial=0.0))
    if count < 3 or not moving.any():
        return order
    # Rounded, so that the last bits of a mean or standard deviation, which depend on the processor, cannot decide.
    points = np.round((values[:, moving] - values[:, moving].mean(axis=0)) / spread[moving], 9)
    left = np.ones(count, bool)
    here = np.zeros(points.shape[1])
    for position in range(count):
        distance = np.cumsum((points - here) ** 2, axis=1)[:, -1]
        nearest = int(np.argmin(np.where(left, distance, np.inf)))
        order[position] = nearest
        left[nearest] = False
        here = points[nearest]
    return order


def _possible(node: Node) -> I32:
    return np.flatnonzero(node.noise.probability > 0.0).astype(np.int32)


def _chain_order(node: Node) -> I32:
    possible = _possible(node)
    order: I32 = possible[similarity_order(node.noise.values[possible])]
    return order


def _terminal_model(node: Node) -> LpModel:
    lp = node.template
    lower, upper = _bounds(node)
    return LpModel(
        replace(lp, col_lower=lower, col_upper=upper),
        node.state_in,
        node.state_out,
        node.noise.plan,
        node.rhs_corrections,
    )


def _bounds(node: Node) -> tuple[F64, F64]:
    """The template's column bounds, but none on columns that only receive the state."""
    lower, upper = node.template.col_lower.copy(), node.template.col_upper.copy()
    receiving = np.setdiff1d(node.state_in, node.state_out)
    lower[receiving], upper[receiving] = -np.inf, np.inf
    return lower, upper


def _lower(node: Node) -> float:
    assert node.theta_lower is not None, "a validated problem has a bound wherever an arc leaves"
    return node.theta_lower


def _with_cost_to_go(node: Node) -> LpModel:
    """Append the column θ: cost `discount`, lower bound `theta_lower`, in no row but the pool's."""
    lp = node.template
    lower, upper = _bounds(node)
    template = LpTemplate(
        cost=np.append(lp.cost, node.discount),
        col_lower=np.append(lower, _lower(node)),
        col_upper=np.append(upper, np.inf),
        row_lower=lp.row_lower,
        row_upper=lp.row_upper,
        starts=np.append(lp.starts, lp.starts[-1]),
        rows=lp.rows,
        values=lp.values,
        offset=lp.offset,
        col_names=(*lp.col_names, _unused("cost_to_go", lp.col_names)) if lp.col_names else (),
        row_names=lp.row_names,
    )
    return LpModel(
        template,
        node.state_in,
        node.state_out,
        node.noise.plan,
        node.rhs_corrections,
        theta_column=lp.num_cols,
    )


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _content(model: LpModel) -> bytes:
    """A digest of everything a solve of this model depends on."""
    digest = hashlib.sha256()
    lp = model.template
    arrays = [lp.cost, lp.col_lower, lp.col_upper, lp.row_lower, lp.row_upper, lp.starts, lp.rows, lp.values]
    arrays += [np.float64(lp.offset), model.inputs, model.outputs]
    arrays += [
        model.plan.kind,
        model.plan.row,
        model.plan.col,
        np.int64(-1 if model.theta_column is None else 1),
    ]
    if (floors := model.rhs_corrections) is not None:
        arrays += [floors.limit, floors.row, floors.starts, floors.input, floors.coef]
        arrays += [floors.effect_floor, floors.effect_row, floors.effect_multiplier]
    for array in arrays:
        raw = np.asarray(array).tobytes()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    for names in (lp.col_names, lp.row_names):
        digest.update("\0".join(names).encode())
        digest.update(b"\1")
    return digest.digest()


def _families(problem: Problem) -> tuple[tuple[Family, ...], tuple[int, ...]]:
    shape = problem.shape
    by_children: dict[tuple[int, ...], list[int]] = {}
    for node in np.flatnonzero(shape.reachable).tolist():
        children = tuple(shape.successors(node)[0].tolist())
        if children:
            by_children.setdefault(children, []).append(node)
    family_of = [-1] * len(problem.nodes)
    families: list[Family] = []
    for children, members in by_children.items():
        for node in members:
            family_of[node] = len(families)
        families.append(_family(problem, tuple(members), children))
    return tuple(families), tuple(family_of)


def _root(problem: Problem) -> Family:
    return _family(problem, (ROOT,), tuple(problem.shape.successors(ROOT)[0].tolist()))


def _family(problem: Problem, members: tuple[int, ...], children: tuple[int, ...]) -> Family:
    shape = problem.shape
    chances_of = [
        problem.nodes[child].noise.probability[_possible(problem.nodes[child])] for child in children
    ]
    sizes = [len(chances) for chances in chances_of]
    probability = {}
    for node in members:
        parts = [p * chances for p, chances in zip(shape.successors(node)[1], chances_of, strict=True)]
        stopping = float(shape.stopping[node]) if node != ROOT else 0.0
        if stopping > 1e-12:
            parts.append(np.array([stopping]))
        probability[node] = np.concatenate(parts)
    firsts = tuple(np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int).tolist())
    return Family(members, children, firsts, sum(sizes), probability)
