"""Inflow models of a case: statistics and coefficients by stage, and the lags the study starts with.

The annual term of a PAR(p)-A model, coefficient · (mean of the last twelve inflows, standardised), is a twelfth
of itself at each of twelve lags; the means of the lags stand for the annual mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.index import Index
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.table import NO_ID
from pycobre.hydro.uncertainty.observed_inflows import ObservedInflows
from pycobre.stochastic.par import Par, periodic_residual_ratio, precompute

__all__ = ["Statistics", "inflow_model", "initial_lags"]


MONTHS = 12  # of an annual term


def inflow_model(case: Case, index: Index) -> Par:
    """The PAR model of all plants over the study's stages; order 0 where no coefficient is given."""
    stages, hydros = case.num_stages, len(case.hydros)
    table = case.ar_coefficients
    order = int(table.lag.max()) if len(table) else 0
    order = max(order, MONTHS) if len(case.annual_components) else order
    coefficients = np.zeros((stages, order, hydros))
    position = {stage.id: t for t, stage in enumerate(case.stages)}
    for h, t, lag, value in zip(
        table.hydro_id.tolist(),
        table.stage_id.tolist(),
        table.lag.tolist(),
        table.coefficient.tolist(),
        strict=True,
    ):
        if t in position:
            coefficients[position[t], lag - 1, index.hydro[h]] = value
    known = Statistics(case)
    mean, std = np.zeros((stages, hydros)), np.zeros((stages, hydros))
    lag_mean, lag_std = np.zeros((stages, order, hydros)), np.zeros((stages, order, hydros))
    for hydro_id, h in index.hydro.items():
        for t, stage in enumerate(case.stages):
            mean[t, h], std[t, h] = known.of(hydro_id, stage.id)
            for lag in range(1, order + 1):
                lag_mean[t, lag - 1, h], lag_std[t, lag - 1, h] = known.of(hydro_id, stage.id - lag)
    for h, t, value in _annual(case, known, order):
        if t in position:
            coefficients[position[t], :, index.hydro[h]] += value
    ratio = _ratio(case, index, known, coefficients)
    return precompute(coefficients, mean, std, lag_mean, lag_std, ratio)


def _annual(case: Case, known: Statistics, order: int) -> Iterator[tuple[int, int, F64]]:
    """(plant, stage, what the annual term adds to the standardised coefficients of the lags)."""
    table = case.annual_components
    for h, t, value, std in zip(
        table.hydro_id.tolist(),
        table.stage_id.tolist(),
        table.annual_coefficient.tolist(),
        table.annual_std_m3s.tolist(),
        strict=True,
    ):
        added = np.zeros(order)
        if std > 0.0:
            added[:MONTHS] = [value / MONTHS * known.of(h, t - lag)[1] / std for lag in range(1, MONTHS + 1)]
        yield h, t, added


class Statistics:
    """Mean and deviation by plant and stage; what has no row of its own is as the first row of its season."""

    def __init__(self, case: Case) -> None:
        table = case.inflow_stats
        rows = zip(
            table.hydro_id.tolist(),
            table.stage_id.tolist(),
            table.mean_m3s.tolist(),
            table.std_m3s.tolist(),
            strict=True,
        )
        self._rows = {(h, t): (mean, std) for h, t, mean, std in rows}
        stages = {stage.id: stage.season_id for stage in case.stages}
        self._seasons = {stage.id: stage.season_id for stage in case.pre_study_stages} | stages
        self.cycle = _cycle(case)
        self._start = case.stages[0].season_id
        #: The stage whose row stands for a plant's season: the first, before the study or in it.
        self.first: dict[tuple[int, int], int] = {}
        for h, t in sorted(self._rows):
            season = self._seasons.get(t)
            if season is not None:
                self.first.setdefault((h, season), t)

    def of(self, hydro_id: int, stage_id: int) -> tuple[float, float]:
        row = self._rows.get((hydro_id, stage_id))
        if row is None and self.cycle and self._start is not None:
            season = self._seasons.get(stage_id)
            if season is None:
                season = (self._start + stage_id) % self.cycle
            row = self._rows.get((hydro_id, self.first.get((hydro_id, season), NO_ID)))
        return (0.0, 0.0) if row is None else row


def _cycle(case: Case) -> int:
    """Seasons of a year; 0 where stages have none."""
    if any(stage.season_id is None for stage in case.stages):
        return 0
    seasons = [season.id for season in case.season_definitions.seasons] if case.season_definitions else []
    return 1 + max([*seasons, *(stage.season_id or 0 for stage in case.stages)])


def _ratio(case: Case, index: Index, known: Statistics, coefficients: F64) -> F64 | None:
    """Residual ratios by season, for a year that repeats; None: stage by stage, where there are no seasons.

    A season's coefficients are those of its first stage with statistics. That may be a stage before the study;
    without coefficients of its own its inflow is all residual.
    """
    order, hydros = coefficients.shape[1:]
    if not known.cycle or not order:
        return None
    seasons = {(hydro_id, stage_id): season for (hydro_id, season), stage_id in known.first.items()}
    year, table = np.zeros((known.cycle, order, hydros)), case.ar_coefficients
    for h, t, lag, value in zip(
        table.hydro_id.tolist(),
        table.stage_id.tolist(),
        table.lag.tolist(),
        table.coefficient.tolist(),
        strict=True,
    ):
        if (h, t) in seasons:
            year[seasons[h, t], lag - 1, index.hydro[h]] = value
    for h, t, added in _annual(case, known, order):
        if (h, t) in seasons:
            year[seasons[h, t], :, index.hydro[h]] += added
    return periodic_residual_ratio(year)[[stage.season_id or 0 for stage in case.stages]]


def initial_lags(case: Case, index: Index, order: int) -> F64:
    """Inflows of the periods before the study, [order, N], lag 1 first; 0 where nothing was observed."""
    lags = np.zeros((order, len(case.hydros)))
    periods = [_period(case, lag + 1) for lag in range(order)]
    if not periods:
        return lags
    observed = ObservedInflows(case, index, min(start for start, _ in periods))
    for lag, period in enumerate(periods):
        days, total = observed.volume(*period)
        np.divide(total, days, out=lags[lag], where=days > 0.0)
    return lags


def _period(case: Case, lag: int) -> tuple[date, date]:
    """The period `lag` steps before the study: a declared pre-study stage, else counted back on the calendar.

    Where seasons are months, or the first stage is one, periods are calendar months; else they are as long as
    the first stage.
    """
    for stage in case.pre_study_stages:
        if stage.id == -lag:
            return stage.start_date, stage.end_date
    first, seasons = case.stages[0], case.season_definitions
    monthly = seasons is not None and seasons.cycle_type == "monthly"
    if not monthly and (first.start_date.day != 1 or first.days not in range(28, 32)):
        return first.start_date - lag * timedelta(first.days), first.start_date - (lag - 1) * timedelta(
            first.days
        )
    end = first.start_date.replace(day=1)
    for _ in range(lag - 1):
        end = (end - timedelta(days=1)).replace(day=1)
    return (end - timedelta(days=1)).replace(day=1), end
