"""Nodes that name the external scenario they see: what it writes into the node's LP.

Inflows come out exactly as the scenario has them, also where the model lets them depend on earlier ones: the one path
that leads to such a node says what those were.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pycobre._util.arrays import F64
from pycobre.errors import CaseError
from pycobre.hydro.model.graph import START, CaseGraph
from pycobre.hydro.model.horizon import GraphNode
from pycobre.hydro.uncertainty.external import external_values, scenario_numbers
from pycobre.hydro.uncertainty.inflows import initial_lags
from pycobre.hydro.uncertainty.model import NoiseModel
from pycobre.hydro.uncertainty.periods import after_stage, initial_accumulation

__all__ = ["pinned_values"]


def pinned_values(model: NoiseModel, graph: CaseGraph) -> Mapping[int, F64]:
    """The patch vector [1, places] of every node that names a scenario."""
    if not graph.pinned:
        return {}
    given = _Scenarios(model)
    history = _Past(model, graph) if model.par.order else None
    found: dict[int, F64] = {}
    for i, (node, t) in enumerate(zip(graph.nodes, graph.stage_of, strict=True)):
        place = model.noise[t]
        inflow, load, source = (given.of(name, node, t) for name in ("inflow", "load", "ncs"))
        if inflow is None:
            inflow = place.base[None]
        found[i] = place.patch(
            inflow if history is None else history.left(i, t, inflow),
            place.load[None, :, 0] if load is None else load,
            place.source[None, :, 0] if source is None else source,
        )
    return found


class _Past:
    """What came before each node, on the one path that leads there."""

    def __init__(self, model: NoiseModel, graph: CaseGraph) -> None:
        self._model, self._graph, self._before = model, graph, graph.predecessors()
        case, index = model.case, model.index
        lags = initial_lags(case, index, model.par.order)
        self._after: dict[int, tuple[F64, F64]] = {
            START: (lags[None], initial_accumulation(case, index)[None])
        }

    def left(self, i: int, t: int, inflow: F64) -> F64:
        """What is left of the inflow [1, N] of node `i` after the share of its lags."""
        if len(self._before[i]) != 1:
            raise CaseError(
                f"{self._graph.names[i]}: expected one path to a node that names its scenario, since inflows depend "
                f"on earlier ones, got {len(self._before[i])}. Give every path a node of its own."
            )
        lags, sums = self._after[self._before[i][0]]
        periods = self._model.periods
        self._after[i] = after_stage(lags, sums, inflow, None if periods is None else periods[t])
        rest: F64 = inflow - (self._model.par.psi[t] * lags).sum(axis=1)
        return rest


class _Scenarios:
    """The external scenarios of the classes that have any random entity, by stage."""

    def __init__(self, model: NoiseModel) -> None:
        case, layout = model.case, model.layout
        tables = {
            "inflow": (case.external_inflows, "hydro_id", "value_m3s", [h.id for h in case.hydros]),
            "load": (case.external_loads, "bus_id", "value_mw", [case.buses[b].id for b in layout.buses]),
            "ncs": (
                case.external_sources,
                "ncs_id",
                "availability_factor",
                [case.non_controllable_sources[r].id for r in layout.sources],
            ),
        }
        self._values = {
            name: external_values(*columns, case.stages) for name, columns in tables.items() if columns[3]
        }
        self._numbers = {
            name: [scenario_numbers(columns[0], stage) for stage in case.stages]
            for name, columns in tables.items()
        }

    def of(self, name: str, node: GraphNode, t: int) -> F64 | None:
        """Values [1, entities] of the node's scenario; None for a class without random entities."""
        if name not in self._values or node.scenario_id is None:
            return None
        row = self._numbers[name][t].index(node.scenario_id)
        values: F64 = np.array(self._values[name][t][row : row + 1])
        return values
