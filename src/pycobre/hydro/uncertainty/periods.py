"""Periods: neighbouring stages of one season and year, such as the weeks of a month.

Their stages share one draw of noise. Lags are inflows of whole periods: they stay as they are until a
period's last stage, where the period's mean inflow becomes lag 1.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.period_step import PeriodStep
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.uncertainty.observed_inflows import ObservedInflows

__all__ = ["after_stage", "initial_accumulation", "period_numbers", "period_steps"]


def period_numbers(case: Case) -> list[int]:
    """The number of every stage's period, from 0; a stage without a season is a period of its own."""
    known: dict[tuple[object, ...], int] = {}
    for stage in case.stages:
        known.setdefault(_key(stage), len(known))
    return [known[_key(stage)] for stage in case.stages]


def period_steps(case: Case, index: Index) -> tuple[PeriodStep, ...]:
    """Every stage's part in its period; days observed before the study count towards the first."""
    numbers = period_numbers(case)
    days = [_days(case, stage) for stage in case.stages]
    # A period of one stage is whole without looking; else the history is read, once for all stages of the first.
    before = float(_seen(case, index)[0].max(initial=0.0)) if numbers.count(numbers[0]) > 1 else 0.0
    steps = []
    for t, number in enumerate(numbers):
        mine = [i for i, other in enumerate(numbers) if other == number]
        total = sum(days[i] for i in mine) + (0.0 if mine[0] else before)
        steps.append(PeriodStep(days[t], total, t == mine[-1]))
    return tuple(steps)


def after_stage(lags: F64, sums: F64, inflow: F64, step: PeriodStep | None) -> tuple[F64, F64]:
    """Lags [n, L, N] and what the period has seen [n, N] once a stage has had this inflow [n, N].

    Without a step the stage is a period of its own.
    """
    step = PeriodStep(1.0, 1.0, True) if step is None else step
    sums = inflow * step.days + (0.0 if step.whole else sums)
    if not step.last:
        return lags, sums
    return np.concatenate([(sums / step.total)[:, None], lags[:, :-1]], axis=1), np.zeros_like(sums)


def initial_accumulation(case: Case, index: Index) -> F64:
    """Inflow times days observed in the first period before the study begins, by plant."""
    return _seen(case, index)[1]


def _seen(case: Case, index: Index) -> tuple[F64, F64]:
    start, _ = _span(case, case.stages[0])
    return ObservedInflows(case, index, start).volume(start, case.stages[0].start_date)


def _key(stage: Stage) -> tuple[object, ...]:
    if stage.season_id is None:
        return ("stage", stage.id)
    return (stage.season_id, stage.start_date.year)


def _days(case: Case, stage: Stage) -> float:
    """Days of a stage inside its season's month; all of them where seasons are not months."""
    start, end = _span(case, stage)
    inside = (min(stage.end_date, end) - max(stage.start_date, start)).days
    return float(inside if inside > 0 else stage.days)


def _span(case: Case, stage: Stage) -> tuple[date, date]:
    seasons = case.season_definitions
    if seasons is not None and seasons.cycle_type == "monthly":
        for season in seasons.seasons:
            if season.id == stage.season_id:
                start = date(stage.start_date.year, season.month_start, 1)
                return start, (start + timedelta(days=31)).replace(day=1)
    return stage.start_date, stage.end_date
