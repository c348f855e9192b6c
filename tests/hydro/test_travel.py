"""Water that takes time from plant to plant: shares by stage, what is on its way at the start, and its worth."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from random_case import random_case
from small_case import config, hydro, inflows, one_reservoir, productivity, stages

from pycobre.app import simulate, train
from pycobre.hydro.build import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.stage_builder import StageLp
from pycobre.hydro.equations.travel import Travel, travel_times
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Block, Stage
from pycobre.hydro.model.initial import InitialConditions, PastDefluence
from pycobre.problem.extensive import solve_extensive_form

HOURS, TAU = 100.0, 0.36
NOVEMBER, CHRISTMAS, START = date(2023, 11, 1), date(2023, 12, 26), date(2024, 1, 1)


def released(*windows: tuple[date, date, float]) -> tuple[PastDefluence, ...]:
    return tuple(PastDefluence(hydro_id=0, start_date=a, end_date=b, value_m3s=v) for a, b, v in windows)


def river(
    hours: float, periods: tuple[Stage, ...], past: tuple[PastDefluence, ...] | None = None, **below: object
) -> Case:
    """A plant that turbines its 20 m³/s at once, and one below it, without other water, that has the tank."""
    plants = (
        hydro(0, volume=0.0, downstream_id=1, travel_time_hours=hours),
        hydro(1, volume=1000.0, **below),  # type: ignore[arg-type]
    )
    return one_reservoir(
        periods,
        hydros=plants,
        config=config(iterations=10),
        production_models=(*productivity(plants[0], value=0.0001), *productivity(plants[1])),
        inflow_stats=inflows(periods, {0: (20.0, 0.0), 1: (0.0, 0.0)}),
        initial_conditions=InitialConditions(
            storage=(),
            filling_storage=(),
            past_defluences=released((NOVEMBER, START, 10.0)) if past is None else past,
        ),
    )


def travel(case: Case) -> Travel:
    found = travel_times(case, Index(case))
    assert found is not None
    return found


def of_hours(*hours: float) -> tuple[Stage, ...]:
    return tuple(
        replace(stage, blocks=(Block(id=0, name="b", hours=h),))
        for stage, h in zip(stages(len(hours)), hours, strict=True)
    )


def test_outflow_arrives_evenly_after_its_travel() -> None:
    """Stages of 100, 50, 300 and 100 hours, 72 hours of travel: 28 hours now, 50 in the next, 22 in the third."""
    found = travel(river(72.0, of_hours(100.0, 50.0, 300.0, 100.0)))
    assert found.slots == ((1, 1, 0), (1, 2, 0))
    assert _shares(found, 0) == {(0, 0): [0.28], (1, 0): [0.5], (2, 0): [0.22]}
    assert _shares(found, 1) == {(0, 0): [0.0], (1, 0): [1.0]}
    assert _shares(found, 2) == {(0, 0): [0.76], (1, 0): [0.24]}
    assert _shares(found, 3) == {(0, 0): [0.28]}
    assert found.initial == pytest.approx([10.0 * 72 * 0.0036, 0.0])


def _shares(found: Travel, t: int) -> dict[tuple[int, int], list[float]]:
    """(stages later, part of that stage) → the share of every span of the stage, to ten digits."""
    river = found.shares[t][0]
    columns = {(0, part): share for part, share in enumerate(river.at_once.T)}
    columns |= {(slot.ahead, slot.part): share for slot, share in river.later}
    return {where: np.round(share, 10).tolist() for where, share in columns.items()}


def test_blocks_send_water_to_blocks() -> None:
    """Stages of 60 + 40 hours, 130 hours of travel: block 0 arrives at 130 to 190, block 1 at 190 to 230."""
    periods = stages(4, 1, (60.0, 40.0), block_mode="chronological")
    found = travel(river(130.0, periods))
    assert found.slots == ((1, 1, 0), (1, 1, 1), (1, 2, 0))
    assert _shares(found, 0) == {
        (0, 0): [0.0, 0.0],
        (0, 1): [0.0, 0.0],
        (1, 0): [0.5, 0.0],
        (1, 1): [0.5, 0.25],
        (2, 0): [0.0, 0.75],
    }


def test_a_stage_without_order_in_it_sends_and_takes_in_evenly() -> None:
    """A week in parallel blocks between two whose blocks follow each other: as Cobre 0.18.0 has it."""
    one, two, three = stages(3, 1, (60.0, 40.0), block_mode="chronological")
    found = travel(river(30.0, (one, replace(two, block_mode="parallel"), three)))
    assert _shares(found, 0) == {(0, 0): [0.5, 0.0], (0, 1): [0.5, 0.25], (1, 0): [0.0, 0.75]}
    assert _shares(found, 1) == {(0, 0): [0.7], (1, 0): [0.3]}


def test_water_on_its_way_arrives_as_it_was_released() -> None:
    """As Cobre 0.18.0 has it: of 260 hours, the first 116 at 10 m³/s, the last 144 at 4."""
    past = released((NOVEMBER, CHRISTMAS, 10.0), (CHRISTMAS, START, 4.0))
    found = travel(river(260.0, stages(4), past))
    assert found.slots == ((1, 1, 0), (1, 2, 0), (1, 3, 0))
    assert found.initial == pytest.approx([3.6, 1.7856, 60 * 4 * 0.0036])


def test_late_water_saves_less_fuel() -> None:
    """All that has arrived by the end is turbined; what is under way then is lost."""
    periods = stages(3)

    def fuel(case: Case) -> float:
        return train(case).final_lower_bound / 50.0 + HOURS * 20 * 0.0001 * 3

    load = 3 * 80 * HOURS
    assert fuel(river(0.0, periods)) == pytest.approx(load - 3 * 20 * HOURS, rel=1e-9)
    arrived = 3 * 20 * HOURS - 72 * 20 + 72 * 10
    assert fuel(river(72.0, periods)) == pytest.approx(load - arrived, rel=1e-9)
    assert fuel(river(1000.0, periods)) == pytest.approx(load - 3 * 10 * HOURS, rel=1e-9)


def test_tables_account_for_every_drop() -> None:
    case = random_case(7, "travel", "blocks", stages=4, openings=2, iterations=5)
    table = simulate(case, train(case).policy, 3).tables["hydros"]
    column = {name: table[name].to_numpy() for name in table.column_names}

    def of(name: str, scenario: int, stage: int, plant: int) -> NDArray[np.float64]:
        """A column's values in the blocks of a stage."""
        keys = zip(("scenario_id", "stage_id", "hydro_id"), (scenario, stage, plant), strict=True)
        return column[name][np.logical_and.reduce([column[key] == value for key, value in keys])]

    found = travel(case)
    for scenario, stage, plant in product(range(3), range(4), (1, 2)):
        where = scenario, stage, plant
        tau = 0.0036 * of("hours", *where)
        if stage == 0:
            was = sum(v for slot, v in zip(found.slots, found.initial, strict=True) if slot.below == plant)
        else:
            was = of("in_transit_hm3", scenario, stage - 1, plant)[0]
        stored = of("storage_final_hm3", *where)[0] - of("storage_initial_hm3", *where)[0]
        change = stored + of("in_transit_hm3", *where)[0] - was
        inside = of("inflow_m3s", *where) + of("inflow_slack_m3s", *where) - of("outflow_m3s", *where)
        above = of("outflow_m3s", scenario, stage, plant - 1)
        lost = _beyond(case, stage, plant - 1) * (tau * above).sum()
        assert change == pytest.approx((tau * (inside + above)).sum() - lost, abs=1e-9)


def _beyond(case: Case, stage: int, above: int) -> float:
    """The share of an outflow that arrives after the study."""
    river = travel(case).shares[stage][above]
    return 1.0 - float(river.at_once.sum() + sum(share.sum() for _, share in river.later))


def test_the_bound_is_the_extensive_forms_value() -> None:
    case = random_case(21, "travel", "blocks", "lags", "diversion", "entry", stages=4, openings=2)
    assert train(case).final_lower_bound == pytest.approx(
        solve_extensive_form(build_model(case).problem), rel=1e-7
    )


def test_a_plant_that_does_not_exist_yet_lets_late_water_pass() -> None:
    last = hydro(2, volume=1000.0)
    case = river(72.0, stages(3), downstream_id=2, entry_stage_id=1)
    case = replace(
        case,
        hydros=(*case.hydros, last),
        production_models=(*case.production_models, *productivity(last)),
        inflow_stats=inflows(case.stages, {0: (20.0, 0.0), 1: (0.0, 0.0), 2: (0.0, 0.0)}),
    )
    first, then = (build_model(case).lps[t] for t in (0, 1))
    assert _receives(first) == "water_balance[H2]"
    assert _receives(then) == "water_balance[H1]"


def _receives(stage: StageLp) -> str:
    """The balance that the water arriving first is part of."""
    lp, column = stage.template, int(stage.columns["transit_in"][0])
    rows = lp.rows[lp.starts[column] : lp.starts[column + 1]]
    assert rows.size == 1
    return lp.row_names[rows[0]]


def said(case: Case) -> list[str]:
    return [str(finding) for finding in check_case(case)]


def test_what_left_before_the_study_has_to_be_known() -> None:
    assert said(river(72.0, stages(2), released((date(2023, 12, 31), START, 9.0)))) == [
        "error [no_releases] initial_conditions.json: hydro 0: past_defluences cover the 72 hours of travel before "
        "2024-01-01, got nothing for 2023-12-30."
    ]
    assert said(river(24.0, stages(2), released((date(2023, 12, 31), START, 9.0)))) == []


def test_travel_that_leads_nowhere_is_named() -> None:
    case = river(0.0, stages(2))
    assert said(case) == [
        "warning [no_effect] initial_conditions.json: past_defluences: hydro 0: the setting has no effect here."
    ]
    alone = replace(case.hydros[1], travel_time_hours=5.0)
    assert any(
        "travel_time_hours: hydro 1" in line for line in said(replace(case, hydros=(case.hydros[0], alone)))
    )


def test_a_negative_travel_time_is_an_error() -> None:
    assert "error [negative] system/hydros.json: hydro 0: travel_time_hours is not negative, got -3." in said(
        river(-3.0, stages(2))
    )
