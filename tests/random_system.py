"""What there is in a system drawn at random: plants, lines, contracts, and their limits by stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from small_case import LONG_AGO, stages

from pycobre.hydro.model import constraints as con
from pycobre.hydro.model.horizon import CVaR, CVaRParameters, Stage, StateVariables
from pycobre.hydro.model.production import AngleReduction, FphaConfig, StageRange, StageRangeProduction
from pycobre.hydro.model.system import (
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


class DrawnSystem:
    """One system while it is drawn: what there is in it."""

    def __init__(self, seed: int, features: frozenset[str], count: int, openings: int, plants: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.has = features | ({"fitted"} if features & {"merged", "families"} else set())
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

    def travel_time(self) -> float:
        """Of chronological blocks at most the shortest: arrivals of several in one stage are not Cobre's."""
        hours = self.number(20.0, 110.0)
        if "chronological" not in self.has:
            return hours
        return min(hours, *(block.hours for block in self.stages[0].blocks))

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
            # Shorter than two stages: of three, Cobre drops what was on its way and arrives in the last.
            travel_time_hours=self.travel_time() if "travel" in self.has and h != last else None,
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
        if "merged" in self.has:
            system["fpha_plane_reduction"] = AngleReduction(tolerance_deg=self.number(2.0, 20.0))
        if "families" in self.has:
            system["tailrace_curves"] = self.families()
        return system

    def families(self) -> con.TailraceCurves:
        """Of the first plant, one of two pieces and one of one, around the level of the second plant's tank."""
        first, slope, bend, most = 225.0, self.number(0.05, 0.2), -0.0004, 40.0
        start = first + slope * most + bend * most**2
        return con.TailraceCurves(
            hydro_id=(0, 0, 0),
            family_id=(1, 1, 2),
            segment_id=(1, 2, 1),
            downstream_reference_level_m=(300.0, 300.0, 310.0),
            outflow_min_m3s=(0.0, most, 0.0),
            outflow_max_m3s=(most, 900.0, 700.0),
            coefficient_0=(first, start - 0.03 * most, self.number(227.0, 231.0)),
            coefficient_1=(slope, 0.03, self.number(0.02, 0.1)),
            coefficient_2=(bend, 0.0, -1e-5),
            coefficient_3=(0.0, 0.0, 1e-8),
            coefficient_4=(0.0, 0.0, -1e-12),
        )

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
