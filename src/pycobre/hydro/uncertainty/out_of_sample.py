"""Out-of-sample noise: fresh draws of the model, on Cobre's own streams.

Each class of noise has a stream of its own, and follows the sampling method of its stage: plain, or the points of a
Latin hypercube or a Sobol sequence over the scenarios of one iteration. Stages of one period share their draw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I64
from pycobre.errors import CaseError
from pycobre.hydro.model.config import SampledPasses, SampledScenarios
from pycobre.hydro.uncertainty.model import NoiseModel
from pycobre.hydro.uncertainty.periods import period_numbers
from pycobre.stochastic import streams
from pycobre.stochastic.correlation import correlate
from pycobre.stochastic.openings import needs_scipy
from pycobre.stochastic.stratified import latin_points, latin_strata, sobol_points

__all__ = ["OutOfSampleNoise"]


MANY = 2000  # scenarios of a hypercube where a case does not say how many it simulates


class OutOfSampleNoise:
    """A pure function of (stage, iteration, scenario); what it keeps only saves time."""

    def __init__(self, model: NoiseModel, seed: int | None) -> None:
        self._model = model
        self._seed = seed
        self._periods = period_numbers(model.case)
        self._strata: dict[tuple[int, ...], NDArray[np.uint32]] = {}
        self._of = -1  # the iteration whose strata are kept
        passes, simulated = model.case.config.training.selection, model.case.config.simulation.selection
        self._passes = passes.forward_passes if isinstance(passes, SampledPasses) else 1
        self._scenarios = simulated.num_scenarios if isinstance(simulated, SampledScenarios) else MANY

    def draw(self, t: int, iteration: int, scenarios: I64) -> F64:
        """Noise vectors [scenarios, dimension] of one stage."""
        if self._seed is None:
            raise CaseError(
                "config.json: scenario_source.seed: expected an integer for out_of_sample draws, got none. "
                "Add a seed."
            )
        seed, layout = abs(self._seed), self._model.layout
        bases = (seed, streams.class_seed(seed, "load"), streams.class_seed(seed, "ncs"))
        sizes = (layout.hydros, len(layout.buses), len(layout.sources))
        drawn = [
            self._points(t, base, iteration, scenarios, size) for base, size in zip(bases, sizes, strict=True)
        ]
        noise = np.concatenate(drawn, axis=1)
        return layout.by_id(correlate(noise, layout.groups(self._model.case.stages[t])))

    def _points(self, t: int, seed: int, iteration: int, scenarios: I64, dimension: int) -> F64:
        period = self._periods[t]
        match self._model.case.stages[t].sampling_method if dimension else "saa":
            case "lhs":
                return self._latin(seed, iteration, scenarios, period, dimension)
            case "qmc_sobol":
                own = int(streams.opening_seed(seed, iteration, period))
                return needs_scipy("qmc_sobol", sobol_points, own, scenarios, dimension)
            case _:
                seeds = streams.grouped_forward_seed(seed, iteration, scenarios, period)
                return streams.forward_normal(seeds, dimension)

    def _latin(self, seed: int, iteration: int, scenarios: I64, period: int, dimension: int) -> F64:
        """Points of hypercubes of as many scenarios as the case asks for; further scenarios are in further ones."""
        if iteration != self._of:
            self._strata, self._of = {}, iteration
        total = max(1, self._passes if iteration else self._scenarios)
        strata = np.empty((scenarios.size, dimension), np.uint32)
        for cube in np.unique(scenarios // total).tolist():
            key = (seed, period, cube)
            if key not in self._strata:
                base = streams.class_seed(seed, f"cube {cube}") if cube else seed
                own = int(streams.opening_seed(base, iteration, period))
                self._strata[key] = latin_strata(own, total, dimension)
            mine = scenarios // total == cube
            strata[mine] = self._strata[key][scenarios[mine] % total]
        inside = streams.forward_uniform(streams.forward_seed(seed, iteration, scenarios, period), dimension)
        return latin_points(strata, inside, total)
