"""The forward draws of a case: nodes of its graph, and the noise that they see."""

from __future__ import annotations

import numpy as np

from pycobre.hydro.build import HydroModel
from pycobre.hydro.model import config as settings
from pycobre.hydro.uncertainty.scenario_sampler import ScenarioSampler
from pycobre.sddp import InSample, Paths

__all__ = ["CaseSampler"]


class CaseSampler:
    """Draws by a scenario source: in sample the openings are Cobre's own, bit for bit.

    Nodes are drawn by the probabilities of the transitions. Nodes that name an external scenario see that one.
    """

    def __init__(self, model: HydroModel, source: settings.ScenarioSource | None) -> None:
        self._depth = model.case.num_stages
        self._pinned = model.graph.pinned
        self._scenarios = None if self._pinned else ScenarioSampler(model, source)
        branching = len(model.graph.nodes) > self._depth
        self._walks = InSample(model.problem, model.seed) if branching else None

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        depth = self._depth
        if self._walks is None:
            nodes = np.broadcast_to(np.arange(depth, dtype=np.int32), (count, depth)).copy()
        else:
            nodes = self._walks.sample(iteration, first, count).nodes
        lengths = np.full(count, depth, np.int32)
        if self._scenarios is None:
            return Paths(nodes, np.zeros((count, depth), np.int32), lengths)
        openings, values = self._scenarios.draw(iteration, first, count)
        return Paths(nodes, openings, lengths, values)
