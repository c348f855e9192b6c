"""Bounds of Cobre 0.18 for small cases, each of which depends on one convention of its format.

The numbers are what Cobre 0.18.0 itself gave for these cases, written by `write_case`: lower and upper bound of
the first iteration, and the lower bound of the last. Plans are unique, so the traces are the same.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from random_case import random_case

from pycobre.app import train
from pycobre.hydro.model import constraints as con
from pycobre.hydro.model import scenarios as sce
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import ClassScheme, FileOpenings, ScenarioSource
from pycobre.hydro.model.horizon import CVaR, CVaRParameters, Transition

STAGES = np.arange(3)
LATER = date(2024, 2, 1)


def drawn(*features: str, openings: int = 3) -> Case:
    return random_case(77, *features, openings=openings, iterations=8)


def with_stage(case: Case, id: int, **changes: Any) -> Case:
    return replace(case, stages=tuple(replace(s, **changes) if s.id == id else s for s in case.stages))


def with_hydro(case: Case, id: int, **changes: Any) -> Case:
    return replace(case, hydros=tuple(replace(h, **changes) if h.id == id else h for h in case.hydros))


def with_training(case: Case, **changes: Any) -> Case:
    return replace(case, config=replace(case.config, training=replace(case.config.training, **changes)))


def risky(alpha: float, share: float) -> CVaR:
    return CVaR(cvar=CVaRParameters(alpha=alpha, lambda_=share))


def correlated(case: Case) -> Case:
    assert case.correlation is not None
    group = case.correlation.profiles["default"].correlation_groups[0]
    matrix = ((1.0, 0.5, 0.1), (0.5, 1.0, -0.2), (0.1, -0.2, 1.0))
    profile = sce.CorrelationProfile(correlation_groups=(replace(group, matrix=matrix),))
    return replace(case, correlation=sce.Correlation(method="spectral", profiles={"default": profile}))


def from_file(case: Case) -> Case:
    stage, opening, entity = np.meshgrid(STAGES, np.arange(2), np.arange(3), indexing="ij")
    given = sce.NoiseOpenings(
        stage_id=stage.ravel(),
        opening_index=opening.ravel(),
        entity_index=entity.ravel(),
        value=np.round(np.cos(np.arange(18.0)), 3),
    )
    return with_training(
        replace(case, noise_openings=given), scenario_source=ScenarioSource(openings=FileOpenings())
    )


def with_history(case: Case, years: int = 6) -> Case:
    """Months of the years before the study; the first year has nothing before it."""
    months = np.arange(12 * years)
    start = np.datetime64("2024-01", "M") - 12 * years + months
    plants = [hydro.id for hydro in case.hydros]
    value = 15.0 + 4.0 * np.round(np.cos(np.arange(months.size * len(plants)) * 1.7), 3)
    history = sce.InflowHistory(
        hydro_id=np.repeat(plants, months.size),
        start_date=np.tile(start.astype("datetime64[D]"), len(plants)),
        end_date=np.tile((start + 1).astype("datetime64[D]"), len(plants)),
        value_m3s=value,
    )
    return replace(case, inflow_history=history)


def external(case: Case) -> Case:
    """Four inflow scenarios, and no statistics but theirs."""
    stage, scenario, plant = np.meshgrid(STAGES, np.arange(4), [h.id for h in case.hydros], indexing="ij")
    given = sce.ExternalInflows(
        stage_id=stage.ravel(),
        scenario_id=scenario.ravel(),
        hydro_id=plant.ravel(),
        value_m3s=15.0 + 4.0 * np.round(np.cos(np.arange(stage.size) * 2.3), 3),
    )
    return with_training(
        replace(case, external_inflows=given, inflow_stats=sce.InflowStats.empty()),
        scenario_source=ScenarioSource(seed=3, inflow=ClassScheme(scheme="external")),
    )


def diverting(case: Case, **limits: float) -> Case:
    """The first plant must divert 3 m³/s or more in every stage."""
    rows = {name: np.full(3, value) for name, value in limits.items()}
    return replace(
        case,
        hydro_bounds=con.HydroBounds(
            hydro_id=np.zeros(3), stage_id=STAGES, min_diversion_m3s=np.full(3, 3.0), **rows
        ),
    )


def discounted_twice() -> Case:
    case = with_stage(drawn("discount"), 0, annual_discount_rate_override=0.4)
    arcs = (
        Transition(source_id=0, target_id=1, probability=1.0, annual_discount_rate_override=0.7),
        Transition(source_id=1, target_id=2, probability=1.0),
    )
    return replace(case, policy_graph=replace(case.policy_graph, transitions=arcs))


CASES: dict[str, Case] = {
    "a risky last but one stage": with_stage(drawn(), 1, risk_measure=risky(0.3, 1.0)),
    "a risky first stage": with_stage(drawn(), 0, risk_measure=risky(0.3, 0.6)),
    "a stage's discount rate goes first": discounted_twice(),
    "a seed below zero": with_training(drawn(), tree_seed=-5),
    "a hydro that begins later is drawn last": with_hydro(drawn(), 0, operational_start_date=LATER),
    "and correlated as its id says": with_hydro(
        correlated(drawn("correlation")), 0, operational_start_date=LATER
    ),
    "and out of sample": with_training(
        with_hydro(correlated(drawn("correlation")), 0, operational_start_date=LATER),
        scenario_source=ScenarioSource(seed=-5, inflow=ClassScheme(scheme="out_of_sample")),
    ),
    "and in files": with_hydro(from_file(drawn(openings=2)), 0, operational_start_date=LATER),
    "diverted water does not count as outflow": diverting(drawn("diversion"), min_outflow_m3s=15.0),
    "nor against the most of it": diverting(drawn("diversion"), max_outflow_m3s=12.0),
    "years of history follow the study's own past": with_training(
        with_history(drawn("lags")),
        scenario_source=ScenarioSource(seed=3, inflow=ClassScheme(scheme="historical")),
    ),
    "and so do their residuals": replace(
        with_history(drawn("lags")),
        stages=tuple(replace(s, sampling_method="historical_residuals") for s in drawn("lags").stages),
    ),
    "external scenarios are statistics enough": external(drawn()),
}
PEER: dict[str, tuple[float, float, float]] = {
    "a risky last but one stage": (1846964.7798115502, 1608207.0728357935, 1846967.8884089934),
    "a risky first stage": (2070618.0575528296, 1608207.0728357935, 2070623.0727567042),
    "a stage's discount rate goes first": (682692.0557025127, 796283.1909732996, 842899.5234495051),
    "a seed below zero": (2195898.1681259563, 2606598.795022665, 2195937.381017407),
    "a hydro that begins later is drawn last": (1574403.3738322165, 1713279.5995597616, 1582632.2379257432),
    "and correlated as its id says": (1579884.8259444917, 1790875.3161839733, 1595164.0629176123),
    "and out of sample": (1579654.668131045, 2149131.7812650343, 1592176.590532599),
    "and in files": (2039728.2907044287, 2368949.736568615, 2055654.9610537735),
    "diverted water does not count as outflow": (1496820.9549449568, 2620080.350021159, 2113957.402876303),
    "nor against the most of it": (2361759.5652301908, 2263824.033147052, 2367088.5847954946),
    "years of history follow the study's own past": (
        1841041.2596245673,
        3108059.5820147027,
        2629769.3114401726,
    ),
    "and so do their residuals": (2145904.8915710365, 3338967.5992087275, 2610703.354768166),
    "external scenarios are statistics enough": (1456366.3963484159, 1805979.4847177737, 1568725.9994647077),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_are_those_of_the_peer(name: str) -> None:
    history = train(CASES[name]).convergence_history
    lower, upper = history["lower_bound"].to_pylist(), history["upper_bound"].to_pylist()
    assert (lower[0], upper[0], lower[-1]) == pytest.approx(PEER[name], rel=1e-9)
