"""The tables of the inflow model: they say what the case and its history say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_case import random_case
from test_peer_numbers import with_history

import pycobre
from pycobre.app.results.schemas import MODEL_TABLES
from pycobre.hydro import HydroModel, build_model
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import EstimationConfig
from pycobre.hydro.model.scenarios import ArCoefficients, InflowStats
from pycobre.hydro.tables.inflow_tables import history_noise, inflow_tables
from pycobre.hydro.uncertainty.monthly_history import MonthlyHistory

YEARS = 40


def fitted_case() -> Case:
    """Three plants whose inflow has memory, and nothing given but its history."""
    case = with_history(random_case(77, "lags", openings=5, iterations=2), years=YEARS)
    rng, months = np.random.default_rng(3), 12 * YEARS
    series = []
    for _ in case.hydros:
        z = [0.0]
        for _ in range(months - 1):
            z.append(0.7 * z[-1] + rng.standard_normal())
        series.append(40.0 + 6.0 * np.array(z))
    history = replace(case.inflow_history, value_m3s=np.concatenate(series))
    return replace(
        case,
        inflow_history=history,
        inflow_stats=InflowStats.empty(),
        ar_coefficients=ArCoefficients.empty(),
        correlation=None,
        config=replace(case.config, estimation=EstimationConfig(max_order=2, min_observations_per_season=20)),
    )


@pytest.fixture(scope="module")
def model() -> HydroModel:
    return build_model(fitted_case())


def test_columns_are_those_of_the_schemas_and_rows_are_sorted(model: HydroModel) -> None:
    tables = inflow_tables(model)
    assert list(tables) == [table.name for table in MODEL_TABLES]
    for table in MODEL_TABLES:
        columns = tables[table.name]
        assert tuple(columns) == table.names
        keys = [columns[name] for name in table.names if name.endswith("_id") or name == "lag"]
        rows = list(zip(*(key.tolist() for key in keys), strict=True))
        assert rows == sorted(set(rows)), table.name


def test_coefficients_and_correlations_are_those_of_the_fit(model: HydroModel) -> None:
    tables, given = inflow_tables(model), model.case.ar_coefficients
    assert len(given)
    phi = {
        (h, t, lag): value
        for h, t, lag, value in zip(*_columns(tables["inflow_coefficients"], "phi"), strict=True)
    }
    expected = {
        (h, t, lag): value
        for h, t, lag, value in zip(
            given.hydro_id.tolist(),
            given.stage_id.tolist(),
            given.lag.tolist(),
            given.coefficient.tolist(),
            strict=True,
        )
        if t >= 0
    }
    assert phi == pytest.approx(expected, rel=1e-12)
    orders = tables["inflow_models"]
    for h, t, order in zip(*(orders[n].tolist() for n in ("hydro_id", "stage_id", "order")), strict=True):
        assert order == max((lag for plant, stage, lag in expected if (plant, stage) == (h, t)), default=0)
    assert model.case.correlation is not None
    table = tables["inflow_correlations"]
    first = table["stage_id"] == table["stage_id"][0]
    assert first.sum() == 3
    matrices = [np.array(p.correlation_groups[0].matrix) for p in model.case.correlation.profiles.values()]
    upper = [matrix[np.triu_indices(3, 1)].tolist() for matrix in matrices]
    assert table["correlation"][first].tolist() in upper


def _columns(table: dict[str, np.ndarray], value: str) -> list[list[float]]:
    return [table[name].tolist() for name in ("hydro_id", "stage_id", "lag", value)]


def test_the_noise_of_history_gives_the_history_again(model: HydroModel) -> None:
    history = MonthlyHistory(model.case)
    noise = history_noise(model, history)
    stages = {stage.season_id: t for t, stage in enumerate(model.case.stages)}
    checked = 0
    for month in range(model.par.order, history.values.shape[1]):
        t = stages.get(int(history.season[month]))
        if t is None:
            assert np.isnan(noise[:, month]).all()
            continue
        lags = history.values[:, month - model.par.order : month][:, ::-1].T
        again = model.par.inflow(t, lags, noise[:, month])
        assert again == pytest.approx(history.values[:, month], rel=1e-12)
        checked += 1
    assert checked >= 3 * (YEARS - 1)
    tests = inflow_tables(model)["inflow_tests"]
    assert (np.abs(tests["noise_mean"]) < 0.2).all()
    assert (np.abs(tests["noise_std"] - 1.0) < 0.25).all()


def test_a_model_without_the_memory_of_its_history_is_found_out(model: HydroModel) -> None:
    """The same history with statistics alone: its months follow each other, and the model says they do not.

    The study has January to March, so January's noise is not seen beside that of the month before.
    """
    case = fitted_case()
    stats = model.case.inflow_stats
    bare = build_model(
        replace(
            case,
            inflow_stats=InflowStats(
                hydro_id=stats.hydro_id,
                stage_id=stats.stage_id,
                mean_m3s=stats.mean_m3s,
                std_m3s=stats.std_m3s,
            ),
            config=replace(case.config, estimation=replace(case.config.estimation, max_order=0)),
        )
    )
    assert bare.par.order == 0
    without, with_memory = (inflow_tables(m)["inflow_tests"]["whiteness_p"] for m in (bare, model))
    later = inflow_tables(model)["inflow_tests"]["season_id"] > 0
    assert (without[later] < 0.05).mean() > 0.8
    assert (with_memory[later] < 0.05).mean() < 0.2


def test_a_case_without_history_has_no_tests_and_one_without_plants_no_tables() -> None:
    tables = inflow_tables(build_model(random_case(77, "lags", openings=3)))
    assert "inflow_tests" not in tables
    assert np.isnan(tables["inflow_moments"]["history_mean_m3s"]).all()
    assert "inflow_coefficients" in tables
    assert "inflow_coefficients" not in inflow_tables(build_model(random_case(77, openings=3)))


def test_a_training_writes_them_and_every_run_the_same(tmp_path: Path) -> None:
    written = {}
    for name, workers in (("one", 1), ("two", 2)):
        pycobre.train(fitted_case(), output=tmp_path / name, num_workers=workers)
        results = pycobre.open_results(tmp_path / name)
        assert results.modelled == tuple(table.name for table in MODEL_TABLES)
        assert results.model("inflow_tests").num_rows == 9
        files = sorted((tmp_path / name / "stochastic").iterdir())
        written[name] = {path.name: path.read_bytes() for path in files}
    assert len(written["one"]) == 5
    assert written["one"] == written["two"]
    with pytest.raises(
        pycobre.errors.OutputError, match=r"there is no model table 'inflow'\. Choose one of: inflow_m"
    ):
        results.model("inflow")
