"""Small hydrothermal systems drawn at random, with the features that are asked for.

All numbers are drawn, so that optimal plans are unique for almost every seed, and everything that could be
short has a price, so that every stage has a plan. The same seed and features give the same case.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from small_case import LONG_AGO, MONTHS, config, penalties, stages

from pycobre.model import constraints as con
from pycobre.model import scenarios as sce
from pycobre.model.case import Case
from pycobre.model.horizon import CVaR, CVaRParameters, PolicyGraph, PreStudyStage, Stage, StateVariables
from pycobre.model.initial import InflowObservation, InitialConditions, InitialStorage
from pycobre.model.production import FphaConfig, StageRange, StageRangeProduction
from pycobre.model.system import (
    Bus,
    ConstantEfficiency,
    DeficitSegment,
    Diversion,
    EnergyContract,
    Evaporation,
    FactorLosses,
    Generation,
    Hydro,
    HydroPenaltyOverrides,
    Line,
    LineCapacity,
    NonControllableSource,
    Outflow,
    PolynomialTailrace,
    PowerLimits,
    PumpingFlow,
    PumpingStation,
    Reservoir,
    Thermal,
    UnitGroup,
)

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
    "wild",
    "fitted",
)


class Drawn:
    """One system while it is drawn."""

    def __init__(self, seed: int, features: frozenset[str], count: int, openings: int, plants: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.has = features
        hours = self.numbers(60.0, 300.0, 3 if "blocks" in features else 1)
        risk = CVaR(cvar=CVaRParameters(alpha=0.45, lambda_=0.35)) if "cvar" in features else "expectation"
        self.stages: tuple[Stage, ...] = stages(
            count,
            openings,
            hours,
            block_mode="chronological" if "chronological" in features else "parallel",
            risk_measure=risk,
            state_variables=StateVariables(storage=True, inflow_lags=bool(features & {"lags", "annual"})),
        )
        self.order = 2 if features & {"lags", "annual"} else 0
        self.past = 12 if "annual" in features else self.order
        self.plants = range(plants)
        self.thermals = range(5)
        self.buses = range(2)
        self.sources = range(2 if "sources" in features else 0)

    def number(self, low: float, high: float) -> float:
        return round(float(self.rng.uniform(low, high)), 4)

    def numbers(self, low: float, high: float, count: int) -> tuple[float, ...]:
        return tuple(self.number(low, high) for _ in range(count))

    def array(self, low: float, high: float, count: int) -> Any:
        return np.array(self.numbers(low, high, count))

    def hydro(self, h: int) -> Hydro:
        """Plants in a row; with `diversion` the first sends water past the second."""
        last = len(self.plants) - 1
        wet, limits = "evaporation" in self.has, "limits" in self.has
        flow, power = self.number(25.0, 60.0), self.number(20.0, 50.0)
        split = (0.6, 0.4) if "groups" in self.has and h % 2 == 0 else (1.0,)
        least = (self.number(1.0, 8.0), self.number(1.0, 6.0)) if limits else (0.0, 0.0)
        groups = tuple(
            UnitGroup(
                id=g,
                name=f"g{g}",
                bus_id=(h + g) % len(self.buses),
                min_turbined_m3s=least[0] * share,
                max_turbined_m3s=flow * share,
                min_generation_mw=least[1] * share,
                max_generation_mw=power * share,
            )
            for g, share in enumerate(split)
        )
        fpha = h == 0 and bool(self.has & {"fpha", "fitted"})
        fitted = fpha and "fpha" not in self.has
        capacity = self.number(20.0, 60.0)
        return Hydro(
            id=h,
            name=f"H{h}",
            operational_start_date=LONG_AGO,
            downstream_id=None if h == last else h + 1,
            reservoir=Reservoir(
                min_storage_hm3=self.number(1.0, 4.0), max_storage_hm3=capacity if h != 1 else 8.0
            ),
            outflow=Outflow(
                min_outflow_m3s=self.number(4.0, 20.0) if limits else 0.0,
                max_outflow_m3s=self.number(30.0, 60.0) if limits and h else None,
            ),
            generation=Generation(
                model="fpha" if fpha else "constant_productivity",
                min_turbined_m3s=0.0,
                max_turbined_m3s=flow,
                min_generation_mw=0.0,
                max_generation_mw=power,
            ),
            unit_groups=groups,
            diversion=Diversion(downstream_id=last, max_flow_m3s=self.number(5.0, 12.0))
            if "diversion" in self.has and h == 0 and last > 1
            else None,
            evaporation=Evaporation(coefficients_mm=self.numbers(20.0, 150.0, 12))
            if wet and h != 1
            else None,
            penalties=HydroPenaltyOverrides(spillage_cost=self.number(0.01, 0.3))
            if "overrides" in self.has and h == 0
            else None,
            entry_stage_id=1 if "entry" in self.has and h == 1 else None,
            tailrace=PolynomialTailrace(coefficients=(225.0, self.number(0.05, 0.2), -0.0004))
            if fitted
            else None,
            hydraulic_losses=FactorLosses(value=self.number(0.01, 0.04)) if fitted else None,
            efficiency=ConstantEfficiency(value=self.number(0.85, 0.95)) if fitted else None,
        )

    def production(self, h: int) -> StageRangeProduction:
        if h == 0 and self.has & {"fpha", "fitted"}:
            source = FphaConfig(source="precomputed" if "fpha" in self.has else "computed")
            span = StageRange(start_stage_id=0, model="fpha", fpha_config=source)
            return StageRangeProduction(hydro_id=h, stage_ranges=(span,))
        first, then = self.numbers(0.4, 1.1, 2)
        spans = [StageRange(start_stage_id=0, model="constant_productivity", productivity_mw_per_m3s=first)]
        if "overrides" in self.has:
            spans = [
                replace(spans[0], end_stage_id=0),
                replace(spans[0], start_stage_id=1, productivity_mw_per_m3s=then),
            ]
        return StageRangeProduction(hydro_id=h, stage_ranges=tuple(spans))

    def system(self) -> dict[str, Any]:
        hydros = tuple(self.hydro(h) for h in self.plants)
        thermals = tuple(
            Thermal(
                id=g,
                name=f"T{g}",
                operational_start_date=LONG_AGO,
                bus_id=g % len(self.buses),
                cost_per_mwh=self.number(20.0, 300.0),
                generation=PowerLimits(min_mw=self.number(0.0, 4.0), max_mw=self.number(10.0, 25.0)),
                exit_stage_id=2 if "entry" in self.has and g == 0 else None,
            )
            for g in self.thermals
        )
        own = (
            DeficitSegment(cost=self.number(400.0, 600.0), depth_mw=self.number(5.0, 10.0)),
            DeficitSegment(cost=self.number(900.0, 1500.0)),
        )
        buses = tuple(
            Bus(
                id=b,
                name=f"B{b}",
                operational_start_date=LONG_AGO,
                deficit_segments=own if "segments" in self.has and b == 0 else None,
            )
            for b in self.buses
        )
        line = Line(
            id=0,
            name="L",
            operational_start_date=LONG_AGO,
            source_bus_id=0,
            target_bus_id=1,
            capacity=LineCapacity(direct_mw=self.number(8.0, 25.0), reverse_mw=self.number(8.0, 25.0)),
            exchange_cost=self.number(0.1, 0.9),
        )
        system: dict[str, Any] = {
            "hydros": hydros,
            "thermals": thermals,
            "buses": buses,
            "lines": (line,),
            "production_models": tuple(self.production(h) for h in self.plants),
            "non_controllable_sources": tuple(
                NonControllableSource(
                    id=r,
                    name=f"W{r}",
                    operational_start_date=LONG_AGO,
                    bus_id=r % len(self.buses),
                    max_generation_mw=self.number(8.0, 20.0),
                    curtailment_cost=self.number(0.001, 0.02),
                    allow_curtailment=r == 0,
                )
                for r in self.sources
            ),
        }
        if "contracts" in self.has:
            system["energy_contracts"] = tuple(
                EnergyContract(
                    id=i,
                    name=f"C{i}",
                    operational_start_date=LONG_AGO,
                    bus_id=i,
                    type=kind,
                    price_per_mwh=price,
                    limits=PowerLimits(min_mw=self.number(0.0, 2.0), max_mw=self.number(4.0, 9.0)),
                )
                for i, (kind, price) in enumerate(
                    (("import", self.number(40.0, 200.0)), ("export", -self.number(15.0, 60.0)))
                )
            )
        if "pumping" in self.has:
            system["pumping_stations"] = (
                PumpingStation(
                    id=0,
                    name="P",
                    operational_start_date=LONG_AGO,
                    bus_id=1,
                    source_hydro_id=len(self.plants) - 1,
                    destination_hydro_id=0,
                    consumption_mw_per_m3s=self.number(0.1, 0.4),
                    flow=PumpingFlow(min_m3s=self.number(0.0, 1.0), max_m3s=self.number(4.0, 9.0)),
                ),
            )
        if "fpha" in self.has:
            system["fpha_planes"] = self.planes(hydros[0])
        if self.has & {"fpha", "fitted"}:
            system["energy_productivity"] = self.energy(hydros[0])
        if self.has & {"evaporation", "fitted"}:
            volumes = np.array([0.0, 6.0, 15.0, 35.0, 70.0])
            system["geometry"] = con.Geometry(
                hydro_id=np.repeat(list(self.plants), volumes.size),
                volume_hm3=np.tile(volumes, len(self.plants)),
                height_m=np.tile([300.0, 306.0, 312.0, 320.0, 330.0], len(self.plants)),
                area_km2=np.concatenate([np.sort(self.array(1.0, 12.0, volumes.size)) for _ in self.plants]),
            )
        return system

    def planes(self, plant: Hydro) -> con.FphaPlanes:
        count = 3
        return con.FphaPlanes(
            hydro_id=np.full(count, plant.id),
            plane_id=np.arange(count),
            gamma_0=self.array(0.5, 6.0, count),
            gamma_v=self.array(0.02, 0.2, count),
            gamma_q=np.array([0.95, 0.7, 0.4]) + self.array(0.0, 0.1, count),
            gamma_s=-self.array(0.001, 0.02, count),
            kappa=self.array(0.9, 1.0, count),
        )

    def energy(self, plant: Hydro) -> con.EnergyProductivity:
        """Of reports of stored energy, which Cobre wants of plants with planes."""
        count = len(self.stages)
        return con.EnergyProductivity(
            hydro_id=np.full(count, plant.id),
            stage_id=np.arange(count),
            equivalent_productivity_mw_per_m3s=np.full(count, 0.8),
            reference_outflow_m3s=np.full(count, 20.0),
            specific_productivity_mw_per_m3s_per_m=np.full(count, 0.01),
        )

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
    return Case(
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
        ),
        **system,
        **d.chance(),
        **d.demands(),
    )
