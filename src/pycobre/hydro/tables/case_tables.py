"""From simulated LPs to the tables of a power system, stage by stage."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.build import HydroModel
from pycobre.hydro.tables.hydros import hydro_buses, hydros
from pycobre.hydro.tables.stage_view import Columns, StageView, summed
from pycobre.sddp import Record, Sampler, Simulation

__all__ = ["CaseTables"]


_COST_PARTS = {
    "thermal": ("thermal", "anticipated_decision"),
    "deficit": ("deficit",),
    "excess": ("excess",),
    "exchange": ("direct", "reverse"),
    "spillage": ("spillage",),
    "turbined": ("turbined",),
    "diversion": ("diversion",),
    "curtailment": ("source",),
    "contract": ("contract",),
}
_PRICED = ("load_balance", "water_balance", "generic")
SIMULATION = 0  #: the iteration number of simulated paths


class CaseTables:
    """Knows where everything is in the LPs of a case's study; `sampler` is the one that is simulated with.

    `probability` is that of the simulated scenarios; None: all alike.
    """

    def __init__(self, model: HydroModel, sampler: Sampler, probability: F64 | None = None) -> None:
        self._model, self._sampler, self._probability = model, sampler, probability
        self.record = Record(columns="all", rows=self._priced_rows())

    def __call__(self, simulation: Simulation) -> dict[str, Columns]:
        """All tables of the simulated scenarios, sorted by scenario, stage, block and entity."""
        simulation = simulation.with_depth(len(self._model.lps))
        given = self._given(simulation)
        stages = [StageView(self._model, t, simulation, given[t]) for t in range(len(self._model.lps))]
        case = self._model.case
        makers = {
            "costs": (_costs, True),
            "buses": (_buses, case.buses),
            "hydros": (hydros, case.hydros),
            "hydro_buses": (hydro_buses, case.hydros),
            "thermals": (_thermals, case.thermals),
            "exchanges": (_exchanges, case.lines),
            "non_controllables": (_sources, case.non_controllable_sources),
            "contracts": (_contracts, case.energy_contracts),
            "pumping": (_pumping, case.pumping_stations),
            "generic_constraints": (_generic, case.generic_constraints),
        }
        tables = {
            name: _stacked([make(s) for s in stages]) for name, (make, there) in makers.items() if there
        }
        return tables if self._probability is None else {"scenarios": self._scenarios(simulation)} | tables

    def _scenarios(self, simulation: Simulation) -> Columns:
        """What each scenario costs, and how probable it is, where they are not all alike."""
        assert self._probability is not None
        number = np.arange(simulation.first, simulation.first + len(simulation), dtype=np.int32)
        return {
            "scenario_id": number,
            "probability": self._probability[number],
            "cost": simulation.total_cost,
        }

    def _given(self, simulation: Simulation) -> list[F64 | None]:
        """By stage, the patch vectors that the sampler gave, drawn once more, where openings do not say it."""
        depth = len(self._model.lps)
        if (simulation.opening >= 0).all():
            return [None] * depth
        values = self._sampler.sample(SIMULATION, simulation.first, len(simulation)).values
        return [None] * depth if values is None else list(values)

    def _priced_rows(self) -> tuple[str, ...]:
        """Rows whose duals the tables hold, each once, in order of first appearance."""
        names: dict[str, None] = {}
        for lp in self._model.lps:
            for group in _PRICED:
                names.update(dict.fromkeys(lp.template.row_names[row] for row in np.unique(lp.rows[group])))
        return tuple(names)


def _costs(s: StageView) -> Columns:
    amounts = s.template.cost * s.x
    taken = np.zeros(s.template.num_cols, bool)
    parts = {}
    for name, groups in _COST_PARTS.items():
        columns = np.concatenate([s.lp.columns[group].reshape(-1) for group in groups])
        taken[columns] = True
        parts[f"{name}_cost"] = summed(amounts[:, columns])
    generic = s.lp.columns["generic_slack"]
    generic = generic[generic >= 0]
    taken[generic] = True
    return {
        "scenario_id": np.arange(s.first, s.first + s.count, dtype=np.int32),
        "stage_id": np.full(s.count, s.numbers.stage.id, np.int32),
        "node_id": s.node_id,
        "discount_factor": s.discount,
        "stage_cost": s.stage_cost,
        "future_cost": s.future,
        **parts,
        "violation_cost": summed(amounts[:, ~taken]),
        "generic_cost": summed(amounts[:, generic]),
    }


def _buses(s: StageView) -> Columns:
    deficit = np.zeros((s.count, len(s.case.buses), s.blocks))
    segments = s.values("deficit")
    for i, (bus, _) in enumerate(s.lp.places["deficit"].tolist()):
        deficit[:, bus] += segments[:, i]
    return s.table(
        {"bus_id": [bus.id for bus in s.case.buses]},
        load_mw=s.activity("load_balance"),
        deficit_mw=deficit,
        excess_mw=s.values("excess"),
        marginal_cost=s.duals("load_balance") / s.hours,
    )


def _thermals(s: StageView) -> Columns:
    ids = {"thermal_id": [plant.id for plant in s.case.thermals]}
    return s.table(ids, generation_mw=s.values("thermal"), cost=s.costs("thermal"))


def _exchanges(s: StageView) -> Columns:
    direct, reverse = s.values("direct"), s.values("reverse")
    ids = {"line_id": [line.id for line in s.case.lines]}
    return s.table(ids, direct_mw=direct, reverse_mw=reverse, net_mw=direct - reverse)


def _sources(s: StageView) -> Columns:
    available, generation = s.upper("source"), s.values("source")
    ids = {"ncs_id": [source.id for source in s.case.non_controllable_sources]}
    return s.table(ids, available_mw=available, generation_mw=generation, curtailed_mw=available - generation)


def _contracts(s: StageView) -> Columns:
    ids = {"contract_id": [contract.id for contract in s.case.energy_contracts]}
    return s.table(ids, power_mw=s.values("contract"), cost=s.costs("contract"))


def _pumping(s: StageView) -> Columns:
    pumped = s.values("pumped")
    rate = np.array([station.consumption_mw_per_m3s for station in s.case.pumping_stations])
    ids = {"pumping_station_id": [station.id for station in s.case.pumping_stations]}
    return s.table(ids, pumped_m3s=pumped, power_mw=rate[:, None] * pumped)


def _generic(s: StageView) -> Columns:
    """One row per scenario and row of the LP: only blocks with a bound have one."""
    order = np.lexsort(s.lp.places["generic"].T)  # by block, then by constraint
    places, rows = s.lp.places["generic"][order], order.size
    slack = np.zeros((2, s.count, rows))
    for side, columns in enumerate(s.lp.columns["generic_slack"].T):
        there = np.flatnonzero(columns >= 0)
        slack[side][:, there] = s.x[:, columns[there]]
    value = s.activity("generic") - slack[0] + slack[1] + s.lp.constants["generic"]
    ids = [s.numbers.stage.blocks[k].id for k in places[:, 1]]
    return {
        "scenario_id": np.repeat(np.arange(s.first, s.first + s.count, dtype=np.int32), rows),
        "stage_id": np.full(s.count * rows, s.numbers.stage.id, np.int32),
        "node_id": np.repeat(s.node_id, rows),
        "block_id": np.tile(np.array(ids, np.int32), s.count),
        "hours": np.tile(s.hours[places[:, 1]], s.count),
        "constraint_id": np.tile(places[:, 0].astype(np.int32), s.count),
        "activity": value[:, order].reshape(-1),
        "slack": (slack[0] + slack[1])[:, order].reshape(-1),
        "dual": s.duals("generic")[:, order].reshape(-1),
    }


def _stacked(stages: list[Columns]) -> Columns:
    """The stages' rows in the order of scenarios, then stages, then as they are within."""
    joined = {name: np.concatenate([stage[name] for stage in stages]) for name in stages[0]}
    order = np.lexsort((joined["stage_id"], joined["scenario_id"]))
    return {name: column[order] for name, column in joined.items()}
