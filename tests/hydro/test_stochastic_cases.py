"""Random cases: converged bounds equal the extensive form, and nothing depends on the order of declaration."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from datetime import date
from typing import Any

import mini_sddp
import numpy as np
import pytest
from small_case import (
    bus,
    config,
    hydro,
    inflows,
    lags,
    loads,
    one_reservoir,
    productivity,
    stages,
    thermal,
    weeks,
)

from pycobre.comm import LocalBackend
from pycobre.hydro.build import build_model
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.initial import InflowObservation, InitialConditions, InitialStorage
from pycobre.hydro.model.scenarios import (
    Correlation,
    CorrelationEntity,
    CorrelationGroup,
    CorrelationProfile,
    SourceStats,
)
from pycobre.hydro.model.system import Line, LineCapacity, NonControllableSource
from pycobre.problem.extensive import solve_extensive_form
from pycobre.sddp import IterationLimit, TrainOptions, train


def four_plants(**changes: Any) -> Case:
    """A cascade over two buses with lags, correlation, random load and wind, three stages of four openings."""
    periods = changes.pop("stages", stages(3, openings=4, hours=(60.0, 40.0)))
    plants = (
        hydro(3, downstream_id=7, volume=30.0),
        hydro(7, bus=1, volume=20.0, downstream_id=5),
        hydro(5, bus=0, volume=10.0),
    )
    months = ((date(2023, 12, 1), date(2024, 1, 1)), (date(2023, 11, 1), date(2023, 12, 1)))
    before = tuple(
        InflowObservation(hydro_id=h.id, start_date=start, end_date=end, value_m3s=12.0 + 6 * i)
        for h in plants
        for i, (start, end) in enumerate(months)
    )
    matrix = ((1.0, 0.6, 0.3), (0.6, 1.0, 0.2), (0.3, 0.2, 1.0))
    group = CorrelationGroup(
        name="basin", entities=tuple(CorrelationEntity(type="inflow", id=i) for i in (7, 3, 5)), matrix=matrix
    )
    wind = NonControllableSource(
        id=4,
        name="W",
        operational_start_date=plants[0].operational_start_date,
        bus_id=1,
        max_generation_mw=20.0,
    )
    line = Line(
        id=0,
        name="L",
        operational_start_date=plants[0].operational_start_date,
        source_bus_id=0,
        target_bus_id=1,
        capacity=LineCapacity(direct_mw=30.0, reverse_mw=20.0),
    )
    count = len(periods)
    values: dict[str, Any] = {
        "hydros": plants,
        "buses": (bus(1), bus(0)),
        "lines": (line,),
        "thermals": (thermal(2, 50.0, 30.0), thermal(1, 90.0, 40.0, bus=1)),
        "non_controllable_sources": (wind,),
        "initial_conditions": InitialConditions(
            storage=tuple(InitialStorage(hydro_id=h.id, value_hm3=8.0) for h in plants),
            filling_storage=(),
            recent_observations=before,
        ),
        "config": config("penalty"),
        "inflow_stats": inflows(periods, {3: (20.0, 8.0), 7: (10.0, 4.0), 5: (5.0, 4.0)}, before=2),
        "ar_coefficients": lags(periods, {3: (0.4, 0.2), 7: (0.3,), 5: (0.5, -0.1)}),
        "load_stats": loads(periods, {0: 60.0, 1: 45.0}, std=5.0),
        "source_stats": SourceStats(
            ncs_id=np.full(count, 4),
            stage_id=np.arange(count),
            mean=np.full(count, 0.5),
            std=np.full(count, 0.3),
        ),
        "correlation": Correlation(
            method="spectral", profiles={"default": CorrelationProfile(correlation_groups=(group,))}
        ),
        "production_models": productivity(*plants),
    }
    return one_reservoir(periods, **(values | changes))


def converge(case: Case, iterations: int = 60) -> float:
    study = build_model(case)
    options = TrainOptions(forward_passes=3, stopping=IterationLimit(iterations))
    return train(study.problem, LocalBackend(), options).lower_bound


@pytest.mark.parametrize("method", ["none", "penalty"])
def test_the_bound_converges_to_the_extensive_form(method: str) -> None:
    case = four_plants(config=config(method))
    exact = solve_extensive_form(build_model(case).problem)
    assert converge(case) == pytest.approx(exact, rel=1e-6)


def test_weeks_of_a_month_share_noise_and_keep_their_lags() -> None:
    """Lag 1 of every January week is December's inflow; in February it is January's mean."""
    periods = weeks(6, openings=2)
    observed = InflowObservation(
        hydro_id=0,
        start_date=periods[0].start_date.replace(year=2023, month=12),
        end_date=periods[0].start_date,
        value_m3s=30.0,
    )
    case = one_reservoir(
        periods,
        inflow_stats=inflows(periods, {0: (20.0, 4.0)}, before=1),
        ar_coefficients=lags(periods, {0: (0.5,)}),
        initial_conditions=InitialConditions(
            storage=(InitialStorage(hydro_id=0, value_hm3=50.0),),
            filling_storage=(),
            recent_observations=(observed,),
        ),
    )
    study = build_model(case)
    january, february = study.openings[0], study.openings[5]
    assert all(np.array_equal(study.openings[t], january) for t in range(1, 5))
    assert not np.array_equal(february, january)
    solvers = [mini_sddp.StageSolver(node, t == 5) for t, node in enumerate(study.problem.nodes)]
    x, seen, lag = study.problem.initial, [], []
    for t, solver in enumerate(solvers):
        lag.append(x[1])
        _, _, x, _, z = solver.solve(x, study.problem.nodes[t].noise.values[t % 2])
        seen.append(z[study.lps[t].columns["inflow"][0]])
    sigma = 4.0 * np.sqrt(0.75)
    eta = [study.openings[t][t % 2, 0] for t in range(6)]
    assert lag[:5] == pytest.approx([30.0] * 5)
    assert seen[:5] == pytest.approx([20.0 + 0.5 * 10.0 + sigma * e for e in eta[:5]], abs=1e-9)
    days = np.array([7, 7, 7, 7, 3])  # the fifth week is in January for three days
    assert lag[5] == pytest.approx(float((days * seen[:5]).sum() / days.sum()), abs=1e-9)
    assert solve_extensive_form(study.problem) == pytest.approx(converge(case, 30), rel=1e-6)


def test_declaration_order_changes_no_byte() -> None:
    case = four_plants()
    chance = random.Random(5)

    def shuffled(item: Any) -> Any:
        listed = list(item)
        chance.shuffle(listed)
        return tuple(listed)

    changes = {
        f.name: shuffled(getattr(case, f.name))
        for f in fields(case)
        if isinstance(getattr(case, f.name), tuple)
    }
    changes["initial_conditions"] = replace(
        case.initial_conditions, storage=shuffled(case.initial_conditions.storage)
    )
    for name in ("inflow_stats", "ar_coefficients", "load_stats", "source_stats"):
        table = getattr(case, name)
        order = np.array(chance.sample(range(len(table)), len(table)))
        changes[name] = type(table)(**{f.name: getattr(table, f.name)[order] for f in fields(table)})
    other = replace(case, **changes)
    assert build_model(other).problem.to_bytes() == build_model(case).problem.to_bytes()


def test_correlation_rows_follow_their_entities_not_their_ids() -> None:
    case = four_plants(stages=stages(1, openings=4000))
    noise = build_model(case).openings[0]
    measured = np.corrcoef(noise[:, :3].T)  # hydros by id: 3, 5, 7
    expected = np.array([[1.0, 0.2, 0.6], [0.2, 1.0, 0.3], [0.6, 0.3, 1.0]])
    assert np.abs(measured - expected).max() < 0.05
    assert np.abs(np.corrcoef(noise.T)[:3, 3:]).max() < 0.05


def test_truncated_inflow_is_never_negative_and_the_lp_knows_it() -> None:
    case = four_plants(config=config("truncation"))
    wild = inflows(case.stages, {3: (5.0, 20.0), 7: (2.0, 15.0), 5: (1.0, 9.0)}, before=2)
    study = build_model(replace(case, inflow_stats=wild))
    solvers = [mini_sddp.StageSolver(node, t == 2) for t, node in enumerate(study.problem.nodes)]
    negative = 0
    for opening in range(4):
        x = study.problem.initial
        for t, solver in enumerate(solvers):
            patch = study.problem.nodes[t].noise.values[opening]
            raw = patch[:3] + (study.par.psi[t] * x[3:].reshape(2, 3)).sum(axis=0)
            _, _, x, _, z = solver.solve(x, patch)
            inflow = z[study.lps[t].columns["inflow"]]
            assert inflow == pytest.approx(np.maximum(raw, 0.0), abs=1e-7)
            negative += int((raw < 0).sum())
    assert negative > 5, "no inflow would have been negative: make them wilder"
