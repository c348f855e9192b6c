"""What a simulation writes down: columns of numbers by scenario and depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32, I64
from pycobre._util.frozen import frozen
from pycobre._util.suggest import did_you_mean
from pycobre.comm import Communicator
from pycobre.comm.collectives import gather_rows
from pycobre.errors import OptionError
from pycobre.problem import Problem, Sense
from pycobre.sddp.forward import Visit
from pycobre.sddp.numbers import Spread, spread
from pycobre.sddp.plan import Plan
from pycobre.sddp.sampling import Paths
from pycobre.sddp.split import Split

__all__ = ["Record", "Recorder", "Simulation"]

Names = Sequence[str] | Literal["all"]


@frozen()
class Record:
    """Which numbers of the LPs to keep, by name. Costs, states and paths are always kept."""

    columns: Names = ()  #: variables: their values
    rows: Names = ()  #: constraints: their duals
    reduced_costs: Names = ()  #: variables: their reduced costs


@frozen(eq=False, repr=False)
class Simulation:
    """Simulated scenarios `first …`, as the problem's author sees them.

    Arrays are [scenarios, depth, …]; where a path is shorter, or a node has no such column, there is NaN (−1
    in `node` and `opening`). An opening of −1 inside a path means noise from outside the support. Duals and
    costs are those of the stage itself, not discounted; `total_cost` is discounted to the start.
    """

    sense: Sense
    first: int
    node_names: tuple[str, ...]
    state_names: tuple[str, ...]
    column_names: tuple[str, ...]
    row_names: tuple[str, ...]
    reduced_cost_names: tuple[str, ...]
    total_cost: F64  #: [scenarios]
    length: I32  #: [scenarios]
    node: I32  #: [scenarios, depth]
    opening: I32  #: [scenarios, depth]
    discount: F64  #: [scenarios, depth], from here back to the start
    stage_cost: F64  #: [scenarios, depth]
    cost_to_go: F64  #: [scenarios, depth], θ: what the policy expects after this node
    state: F64  #: [scenarios, depth, states], outgoing
    column: F64  #: [scenarios, depth, columns]
    row_dual: F64  #: [scenarios, depth, rows]
    reduced_cost: F64  #: [scenarios, depth, reduced costs]

    def __len__(self) -> int:
        return len(self.total_cost)

    def __repr__(self) -> str:
        return (
            f"<Simulation of scenarios {self.first} to {self.first + len(self) - 1}: {self.node.shape[1]} deep, "
            f"{len(self.column_names)} columns, mean cost {self.cost.mean:.6g} ± {self.cost.half_width:.2g}>"
        )

    @property
    def cost(self) -> Spread:
        """Mean, standard deviation and half width of the total cost's 95 % interval, in scenario order."""
        return spread(self.total_cost)

    def values(self, column: str) -> F64:
        """One recorded variable, [scenarios, depth]."""
        return self.column[:, :, _position(self.column_names, column, "column")]

    def duals(self, row: str) -> F64:
        """The duals of one recorded constraint, [scenarios, depth]."""
        return self.row_dual[:, :, _position(self.row_names, row, "row")]

    def reduced_costs(self, column: str) -> F64:
        """The reduced costs of one recorded variable, [scenarios, depth]."""
        return self.reduced_cost[:, :, _position(self.reduced_cost_names, column, "reduced cost")]

    def states(self, name: str) -> F64:
        """One outgoing state, [scenarios, depth]."""
        return self.state[:, :, _position(self.state_names, name, "state")]

    def gathered(self, comm: Communicator, split: Split) -> Simulation:
        """All ranks' scenarios in order, on every rank (collective)."""
        own = np.array([self.node.shape[1]], np.int64)
        depths = gather_rows(comm, own, (1,) * comm.size)
        deep = self.with_depth(int(depths.max()))
        parts: dict[str, Any] = {
            item.name: gather_rows(comm, array, split.counts)
            for item in fields(deep)
            if isinstance(array := getattr(deep, item.name), np.ndarray)
        }
        return replace(deep, **parts, first=0)

    def with_depth(self, depth: int) -> Simulation:
        """The same scenarios with room for at least `depth` nodes each: who has simulated none has seen no path."""
        if depth <= self.node.shape[1]:
            return self
        parts: dict[str, Any] = {
            item.name: _padded(array, depth)
            for item in fields(self)
            if isinstance(array := getattr(self, item.name), np.ndarray) and array.ndim > 1
        }
        return replace(self, **parts)


class Recorder:
    """Fills one rank's `Simulation`, visit by visit."""

    def __init__(self, problem: Problem, plan: Plan, record: Record, first: int, count: int) -> None:
        self._plan, self._sense = plan, problem.sense
        templates = [node.template for node in problem.nodes]
        columns, self._columns = _resolve("column", record.columns, [t.col_names for t in templates])
        rows, self._rows = _resolve("row", record.rows, [t.row_names for t in templates])
        reduced, self._reduced = _resolve("column", record.reduced_costs, [t.col_names for t in templates])
        self.wants_lp = bool(columns or rows or reduced)
        widths = {
            "state": plan.states,
            "column": len(columns),
            "row_dual": len(rows),
            "reduced_cost": len(reduced),
        }
        self.result = Simulation(
            sense=problem.sense,
            first=first,
            node_names=tuple(node.name for node in problem.nodes),
            state_names=tuple(state.name for state in problem.states),
            column_names=columns,
            row_names=rows,
            reduced_cost_names=reduced,
            total_cost=np.zeros(count),
            length=np.zeros(count, np.int32),
            node=np.full((count, 0), -1, np.int32),
            opening=np.full((count, 0), -1, np.int32),
            discount=np.full((count, 0), np.nan),
            stage_cost=np.full((count, 0), np.nan),
            cost_to_go=np.full((count, 0), np.nan),
            **{name: np.full((count, 0, width), np.nan) for name, width in widths.items()},
        )

    def begin(self, offset: int, paths: Paths) -> None:
        """Note the paths of a batch whose first scenario is at position `offset`."""
        table = self.result = self.result.with_depth(paths.depth)
        span = slice(offset, offset + len(paths))
        table.length[span] = paths.lengths
        inside = np.arange(paths.depth) < paths.lengths[:, None]
        table.node[span, : paths.depth] = np.where(inside, paths.nodes[:, : paths.depth], -1)
        table.opening[span, : paths.depth] = np.where(inside, paths.openings[:, : paths.depth], -1)

    def add(self, offset: int, visit: Visit) -> None:
        """Note one visit of a batch."""
        table, block, sign, depth = self.result, visit.block, self._sense.sign, visit.depth
        own = np.arange(len(block.objective)) if visit.rows is None else visit.rows
        at = offset + own
        table.total_cost[at] += sign * (visit.weight * visit.cost)
        table.discount[at, depth] = visit.weight
        table.stage_cost[at, depth] = sign * visit.stage_cost
        table.cost_to_go[at, depth] = sign * block.theta[:, 0]
        table.state[at, depth] = block.output[:, 0]
        if not self.wants_lp:
            return
        assert block.primal is not None
        assert block.row_dual is not None
        assert block.col_dual is not None
        for target, (place, position), source, factor in (
            (table.column, self._columns[visit.node], block.primal, 1),
            (table.row_dual, self._rows[visit.node], block.row_dual, sign),
            (table.reduced_cost, self._reduced[visit.node], block.col_dual, sign),
        ):
            if len(place):
                target[at[:, None], depth, place[None]] = factor * source[:, 0][:, position]


def _padded(array: NDArray[Any], depth: int) -> NDArray[Any]:
    """The same table with room for `depth` nodes per path."""
    missing = np.nan if array.dtype.kind == "f" else -1
    wider = np.full((array.shape[0], depth, *array.shape[2:]), missing, array.dtype)
    wider[:, : array.shape[1]] = array
    return wider


def _resolve(
    what: str, wanted: Names, tables: list[Sequence[str]]
) -> tuple[tuple[str, ...], list[tuple[I64, I64]]]:
    """The names to record, and per node (place in the record, position in the LP) of those it has."""
    # In order of first appearance, over all nodes.
    known = dict.fromkeys(name for table in tables for name in table)
    names = tuple(known) if wanted == "all" else tuple(wanted)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise OptionError(f"record: there is no {what} {name!r} in any node.{hint}")
    found = []
    for table in tables:
        positions = {name: index for index, name in enumerate(table)}
        pairs = [(place, positions[name]) for place, name in enumerate(names) if name in positions]
        found.append((np.array([p for p, _ in pairs], np.int64), np.array([q for _, q in pairs], np.int64)))
    return names, found


def _position(names: tuple[str, ...], name: str, what: str) -> int:
    if name not in names:
        raise KeyError(f"no {what} {name!r} was recorded: recorded are {list(names)}")
    return names.index(name)
