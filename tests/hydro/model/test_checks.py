"""Checks of cases made in Python: one sentence per rule that a case breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_case import LONG_AGO, bus, config, hydro, inflows, one_reservoir, stages, thermal

from pycobre.app import train
from pycobre.errors import CaseError
from pycobre.hydro.checks import check_case, require_sound
from pycobre.hydro.model.config import (
    ClassScheme,
    FileOpenings,
    GapRule,
    ScenarioSource,
    UpperBoundEvaluation,
)
from pycobre.hydro.model.constraints import HydroBounds
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.model.horizon import PolicyGraph, Transition
from pycobre.hydro.model.scenarios import (
    Correlation,
    CorrelationEntity,
    CorrelationGroup,
    CorrelationProfile,
    NoiseOpenings,
)
from pycobre.hydro.model.system import AnticipatedStages, Filling, Line, LineCapacity, Reservoir


def test_openings_from_a_file_may_have_been_selected() -> None:
    """As in Cobre 0.18.0: the bound is that of the same openings under another name."""
    number = np.arange(2)
    openings = NoiseOpenings(
        stage_id=number, opening_index=0 * number, entity_index=0 * number, value=np.array([0.5, -0.5])
    )
    from_file = config(scenario_source=ScenarioSource(openings=FileOpenings()))
    bounds = []
    for method in ("saa", "selective"):
        periods = stages(2, sampling_method=method)
        case = one_reservoir(
            periods,
            config=from_file,
            noise_openings=openings,
            inflow_stats=inflows(periods, {0: (20.0, 4.0)}),
        )
        bounds.append(train(case).final_lower_bound)
    assert bounds[0] == bounds[1]


def test_an_upper_bound_by_inner_approximation_is_said_to_have_no_effect() -> None:
    wanted = replace(config(), upper_bound_evaluation=UpperBoundEvaluation(enabled=True))
    found = [str(finding) for finding in check_case(one_reservoir(config=wanted))]
    assert found == [
        "warning [no_effect] config.json: upper_bound_evaluation: the setting has no effect here. No upper bound is "
        "computed by inner approximation, and Cobre shows none either."
    ]


def test_a_sound_case_has_no_findings() -> None:
    assert check_case(one_reservoir()) == []
    require_sound(one_reservoir())


def graph(**more: Any) -> PolicyGraph:
    return PolicyGraph(**({"type": "finite_horizon", "annual_discount_rate": 0.0} | more))


def line(source: int, target: int, **more: Any) -> Line:
    return Line(
        id=0,
        name="L",
        operational_start_date=LONG_AGO,
        source_bus_id=source,
        target_bus_id=target,
        capacity=LineCapacity(direct_mw=more.pop("direct", 10.0), reverse_mw=10.0),
        **more,
    )


def correlated(*rows: tuple[float, ...], ids: tuple[int, ...] = (0, 0)) -> Correlation:
    entities = tuple(CorrelationEntity(type="inflow", id=i) for i in ids)
    group = CorrelationGroup(name="g", entities=entities, matrix=rows)
    return Correlation(method="spectral", profiles={"p": CorrelationProfile(correlation_groups=(group,))})


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"thermals": (thermal(0, 1.0), thermal(0, 2.0))}, "thermal 0: every id is used once, got 2 times"),
    ({"thermals": (thermal(0, 1.0, bus=9),)}, "thermal 0: bus_id is the id of a bus, got 9"),
    ({"hydros": (hydro(0, bus=4),)}, "hydro 0, unit group 0: bus_id is the id of a bus, got 4"),
    ({"hydros": (hydro(0, downstream_id=0),)}, "water flows down to the sea, got 0 → 0"),
    ({"hydros": (hydro(0, downstream_id=5),)}, "downstream_id is the id of a hydro, got 5"),
    ({"lines": (line(0, 0),)}, "line 0: a line joins two buses"),
    (
        {"buses": (bus(0), bus(1)), "lines": (line(0, 1, direct=-1.0),)},
        "capacity.direct_mw is not negative, got -1",
    ),
    ({"stages": ()}, "a study has at least one stage"),
    ({"buses": ()}, "a system has at least one bus"),
    (
        {"inflow_stats": inflows(stages(1), {0: (1.0, 0.0)})},
        "hydro 0: there is a row for every stage, got none for stage 1",
    ),
    ({"production_models": ()}, "a plant has a productivity in every stage"),
    (
        {"hydros": (hydro(0, reservoir=Reservoir(min_storage_hm3=5.0, max_storage_hm3=1.0)),)},
        "storage limits: the minimum is not above the maximum, got 5 and 1",
    ),
    ({"policy_graph": graph(annual_discount_rate=-0.1)}, "a discount rate is not negative, got -0.1"),
    (
        {"policy_graph": graph(type="cyclic")},
        "in a cycle the discount rate is above 0: costs would add up for ever",
    ),
    (
        {"stages": stages(2, sampling_method="selective")},
        "stage 1: selective sampling without openings from a file is not supported yet. Give "
        'scenarios/noise_openings.parquet, and scenario_source.openings the source "file".',
    ),
    (
        {"config": config(scenario_source=ScenarioSource(load=ClassScheme(scheme="historical"), seed=1))},
        "training.scenario_source.load: historical scenarios of load are not supported yet. A case has a history of "
        'inflows only: give scenarios/external_load_scenarios.parquet and the scheme "external".',
    ),
    (
        {"policy_graph": graph(transitions=(Transition(source_id=0, target_id=1, probability=0.5),))},
        "transition 0 → 1: without nodes, a transition leads to the next stage with probability 1, got",
    ),
    (
        {"hydros": (hydro(0, filling=Filling(start_stage_id=0)),)},
        "a reservoir that fills has an entry_stage_id",
    ),
    (
        {"thermals": (thermal(0, 1.0, anticipated_config=AnticipatedStages(lead_stages=1)),)},
        "past_anticipated_commitments cover every stage that was decided before the study",
    ),
    ({"config": config(iterations=0)}, "a count is at least 1, got 0"),
    (
        {
            "config": replace(
                config(), training=replace(config().training, stopping_rules=(GapRule(tolerance=1.0),))
            )
        },
        "one of the stopping rules is an iteration_limit",
    ),
    (
        {
            "config": replace(
                config(),
                training=replace(config().training, stopping_rules=(GapRule(relative_tolerance=1.0),)),
            )
        },
        "the rule gap needs an exact upper bound, got sampled paths",
    ),
    (
        {"hydro_bounds": HydroBounds(hydro_id=np.array([3]), stage_id=np.array([0]))},
        "hydro_id, row 0: hydro_id is an id in hydros, got 3",
    ),
    (
        {"hydro_bounds": HydroBounds(hydro_id=np.array([0]), stage_id=np.array([8]))},
        "stage_id, row 0: stage_id is the id of a stage, got 8",
    ),
    (
        {"hydro_bounds": HydroBounds(hydro_id=np.array([0, 0]), stage_id=np.array([1, 1]))},
        "hydro_id 0, stage_id 1, block_id all: every row has a key of its own, got 2 rows",
    ),
    (
        {
            "hydro_bounds": HydroBounds(
                hydro_id=np.array([0]),
                stage_id=np.array([0]),
                block_id=np.array([0]),
                filling_min_rate_m3s=np.array([5.0]),
            )
        },
        "rates of filling by block are not supported yet",
    ),
    ({"correlation": correlated((1.0, 0.5), (0.4, 1.0))}, "the matrix is symmetric"),
    ({"correlation": correlated((1.0, 0.5))}, "the matrix is 2 × 2"),
    ({"correlation": correlated((1.0,), ids=(8,))}, "id is the id of a inflow, got 8"),
]


@pytest.mark.parametrize(("changes", "said"), ERRORS, ids=[text[:40] for _, text in ERRORS])
def test_each_mistake_is_said(changes: dict[str, Any], said: str) -> None:
    case = replace(one_reservoir(), **changes)
    errors = [str(f) for f in check_case(case) if f.severity is Severity.ERROR]
    assert any(said in text for text in errors), errors
    with pytest.raises(CaseError):
        require_sound(case)


def test_doubts_are_warnings_and_do_not_hinder() -> None:
    start = one_reservoir().initial_conditions
    case = one_reservoir(
        buses=(bus(0), bus(1)),
        lines=(line(0, 1, losses_percent=3.0),),
        initial_conditions=replace(start, storage=(replace(start.storage[0], value_hm3=900.0),)),
    )
    case = replace(case, load_stats=type(case.load_stats).empty())
    findings = check_case(case)
    assert {f.kind for f in findings} == {"losses_not_modelled", "initial_storage", "no_load"}
    assert {f.severity for f in findings} == {Severity.WARNING}
    require_sound(case)
