"""Thermal generation decided stages ahead. The costs are those that Cobre 0.18 gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_case import config, loads, one_reservoir, stages, thermal

from pycobre.errors import CaseError
from pycobre.hydro import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.anticipation import decision_stages
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import ThermalBounds
from pycobre.hydro.model.horizon import PolicyGraph, Stage
from pycobre.hydro.model.initial import AnticipatedCommitment, InitialConditions
from pycobre.hydro.model.scenarios import ArCoefficients, BlockFactor, InflowStats, LoadFactors
from pycobre.hydro.model.system import AnticipatedHours, AnticipatedStages
from pycobre.hydro.model.table import NO_ID
from pycobre.problem import solve_extensive_form

Lead = AnticipatedStages | AnticipatedHours


def with_hours(*factors: float) -> tuple[Stage, ...]:
    """Stages whose two blocks of 100 and 200 hours are stretched."""
    return tuple(
        replace(stage, blocks=tuple(replace(b, hours=b.hours * factor) for b in stage.blocks))
        for stage, factor in zip(stages(len(factors), hours=(100.0, 200.0)), factors, strict=True)
    )


def committed_case(
    lead: Lead, past: int, periods: tuple[Stage, ...], rate: float = 0.0, mw: float = 20.0
) -> Case:
    """A plant at 10 $/MWh decided ahead, one at 100, and a load of 40 and 20 MW in the two blocks."""
    windows = tuple(
        AnticipatedCommitment(thermal_id=0, start_date=s.start_date, end_date=s.end_date, value_mw=mw + i)
        for i, s in enumerate(periods[:past])
    )
    levels = tuple(BlockFactor(block_id=k, factor=f) for k, f in enumerate((1.0, 0.5)))
    return replace(
        one_reservoir(periods),
        hydros=(),
        production_models=(),
        inflow_stats=InflowStats.empty(),
        ar_coefficients=ArCoefficients.empty(),
        thermals=(thermal(0, 10.0, 50.0, anticipated_config=lead), thermal(1, 100.0, 500.0)),
        initial_conditions=InitialConditions(
            storage=(), filling_storage=(), past_anticipated_commitments=windows
        ),
        config=config(iterations=10),
        load_stats=loads(periods, {0: 40.0}),
        load_factors=tuple(LoadFactors(bus_id=0, stage_id=s.id, block_factors=levels) for s in periods),
        policy_graph=PolicyGraph(type="finite_horizon", annual_discount_rate=rate),
    )


def by_stages(count: int) -> Lead:
    return AnticipatedStages(lead_stages=count)


def by_hours(hours: float) -> Lead:
    return AnticipatedHours(lead_time_hours=hours)


EVEN = with_hours(1.0, 1.0, 1.0, 1.0)
GROWING = with_hours(1 / 3, 1 / 3, 1 / 3, 1 / 3, 1.0, 1.0)


@pytest.mark.parametrize(
    ("lead", "past", "periods", "rate", "cost"),
    [
        (by_stages(1), 1, with_hours(1.0, 1.0, 1.0), 0.0, 360000.0),
        (by_stages(1), 1, with_hours(1.0, 1.0, 1.0), 0.12, 357758.64958722744),
        (by_hours(300.0), 1, EVEN, 0.0, 440000.0),
        (by_hours(450.0), 1, EVEN, 0.0, 440000.0),
        (by_hours(600.0), 2, EVEN, 0.0, 530000.0),
        (by_hours(350.0), 3, GROWING, 0.0, 356666.6666666667),
        (by_hours(350.0), 1, with_hours(1.0, 1 / 3, 1.0), 0.0, 306666.6666666667),
    ],
)
def test_the_cost_is_the_peers(
    lead: Lead, past: int, periods: tuple[Stage, ...], rate: float, cost: float
) -> None:
    case = committed_case(lead, past, periods, rate)
    assert solve_extensive_form(build_model(case).problem) == pytest.approx(cost, rel=1e-9)


def test_limits_and_price_are_those_of_the_delivery() -> None:
    bounds = ThermalBounds(
        thermal_id=[0, 0, 0],
        stage_id=[1, 2, 3],
        block_id=[NO_ID] * 3,
        min_generation_mw=[np.nan, 5.0, np.nan],
        max_generation_mw=[np.nan, 25.0, 18.0],
        cost_per_mwh=[20.0, 30.0, 40.0],
    )
    case = replace(committed_case(by_stages(1), 1, EVEN), thermal_bounds=bounds)
    assert solve_extensive_form(build_model(case).problem) == pytest.approx(1181000.0, rel=1e-9)


def test_several_deliveries_may_be_decided_in_one_stage() -> None:
    """A long stage before short ones: three of them, and a fourth, are within 350 hours of its end."""
    periods = with_hours(1.0, 1.0, 1 / 3, 1 / 3, 1 / 3, 1 / 3)
    assert decision_stages(by_hours(350.0), periods) == [-1, 0, 1, 1, 1, 2]
    model = build_model(committed_case(by_hours(350.0), 1, periods))
    assert model.lps[1].columns["anticipated_decision"].size == 3
    # 20 MW over 300 hours are given; the rest of the load costs 10 $/MWh, but 10 MW for 200 hours of stage 0.
    expected = 10.0 * 200.0 * 100.0 + 8000.0 * 10.0 * (1.0 + 4.0 / 3.0)
    assert solve_extensive_form(model.problem) == pytest.approx(expected, rel=1e-9)


def test_a_lead_within_the_stage_is_ordinary_dispatch() -> None:
    case = committed_case(by_hours(100.0), 0, EVEN)
    ordinary = replace(case, thermals=tuple(replace(g, anticipated_config=None) for g in case.thermals))
    assert not build_model(case).lps[0].columns["commitment_in"].size
    expected = solve_extensive_form(build_model(ordinary).problem)
    assert solve_extensive_form(build_model(case).problem) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        (
            committed_case(by_stages(2), 1, EVEN),
            "past_anticipated_commitments cover every stage that was decided before the study",
        ),
        (
            committed_case(by_stages(1), 2, EVEN),
            "past_anticipated_commitments are of stages that the study does not decide",
        ),
        (committed_case(by_stages(1), 1, EVEN, mw=60.0), "within the plant's limits, 0 to 50 MW, got 60"),
        (committed_case(by_stages(0), 0, EVEN), "anticipated_config has a lead above 0, got 0"),
    ],
)
def test_what_makes_no_sense_is_named(case: Case, rule: str) -> None:
    with pytest.raises(CaseError, match=rule):
        build_model(case)


def test_a_commitment_of_another_plant_is_named() -> None:
    case = committed_case(by_stages(1), 1, EVEN)
    (window,) = case.initial_conditions.past_anticipated_commitments
    other = replace(
        case.initial_conditions, past_anticipated_commitments=(window, replace(window, thermal_id=1))
    )
    found = [str(f) for f in check_case(replace(case, initial_conditions=other))]
    assert found == [
        "error [dangling_reference] initial_conditions.json: thermal 1: thermal_id is the id of a thermal with "
        "anticipated_config, got 1."
    ]
