"""Lags before the study, and models fitted to history."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from small_case import inflows, lags, one_reservoir, stages, weeks

from pycobre.errors import CaseError
from pycobre.hydro.build import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import EstimationConfig
from pycobre.hydro.model.horizon import PreStudyStage
from pycobre.hydro.model.initial import InflowObservation
from pycobre.hydro.model.scenarios import InflowHistory
from pycobre.hydro.uncertainty.estimation import with_estimates


def observed(case: Case, *windows: tuple[date, date, float]) -> Case:
    seen = tuple(InflowObservation(hydro_id=0, start_date=a, end_date=b, value_m3s=v) for a, b, v in windows)
    return replace(case, initial_conditions=replace(case.initial_conditions, recent_observations=seen))


def with_lags(**changes: object) -> Case:
    periods = stages(2)
    case = one_reservoir(
        periods,
        inflow_stats=inflows(periods, {0: (20.0, 2.0)}, before=2),
        ar_coefficients=lags(periods, {0: (0.4, 0.2)}),
    )
    return replace(case, **changes)  # type: ignore[arg-type]


def test_lags_are_the_months_before_the_study_weighted_by_days() -> None:
    case = observed(
        with_lags(),
        (date(2023, 11, 1), date(2023, 12, 1), 11.0),
        (date(2023, 12, 1), date(2023, 12, 11), 30.0),
        (date(2023, 12, 11), date(2024, 1, 1), 9.0),
    )
    december = (10 * 30.0 + 21 * 9.0) / 31
    assert build_model(case).problem.initial[1:].tolist() == pytest.approx([december, 11.0])


def test_declared_stages_before_the_study_say_what_a_lag_is() -> None:
    before = (
        PreStudyStage(id=-1, start_date=date(2023, 12, 20), end_date=date(2024, 1, 1)),
        PreStudyStage(id=-2, start_date=date(2023, 12, 1), end_date=date(2023, 12, 20)),
    )
    case = observed(with_lags(pre_study_stages=before), (date(2023, 12, 1), date(2023, 12, 20), 7.0))
    assert build_model(case).problem.initial[1:].tolist() == [0.0, 7.0]


def test_without_months_a_lag_is_as_long_as_the_first_stage() -> None:
    periods = tuple(replace(s, season_id=None) for s in weeks(2))
    case = one_reservoir(
        periods,
        season_definitions=None,
        inflow_stats=inflows(periods, {0: (20.0, 2.0)}, before=2),
        ar_coefficients=lags(periods, {0: (0.4, 0.2)}),
    )
    start = periods[0].start_date
    week = timedelta(days=7)
    case = observed(case, (start - week, start, 5.0), (start - 2 * week, start - week, 6.0))
    assert build_model(case).problem.initial[1:].tolist() == [5.0, 6.0]


def seen(*windows: tuple[date, date, float]) -> InflowHistory:
    return InflowHistory(
        hydro_id=np.zeros(len(windows)),
        start_date=np.array([w[0] for w in windows], dtype="datetime64[D]"),
        end_date=np.array([w[1] for w in windows], dtype="datetime64[D]"),
        value_m3s=np.array([w[2] for w in windows]),
    )


def test_days_without_an_observation_are_as_in_the_history() -> None:
    """Half of December is observed; lag 1 is the mean of its days, as Cobre 0.18.0 has it."""
    periods = stages(3)
    case = one_reservoir(
        periods,
        inflow_stats=inflows(periods, {0: (20.0, 5.0)}, before=3),
        ar_coefficients=lags(periods, {0: (0.3, 0.2, 0.1)}),
    )
    october, november, december = (date(2023, month, 1) for month in (10, 11, 12))
    january = date(2024, 1, 1)
    case = replace(
        case,
        inflow_history=seen((october, november, 10.0), (november, december, 11.0), (december, january, 12.0)),
    )
    assert build_model(case).problem.initial[1:].tolist() == [12.0, 11.0, 10.0]
    assert not [f for f in check_case(case) if f.kind == "no_observations"]
    case = observed(case, (date(2023, 12, 16), january, 99.0))
    lag = (15 * 12.0 + 16 * 99.0) / 31
    assert build_model(case).problem.initial[1:].tolist() == [lag, 11.0, 10.0]


def test_a_month_that_has_begun_counts_its_days_of_history() -> None:
    """Of the fortnight before the study the history has the first week, an observation the second."""
    periods = tuple(replace(week, id=t) for t, week in enumerate(weeks(6)[2:]))
    case = one_reservoir(
        periods,
        inflow_stats=inflows(periods, {0: (20.0, 5.0)}, before=1),
        ar_coefficients=lags(periods, {0: (0.3,)}),
        inflow_history=seen((date(2024, 1, 1), date(2024, 1, 15), 44.0)),
    )
    case = observed(case, (date(2024, 1, 8), date(2024, 1, 15), 70.0))
    assert build_model(case).problem.initial[-1] == 7 * 44.0 + 7 * 70.0


def history(years: int, seed: int = 0) -> InflowHistory:
    rng = np.random.default_rng(seed)
    z, rows = 0.0, []
    for i in range(12 * years):
        z = 0.7 * z + 0.5 * rng.normal()
        start = date(1980 + i // 12, i % 12 + 1, 1)
        end = date(1980 + (i + 1) // 12, (i + 1) % 12 + 1, 1)
        rows.append((start, end, 100.0 + 10 * (i % 12) + 20.0 * z))
    start, end, value = zip(*rows, strict=True)
    return InflowHistory(
        hydro_id=np.zeros(len(rows)),
        start_date=np.array(start, dtype="datetime64[D]"),
        end_date=np.array(end, dtype="datetime64[D]"),
        value_m3s=np.array(value),
    )


def test_a_case_with_history_alone_gets_a_model() -> None:
    case = replace(one_reservoir(stages(3)), inflow_stats=inflows((), {}), inflow_history=history(200))
    fitted = with_estimates(case)
    assert fitted.inflow_stats.mean_m3s == pytest.approx([100.0, 110.0, 120.0], abs=6.0)
    first = fitted.ar_coefficients.coefficient[fitted.ar_coefficients.lag == 1]
    assert first == pytest.approx(np.full(3, 0.7), abs=0.15)
    assert build_model(case).par.order == fitted.ar_coefficients.lag.max()
    assert fitted.correlation is not None
    assert with_estimates(fitted) is fitted


def test_what_the_case_gives_is_kept() -> None:
    given = inflows(stages(3), {0: (55.0, 5.0)})
    case = replace(one_reservoir(stages(3)), inflow_stats=given, inflow_history=history(60))
    fitted = with_estimates(case)
    assert fitted.inflow_stats == given
    assert len(fitted.ar_coefficients)


def test_history_that_cannot_be_used_is_named() -> None:
    case = replace(one_reservoir(stages(2)), inflow_stats=inflows((), {}), inflow_history=history(5))
    with pytest.raises(CaseError, match=r"expected at least 30 years .* got 5 observations of a season"):
        with_estimates(case)
    table = history(40)
    gap = {
        name: np.delete(getattr(table, name), 50)
        for name in ("hydro_id", "start_date", "end_date", "value_m3s")
    }
    with pytest.raises(CaseError, match="every month of one unbroken span, got 479 common months"):
        with_estimates(replace(case, inflow_history=InflowHistory(**gap)))
    with pytest.raises(CaseError, match=r"expected monthly seasons .* got none"):
        with_estimates(replace(case, season_definitions=None, inflow_history=history(40)))
    few = replace(case.config, estimation=EstimationConfig(min_observations_per_season=5))
    assert len(with_estimates(replace(case, config=few)).inflow_stats) == 2
