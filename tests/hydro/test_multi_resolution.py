"""Weeks of a month, and months followed by quarters: which inflow is lag 1, and what the bound is then.

The bound is compared with a scenario tree of one LP, in which inflows follow from the recursion on paper.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from second_formulation import HM3, Dense, Terms
from small_case import DEFICIT, config, inflows, lags, loads, one_reservoir, weeks

from pycobre.app import simulate, train
from pycobre.hydro.build import build_model
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import FileOpenings, ScenarioSource
from pycobre.hydro.model.horizon import Block, PreStudyStage, Season, SeasonDefinitions, Stage
from pycobre.hydro.model.initial import InflowObservation
from pycobre.hydro.model.scenarios import NoiseOpenings
from pycobre.problem.extensive import solve_extensive_form

MEAN, STD, PHI, DECEMBER = 20.0, 6.0, 0.5, 4.0
SIGMA = STD * np.sqrt(1.0 - PHI**2)
BEFORE = date(2023, 12, 1), date(2024, 1, 1)


def with_lags(periods: tuple[Stage, ...]) -> Case:
    """An inflow with one lag, in a December of drought."""
    start, end = BEFORE
    case = one_reservoir(
        periods,
        config=config(iterations=40),
        inflow_stats=inflows(periods, {0: (MEAN, STD)}, before=1),
        ar_coefficients=lags(periods, {0: (PHI,)}),
        pre_study_stages=(PreStudyStage(id=-1, start_date=start, end_date=end, season_id=11),),
        load_stats=loads(periods, {0: 35.0}),
    )
    seen = InflowObservation(hydro_id=0, start_date=start, end_date=end, value_m3s=DECEMBER)
    begin = replace(case.initial_conditions, recent_observations=(seen,))
    (cheap,) = case.thermals
    few = replace(cheap, generation=replace(cheap.generation, max_mw=12.0))
    return replace(case, initial_conditions=begin, thermals=(few,))


def tree_optimum(case: Case, noise: tuple[np.ndarray, ...], keeps: bool) -> float:
    """All paths of openings as one LP; lag 1 keeps the month before, or is the week before."""
    lp, (plant,), (fuel,) = Dense(), case.hydros, case.thermals

    def grow(parent: int | None, t: int, chance: float, lag: float) -> None:
        hours = case.stages[t].hours
        for value in noise[t][:, 0]:
            inflow = MEAN + PHI * (lag - MEAN) + SIGMA * value
            n, part = len(lp.cost), chance / len(noise[t])
            lp.var(("v", n), 0.0, plant.reservoir.max_storage_hm3)
            lp.var(("q", n), 0.0, plant.generation.max_turbined_m3s)
            lp.var(("s", n), 0.0, None, 0.01 * hours * part)
            lp.var(("g", n), 0.0, fuel.generation.max_mw, fuel.cost_per_mwh * hours * part)
            lp.var(("d", n), 0.0, None, DEFICIT * hours * part)
            lp.equal.append(({("q", n): 1.0, ("g", n): 1.0, ("d", n): 1.0}, 35.0))
            balance: Terms = {("v", n): 1.0, ("q", n): HM3 * hours, ("s", n): HM3 * hours}
            right = HM3 * hours * inflow
            if parent is None:
                right += case.initial_conditions.storage[0].value_hm3
            else:
                balance["v", parent] = -1.0
            lp.equal.append((balance, right))
            if t + 1 < len(case.stages):
                grow(n, t + 1, part, lag if keeps else inflow)

    grow(None, 0, 1.0, DECEMBER)
    return lp.optimum()


def test_weeks_of_a_month_have_the_month_before_as_lag() -> None:
    case = with_lags(weeks(4, openings=4))
    noise = build_model(case).openings
    assert all(np.array_equal(noise[0], each) for each in noise)  # one draw for the month
    best = tree_optimum(case, noise, keeps=True)
    assert solve_extensive_form(build_model(case).problem) == pytest.approx(best, rel=1e-9)
    # Scenarios take one opening in all weeks, so that what other paths visit is only bounded from below.
    bound = train(case).final_lower_bound
    assert 0.999 * best < bound <= best * (1.0 + 1e-9)
    assert best > 1.05 * tree_optimum(case, noise, keeps=False)  # as if every week ended a month


def test_where_quarters_follow_months_lag_1_is_the_stage_before() -> None:
    """With one opening lower and upper bound are the cost of the only path, as inflows by hand give it."""
    ends = [(1, 2), (2, 3), (3, 4), (4, 7), (7, 10), (10, 13)]
    periods = tuple(
        Stage(
            id=t,
            start_date=date(2024, first, 1),
            end_date=date(2024 + last // 13, (last - 1) % 12 + 1, 1),
            blocks=(Block(id=0, name="b", hours=700.0 * (last - first)),),
            num_openings=1,
            season_id=t,
        )
        for t, (first, last) in enumerate(ends)
    )
    seasons = (*(Season(id=t, label=f"s{t}", month_start=first) for t, (first, _) in enumerate(ends)),)
    december = Season(id=11, label="December", month_start=12)
    values = np.array([0.5, -0.7, 0.2, 0.9, -0.3, 0.4])
    number, zero = np.arange(values.size), np.zeros(values.size)
    case = with_lags(periods)
    source = ScenarioSource(openings=FileOpenings())
    case = replace(
        case,
        season_definitions=SeasonDefinitions(cycle_type="custom", seasons=(*seasons, december)),
        noise_openings=NoiseOpenings(stage_id=number, opening_index=zero, entity_index=zero, value=values),
        config=replace(case.config, training=replace(case.config.training, scenario_source=source)),
    )
    expected, lag = [], DECEMBER
    for value in values:
        lag = MEAN + PHI * (lag - MEAN) + SIGMA * value
        expected.append(lag)
    trained = train(case)
    table = simulate(case, trained.policy, 1).tables["hydros"]
    assert table["inflow_m3s"].to_pylist() == pytest.approx(expected, rel=1e-9)
    best = tree_optimum(case, tuple(values[:, None, None]), keeps=False)
    assert trained.final_lower_bound == pytest.approx(best, rel=1e-9)
    assert trained.final_upper_bound == pytest.approx(best, rel=1e-9)
