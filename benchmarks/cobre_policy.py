"""What a run of Cobre leaves, in the order of pycobre's states: cuts, trial points, openings, simulated stages."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre.hydro import HydroModel
from pycobre.sddp import Policy
from pycobre.sddp.cuts import Cuts

__all__ = ["CobreRun", "Visit"]

F64 = NDArray[np.float64]
STORAGE, LAG = 0, 1  # kinds of states in a manifest; others are commitments of thermal plants


@dataclass(frozen=True)
class Visit:
    """One simulated stage: where it began, what flowed, what it cost with all that follows."""

    scenario: int
    stage: int
    state: F64
    inflow: F64
    value: float


class CobreRun:
    """The files of one run with exports of states and of what is stochastic, for a case that `model` is built of."""

    def __init__(self, output: Path, model: HydroModel) -> None:
        self._output, self._model = output, model
        self._ids = [hydro.id for hydro in model.case.hydros]
        self._pools = json.loads((output / "cuts.json").read_text(encoding="ascii"))
        self._lanes = self._commitment_places()
        self._leads = {plant: 1 + max(a for p, a in self._lanes if p == plant) for plant, _ in self._lanes}
        self.openings = self._openings()

    def _commitment_places(self) -> dict[tuple[int, int], int]:
        """(thermal plant, stages ahead) to the place of the state, by the states' names."""
        names = {plant.name: plant.id for plant in self._model.case.thermals}
        found = {}
        for place, state in enumerate(self._model.problem.states):
            if state.name.startswith("commitment["):
                name, _, ahead = state.name[len("commitment[") : -1].rpartition(",")
                found[names[name], int(ahead)] = place
        return found

    def _places(self, t: int) -> NDArray[np.intp]:
        """The place of each of Cobre's states among ours.

        A commitment's number in Cobre is the stage of its delivery, modulo the stages that it is decided ahead.
        """
        plants = {id_: h for h, id_ in enumerate(self._ids)}
        count = len(self._ids)
        return np.array(
            [
                plants[entity]
                if kind == STORAGE
                else count * sub + plants[entity]
                if kind == LAG
                else self._lanes[entity, (sub - t - 1) % self._leads[entity]]
                for kind, entity, sub in self._pools[str(t)]["states"]
            ],
            dtype=np.intp,
        )

    def cuts(self, t: int, iteration: int | None = None) -> Cuts:
        """The cuts of a stage made up to an iteration, with θ ≥ 0, which Cobre holds everywhere."""
        pool, states = self._pools[str(t)], len(self._model.problem.states)
        made = np.array(pool["iteration"], dtype=np.int32)
        keep = np.ones(made.size, bool) if iteration is None else made <= iteration
        slope = np.zeros((int(keep.sum()) + 1, states))
        if keep.any():
            slope[:-1, self._places(t)] = np.array(pool["slope"])[keep]
        intercept = np.append(np.array(pool["intercept"])[keep], 0.0)
        count = intercept.size
        zero = np.zeros(count, np.int32)
        return Cuts(intercept, slope, zero, np.arange(count, dtype=np.int32), zero, np.ones(count, np.uint8))

    def policy(self, iteration: int | None = None) -> Policy:
        """The cuts of all stages as a policy of our problem."""
        stages = self._model.case.num_stages
        states = len(self._model.problem.states)
        cuts = [self.cuts(t, iteration) for t in range(stages - 1)]
        return Policy.of(self._model.problem, (*cuts, Cuts.none(states)), 1, 0.0)

    def first_trial_point(self, t: int) -> F64:
        """The state that stage `t` handed on in the first trajectory: row 0 of its states (FlatBuffers, field 3)."""
        data = (self._output / "policy" / "states" / f"{t:03d}.bin").read_bytes()
        (table,) = struct.unpack_from("<I", data, 0)
        (back,) = struct.unpack_from("<i", data, table)
        (field,) = struct.unpack_from("<H", data, table - back + 4 + 2 * 3)
        (offset,) = struct.unpack_from("<I", data, table + field)
        places = self._places(t)
        state = np.zeros(len(self._model.problem.states))
        state[places] = np.frombuffer(data, "<f8", places.size, table + field + offset + 4)
        return state

    def _openings(self) -> list[F64]:
        """Standardised noise [openings, dimension] by stage, hydros by id."""
        table = self._table("stochastic/noise_openings.parquet")
        shape = [int(table[name].max()) + 1 for name in ("stage_id", "opening_index", "entity_index")]
        noise = np.zeros(shape)
        noise[table["stage_id"], table["opening_index"], table["entity_index"]] = table["value"]
        return list(self._model.layout.by_id(noise))

    def visits(self) -> list[Visit]:
        """All simulated stages, by scenario and stage."""
        hydros = self._simulated("hydros")
        costs = self._simulated("costs")
        shape = (int(costs["scenario_id"].max()) + 1, self._model.case.num_stages)
        order, count = self._model.par.order, len(self._ids)
        plant = np.searchsorted(self._ids, hydros["hydro_id"])
        at = hydros["scenario_id"], hydros["stage_id"]
        first = hydros["block_id"] == 0
        storage, inflow = np.zeros((*shape, count)), np.zeros((*shape, count))
        storage[at[0][first], at[1][first], plant[first]] = hydros["storage_initial_hm3"][first]
        inflow[at[0], at[1], plant] = hydros["incremental_inflow_m3s"]
        past = np.zeros((*shape, order, count))
        if order:
            lags = self._simulated("inflow_lags")
            lag_plant = np.searchsorted(self._ids, lags["hydro_id"])
            past[lags["scenario_id"], lags["stage_id"], lags["lag_index"], lag_plant] = lags["inflow_m3s"]
        value = np.zeros(shape)
        value[costs["scenario_id"], costs["stage_id"]] = costs["total_cost"]
        committed = self._committed(shape)
        found = []
        for s, t in np.ndindex(shape):
            state = np.zeros(len(self._model.problem.states))
            state[:count] = storage[s, t]
            state[count : count * (order + 1)] = past[s, t].reshape(-1)
            for (plant_id, ahead), place in self._lanes.items():
                state[place] = committed[plant_id][s, t + ahead]
            found.append(Visit(s, t, state, inflow[s, t], float(value[s, t])))
        return found

    def _committed(self, shape: tuple[int, int]) -> dict[int, F64]:
        """What each plant that is decided ahead delivers [scenario, stage]; nothing beyond the horizon."""
        plants = {plant for plant, _ in self._lanes}
        if not plants:
            return {}
        thermals = self._simulated("thermals")
        found = {}
        for plant in sorted(plants):
            rows = (thermals["thermal_id"] == plant) & (thermals["block_id"] == 0)
            found[plant] = np.zeros((shape[0], shape[1] + 12))
            at = thermals["scenario_id"][rows], thermals["stage_id"][rows]
            found[plant][at] = np.nan_to_num(thermals["anticipated_committed_mw"][rows].astype(float))
        return found

    def _simulated(self, name: str) -> dict[str, NDArray[Any]]:
        parts = sorted((self._output / "simulation" / name).glob("*/*.parquet"))
        tables = [self._table(str(part.relative_to(self._output))) for part in parts]
        return {column: np.concatenate([table[column] for table in tables]) for column in tables[0]}

    def _table(self, name: str) -> dict[str, NDArray[Any]]:
        import pyarrow.parquet as parquet

        table = parquet.read_table(self._output / name)
        return {column: table[column].to_numpy() for column in table.column_names}
