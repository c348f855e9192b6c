"""Stages lie in the seasons they say, and have those of their dates where they say none."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest
from small_case import config, inflows, one_reservoir, stages, weeks

from pycobre.hydro import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Season, SeasonDefinitions, Stage
from pycobre.hydro.model.seasons import season_of


def seasons(cycle: str, *spans: tuple[int, ...]) -> SeasonDefinitions:
    """Seasons 0, 1, … from (month_start, day_start, month_end, day_end), or from the month alone."""
    names = ("month_start", "day_start", "month_end", "day_end")
    made = [
        Season(id=i, label=f"s{i}", **dict(zip(names, span, strict=False))) for i, span in enumerate(spans)
    ]
    return SeasonDefinitions(cycle_type=cycle, seasons=tuple(made))  # type: ignore[arg-type]


WEEKS = seasons("weekly", *((1,),) * 52)
THIRDS = seasons("custom", (11, 15, 2, 14), (2, 15, 6, 30), (7, 1, 11, 14))
MONTHS_AND_QUARTERS = seasons(
    "custom",
    *((month, 1, month, 31) for month in range(1, 13)),
    *((month, 1, month + 2, 31) for month in (1, 4, 7, 10)),
)


def saying(case: Case, *ids: int | None, definitions: SeasonDefinitions | None = None) -> Case:
    told = tuple(replace(stage, season_id=i) for stage, i in zip(case.stages, ids, strict=True))
    return replace(case, stages=told, season_definitions=definitions or case.season_definitions)


def lasting(first: date, days: int, season_id: int) -> tuple[Stage, ...]:
    end = first + timedelta(days=days)
    return (replace(stages(1)[0], start_date=first, end_date=end, season_id=season_id),)


def said(case: Case) -> list[str]:
    return [str(finding) for finding in check_case(case) if "season" in finding.kind]


@pytest.mark.parametrize(
    ("definitions", "day", "expected"),
    [
        (WEEKS, date(2024, 1, 8), 1),
        (WEEKS, date(2024, 12, 30), 0),
        (WEEKS, date(2026, 12, 31), 51),
        (THIRDS, date(2024, 1, 1), 0),
        (THIRDS, date(2024, 2, 15), 1),
        (THIRDS, date(2024, 12, 31), 0),
        (seasons("monthly", (4,), (5,)), date(2024, 5, 31), 1),
        (seasons("monthly", (4,), (5,)), date(2024, 6, 1), None),
    ],
)
def test_a_day_is_in_one_season(definitions: SeasonDefinitions, day: date, expected: int | None) -> None:
    assert season_of(definitions, day) == expected


def test_stages_without_a_season_have_that_of_their_first_day() -> None:
    """The weeks of a month then share their noise, as if they had said so."""
    told = one_reservoir(weeks(6, 3), config=config("penalty"))
    told = replace(told, inflow_stats=inflows(told.stages, {0: (20.0, 5.0)}))
    untold = build_model(saying(told, *[None] * 6))
    assert [stage.season_id for stage in untold.case.stages] == [0, 0, 0, 0, 0, 1]
    for mine, theirs in zip(untold.openings, build_model(told).openings, strict=True):
        assert (mine == theirs).all()
    assert (untold.openings[0] == untold.openings[4]).all()
    assert (untold.openings[0] != untold.openings[5]).all()


def test_a_month_says_the_season_of_its_date() -> None:
    assert said(saying(one_reservoir(stages(2)), 0, 2)) == [
        "error [season_date] stages.json: stage 1: season_id is that of start_date 2024-02-01, 1, got 2. "
        "Without a season_id it is taken from the date."
    ]


@pytest.mark.parametrize(
    ("days", "severity"), [(7, "warning"), (24, "warning"), (25, "error"), (31, "error")]
)
def test_part_of_a_month_may_belong_elsewhere(days: int, severity: str) -> None:
    """March has 31 days; a stage that lacks a week or more of it is a part of some month."""
    found = said(one_reservoir(lasting(date(2024, 3, 1), days, 7)))
    assert len(found) == 1
    assert found[0].startswith(f"{severity} [season_date] stages.json: stage 0: ")


def test_a_week_may_belong_to_either_of_its_months() -> None:
    last_of_january = date(2024, 1, 29)
    assert said(one_reservoir(lasting(last_of_january, 7, 0))) == []
    assert said(one_reservoir(lasting(last_of_january, 7, 1))) == []
    assert said(one_reservoir(lasting(last_of_january, 7, 2))) == [
        "warning [season_date] stages.json: stage 0: a stage has days in its season, "
        "expected 0 from 2024-01-29 on, got 2."
    ]


def test_weeks_of_the_year_are_checked_as_months_are() -> None:
    assert said(saying(one_reservoir(weeks(2)), 0, 1, definitions=WEEKS)) == []
    assert (
        "start_date 2024-01-01, 0, got 1" in said(saying(one_reservoir(weeks(2)), 1, 1, definitions=WEEKS))[0]
    )


def test_where_seasons_overlap_stages_say_theirs() -> None:
    case = one_reservoir(stages(2))
    assert said(saying(case, 0, 12, definitions=MONTHS_AND_QUARTERS)) == []
    assert said(saying(case, 0, None, definitions=MONTHS_AND_QUARTERS)) == [
        "error [season_id] stages.json: stage 1: a stage says its season_id, where seasons overlap."
    ]


def test_a_week_and_a_month_in_one_season_are_doubted() -> None:
    week, month = lasting(date(2024, 1, 1), 7, 0)[0], lasting(date(2024, 1, 8), 24, 0)[0]
    assert said(one_reservoir((week, replace(month, id=1)))) == [
        "warning [season_lengths] stages.json: season 0: stages of one season are about as long as each other, got "
        "stage 0 of 7 days and stage 1 of 24. Cobre refuses this."
    ]


def test_sobol_openings_that_are_no_power_of_two_are_doubted() -> None:
    def found(openings: int) -> list[str]:
        case = one_reservoir(stages(1, openings, sampling_method="qmc_sobol"))
        return [str(f) for f in check_case(case) if f.kind == "sobol_openings"]

    assert found(8) == []
    assert found(6) == [
        "warning [sobol_openings] stages.json: stage 0: Sobol openings are even for powers of two only, got 6."
    ]
