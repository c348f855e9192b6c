"""One stage of simulated scenarios, seen through the names of its LP.

Sums run in the order of the LP's columns, one after the other, so that a number depends on its own scenario
alone and not on how many were simulated together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.hydro.build import HydroModel
from pycobre.sddp import Simulation
from pycobre.solver.api import Target

__all__ = ["Columns", "StageView", "summed"]

Columns = dict[str, NDArray[Any]]


class StageView:
    """Values and duals of stage `t`; arrays are [scenarios, …].

    `given` are the patch vectors of noise that is not from the opening tree; None: all of it is.
    """

    def __init__(self, model: HydroModel, t: int, simulation: Simulation, given: F64 | None) -> None:
        self.model, self.t, self.case = model, t, model.case
        self.lp, self.numbers = model.lps[t], model.numbers[t]
        self.template = self.lp.template
        place = {name: i for i, name in enumerate(simulation.column_names)}
        self.x = simulation.column[:, t][:, [place[name] for name in self.template.col_names]]
        self._dual_place = {name: i for i, name in enumerate(simulation.row_names)}
        self._duals = simulation.row_dual[:, t]
        self.first, self.count = simulation.first, len(simulation)
        self._node = simulation.node[:, t]
        self.node_id = np.array([node.id for node in model.graph.nodes], np.int32)[self._node]
        self.discount, self.stage_cost = simulation.discount[:, t], simulation.stage_cost[:, t]
        self.future, self._opening = simulation.cost_to_go[:, t], simulation.opening[:, t]
        self._given = given
        self.hours = self.numbers.hours
        self.blocks = len(self.hours)

    def values(self, group: str) -> F64:
        """Variables of a group of columns."""
        return self.x[:, self.lp.columns[group]]

    def costs(self, group: str) -> F64:
        """What the variables of a group cost."""
        columns = self.lp.columns[group]
        return self.template.cost[columns] * self.x[:, columns]

    def duals(self, group: str) -> F64:
        rows = self.lp.rows[group]
        names = [self._dual_place[self.template.row_names[row]] for row in rows.reshape(-1).tolist()]
        return self._duals[:, names].reshape(self.count, *rows.shape)

    def activity(self, group: str) -> F64:
        """A·x of a group of rows, summed column by column; a row that stands there twice has it twice."""
        wanted, place = np.unique(self.lp.rows[group], return_inverse=True)
        out = np.zeros((self.count, wanted.size))
        column = np.repeat(np.arange(self.template.num_cols), np.diff(self.template.starts))
        for e in np.flatnonzero(np.isin(self.template.rows, wanted)).tolist():
            at = int(np.searchsorted(wanted, self.template.rows[e]))
            out[:, at] += self.template.values[e] * self.x[:, column[e]]
        return out[:, place.reshape(-1)].reshape(self.count, *self.lp.rows[group].shape)

    def upper(self, group: str) -> F64:
        """Upper bounds of a group of columns, as the noise of every scenario set them."""
        columns = self.lp.columns[group]
        bounds = np.broadcast_to(self.template.col_upper, self.x.shape).copy()
        plan = self.model.noise[self.t].plan  # of all nodes of the stage
        values = self._noise_values(len(plan)) if self._given is None else self._given
        for i in np.flatnonzero(plan.kind == Target.COL_UPPER).tolist():
            bounds[:, plan.col[i]] = values[:, i]
        return bounds[:, columns]

    def _noise_values(self, places: int) -> F64:
        """The patch vector of every scenario: of its node's opening."""
        nodes = self.model.problem.nodes
        values = np.zeros((self.count, places))
        for node in np.unique(self._node).tolist():
            here = self._node == node
            values[here] = nodes[node].noise.values[self._opening[here]]
        return values

    def table(self, ids: dict[str, list[int]], **columns: F64) -> Columns:
        """Long columns from arrays [scenarios, entities, blocks]; rows by scenario, block, entity.

        `ids` has one list by key column, all of one length.
        """
        n, k, s = len(next(iter(ids.values()))), self.blocks, self.count
        shape = (s, k, n)

        def spread(values: NDArray[Any], axis: int) -> NDArray[Any]:
            view = [1, 1, 1]
            view[axis] = -1
            return np.broadcast_to(values.reshape(view), shape).reshape(-1)

        block_ids = np.array([block.id for block in self.numbers.stage.blocks], np.int32)
        table: Columns = {
            "scenario_id": spread(np.arange(self.first, self.first + s, dtype=np.int32), 0),
            "stage_id": np.full(s * k * n, self.numbers.stage.id, np.int32),
            "node_id": spread(self.node_id, 0),
            "block_id": spread(block_ids, 1),
            "hours": spread(self.hours, 1),
        }
        for key, of_entities in ids.items():
            table[key] = spread(np.array(of_entities, np.int32), 2)
        for name, values in columns.items():
            table[name] = np.broadcast_to(values, (s, n, k)).transpose(0, 2, 1).reshape(-1)
        return table


def summed(amounts: F64) -> F64:
    """Row sums from left to right."""
    total = np.zeros(len(amounts))
    for column in range(amounts.shape[1]):
        total += amounts[:, column]
    return total
