"""Inflow models from history: statistics, coefficients and correlation, as if the case had given them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import PreStudyStage, Stage
from pycobre.hydro.model.scenarios import (
    AnnualComponents,
    ArCoefficients,
    Correlation,
    CorrelationEntity,
    CorrelationGroup,
    CorrelationProfile,
    CorrelationSchedule,
    InflowStats,
)
from pycobre.hydro.uncertainty.monthly_history import MonthlyHistory
from pycobre.stochastic.annual import AnnualCorrelations
from pycobre.stochastic.fitting import SeasonalFit, fit_par, residual_correlation

__all__ = ["with_estimates"]

MIN_PAIRS = 30
"""Residuals that a season needs for a correlation of its own; with fewer it takes that of all seasons."""


def with_estimates(case: Case) -> Case:
    """The case itself, or, where it gives history, the case with what is missing of its model fitted to it.

    Statistics and coefficients that the case gives are kept; correlation is fitted with either of them.
    """
    fit_stats, fit_coefficients = not len(case.inflow_stats), not len(case.ar_coefficients)
    if not len(case.inflow_history) or not case.hydros or not (fit_stats or fit_coefficients):
        return case
    history = MonthlyHistory(case)
    options = case.config.estimation
    history.require_years(options.min_observations_per_season)
    order, most = options.max_order, options.max_coefficient_magnitude
    kind = AnnualCorrelations if options.order_selection == "pacf_annual" else None
    fits = [fit_par(values, history.season, history.seasons, order, most, kind) for values in history.values]
    stages: list[Stage | PreStudyStage] = [*case.pre_study_stages, *case.stages]
    if case.correlation is None:
        case = replace(case, correlation=_correlation(case, fits, history))
    if fit_stats:
        case = replace(case, inflow_stats=_stats(case, fits, stages))
    if fit_coefficients:
        case = replace(
            case,
            ar_coefficients=_coefficients(case, fits, stages),
            annual_components=_annual(case, fits, stages),
        )
    return case


def _stats(case: Case, fits: list[SeasonalFit], stages: list[Stage | PreStudyStage]) -> InflowStats:
    rows = [
        (hydro.id, stage.id, float(fit.mean[stage.season_id]), float(fit.std[stage.season_id]))
        for hydro, fit in zip(case.hydros, fits, strict=True)
        for stage in stages
        if stage.season_id is not None
    ]
    table = np.array(rows).reshape(-1, 4)
    return InflowStats(
        hydro_id=table[:, 0].astype(np.int32),
        stage_id=table[:, 1].astype(np.int32),
        mean_m3s=table[:, 2],
        std_m3s=table[:, 3],
    )


def _coefficients(case: Case, fits: list[SeasonalFit], stages: list[Stage | PreStudyStage]) -> ArCoefficients:
    rows = [
        (hydro.id, stage.id, lag, float(value))
        for hydro, fit in zip(case.hydros, fits, strict=True)
        for stage in stages
        if stage.season_id is not None
        for lag, value in enumerate(fit.coefficients[stage.season_id].tolist(), start=1)
    ]
    table = np.array(rows).reshape(-1, 4)
    return ArCoefficients(
        hydro_id=table[:, 0].astype(np.int32),
        stage_id=table[:, 1].astype(np.int32),
        lag=table[:, 2].astype(np.int32),
        coefficient=table[:, 3],
    )


def _annual(case: Case, fits: list[SeasonalFit], stages: list[Stage | PreStudyStage]) -> AnnualComponents:
    rows = [
        (
            hydro.id,
            stage.id,
            *(float(part[s]) for part in (fit.annual.coefficient, fit.annual.mean, fit.annual.std)),
        )
        for hydro, fit in zip(case.hydros, fits, strict=True)
        for stage in stages
        if fit.annual is not None and (s := stage.season_id) is not None
    ]
    table = np.array(rows).reshape(-1, 5)
    return AnnualComponents(
        hydro_id=table[:, 0].astype(np.int32),
        stage_id=table[:, 1].astype(np.int32),
        annual_coefficient=table[:, 2],
        annual_mean_m3s=table[:, 3],
        annual_std_m3s=table[:, 4],
    )


def _correlation(case: Case, fits: list[SeasonalFit], history: MonthlyHistory) -> Correlation:
    left = np.array([fit.residuals(v, history.season) for fit, v in zip(fits, history.values, strict=True)])
    profiles = {"default": _profile(case, residual_correlation(left))}
    schedule = []
    for s in range(history.seasons):
        mine = left[:, history.season == s]
        if np.isfinite(mine).all(axis=0).sum() >= MIN_PAIRS:
            name = f"season_{s:02d}"
            profiles[name] = _profile(case, residual_correlation(mine))
            schedule += [
                CorrelationSchedule(stage_id=stage.id, profile_name=name)
                for stage in case.stages
                if stage.season_id == s
            ]
    return Correlation(method="spectral", profiles=profiles, schedule=tuple(schedule))


def _profile(case: Case, matrix: F64) -> CorrelationProfile:
    entities = tuple(CorrelationEntity(type="inflow", id=hydro.id) for hydro in case.hydros)
    rows = tuple(tuple(row) for row in matrix.tolist())
    return CorrelationProfile(
        correlation_groups=(CorrelationGroup(name="all hydros", entities=entities, matrix=rows),)
    )
