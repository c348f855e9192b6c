"""Forward draws: pure functions of (iteration, scenario), and exact where the numbers themselves are given."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from small_case import config, hydro, inflows, lags, loads, one_reservoir, stages

from pycobre.errors import CaseError
from pycobre.hydro.build import HydroModel, build_model
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import ClassScheme, FileOpenings, ScenarioSource, YearRange
from pycobre.hydro.model.initial import InflowObservation
from pycobre.hydro.model.scenarios import ExternalInflows, ExternalLoads, InflowHistory, NoiseOpenings
from pycobre.hydro.uncertainty.inflows import initial_lags
from pycobre.hydro.uncertainty.scenario_sampler import EXTERNAL_SEED, HISTORICAL_SEED, ScenarioSampler
from pycobre.stochastic import streams


def two_plants(**changes: object) -> Case:
    periods = stages(4, openings=5)
    plants = (hydro(0), hydro(1))
    case = one_reservoir(
        periods,
        hydros=plants,
        inflow_stats=inflows(periods, {0: (20.0, 5.0), 1: (9.0, 2.0)}, before=2),
        ar_coefficients=lags(periods, {0: (0.4, 0.2), 1: (0.3,)}),
        load_stats=loads(periods, {0: 80.0}, std=6.0),
    )
    seen = tuple(
        InflowObservation(
            hydro_id=h.id, start_date=date(2023, 12, 1), end_date=date(2024, 1, 1), value_m3s=25.0
        )
        for h in plants
    )
    case = replace(case, initial_conditions=replace(case.initial_conditions, recent_observations=seen))
    return replace(case, **changes)  # type: ignore[arg-type]


def source(**schemes: str) -> ScenarioSource:
    made = {name: ClassScheme(scheme=scheme) for name, scheme in schemes.items()}  # type: ignore[arg-type]
    return ScenarioSource(seed=11, **made)


def simulate_inflow(study: HydroModel, values: tuple[np.ndarray | None, ...], scenario: int) -> np.ndarray:
    """The inflows that patch vectors lead to: what they write plus the lags' share, period by period."""
    lag = study.problem.initial[2:].reshape(study.par.order, 2)
    found = []
    for t, patch in enumerate(values):
        assert patch is not None
        inflow = patch[scenario, :2] + (study.par.psi[t] * lag).sum(axis=0)
        lag = np.concatenate([inflow[None], lag[:-1]])
        found.append(inflow)
    return np.array(found)


def test_in_sample_takes_openings_of_the_tree() -> None:
    study = build_model(two_plants())
    openings, values = ScenarioSampler(study, None).draw(3, 0, 50)
    assert values == (None,) * 4
    expected = streams.forward_index(study.seed, 3, np.arange(50), 2, 5)
    assert openings[:, 2].tolist() == expected.tolist()
    assert set(openings.ravel().tolist()) == set(range(5))


@pytest.mark.parametrize("scheme", ["in_sample", "out_of_sample"])
def test_a_scenario_does_not_depend_on_its_block(scheme: str) -> None:
    forward = ScenarioSampler(build_model(two_plants()), source(inflow=scheme, load="out_of_sample"))
    openings, values = forward.draw(2, 0, 12)
    part, some = forward.draw(2, 5, 4)
    assert np.array_equal(openings[5:9], part)
    for whole, piece in zip(values, some, strict=True):
        assert whole is not None
        assert piece is not None
        assert np.array_equal(whole[5:9], piece)


def test_out_of_sample_noise_is_the_peers_and_its_classes_are_independent() -> None:
    study = build_model(two_plants())
    _, values = ScenarioSampler(study, source(inflow="out_of_sample", load="out_of_sample")).draw(1, 0, 3000)
    patch = values[1]
    assert patch is not None
    eta = (patch[:, :2] - study.par.base[1]) / study.par.sigma[1]
    period, scenarios = 1, np.arange(3000)  # February is the second period of the study
    inflow = streams.forward_normal(streams.grouped_forward_seed(11, 1, scenarios, period), 2)
    own = streams.class_seed(11, "load")
    load = streams.forward_normal(streams.grouped_forward_seed(own, 1, scenarios, period), 1)
    assert eta == pytest.approx(inflow, abs=1e-12)
    assert patch[:, 2] == pytest.approx(np.maximum(0.0, 80.0 + 6.0 * load[:, 0]))
    assert abs(np.corrcoef(eta[:, 0], patch[:, 2])[0, 1]) < 0.06


def test_a_missing_seed_is_named() -> None:
    forward = ScenarioSampler(
        build_model(two_plants()), ScenarioSource(inflow=ClassScheme(scheme="out_of_sample"))
    )
    with pytest.raises(CaseError, match=r"scenario_source\.seed: expected an integer for out_of_sample"):
        forward.draw(1, 0, 1)


def test_external_inflows_come_out_exactly_whatever_the_lags() -> None:
    rows = [
        (t, s, h, 10.0 * t + s + 100 * h) for t in range(4) for s in range(1 if t == 0 else 3) for h in (0, 1)
    ]
    t, s, h, v = (np.array(c) for c in zip(*rows, strict=True))
    case = two_plants(external_inflows=ExternalInflows(stage_id=t, scenario_id=s, hydro_id=h, value_m3s=v))
    study = build_model(case)
    openings, values = ScenarioSampler(study, source(inflow="external")).draw(4, 0, 20)
    assert (openings == -1).all()
    picked = streams.forward_seed(EXTERNAL_SEED, 4, np.arange(20), 0) % np.uint64(3)
    for scenario in range(20):
        number = int(picked[scenario])
        expected = [[10.0 * t + (number if t else 0) + 100 * h for h in (0, 1)] for t in range(4)]
        assert simulate_inflow(study, values, scenario) == pytest.approx(np.array(expected), abs=1e-9)


def test_external_loads_replace_the_mean() -> None:
    rows = [(t, s, 0, 50.0 + 10 * t + s) for t in range(4) for s in range(2)]
    t, s, b, v = (np.array(c) for c in zip(*rows, strict=True))
    case = two_plants(external_loads=ExternalLoads(stage_id=t, scenario_id=s, bus_id=b, value_mw=v))
    _, values = ScenarioSampler(build_model(case), source(load="external")).draw(1, 0, 30)
    assert values[2] is not None
    assert set(values[2][:, 2].tolist()) == {70.0, 71.0}


def test_incomplete_external_scenarios_are_named() -> None:
    table = ExternalInflows(
        stage_id=np.zeros(1), scenario_id=np.zeros(1), hydro_id=np.zeros(1), value_m3s=np.ones(1)
    )
    chosen = config(scenario_source=source(inflow="external"))
    with pytest.raises(CaseError) as caught:
        build_model(two_plants(config=chosen, external_inflows=table))
    said = {f.entity: f.value for f in caught.value.findings if f.kind == "missing_scenarios"}
    assert said["stage 0"] == "none of hydro_id 1 in scenario 0"
    assert said["stage 3"] == "none"


def history(years: range) -> InflowHistory:
    rows = []
    for year in years:
        for month in range(1, 13):
            following = date(year + (month == 12), month % 12 + 1, 1)
            for h in (0, 1):
                rows.append((h, date(year, month, 1), following, year - 1990 + month / 100 + 50 * h))
    h, start, end, value = zip(*rows, strict=True)
    return InflowHistory(
        hydro_id=np.array(h),
        start_date=np.array(start, dtype="datetime64[D]"),
        end_date=np.array(end, dtype="datetime64[D]"),
        value_m3s=np.array(value),
    )


def test_history_is_replayed_year_by_year() -> None:
    study = build_model(two_plants(inflow_history=history(range(1995, 2003))))
    chosen = replace(source(inflow="historical"), historical_years=YearRange(from_=1996, to=1999))
    _, values = ScenarioSampler(study, chosen).draw(7, 0, 25)
    picked = streams.forward_seed(HISTORICAL_SEED, 7, np.arange(25), 0) % np.uint64(4)
    for scenario in range(25):
        year = 1996 + int(picked[scenario])
        expected = [[year - 1990 + (t + 1) / 100 + 50 * h for h in (0, 1)] for t in range(4)]
        assert simulate_inflow(study, values, scenario) == pytest.approx(np.array(expected), abs=1e-9)


def test_history_without_a_complete_year_is_refused() -> None:
    study = build_model(two_plants(inflow_history=history(range(1995, 1996))))
    with pytest.raises(CaseError, match="at least one year whose history covers all stages for every hydro"):
        ScenarioSampler(study, replace(source(inflow="historical"), historical_years=(1996,)))


def test_a_year_of_history_needs_none_before_it() -> None:
    study = build_model(two_plants(inflow_history=history(range(1995, 1996))))
    _, values = ScenarioSampler(study, replace(source(inflow="historical"), historical_years=(1995,))).draw(
        1, 0, 1
    )
    expected = [[5.0 + (t + 1) / 100 + 50 * h for h in (0, 1)] for t in range(4)]
    assert simulate_inflow(study, values, 0) == pytest.approx(np.array(expected), abs=1e-9)


def test_openings_of_historical_residuals_reproduce_history_from_the_studys_own_past() -> None:
    periods = tuple(replace(s, sampling_method="historical_residuals") for s in stages(4, openings=5))
    case = two_plants(stages=periods, inflow_history=history(range(1990, 2000)))
    study = build_model(case)
    past = initial_lags(case, study.index, 2)[::-1]
    for stage in (0, 2):
        noise = study.openings[stage][:, :2]
        count = noise.shape[0]
        window = (streams.opening_seed(42, np.arange(count), stage) % np.uint64(10)).astype(int)
        for opening in range(count):
            months = [[int(window[opening]) + m / 100 + 50 * h for h in (0, 1)] for m in (1, 2, 3, 4)]
            series = np.concatenate([past, months])
            rebuilt = study.par.inflow(stage, series[stage : stage + 2][::-1], noise[opening])
            assert rebuilt == pytest.approx(series[stage + 2], abs=1e-9)


def test_openings_from_a_file() -> None:
    rng = np.random.default_rng(3)
    given = rng.normal(size=(4, 2, 3))
    t, o, e = (index.ravel() for index in np.indices(given.shape))
    table = NoiseOpenings(stage_id=t, opening_index=o, entity_index=e, value=given.ravel())
    chosen = config(scenario_source=ScenarioSource(openings=FileOpenings()))
    study = build_model(two_plants(config=chosen, noise_openings=table))
    for stage in range(4):
        assert np.array_equal(study.openings[stage], given[stage])
    gap = NoiseOpenings(stage_id=t[1:], opening_index=o[1:], entity_index=e[1:], value=given.ravel()[1:])
    with pytest.raises(CaseError, match=r"stage 0: every opening has 3 values.* got 5 values in 2 openings"):
        build_model(two_plants(config=chosen, noise_openings=gap))


def test_the_tree_is_drawn_around_external_scenarios() -> None:
    """Mean and deviation over the scenarios replace the statistics; with lags the model stays."""
    values = np.array([10.0, 14.0, 30.0])
    given = ExternalInflows(
        stage_id=np.repeat([0, 1, 2], 3),
        scenario_id=np.tile([0, 1, 2], 3),
        hydro_id=np.zeros(9, dtype=np.int32),
        value_m3s=np.concatenate([values, 2.0 * values, np.full(3, 7.0)]),
    )
    periods = stages(3, openings=2)
    source = ScenarioSource(seed=1, inflow=ClassScheme(scheme="external"))
    case = one_reservoir(
        periods,
        inflow_stats=inflows(periods, {0: (20.0, 4.0)}, before=1),
        external_inflows=given,
        config=config(scenario_source=source),
    )
    par = build_model(case).par
    np.testing.assert_allclose(par.base[:, 0], [18.0, 36.0, 7.0])
    np.testing.assert_allclose(par.sigma[:, 0], [values.std(), 2.0 * values.std(), 0.0])
    remembering = replace(case, ar_coefficients=lags(periods, {0: (0.5,)}))
    np.testing.assert_allclose(build_model(remembering).par.base[:, 0], 10.0)
