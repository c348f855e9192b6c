"""Each feature of the stage LP against an answer worked out by hand.

The base case: 100 h per stage, so a flow of 1 m³/s is 0.36 hm³; productivity 1; 20 m³/s of inflow; 50 hm³
at the start; 80 MW of load, 50 $/MWh of fuel, 1000 $/MWh of deficit. What is not said otherwise costs
fuel: water is worth 50·100/0.36 $/hm³, and all of it can be turbined in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_case import (
    LONG_AGO,
    bus,
    changed,
    config,
    hydro,
    inflows,
    loads,
    one_reservoir,
    penalties,
    productivity,
    stages,
    thermal,
)

from pycobre.hydro.build import build_model
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import (
    FphaPlanes,
    GenericBounds,
    GenericConstraint,
    Geometry,
    HydroBounds,
    HydroPenaltyTable,
    LineBounds,
    Slack,
    ThermalBounds,
    UnitGroupBounds,
)
from pycobre.hydro.model.horizon import PolicyGraph
from pycobre.hydro.model.production import (
    FphaConfig,
    SeasonalProduction,
    SeasonModel,
    StageRange,
    StageRangeProduction,
)
from pycobre.hydro.model.scenarios import BlockFactor, LoadFactors, SourceFactors, SourceStats
from pycobre.hydro.model.system import (
    DeficitSegment,
    Diversion,
    EnergyContract,
    Evaporation,
    HydroPenaltyOverrides,
    Line,
    LineCapacity,
    NonControllableSource,
    Outflow,
    PowerLimits,
    PumpingFlow,
    PumpingStation,
    Reservoir,
    UnitGroup,
)
from pycobre.problem.extensive import solve_extensive_form

HOURS = 100.0
TAU = 0.36


def value(case: Case) -> float:
    return solve_extensive_form(build_model(case).problem)


def test_all_water_replaces_fuel() -> None:
    flow = 2 * 20.0 + 50.0 / TAU  # more than two stages of 50 m³/s can take
    assert flow > 100.0
    assert value(one_reservoir()) == pytest.approx(2 * (80 - 50) * HOURS * 50, rel=1e-12)


def test_scarce_water_is_used_to_the_last_drop() -> None:
    case = one_reservoir(hydros=(hydro(0, volume=10.0),))
    case = changed(case, initial_conditions=replace(case.initial_conditions, storage=()))
    assert value(case) == pytest.approx((2 * 80 - 2 * 20) * HOURS * 50, rel=1e-12)


def scarce(**changes: Any) -> Case:
    """The base case without initial storage: 20 MW of hydro on average, 6000 MWh of fuel in two stages."""
    case = one_reservoir(**changes)
    return changed(case, initial_conditions=replace(case.initial_conditions, storage=()))


SCARCE = (2 * 80 - 2 * 20) * HOURS * 50


def test_max_generation_caps_the_flow_of_a_plant_with_constant_productivity() -> None:
    plant = hydro(0, max_turbined_m3s=50.0, max_generation_mw=30.0)
    case = one_reservoir(hydros=(plant,), production_models=productivity(plant, value=2.0))
    spilled = (
        50.0 / TAU + 40.0 - 2 * 15.0 - 100.0 / TAU
    )  # 15 m³/s make 30 MW; what the tank cannot hold is spilled
    assert spilled < 0
    assert value(case) == pytest.approx(2 * 50 * HOURS * 50, rel=1e-12)


def test_spillage_and_turbined_flow_cost_per_hour_of_flow() -> None:
    case = scarce(penalties=penalties(turbined_cost=3.0))
    assert value(case) == pytest.approx(SCARCE + 2 * 20 * HOURS * 3.0, rel=1e-12)


def test_cascade_water_is_used_twice() -> None:
    up, down = hydro(0, downstream_id=1), hydro(1)
    case = scarce(hydros=(up, down))
    case = changed(case, inflow_stats=inflows(case.stages, {0: (20.0, 0.0), 1: (0.0, 0.0)}))
    assert value(case) == pytest.approx((2 * 80 - 2 * 40) * HOURS * 50, rel=1e-12)


def test_diverted_water_arrives_elsewhere_at_a_cost() -> None:
    up = hydro(0, most=0.0, diversion=Diversion(downstream_id=1, max_flow_m3s=8.0))
    case = scarce(hydros=(up, hydro(1)))
    case = changed(case, inflow_stats=inflows(case.stages, {0: (8.0, 0.0), 1: (0.0, 0.0)}))
    expected = (2 * 80 - 2 * 8) * HOURS * 50 + 2 * 8 * HOURS * 0.1
    assert value(case) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "cost"),
    [
        ({"outflow": Outflow(min_outflow_m3s=25.0)}, 2 * 5 * HOURS * 500),
        ({"outflow": Outflow(min_outflow_m3s=0.0, max_outflow_m3s=15.0)}, 0.0),
        ({"min_turbined_m3s": 30.0}, 2 * 10 * HOURS * 500),
        ({"min_generation_mw": 30.0}, 2 * 10 * HOURS * 500),
    ],
    ids=["outflow below", "outflow above", "turbined below", "generation below"],
)
def test_soft_limits_cost_their_penalty(changes: dict[str, Any], cost: float) -> None:
    case = scarce(hydros=(hydro(0, volume=0.0, **changes),))
    if "outflow" in changes and changes["outflow"].max_outflow_m3s is not None:
        cost = 2 * 5 * HOURS * 500  # the tank holds nothing: 20 m³/s must leave
    assert value(case) == pytest.approx(SCARCE + cost, rel=1e-12)


def test_a_plants_own_penalty_and_the_stages_replace_the_global_one() -> None:
    plant = hydro(
        0,
        volume=0.0,
        outflow=Outflow(min_outflow_m3s=25.0),
        penalties=HydroPenaltyOverrides(outflow_violation_below_cost=7.0),
    )
    case = scarce(hydros=(plant,))
    case = changed(
        case,
        hydro_penalties=HydroPenaltyTable(
            hydro_id=np.array([0]), stage_id=np.array([1]), outflow_violation_below_cost=np.array([11.0])
        ),
    )
    assert value(case) == pytest.approx(SCARCE + 5 * HOURS * (7.0 + 11.0), rel=1e-12)


def test_withdrawal_takes_water_or_pays() -> None:
    case = scarce(hydros=(hydro(0, volume=0.0),))
    taken = HydroBounds(
        hydro_id=np.array([0, 0]), stage_id=np.array([0, 1]), water_withdrawal_m3s=np.array([5.0, 26.0])
    )
    expected = (2 * 80 - 15) * HOURS * 50 + 6 * HOURS * 500
    assert value(changed(case, hydro_bounds=taken)) == pytest.approx(expected, rel=1e-12)


def test_a_cheap_shortfall_of_withdrawal_makes_no_water() -> None:
    """All 5 m³/s may be left in the river at 1 $ each, and not one more, though thermal power costs 50 $."""
    case = changed(
        scarce(hydros=(hydro(0, volume=0.0),)), penalties=penalties(water_withdrawal_violation_cost=1.0)
    )
    taken = HydroBounds(
        hydro_id=np.array([0, 0]), stage_id=np.array([0, 1]), water_withdrawal_m3s=np.array([5.0, 5.0])
    )
    expected = SCARCE + 2 * 5 * HOURS * 1.0
    assert value(changed(case, hydro_bounds=taken)) == pytest.approx(expected, rel=1e-12)


def test_returned_water_may_be_refused_and_not_more() -> None:
    """5 m³/s are returned to a plant that cannot hold or turbine them: refusing is cheaper than spilling."""
    plant = hydro(0, volume=0.0, max_turbined_m3s=10.0)
    cost = penalties(water_withdrawal_violation_cost=1.0, spillage_cost=9.0)
    case = changed(scarce(hydros=(plant,)), penalties=cost)
    given = HydroBounds(
        hydro_id=np.array([0, 0]), stage_id=np.array([0, 1]), water_withdrawal_m3s=np.array([-5.0, -5.0])
    )
    expected = 2 * HOURS * ((80 - 10) * 50.0 + 10 * 9.0 + 5 * 1.0)
    assert value(changed(case, hydro_bounds=given)) == pytest.approx(expected, rel=1e-12)


def test_evaporation_follows_the_surface_at_mean_storage() -> None:
    """A(v) = v/10 km²; one stage of 31 days, storage fixed at 50 hm³ by its bounds: 5 km² under 100 mm."""
    plant = hydro(
        0,
        reservoir=Reservoir(min_storage_hm3=50.0, max_storage_hm3=50.0),
        evaporation=Evaporation(coefficients_mm=(100.0,) * 12),
    )
    geometry = Geometry(
        hydro_id=np.array([0, 0]),
        volume_hm3=np.array([0.0, 100.0]),
        height_m=np.array([0.0, 10.0]),
        area_km2=np.array([0.0, 10.0]),
    )
    case = one_reservoir(stages(1), hydros=(plant,), geometry=geometry)
    lost = 100.0 * 5.0 / (3.6 * 24 * 31)  # m³/s: mm·km² over the calendar hours of January
    assert value(case) == pytest.approx((80 - (20 - lost)) * HOURS * 50, rel=1e-12)


def test_a_plane_limits_generation_by_flow_and_mean_storage() -> None:
    """generation ≤ 2 + 0.1·(v + v_in)/2 + 0.5·q, with the tank pinned at 50 hm³."""
    plant = hydro(0, reservoir=Reservoir(min_storage_hm3=50.0, max_storage_hm3=50.0))
    planes = FphaPlanes(
        hydro_id=np.array([0]),
        plane_id=np.array([0]),
        gamma_0=np.array([4.0]),
        gamma_v=np.array([0.1]),
        gamma_q=np.array([0.5]),
        gamma_s=np.array([-0.25]),
        kappa=np.array([0.5]),
    )
    span = StageRange(start_stage_id=0, model="fpha", fpha_config=FphaConfig(source="precomputed"))
    model = StageRangeProduction(hydro_id=0, stage_ranges=(span,))
    case = one_reservoir(stages(1), hydros=(plant,), production_models=(model,), fpha_planes=planes)
    assert value(case) == pytest.approx((80 - (2 + 5 + 10)) * HOURS * 50, rel=1e-12)


def test_productivity_by_stage_and_by_season() -> None:
    spans = (
        StageRange(
            start_stage_id=0, end_stage_id=0, model="constant_productivity", productivity_mw_per_m3s=1.0
        ),
        StageRange(start_stage_id=1, model="constant_productivity", productivity_mw_per_m3s=0.5),
    )
    by_stage = StageRangeProduction(hydro_id=0, stage_ranges=spans)
    seasons = tuple(
        SeasonModel(season_id=s, model="constant_productivity", productivity_mw_per_m3s=p)
        for s, p in ((0, 1.0), (1, 0.5))
    )
    by_season = SeasonalProduction(hydro_id=0, default_model="constant_productivity", seasons=seasons)
    for model in (by_stage, by_season):
        case = scarce(hydros=(hydro(0, volume=0.0),), production_models=(model,))
        assert value(case) == pytest.approx((80 - 20 + 80 - 10) * HOURS * 50, rel=1e-12)


def test_lines_carry_what_they_can() -> None:
    line = Line(
        id=0,
        name="L",
        operational_start_date=LONG_AGO,
        source_bus_id=0,
        target_bus_id=1,
        capacity=LineCapacity(direct_mw=30.0, reverse_mw=10.0),
    )
    case = scarce(hydros=(hydro(0, volume=0.0),), buses=(bus(0), bus(1)), lines=(line,))
    case = changed(
        case, load_stats=loads(case.stages, {0: 0.0, 1: 50.0}), thermals=(thermal(0, 50.0, bus=0),)
    )
    per_stage = HOURS * (10 * 50 + 20 * 1000 + 30 * 0.5)
    assert value(case) == pytest.approx(2 * per_stage, rel=1e-12)
    narrow = LineBounds(line_id=np.array([0]), stage_id=np.array([1]), direct_mw=np.array([20.0]))
    tight = HOURS * (30 * 1000 + 20 * 0.5)
    assert value(changed(case, line_bounds=narrow)) == pytest.approx(per_stage + tight, rel=1e-12)


def test_deficit_segments_of_a_bus_replace_the_global_ones() -> None:
    segments = (DeficitSegment(depth_mw=5.0, cost=100.0), DeficitSegment(cost=400.0))
    case = one_reservoir(
        stages(1), hydros=(), buses=(bus(0, deficit_segments=segments),), thermals=(thermal(0, 50.0, 60.0),)
    )
    assert value(case) == pytest.approx(HOURS * (60 * 50 + 5 * 100 + 15 * 400), rel=1e-12)


def test_thermal_bounds_and_costs_by_stage_and_block() -> None:
    case = one_reservoir(stages(1, hours=(40.0, 60.0)), hydros=())
    table = ThermalBounds(
        thermal_id=np.array([0, 0]),
        stage_id=np.array([0, 0]),
        block_id=np.array([-(2**31), 1]),
        max_generation_mw=np.array([70.0, 50.0]),
        cost_per_mwh=np.array([20.0, np.nan]),
    )
    expected = 40 * (70 * 20 + 10 * 1000) + 60 * (50 * 20 + 30 * 1000)
    assert value(changed(case, thermal_bounds=table)) == pytest.approx(expected, rel=1e-12)


def test_load_factors_by_block() -> None:
    factors = LoadFactors(bus_id=0, stage_id=0, block_factors=(BlockFactor(block_id=1, factor=0.5),))
    case = one_reservoir(stages(1, hours=(40.0, 60.0)), hydros=(), load_factors=(factors,))
    assert value(case) == pytest.approx(50 * (40 * 80 + 60 * 40), rel=1e-12)


def wind(**more: Any) -> NonControllableSource:
    return NonControllableSource(
        id=0, name="W", operational_start_date=LONG_AGO, bus_id=0, max_generation_mw=100.0, **more
    )


def test_sources_are_rewarded_and_curtailed_or_must_run() -> None:
    stats = SourceStats(
        ncs_id=np.array([0]), stage_id=np.array([0]), mean=np.array([0.9]), std=np.array([0.0])
    )
    factor = SourceFactors(ncs_id=0, stage_id=0, block_factors=(BlockFactor(block_id=0, factor=0.95),))
    case = one_reservoir(
        stages(1), hydros=(), non_controllable_sources=(wind(),), source_stats=stats, source_factors=(factor,)
    )
    assert value(case) == pytest.approx(-0.005 * 80 * HOURS, rel=1e-12)  # 85.5 MW available, 80 wanted
    forced = changed(case, non_controllable_sources=(wind(allow_curtailment=False),))
    assert value(forced) == pytest.approx(HOURS * (5.5 * 1.0 - 0.005 * 85.5), rel=1e-12)


def test_contracts_buy_and_sell() -> None:
    def contract(id: int, kind: Any, price: float) -> EnergyContract:
        return EnergyContract(
            id=id,
            name=f"K{id}",
            operational_start_date=LONG_AGO,
            bus_id=0,
            type=kind,
            price_per_mwh=price,
            limits=PowerLimits(min_mw=0.0, max_mw=10.0),
        )

    case = one_reservoir(stages(1), hydros=())
    bought = changed(case, energy_contracts=(contract(0, "import", 30.0),))
    assert value(bought) == pytest.approx(HOURS * (70 * 50 + 10 * 30), rel=1e-12)
    sold = changed(case, energy_contracts=(contract(0, "export", -60.0),))
    assert value(sold) == pytest.approx(HOURS * (90 * 50 - 10 * 60), rel=1e-12)


def test_pumping_moves_water_and_draws_power() -> None:
    """A low plant without turbines holds the water; pumped up, 1 m³/s makes 1 MW and costs 0.2."""
    station = PumpingStation(
        id=0,
        name="P",
        operational_start_date=LONG_AGO,
        bus_id=0,
        source_hydro_id=1,
        destination_hydro_id=0,
        consumption_mw_per_m3s=0.2,
        flow=PumpingFlow(min_m3s=0.0, max_m3s=5.0),
    )
    case = scarce(hydros=(hydro(0), hydro(1, most=0.0)), pumping_stations=(station,))
    case = changed(case, inflow_stats=inflows(case.stages, {0: (0.0, 0.0), 1: (20.0, 0.0)}))
    spilled = 0.0
    assert value(case) == pytest.approx(2 * HOURS * (80 - 5 * 0.8) * 50 + spilled, rel=1e-12)


def test_discounting_by_calendar_days() -> None:
    case = one_reservoir(
        hydros=(), policy_graph=PolicyGraph(type="finite_horizon", annual_discount_rate=0.12)
    )
    d = 1.12 ** (-31 / 365.25)
    assert value(case) == pytest.approx(80 * HOURS * 50 * (1 + d), rel=1e-12)
    dear = replace(case.stages[0], annual_discount_rate_override=0.5)
    case = changed(case, stages=(dear, case.stages[1]))
    assert value(case) == pytest.approx(80 * HOURS * 50 * (1 + 1.5 ** (-31 / 365.25)), rel=1e-12)


def test_a_plant_that_does_not_exist_yet_lets_its_water_pass() -> None:
    up, down = hydro(0, downstream_id=1, entry_stage_id=1), hydro(1, volume=0.0)
    case = scarce(hydros=(up, down))
    case = changed(case, inflow_stats=inflows(case.stages, {0: (20.0, 0.0), 1: (0.0, 0.0)}))
    expected = HOURS * 50 * ((80 - 20) + (80 - 40))
    assert value(case) == pytest.approx(expected, rel=1e-12)
    gone = changed(case, thermals=(thermal(0, 50.0, exit_stage_id=1),))
    assert value(gone) == pytest.approx(HOURS * (50 * 60 + 1000 * 40), rel=1e-12)


def test_chronological_blocks_have_a_balance_each() -> None:
    """A small tank between two blocks of 50 h: water of the first block serves the second only through it."""
    plant = hydro(0, volume=1.8, outflow=Outflow(min_outflow_m3s=0.0))
    factors = LoadFactors(bus_id=0, stage_id=0, block_factors=(BlockFactor(block_id=0, factor=0.01),))
    parallel = scarce(periods=stages(1, hours=(50.0, 50.0)), hydros=(plant,), load_factors=(factors,))
    one_block = 0.0036 * 50
    # 0.8 MW of load in the first block; parallel blocks share 40 m³/s·block freely.
    assert value(parallel) == pytest.approx(50 * 50 * (0.8 + 80 - 40), rel=1e-9)
    ordered = changed(parallel, stages=stages(1, hours=(50.0, 50.0), block_mode="chronological"))
    carried = 1.8 / one_block  # 10 m³/s over the second block
    kept = 20.0 + carried
    spilled = 20.0 - 0.8 - carried
    assert value(ordered) == pytest.approx(50 * (50 * (80 - kept) + 0.01 * spilled), rel=1e-9)


def test_unit_groups_feed_their_own_buses_within_the_plants_envelope() -> None:
    def group(id: int, at: int, most: float, least: float = 0.0) -> UnitGroup:
        return UnitGroup(
            id=id,
            name=f"g{id}",
            bus_id=at,
            min_turbined_m3s=least,
            max_turbined_m3s=most,
            min_generation_mw=0.0,
            max_generation_mw=most,
        )

    plant = replace(hydro(0), unit_groups=(group(0, 0, 20.0), group(1, 1, 30.0)))
    case = one_reservoir(stages(1), hydros=(plant,), buses=(bus(0), bus(1)))
    case = changed(case, load_stats=loads(case.stages, {0: 80.0, 1: 40.0}))
    assert value(case) == pytest.approx(HOURS * ((80 - 20) * 50 + (40 - 30) * 1000), rel=1e-12)
    tight = UnitGroupBounds(
        hydro_id=np.array([0]),
        hydro_unit_group_id=np.array([1]),
        stage_id=np.array([0]),
        max_turbined_m3s=np.array([5.0]),
    )
    limited = changed(case, unit_group_bounds=tight)
    assert value(limited) == pytest.approx(HOURS * ((80 - 20) * 50 + (40 - 5) * 1000), rel=1e-12)
    whole = HydroBounds(hydro_id=np.array([0]), stage_id=np.array([0]), max_turbined_m3s=np.array([25.0]))
    shared = changed(case, hydro_bounds=whole)
    assert value(shared) == pytest.approx(HOURS * (80 * 50 + (40 - 25) * 1000), rel=1e-12)


@pytest.mark.parametrize(
    ("expression", "bounds", "expected"),
    [
        ("thermal_generation(0)", {"bound_upper": 10.0}, lambda: HOURS * (10 * 50 + 70 * 1000)),
        (
            "2 * thermal_generation(0) - bus_deficit(0)",
            {"bound_upper": 0.0},
            lambda: 100 * (80 / 3 * 50 + 160 / 3 * 1000),
        ),
        ("thermal_generation(0) <= 20", {}, lambda: HOURS * (20 * 50 + 60 * 1000)),
        ("thermal_generation(0) <= 20", {"bound_upper": 5.0}, lambda: HOURS * (25 * 50 + 55 * 1000)),
        ("bus_excess(0)", {"bound_lower": 5.0}, lambda: HOURS * (85 * 50 + 5 * 1.0)),
    ],
)
def test_generic_constraints(
    expression: str, bounds: dict[str, float], expected: Callable[[], float]
) -> None:
    constraint = GenericConstraint(id=3, name="c", expression=expression, slack=Slack(enabled=False))
    table = GenericBounds(
        constraint_id=np.array([3]),
        stage_id=np.array([0]),
        **{name: np.array([number]) for name, number in bounds.items()},
    )
    case = one_reservoir(stages(1), hydros=(), generic_constraints=(constraint,), generic_bounds=table)
    assert value(case) == pytest.approx(expected(), rel=1e-12)


def test_the_slack_of_a_generic_constraint_costs_per_hour() -> None:
    constraint = GenericConstraint(
        id=3, name="c", expression="thermal_generation(0)", slack=Slack(enabled=True, penalty=40.0)
    )
    table = GenericBounds(constraint_id=np.array([3]), stage_id=np.array([0]), bound_upper=np.array([10.0]))
    case = one_reservoir(stages(1), hydros=(), generic_constraints=(constraint,), generic_bounds=table)
    assert value(case) == pytest.approx(HOURS * (80 * 50 + 70 * 40), rel=1e-12)


def test_negative_inflow_is_paid_for_with_the_penalty_method() -> None:
    case = scarce(hydros=(hydro(0, volume=0.0),), config=config("penalty"))
    case = changed(case, inflow_stats=inflows(case.stages, {0: (-3.0, 0.0)}))
    assert value(case) == pytest.approx(2 * HOURS * (80 * 50 + 3 * 1000.0), rel=1e-12)


def test_names_say_what_a_row_or_column_is() -> None:
    plants = (hydro(0), replace(hydro(1), name="H0"))
    case = one_reservoir(hydros=plants)
    template = build_model(case).problem.nodes[0].template
    assert "water_balance[H0#0]" in template.row_names
    assert "turbined[H0#1,0]" in template.col_names
    assert "load_balance[B0,0]" in template.row_names
    assert len(set(template.col_names)) == template.num_cols
    assert len(set(template.row_names)) == template.num_rows
