"""Bounds, costs and penalties of every stage: an entity's values, or the stage's (and block's) own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.hydro.equations.filling import HM3_PER_M3S_HOUR, filling_targets
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.overrides import Overrides
from pycobre.hydro.equations.penalties import HydroPenaltyBook
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage

__all__ = ["HM3_PER_M3S_HOUR", "HydroNumbers", "Resolver", "StageNumbers"]

Bool = NDArray[np.bool_]


@frozen(eq=False)
class HydroNumbers:
    """N plants, P (plant, bus) pairs, K blocks. Flows in m³/s, costs per hour."""

    exists: Bool  #: [N], in operation or filling
    operates: Bool  #: [N]
    min_storage: F64  #: [N]
    max_storage: F64  #: [N]
    min_outflow: F64  #: [N, K]
    max_outflow: F64  #: [N, K], inf where there is none
    min_spillage: F64  #: [N, K]
    max_spillage: F64  #: [N, K]
    min_diversion: F64  #: [N, K]
    max_diversion: F64  #: [N, K], 0 without a channel
    withdrawal: F64  #: [N]
    pair_min_turbined: F64  #: [P, K]
    pair_max_turbined: F64  #: [P, K]
    pair_min_generation: F64  #: [P, K]
    pair_max_generation: F64  #: [P, K]
    plant_min_turbined: F64  #: [N, K], beyond what the pairs already demand (0: nothing)
    plant_max_turbined: F64  #: [N, K]
    plant_min_generation: F64  #: [N, K]
    plant_max_generation: F64  #: [N, K]
    storage_target: F64  #: [N], hm³ that storage reaches or pays for; NaN: none
    storage_target_cost: F64  #: [N], per hm³
    penalty: dict[str, F64]  #: name without `_cost` → [N]


@frozen(eq=False)
class StageNumbers:
    """Everything that the equations of one stage need besides the network's shape."""

    stage: Stage
    hours: F64  #: [K]
    hydro: HydroNumbers
    thermal_min: F64  #: [G, K]
    thermal_max: F64
    thermal_cost: F64
    line_direct: F64  #: [E, K]
    line_reverse: F64
    exchange_cost: F64  #: [E]
    excess_cost: F64  #: [B]
    load_factor: F64  #: [B, K]
    source_capacity: F64  #: [R], 0 where it does not exist
    source_factor: F64  #: [R, K]
    curtailment_cost: F64  #: [R]
    contract_min: F64  #: [C, K]
    contract_max: F64
    contract_price: F64
    pump_min: F64  #: [S, K]
    pump_max: F64


class Resolver:
    """Holds the entities' own values as arrays; `stage` applies what is particular to one."""

    def __init__(self, case: Case, index: Index) -> None:
        self._case, self._index = case, index
        self._penalties = HydroPenaltyBook(case, index)
        common = case.penalties
        self._base = {
            "thermal_min": _values(t.generation.min_mw for t in case.thermals),
            "thermal_max": _values(t.generation.max_mw for t in case.thermals),
            "thermal_cost": _values(t.cost_per_mwh for t in case.thermals),
            "direct": _values(x.capacity.direct_mw for x in case.lines),
            "reverse": _values(x.capacity.reverse_mw for x in case.lines),
            "exchange": _values(_either(x.exchange_cost, common.line.exchange_cost) for x in case.lines),
            "excess": np.full(len(case.buses), common.bus.excess_cost),
            "installed": _values(s.max_generation_mw for s in case.non_controllable_sources),
            "curtailment": _values(
                _either(s.curtailment_cost, common.non_controllable_source.curtailment_cost)
                for s in case.non_controllable_sources
            ),
            "contract_min": _values(c.limits.min_mw for c in case.energy_contracts),
            "contract_max": _values(c.limits.max_mw for c in case.energy_contracts),
            "contract_price": _values(c.price_per_mwh for c in case.energy_contracts),
            "pump_min": _values(p.flow.min_m3s for p in case.pumping_stations),
            "pump_max": _values(p.flow.max_m3s for p in case.pumping_stations),
        }
        self._plant = {
            "min_storage_hm3": _values(h.reservoir.min_storage_hm3 for h in case.hydros),
            "max_storage_hm3": _values(h.reservoir.max_storage_hm3 for h in case.hydros),
            "min_outflow_m3s": _values(h.outflow.min_outflow_m3s for h in case.hydros),
            "max_outflow_m3s": _values(_either(h.outflow.max_outflow_m3s, np.inf) for h in case.hydros),
            "max_diversion_m3s": _values(
                h.diversion.max_flow_m3s if h.diversion else 0.0 for h in case.hydros
            ),
            "max_turbined_m3s": _values(h.generation.max_turbined_m3s for h in case.hydros),
            "max_generation_mw": _values(h.generation.max_generation_mw for h in case.hydros),
            "max_spillage_m3s": np.full(len(case.hydros), np.inf),
        }
        groups = [(h, g) for h in case.hydros for g in h.unit_groups]
        self._group = {
            name: _values(getattr(g, name) for _, g in groups)
            for name in ("min_turbined_m3s", "max_turbined_m3s", "min_generation_mw", "max_generation_mw")
        }
        self._group_position = {(h.id, g.id): i for i, (h, g) in enumerate(groups)}
        pair = {(p.hydro, p.bus): i for i, p in enumerate(index.pairs)}
        self._group_pair = np.array(
            [pair[index.hydro[h.id], index.bus[g.bus_id]] for h, g in groups], dtype=np.intp
        )
        self._targets = filling_targets(case, index)
        self._filled = np.array([h.filling is not None for h in case.hydros], dtype=bool)
        self._position = {stage.id: t for t, stage in enumerate(case.stages)}
        # A source with statistics has its availability from them; a schedule is for the others.
        self._random = np.isin([s.id for s in case.non_controllable_sources], case.source_stats.ncs_id)

    def stage(self, stage: Stage) -> StageNumbers:
        """The numbers of one stage."""
        case, index, base = self._case, self._index, self._base
        rows = Overrides(stage)

        def alive(entities: Any) -> Bool:
            return np.array([_exists(entity, stage) for entity in entities], dtype=bool)

        def thermal(name: str, column: str) -> F64:
            return rows.blocks(case.thermal_bounds, ("thermal_id",), index.thermal, column, base[name])

        def line(name: str) -> F64:
            limit = rows.blocks(case.line_bounds, ("line_id",), index.line, f"{name}_mw", base[name])
            return np.where(alive(case.lines)[:, None], limit, 0.0)

        def contract(name: str, column: str) -> F64:
            return rows.blocks(case.contract_bounds, ("contract_id",), index.contract, column, base[name])

        def pump(name: str, column: str) -> F64:
            key = ("pumping_station_id",)
            limit = rows.blocks(case.pumping_bounds, key, index.pump, column, base[name])
            return np.where(alive(case.pumping_stations)[:, None], limit, 0.0)

        working = alive(case.thermals)[:, None]
        trading = alive(case.energy_contracts)[:, None]
        ncs = ("ncs_id",)
        limited = rows.whole(
            case.source_bounds, ncs, index.source, "available_generation_mw", base["installed"]
        )
        capacity = np.where(self._random, base["installed"], limited)
        return StageNumbers(
            stage=stage,
            hours=np.array([block.hours for block in stage.blocks]),
            hydro=self._hydro(rows),
            thermal_min=np.where(working, thermal("thermal_min", "min_generation_mw"), 0.0),
            thermal_max=np.where(working, thermal("thermal_max", "max_generation_mw"), 0.0),
            thermal_cost=thermal("thermal_cost", "cost_per_mwh"),
            line_direct=line("direct"),
            line_reverse=line("reverse"),
            exchange_cost=rows.whole(
                case.line_penalties, ("line_id",), index.line, "exchange_cost", base["exchange"]
            ),
            excess_cost=rows.whole(case.bus_penalties, ("bus_id",), index.bus, "excess_cost", base["excess"]),
            load_factor=_factors(case.load_factors, "bus_id", index.bus, stage),
            source_capacity=np.where(alive(case.non_controllable_sources), capacity, 0.0),
            source_factor=_factors(case.source_factors, "ncs_id", index.source, stage),
            curtailment_cost=rows.whole(
                case.source_penalties, ncs, index.source, "curtailment_cost", base["curtailment"]
            ),
            contract_min=np.where(trading, contract("contract_min", "min_mw"), 0.0),
            contract_max=np.where(trading, contract("contract_max", "max_mw"), 0.0),
            contract_price=contract("contract_price", "price_per_mwh"),
            pump_min=pump("pump_min", "min_m3s"),
            pump_max=pump("pump_max", "max_m3s"),
        )

    def _hydro(self, rows: Overrides) -> HydroNumbers:
        case, index = self._case, self._index
        table, key = case.hydro_bounds, ("hydro_id",)
        nothing = np.zeros(len(case.hydros))

        def blocks(column: str) -> F64:
            return rows.blocks(table, key, index.hydro, column, self._plant.get(column, nothing))

        def whole(column: str) -> F64:
            return rows.whole(table, key, index.hydro, column, self._plant.get(column, nothing))

        pairs = {name: self._pairs(rows, name) for name in self._group}

        def demanded(column: str) -> F64:
            """A stage's minimum of a whole plant, where it asks for more than its unit groups do."""
            own = rows.blocks(table, key, index.hydro, column, nothing)
            sums = np.zeros_like(own)
            np.add.at(sums, index.pair_hydro, pairs[column])
            return np.where(own > sums, own, 0.0)

        operates = np.array([_exists(h, rows.stage) for h in case.hydros], dtype=bool)
        least, penalty = whole("min_storage_hm3"), self._penalties.stage(rows)
        filling = self._targets[self._position[rows.stage.id]]
        fills = ~np.isnan(filling)
        soft = np.where(fills, filling, np.where(self._filled & operates, least, np.nan))
        return HydroNumbers(
            exists=operates | fills,
            operates=operates,
            min_storage=np.where(self._filled, 0.0, least),
            max_storage=whole("max_storage_hm3"),
            min_outflow=blocks("min_outflow_m3s"),
            max_outflow=blocks("max_outflow_m3s"),
            min_spillage=blocks("min_spillage_m3s"),
            max_spillage=blocks("max_spillage_m3s"),
            min_diversion=blocks("min_diversion_m3s"),
            max_diversion=blocks("max_diversion_m3s"),
            withdrawal=whole("water_withdrawal_m3s"),
            pair_min_turbined=pairs["min_turbined_m3s"],
            pair_max_turbined=pairs["max_turbined_m3s"],
            pair_min_generation=pairs["min_generation_mw"],
            pair_max_generation=pairs["max_generation_mw"],
            plant_min_turbined=demanded("min_turbined_m3s"),
            plant_max_turbined=blocks("max_turbined_m3s"),
            plant_min_generation=demanded("min_generation_mw"),
            plant_max_generation=blocks("max_generation_mw"),
            storage_target=soft,
            storage_target_cost=np.where(
                fills, penalty["filling_target_violation"], penalty["storage_violation_below"]
            ),
            penalty=penalty,
        )

    def _pairs(self, rows: Overrides, column: str) -> F64:
        """Sums over the unit groups of every (plant, bus) pair."""
        keys = ("hydro_id", "hydro_unit_group_id")
        values = rows.blocks(
            self._case.unit_group_bounds, keys, self._group_position, column, self._group[column]
        )
        sums = np.zeros((len(self._index.pairs), rows.num_blocks))
        np.add.at(sums, self._group_pair, values)
        return sums


def _values(numbers: Any) -> F64:
    return np.array(list(numbers), dtype=np.float64)


def _either(own: float | None, common: float) -> float:
    return common if own is None else own


def _factors(entries: tuple[Any, ...], key: str, position: dict[int, int], stage: Stage) -> F64:
    values = np.ones((len(position), len(stage.blocks)))
    block = {b.id: k for k, b in enumerate(stage.blocks)}
    for entry in entries:
        if entry.stage_id == stage.id:
            for factor in entry.block_factors:
                values[position[getattr(entry, key)], block[factor.block_id]] = factor.factor
    return values


def _exists(entity: Any, stage: Stage) -> bool:
    """In service from its entry stage up to, not including, its exit stage."""
    entry, leave = entity.entry_stage_id, entity.exit_stage_id
    return (entry is None or stage.id >= entry) and (leave is None or stage.id < leave)
