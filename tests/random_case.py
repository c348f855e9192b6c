"""Small hydrothermal systems drawn at random, with the features that are asked for.

All numbers are drawn, so that optimal plans are unique for almost every seed, and everything that could be
short has a price, so that every stage has a plan. The same seed and features give the same case.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from random_graph import recombining, tree
from random_system import DrawnSystem
from small_case import MONTHS, config, penalties

from pycobre.hydro.model import constraints as con
from pycobre.hydro.model import scenarios as sce
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import PolicyGraph, PreStudyStage
from pycobre.hydro.model.initial import (
    AnticipatedCommitment,
    InflowObservation,
    InitialConditions,
    InitialStorage,
    PastDefluence,
)
from pycobre.hydro.model.system import AnticipatedStages, Filling
from pycobre.hydro.model.table import NO_ID

FEATURES = (
    "blocks",
    "chronological",
    "lags",
    "correlation",
    "evaporation",
    "fpha",
    "generic",
    "limits",
    "withdrawal",
    "diversion",
    "sources",
    "random_load",
    "contracts",
    "pumping",
    "discount",
    "cvar",
    "groups",
    "overrides",
    "entry",
    "segments",
    "annual",
    "tables",
    "by_block",
    "block_costs",
    "merged",
    "families",
    "wild",
    "fitted",
    "travel",
    "filling",
    "anticipated",
    "recombining",
    "tree",
)


class Drawn(DrawnSystem):
    """The same, with what is uncertain in it and what is asked of it."""

    def chance(self) -> dict[str, Any]:
        count = len(self.stages)
        ids = np.arange(-self.past, count)
        n = len(self.plants)
        mean = self.array(8.0, 25.0, n * ids.size)
        chance: dict[str, Any] = {
            "inflow_stats": sce.InflowStats(
                hydro_id=np.repeat(list(self.plants), ids.size),
                stage_id=np.tile(ids, n),
                mean_m3s=mean,
                std_m3s=mean * self.array(0.2, 0.5, mean.size) * (3.0 if "wild" in self.has else 1.0),
            ),
            "load_stats": sce.LoadStats(
                bus_id=np.repeat(list(self.buses), count),
                stage_id=np.tile(np.arange(count), len(self.buses)),
                mean_mw=self.array(35.0, 70.0, count * len(self.buses)),
                std_mw=np.repeat([self.number(2.0, 6.0) if "random_load" in self.has else 0.0, 0.0], count),
            ),
        }
        if self.order:
            chance["ar_coefficients"] = sce.ArCoefficients(
                hydro_id=np.repeat(list(self.plants), count * self.order),
                stage_id=np.tile(np.repeat(np.arange(count), self.order), n),
                lag=np.tile(np.arange(1, self.order + 1), count * n),
                coefficient=self.array(0.05, 0.45, count * self.order * n),
            )
            chance["pre_study_stages"] = tuple(
                PreStudyStage(id=-lag, start_date=start, end_date=end, season_id=start.month - 1)
                for lag, (start, end) in enumerate(PAST[: self.past], 1)
            )
        if "annual" in self.has:
            chance["annual_components"] = sce.AnnualComponents(
                hydro_id=np.repeat(list(self.plants), count),
                stage_id=np.tile(np.arange(count), n),
                annual_coefficient=self.array(-0.2, 0.3, count * n),
                annual_mean_m3s=self.array(12.0, 18.0, count * n),
                annual_std_m3s=self.array(3.0, 6.0, count * n),
            )
        if "blocks" in self.has:
            chance["load_factors"] = tuple(
                sce.LoadFactors(bus_id=b, stage_id=t, block_factors=self.factors())
                for b in self.buses
                for t in range(count)
            )
        if self.sources:
            chance["source_stats"] = sce.SourceStats(
                ncs_id=np.zeros(count),
                stage_id=np.arange(count),
                mean=self.array(0.3, 0.7, count),
                std=self.array(0.05, 0.3, count),
            )
        if "correlation" in self.has:
            pull = self.number(0.2, 0.7)
            matrix = np.where(np.eye(n) > 0.0, 1.0, pull)
            group = sce.CorrelationGroup(
                name="river",
                entities=tuple(sce.CorrelationEntity(type="inflow", id=h) for h in self.plants),
                matrix=tuple(map(tuple, matrix.tolist())),
            )
            profile = sce.CorrelationProfile(correlation_groups=(group,))
            chance["correlation"] = sce.Correlation(method="spectral", profiles={"default": profile})
        return chance

    def factors(self) -> tuple[sce.BlockFactor, ...]:
        return tuple(
            sce.BlockFactor(block_id=b.id, factor=self.number(0.7, 1.3)) for b in self.stages[0].blocks
        )

    def demands(self) -> dict[str, Any]:
        """User constraints, and rows that change bounds and penalties by stage and block."""
        count, found = len(self.stages), {}
        all_stages = np.arange(count)
        if "generic" in self.has:
            soft = con.Slack(enabled=True, penalty=self.number(50.0, 400.0))
            found["generic_constraints"] = (
                con.GenericConstraint(
                    id=3,
                    name="both",
                    expression="thermal_generation(1) + 0.7 * hydro_generation(0)",
                    slack=soft,
                ),
                con.GenericConstraint(
                    id=5, name="flow", expression="2 * hydro_outflow(1) - line_exchange(0)", slack=soft
                ),
            )
            found["generic_bounds"] = con.GenericBounds(
                constraint_id=np.repeat([3, 5], count),
                stage_id=np.tile(all_stages, 2),
                bound_lower=np.concatenate([np.full(count, np.nan), self.array(15.0, 30.0, count)]),
                bound_upper=np.concatenate([self.array(15.0, 25.0, count), np.full(count, np.nan)]),
            )
        rows: dict[str, Any] = {}
        if "withdrawal" in self.has:
            rows["water_withdrawal_m3s"] = self.array(0.5, 3.0, count)
        if "overrides" in self.has:
            rows["max_turbined_m3s"] = self.array(10.0, 20.0, count)
            rows["max_storage_hm3"] = self.array(12.0, 30.0, count)
            rows["min_outflow_m3s"] = self.array(1.0, 9.0, count)
            found["thermal_bounds"] = con.ThermalBounds(
                thermal_id=np.full(count, 1),
                stage_id=all_stages,
                max_generation_mw=self.array(5.0, 9.0, count),
                cost_per_mwh=self.array(30.0, 90.0, count),
            )
            found["line_bounds"] = con.LineBounds(
                line_id=np.zeros(count), stage_id=all_stages, direct_mw=self.array(3.0, 9.0, count)
            )
            found["hydro_penalties"] = con.HydroPenaltyTable(
                hydro_id=np.full(count, 2),
                stage_id=all_stages,
                outflow_violation_below_cost=self.array(50.0, 90.0, count),
            )
        if "tables" in self.has:
            found |= self.tables()
        if self.has & {"by_block", "block_costs"}:
            found |= self.by_block()
        if rows:
            plant = len(self.plants) - 1
            found["hydro_bounds"] = con.HydroBounds(
                hydro_id=np.full(count, plant), stage_id=all_stages, **rows
            )
        return found

    def tables(self) -> dict[str, Any]:
        """A row in every table of bounds and penalties, those of blocks for the last block."""
        count, block = len(self.stages), self.stages[0].blocks[-1].id
        when = {"stage_id": np.arange(count)}
        there = when | {"block_id": np.full(count, block)}

        def own(name: str, id: int = 0) -> dict[str, Any]:
            return {name: np.full(count, id)}

        found: dict[str, Any] = {
            "unit_group_bounds": con.UnitGroupBounds(
                **own("hydro_id", 1),
                **own("hydro_unit_group_id"),
                **there,
                max_turbined_m3s=self.array(9.0, 20.0, count),
                min_generation_mw=self.array(1.0, 4.0, count),
            ),
            "bus_penalties": con.BusPenaltyTable(
                **own("bus_id"), **when, excess_cost=self.array(2.0, 4.0, count)
            ),
            "line_penalties": con.LinePenaltyTable(
                **own("line_id"), **when, exchange_cost=self.array(1.0, 4.0, count)
            ),
        }
        if "overrides" not in self.has:
            found["thermal_bounds"] = con.ThermalBounds(
                **own("thermal_id", 2),
                **there,
                min_generation_mw=self.array(1.0, 3.0, count),
                max_generation_mw=self.array(4.0, 9.0, count),
            )
            found["line_bounds"] = con.LineBounds(
                **own("line_id"), **there, reverse_mw=self.array(2.0, 7.0, count)
            )
        if "overrides" not in self.has and "withdrawal" not in self.has:
            found["hydro_bounds"] = con.HydroBounds(
                **own("hydro_id", len(self.plants) - 1),
                **there,
                min_outflow_m3s=self.array(5.0, 15.0, count),
                max_outflow_m3s=self.array(20.0, 30.0, count),
                min_spillage_m3s=self.array(0.0, 1.0, count),
                max_turbined_m3s=self.array(12.0, 18.0, count),
            )
        if "contracts" in self.has:
            found["contract_bounds"] = con.ContractBounds(
                **own("contract_id"),
                **there,
                max_mw=self.array(3.0, 6.0, count),
                price_per_mwh=self.array(20.0, 60.0, count),
            )
        if "pumping" in self.has:
            found["pumping_bounds"] = con.PumpingBounds(
                **own("pumping_station_id"), **there, min_m3s=self.array(1.0, 2.0, count)
            )
        if self.sources:
            found["source_bounds"] = con.SourceBounds(
                **own("ncs_id", 1), **when, available_generation_mw=self.array(3.0, 7.0, count)
            )
            found["source_penalties"] = con.SourcePenaltyTable(
                **own("ncs_id"), **when, curtailment_cost=self.array(0.1, 0.4, count)
            )
            found["source_factors"] = tuple(
                sce.SourceFactors(ncs_id=r, stage_id=t, block_factors=self.factors())
                for r in self.sources
                for t in range(count)
            )
        return found

    def by_block(self) -> dict[str, Any]:
        """Limits of their own in every block, of entities that have others, or none, in the stage's row."""
        count, blocks = len(self.stages), len(self.stages[0].blocks)

        def rows(ids: dict[str, tuple[int, ...]], **columns: tuple[float, float]) -> dict[str, Any]:
            """Per entity and stage a row with a null block and one for each block, with values here and there."""
            entities = len(next(iter(ids.values())))
            number = entities * count * (blocks + 1)
            whole = np.arange(number) % (blocks + 1) == 0
            found: dict[str, Any] = {
                name: np.repeat(values, count * (blocks + 1)) for name, values in ids.items()
            }
            found["stage_id"] = np.tile(np.repeat(np.arange(count), blocks + 1), entities)
            found["block_id"] = np.where(whole, NO_ID, np.tile(np.arange(-1, blocks), entities * count))
            for name, (low, high) in columns.items():
                kept = self.rng.uniform(size=number) < np.where(whole, 0.5, 0.8)
                found[name] = np.where(kept, self.array(low, high, number), np.nan)
            return found

        plants = tuple(self.plants)
        thermals = tuple(self.thermals)[2 if "anticipated" in self.has else 0 :]  # those are decided ahead
        limits: dict[str, Any] = {
            "thermal_bounds": con.ThermalBounds(
                **rows(
                    {"thermal_id": thermals},
                    min_generation_mw=(0.0, 3.0),
                    max_generation_mw=(6.0, 15.0),
                    **({"cost_per_mwh": (20.0, 90.0)} if "block_costs" in self.has else {}),
                )
            ),
            "line_bounds": con.LineBounds(
                **rows({"line_id": (0,)}, direct_mw=(3.0, 15.0), reverse_mw=(3.0, 15.0))
            ),
            "hydro_bounds": con.HydroBounds(
                **rows(
                    {"hydro_id": plants},
                    max_turbined_m3s=(15.0, 30.0),
                    min_outflow_m3s=(1.0, 15.0),
                    max_outflow_m3s=(20.0, 50.0),
                    min_spillage_m3s=(0.0, 0.5),
                    max_spillage_m3s=(60.0, 90.0),
                )
            ),
            "unit_group_bounds": con.UnitGroupBounds(
                **rows(
                    {"hydro_id": plants, "hydro_unit_group_id": (0,) * len(plants)},
                    min_turbined_m3s=(0.0, 3.0),
                    min_generation_mw=(0.0, 3.0),
                    max_generation_mw=(9.0, 20.0),
                )
            ),
        }
        if "contracts" in self.has:
            limits["contract_bounds"] = con.ContractBounds(
                **rows(
                    {"contract_id": (0,)}, min_mw=(0.0, 2.0), max_mw=(4.0, 8.0), price_per_mwh=(30.0, 90.0)
                )
            )
        if "pumping" in self.has:
            limits["pumping_bounds"] = con.PumpingBounds(
                **rows({"pumping_station_id": (0,)}, min_m3s=(0.0, 1.0), max_m3s=(3.0, 7.0))
            )
        return limits


FIRSTS = [date(2024, 1, 1), *(date(2023, month, 1) for month in range(12, 0, -1))]
PAST = tuple(zip(FIRSTS[1:], FIRSTS[:-1], strict=True))
"""The months before the study, the last first."""


def random_case(
    seed: int,
    *features: str,
    method: str = "penalty",
    stages: int = 3,
    openings: int = 3,
    plants: int = 3,
    iterations: int = 30,
    passes: int = 2,
) -> Case:
    """The system of that seed with these features (of `FEATURES`)."""
    unknown = set(features) - set(FEATURES)
    assert not unknown, unknown
    d = Drawn(seed, frozenset(features), stages, openings, plants)
    system = d.system()
    observed = tuple(
        InflowObservation(hydro_id=h, start_date=start, end_date=end, value_m3s=d.number(6.0, 30.0))
        for h in d.plants
        for start, end in PAST[: d.past]
    )
    costs = {
        "spillage_cost": d.number(0.01, 0.1),
        "turbined_cost": d.number(0.01, 0.1),
        "diversion_cost": d.number(0.1, 0.4),
        "inflow_nonnegativity_cost": d.number(2000.0, 3000.0),
        "outflow_violation_below_cost": d.number(200.0, 400.0),
        "outflow_violation_above_cost": d.number(200.0, 400.0),
        "turbined_violation_below_cost": d.number(200.0, 400.0),
        "generation_violation_below_cost": d.number(200.0, 400.0),
        "evaporation_violation_pos_cost": d.number(800.0, 900.0),
        "evaporation_violation_neg_cost": d.number(900.0, 999.0),
        "water_withdrawal_violation_pos_cost": d.number(800.0, 900.0),
        "water_withdrawal_violation_neg_cost": d.number(900.0, 999.0),
    }
    drawn = Case(
        name=f"random {seed}",
        config=config(method, passes=passes, iterations=iterations, tree_seed=seed + 1),
        penalties=penalties(**costs),
        policy_graph=PolicyGraph(
            type="finite_horizon", annual_discount_rate=d.number(0.05, 0.3) if "discount" in d.has else 0.0
        ),
        stages=d.stages,
        season_definitions=MONTHS,
        initial_conditions=InitialConditions(
            storage=tuple(
                InitialStorage(hydro_id=plant.id, value_hm3=d.number(4.0, 7.5)) for plant in system["hydros"]
            ),
            filling_storage=(),
            recent_observations=observed,
            past_defluences=tuple(
                PastDefluence(
                    hydro_id=h,
                    start_date=start,
                    end_date=end,
                    # Cobre spreads it over the first stage's blocks, whenever it arrives.
                    value_m3s=d.number(5.0, 20.0) * ("chronological" not in d.has or "blocks" not in d.has),
                )
                for h in d.plants
                for start, end in PAST[: 1 if "travel" in d.has and h != d.plants[-1] else 0]
            ),
        ),
        **system,
        **d.chance(),
        **d.demands(),
    )
    case = with_phases(drawn, d)
    if "tree" in d.has:
        return tree(case, seed)
    return recombining(case, seed) if "recombining" in d.has else case


def with_phases(case: Case, d: Drawn) -> Case:
    """The first plant fills until the third stage; two thermal plants are decided one and two stages ahead."""
    start = case.initial_conditions
    if "filling" in d.has:
        first, dead = case.hydros[0], d.number(6.0, 8.0)
        rate = 1.3 * dead / (0.0036 * sum(stage.hours for stage in case.stages[:2]))
        first = replace(
            first,
            filling=Filling(start_stage_id=0, filling_min_rate_m3s=rate),
            entry_stage_id=2,
            reservoir=replace(first.reservoir, min_storage_hm3=dead),
        )
        start = replace(
            start,
            storage=start.storage[1:],
            filling_storage=(InitialStorage(hydro_id=first.id, value_hm3=d.number(1.0, 2.0)),),
        )
        case = replace(case, hydros=(first, *case.hydros[1:]))
    if "anticipated" in d.has:
        leads = {plant.id: lead for lead, plant in enumerate(case.thermals[:2], 1)}
        past = tuple(
            AnticipatedCommitment(
                thermal_id=thermal,
                start_date=stage.start_date,
                end_date=stage.end_date,
                value_mw=d.number(1.0, 4.0),
            )
            for thermal, lead in leads.items()
            for stage in case.stages[:lead]
        )
        start = replace(start, past_anticipated_commitments=past)
        thermals = tuple(
            replace(
                plant,
                generation=replace(plant.generation, min_mw=0.0),
                anticipated_config=AnticipatedStages(lead_stages=leads[plant.id])
                if plant.id in leads
                else None,
            )
            for plant in case.thermals
        )
        case = replace(case, thermals=thermals)
    return replace(case, initial_conditions=start)
