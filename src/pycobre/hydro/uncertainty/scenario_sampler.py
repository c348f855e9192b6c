"""Forward draws of a case: which noise a scenario of an iteration sees, stage by stage.

Each class of noise (inflow, load, sources) follows its own scheme. In sample, all classes take the same
opening of the tree; out of sample they are fresh draws of the same model; external and historical
scenarios replace the numbers themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32, I64
from pycobre.hydro.model.config import ClassScheme, ScenarioSource
from pycobre.hydro.uncertainty.external import external_values
from pycobre.hydro.uncertainty.history import history_windows
from pycobre.hydro.uncertainty.inflows import initial_lags
from pycobre.hydro.uncertainty.model import NoiseModel
from pycobre.hydro.uncertainty.out_of_sample import OutOfSampleNoise
from pycobre.hydro.uncertainty.periods import after_stage, initial_accumulation
from pycobre.stochastic import streams

__all__ = ["ScenarioSampler"]


HISTORICAL_SEED = 0x686973746F726963
EXTERNAL_SEED = 0x65787465726E616C
GIVEN = -1
AT_ONCE = 16  # iterations whose openings are drawn together: a draw costs more than its numbers


class ScenarioSampler:
    """A pure function of (iteration, scenario). Iterations count from 1; simulation is iteration 0."""

    def __init__(self, model: NoiseModel, source: ScenarioSource | None) -> None:
        self._model = model
        self._drawn: tuple[tuple[int, int, int], I32] | None = None
        self._source = source or ScenarioSource()
        self._scheme = {
            name: (getattr(self._source, name) or ClassScheme(scheme="in_sample")).scheme
            for name in ("inflow", "load", "ncs")
        }
        self._out_of_sample = OutOfSampleNoise(model, self._source.seed)
        self._inflows = self._inflow_scenarios()
        layout, case = model.layout, model.case
        self._loads = (
            external_values(
                case.external_loads,
                "bus_id",
                "value_mw",
                [case.buses[b].id for b in layout.buses],
                case.stages,
            )
            if self._scheme["load"] == "external"
            else None
        )
        sources = [case.non_controllable_sources[r].id for r in layout.sources]
        self._sources = (
            external_values(case.external_sources, "ncs_id", "availability_factor", sources, case.stages)
            if self._scheme["ncs"] == "external"
            else None
        )

    @property
    def in_sample(self) -> bool:
        return set(self._scheme.values()) == {"in_sample"}

    def draw(self, iteration: int, first: int, count: int) -> tuple[I32, tuple[F64 | None, ...]]:
        """Openings [count, T] (−1: not from the tree) and, per stage, patch vectors where they are given."""
        scenarios = np.arange(first, first + count)
        chosen = self._openings(iteration, first, count)
        if self.in_sample:
            return chosen, (None,) * chosen.shape[1]
        inflows = self._replayed(iteration, scenarios)
        values = tuple(
            self._patch(t, iteration, scenarios, chosen[:, t], None if inflows is None else inflows[:, t])
            for t in range(chosen.shape[1])
        )
        return np.full_like(chosen, GIVEN), values

    def _openings(self, iteration: int, first: int, count: int) -> I32:
        """The openings [count, T] that the scenarios of an iteration take in the tree."""
        begin = iteration - iteration % AT_ONCE
        key = (begin, first, count)
        if self._drawn is None or self._drawn[0] != key:
            sizes = np.array([openings.shape[0] for openings in self._model.openings])
            ids = np.array([stage.id for stage in self._model.case.stages])
            iterations = np.arange(begin, begin + AT_ONCE)[:, None, None]
            scenarios = np.arange(first, first + count)[:, None]
            drawn = np.zeros((AT_ONCE, count, len(ids)), np.int32)
            # One call for all stages with the same number of openings.
            for size in np.unique(sizes).tolist():
                alike = sizes == size
                drawn[:, :, alike] = streams.forward_index(
                    self._model.seed, iterations, scenarios, ids[alike], size
                )
            self._drawn = key, drawn
        chosen: I32 = self._drawn[1][iteration - begin].copy()
        return chosen

    def _patch(self, t: int, iteration: int, scenarios: I64, chosen: I32, inflow: F64 | None) -> F64:
        """Patch vectors of one stage: noise by scheme, then numbers that replace what noise would give."""
        model = self._model
        layout, place = model.layout, model.noise[t]
        noise = model.openings[t][chosen].copy()
        if "out_of_sample" in self._scheme.values():
            fresh = self._out_of_sample.draw(t, iteration, scenarios)
            for name, part in (
                ("inflow", slice(0, layout.hydros)),
                ("load", layout.load_slice),
                ("ncs", layout.source_slice),
            ):
                if self._scheme[name] == "out_of_sample":
                    noise[:, part] = fresh[:, part]
        n, b = layout.hydros, len(layout.buses)
        picked = streams.forward_seed(EXTERNAL_SEED, iteration, scenarios, 0)
        load = place.load[:, 0] + place.load[:, 1] * noise[:, n : n + b]
        ready = place.source[:, 0] + place.source[:, 1] * noise[:, n + b :]
        if self._loads is not None:
            load = self._loads[t][_pick(picked, self._loads)[t]]
        if self._sources is not None:
            ready = self._sources[t][_pick(picked, self._sources)[t]]
        return place.patch(place.base + place.sigma * noise[:, :n] if inflow is None else inflow, load, ready)

    def _inflow_scenarios(self) -> list[F64] | None:
        """Inflow scenarios by stage [S_t, N], where the inflows themselves are given."""
        model = self._model
        match self._scheme["inflow"]:
            case "external":
                ids = [hydro.id for hydro in model.case.hydros]
                table = model.case.external_inflows
                return external_values(table, "hydro_id", "value_m3s", ids, model.case.stages)
            case "historical":
                # The inflows are replayed after the study's own past: a window needs none before it.
                windows = history_windows(model.case, model.index, self._source)
                return [windows.inflow[:, t] for t in range(windows.inflow.shape[1])]
            case _:
                return None

    def _replayed(self, iteration: int, scenarios: I64) -> F64 | None:
        """What is left of given inflows [count, T, N] after the lags' share, so that they come out exactly."""
        if self._inflows is None:
            return None
        model = self._model
        base = HISTORICAL_SEED if self._scheme["inflow"] == "historical" else EXTERNAL_SEED
        rows = _pick(streams.forward_seed(base, iteration, scenarios, 0), self._inflows)
        inflow = np.stack([table[row] for table, row in zip(self._inflows, rows, strict=True)], axis=1)
        if not model.par.order:
            return inflow
        lags = np.repeat(initial_lags(model.case, model.index, model.par.order)[None], scenarios.size, axis=0)
        rest = np.empty_like(inflow)
        sums = np.repeat(initial_accumulation(model.case, model.index)[None], scenarios.size, axis=0)
        for t in range(inflow.shape[1]):
            rest[:, t] = inflow[:, t] - (model.par.psi[t] * lags).sum(axis=1)
            lags, sums = after_stage(
                lags, sums, inflow[:, t], None if model.periods is None else model.periods[t]
            )
        return rest


def _pick(hashes: NDArray[np.uint64], tables: list[F64]) -> list[NDArray[np.intp]]:
    """The same scenario number in every stage; a stage with fewer scenarios repeats them."""
    most = max(table.shape[0] for table in tables)
    number = (hashes % np.uint64(most)).astype(np.intp)
    return [number % table.shape[0] for table in tables]
