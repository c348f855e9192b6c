"""The inflow model of a study as tables: what it is, whether history is noise to it, what its openings give."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.hydro.build import HydroModel
from pycobre.hydro.tables.stage_view import Columns
from pycobre.hydro.uncertainty.inflows import Statistics, initial_lags
from pycobre.hydro.uncertainty.monthly_history import MonthlyHistory, why_no_history
from pycobre.hydro.uncertainty.noise import profile_name
from pycobre.stochastic.moments import inflow_moments
from pycobre.stochastic.residual_tests import SeasonTest, season_test, skewness

__all__ = ["inflow_tables"]

WHITENESS_LAGS = 15
"""Months that the whiteness test looks back."""


def inflow_tables(model: HydroModel) -> dict[str, Columns]:
    """All tables that the study has something for; history needs monthly seasons and no gaps."""
    case = model.case
    if not case.hydros:
        return {}
    statistics = Statistics(case)
    tables = {"inflow_models": _models(model, statistics)}
    if model.par.order:
        tables["inflow_coefficients"] = _coefficients(model, statistics)
    correlations = _correlations(model)
    if correlations["hydro_id"].size:
        tables["inflow_correlations"] = correlations
    history = None if why_no_history(case) else MonthlyHistory(case)
    if history is not None:
        tables["inflow_tests"] = _tests(model, history)
    if model.periods is None and not model.graph.pinned:
        tables["inflow_moments"] = _moments(model, history)
    return tables


def _orders(model: HydroModel) -> NDArray[np.int32]:
    """The largest lag with a coefficient, by stage and plant."""
    lag = np.arange(1, model.par.order + 1)[None, :, None]
    found: NDArray[np.int32] = ((model.par.psi != 0.0) * lag).max(axis=1, initial=0).astype(np.int32)
    return found


def _grid(model: HydroModel) -> Columns:
    """The keys of a row per plant and stage, in that order."""
    hydros = np.array([hydro.id for hydro in model.case.hydros], np.int32)
    stages = np.array([stage.id for stage in model.case.stages], np.int32)
    return {"hydro_id": np.repeat(hydros, stages.size), "stage_id": np.tile(stages, hydros.size)}


def _models(model: HydroModel, statistics: Statistics) -> Columns:
    known = np.array(
        [[statistics.of(hydro.id, stage.id) for stage in model.case.stages] for hydro in model.case.hydros]
    )
    return {
        **_grid(model),
        "order": _orders(model).T.reshape(-1),
        "mean_m3s": known[:, :, 0].reshape(-1),
        "std_m3s": known[:, :, 1].reshape(-1),
        "base_m3s": model.par.base.T.reshape(-1),
        "noise_std_m3s": model.par.sigma.T.reshape(-1),
    }


def _coefficients(model: HydroModel, statistics: Statistics) -> Columns:
    """Coefficients that are not 0, in m³/s per m³/s and of standardised inflows."""
    psi = model.par.psi.transpose(2, 0, 1)
    hydro, stage, lag = np.nonzero(psi)
    ids = [plant.id for plant in model.case.hydros]
    stages = [each.id for each in model.case.stages]
    ratio = np.array(
        [
            _quotient(statistics.of(ids[h], stages[t] - lag - 1)[1], statistics.of(ids[h], stages[t])[1])
            for h, t, lag in zip(hydro.tolist(), stage.tolist(), lag.tolist(), strict=True)
        ]
    )
    values = psi[hydro, stage, lag]
    return {
        "hydro_id": np.array(ids, np.int32)[hydro],
        "stage_id": np.array(stages, np.int32)[stage],
        "lag": (lag + 1).astype(np.int32),
        "phi": values * ratio,
        "psi": values,
    }


def _quotient(above: float, below: float) -> float:
    return above / below if below > 0.0 else math.nan


def _correlations(model: HydroModel) -> Columns:
    """Pairs of plants in one group, for every profile that some stage uses."""
    case, rows = model.case, []
    first: dict[str, int] = {}
    for stage in case.stages:
        if case.correlation is not None:
            first.setdefault(profile_name(case.correlation, stage), stage.id)
    for name, stage_id in first.items():
        assert case.correlation is not None
        for group in case.correlation.profiles[name].correlation_groups:
            plants = [i for i, entity in enumerate(group.entities) if entity.type == "inflow"]
            ids = np.array([group.entities[i].id for i in plants], np.int32)
            matrix = np.array(group.matrix)[np.ix_(plants, plants)]
            i, j = np.nonzero(ids[:, None] < ids[None, :])
            rows.append((np.full(i.size, stage_id, np.int32), ids[i], ids[j], matrix[i, j]))
    columns = ("stage_id", "hydro_id", "other_hydro_id", "correlation")
    if not rows:
        return {name: np.empty(0) for name in columns}
    joined = dict(zip(columns, map(np.concatenate, zip(*rows, strict=True)), strict=True))
    order = np.lexsort((joined["other_hydro_id"], joined["hydro_id"], joined["stage_id"]))
    return {name: column[order] for name, column in joined.items()}


def _stage_of_season(model: HydroModel) -> dict[int, int]:
    """The first stage of each season: its model stands for the season."""
    found: dict[int, int] = {}
    for t, stage in enumerate(model.case.stages):
        if stage.season_id is not None:
            found.setdefault(stage.season_id, t)
    return found


def history_noise(model: HydroModel, history: MonthlyHistory) -> F64:
    """The noise [N, P] with which the model gives the history; NaN where lags are missing or nothing is random."""
    par, values = model.par, history.values
    noise = np.full(values.shape, np.nan)
    for season, t in _stage_of_season(model).items():
        months = np.flatnonzero(history.season == season)
        months = months[months >= par.order]
        lags = np.stack([values[:, months - lag - 1] for lag in range(par.order)] or [values[:, :0]])
        found = par.noise(t, lags.transpose(2, 0, 1)[:, : par.order], values[:, months].T)
        noise[:, months] = np.where(par.sigma[t] > 0.0, found, np.nan).T
    return noise


def _tests(model: HydroModel, history: MonthlyHistory) -> Columns:
    noise, orders, stages = history_noise(model, history), _orders(model), _stage_of_season(model)
    rows: list[tuple[int, int, int, SeasonTest]] = []
    for h, hydro in enumerate(model.case.hydros):
        for season, t in sorted(stages.items()):
            order = int(orders[t, h])
            test = season_test(noise[h], history.season, season, WHITENESS_LAGS, order)
            rows.append((hydro.id, season, order, test))
    keys = np.array([row[:3] for row in rows], np.int32)
    tests = [row[3] for row in rows]
    return {
        "hydro_id": keys[:, 0],
        "season_id": keys[:, 1],
        "order": keys[:, 2],
        "observations": np.array([test.count for test in tests], np.int32),
        "noise_mean": np.array([test.mean for test in tests]),
        "noise_std": np.array([test.std for test in tests]),
        "noise_skewness": np.array([test.skewness for test in tests]),
        "normality_p": np.array([test.normality for test in tests]),
        "whiteness_q": np.array([test.portmanteau for test in tests]),
        "whiteness_p": np.array([test.whiteness for test in tests]),
    }


def _moments(model: HydroModel, history: MonthlyHistory | None) -> Columns:
    case, hydros = model.case, len(model.case.hydros)
    openings = [stage[:, :hydros] for stage in model.openings]
    found = inflow_moments(model.par, initial_lags(case, model.index, model.par.order), openings)
    seen = np.full((4, case.num_stages, hydros), np.nan)
    if history is not None:
        by_season = {
            season: _seen(history, season)
            for season in {stage.season_id for stage in case.stages}
            if season is not None
        }
        for t, stage in enumerate(case.stages):
            if stage.season_id is not None:
                seen[:, t] = by_season[stage.season_id]
    names = ("mean_m3s", "std_m3s", "skewness", "lag_correlation")
    parts = (found.mean, found.std, found.skewness, found.lag_correlation)
    return {
        **_grid(model),
        **{f"history_{name}": values.T.reshape(-1) for name, values in zip(names, seen, strict=True)},
        **{f"openings_{name}": values.T.reshape(-1) for name, values in zip(names, parts, strict=True)},
        "noise_mean": found.noise_mean.T.reshape(-1),
        "noise_std": found.noise_std.T.reshape(-1),
    }


def _seen(history: MonthlyHistory, season: int) -> F64:
    """Moments [4, N] of a season's years; the correlation is with the month before."""
    months = np.flatnonzero(history.season == season)
    values = history.values[:, months]
    if not months.size:
        return np.full((4, history.values.shape[0]), np.nan)
    pairs = months[months >= 1]
    now, before = history.values[:, pairs], history.values[:, pairs - 1]
    return np.array(
        [
            values.mean(axis=1),
            values.std(axis=1),
            [skewness(row) for row in values],
            [_correlation(a, b) for a, b in zip(now, before, strict=True)],
        ]
    )


def _correlation(a: F64, b: F64) -> float:
    a, b = a - a.mean(), b - b.mean()
    return _quotient(float((a * b).sum()), math.sqrt(float((a * a).sum() * (b * b).sum())))
