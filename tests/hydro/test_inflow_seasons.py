"""Inflow models by stage and season: where statistics and residuals come from."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from small_case import inflows, lags, one_reservoir, stages

from pycobre.hydro.equations.index import Index
from pycobre.hydro.examples import synthetic
from pycobre.hydro.model import Case
from pycobre.hydro.model.scenarios import AnnualComponents
from pycobre.hydro.uncertainty.inflows import inflow_model


def two_years(**changes) -> Case:
    """One river, inflows of two lags whose coefficients differ from stage to stage."""
    case = synthetic(hydros=1, thermals=1, buses=1, blocks=1, stages=24, openings=1, lags=2)
    rng = np.random.default_rng(5)
    table, stats = case.ar_coefficients, case.inflow_stats
    return replace(
        case,
        ar_coefficients=replace(table, coefficient=rng.uniform(0.1, 0.4, len(table))),
        inflow_stats=replace(stats, std_m3s=rng.uniform(10.0, 40.0, len(stats))),
        **changes,
    )


def ratios(case: Case) -> np.ndarray:
    model, stats = inflow_model(case, Index(case)), case.inflow_stats
    std = [stats.std_m3s[stats.stage_id == stage.id][0] for stage in case.stages]
    return model.sigma[:, 0] / np.array(std)


def without_rows_before_the_study(case: Case) -> Case:
    keep = case.inflow_stats.stage_id >= 0
    kept = {f.name: getattr(case.inflow_stats, f.name)[keep] for f in fields(case.inflow_stats)}
    return replace(case, inflow_stats=type(case.inflow_stats)(**kept))


def test_a_season_has_the_residual_of_its_first_stage() -> None:
    """Before the study there are no coefficients: November and December are all residual."""
    found = ratios(two_years())
    assert found[12:] == pytest.approx(found[:12], rel=1e-12)
    assert found[[10, 11]] == pytest.approx(1.0)
    assert (found[:10] < 0.999).all()


def test_without_months_before_the_study_the_year_repeats() -> None:
    case = two_years(pre_study_stages=())
    phi = case.ar_coefficients.coefficient.reshape(24, 2)
    shocks, path = np.zeros((2, 2 + 12 * 20)), []
    shocks[0, 0] = shocks[1, 1] = 1.0
    loading = [shocks[0], shocks[1]]
    for t in range(12 * 20):
        carried = phi[t % 12, 0] * loading[-1] + phi[t % 12, 1] * loading[-2]
        path.append(np.sqrt(1.0 - (carried**2).sum()))
        fresh = np.zeros_like(carried)
        fresh[2 + t] = path[-1]
        loading.append(carried + fresh)
    assert ratios(case)[:12] == pytest.approx(np.array(path[-12:]), rel=1e-9)


def test_statistics_before_the_study_are_those_of_the_season() -> None:
    case = without_rows_before_the_study(two_years())
    model, stats = inflow_model(case, Index(case)), case.inflow_stats
    phi = case.ar_coefficients.coefficient.reshape(24, 2)
    mean, std = stats.mean_m3s, stats.std_m3s
    psi = phi[0] * std[0] / std[[11, 10]]
    assert model.psi[0, :, 0] == pytest.approx(psi, rel=1e-12)
    assert model.base[0, 0] == pytest.approx(mean[0] - (psi * mean[[11, 10]]).sum(), rel=1e-12)


def test_without_seasons_residuals_follow_the_stages() -> None:
    case = two_years()
    stages = tuple(replace(stage, season_id=None) for stage in case.stages)
    found = ratios(replace(case, stages=stages, season_definitions=None))
    assert (found < 0.999).all()
    assert found[12:] != pytest.approx(found[:12], rel=1e-3)


def test_coefficients_before_the_study_count_for_their_season() -> None:
    """Given there too, as a fit to history gives them, the year repeats as if nothing had been declared."""
    case = two_years()
    table = case.ar_coefficients
    late = np.isin(table.stage_id, [10, 11])
    both = {
        f.name: np.concatenate([getattr(table, f.name), getattr(table, f.name)[late]]) for f in fields(table)
    }
    both["stage_id"][len(table) :] -= 12
    found = ratios(replace(case, ar_coefficients=type(table)(**both)))
    assert found == pytest.approx(ratios(replace(case, pre_study_stages=())), rel=1e-12)


def test_an_annual_term_is_a_twelfth_at_each_of_twelve_lags() -> None:
    periods = stages(2)
    annual = AnnualComponents(
        hydro_id=np.zeros(2, dtype=np.int32),
        stage_id=np.arange(2),
        annual_coefficient=np.array([0.6, 0.0]),
        annual_mean_m3s=np.full(2, 20.0),
        annual_std_m3s=np.full(2, 3.0),
    )
    case = one_reservoir(
        periods,
        inflow_stats=inflows(periods, {0: (20.0, 4.0)}, before=12),
        ar_coefficients=lags(periods, {0: (0.3,)}),
        annual_components=annual,
    )
    par = inflow_model(case, Index(case))
    share = 0.6 * 4.0 / 3.0 / 12.0
    np.testing.assert_allclose(par.psi[0, :, 0], [0.3 + share, *[share] * 11])
    np.testing.assert_allclose(par.psi[1, :, 0], [0.3, *[0.0] * 11])
    np.testing.assert_allclose(par.base[:, 0], 20.0 * (1.0 - par.psi[:, :, 0].sum(axis=1)))
