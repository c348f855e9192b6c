"""Which season a day is in, and the seasons of stages that do not say theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from itertools import combinations
from typing import TypeVar

from pycobre.hydro.model.horizon import PreStudyStage, Season, SeasonDefinitions, Stage

__all__ = ["overlapping", "season_of", "touches", "with_seasons"]

AnyStage = TypeVar("AnyStage", Stage, PreStudyStage)
_WEEKS = 52
_LEAP_YEAR = [date(2024, 1, 1) + timedelta(days=day) for day in range(366)]


def season_of(definitions: SeasonDefinitions, day: date) -> int | None:
    """The id of the season of a day; None where no season has it."""
    return next((season.id for season in definitions.seasons if _covers(definitions, season, day)), None)


def touches(definitions: SeasonDefinitions, season_id: int, stage: Stage) -> bool:
    """Whether a stage has a day in that season."""
    season = next((season for season in definitions.seasons if season.id == season_id), None)
    days = (stage.start_date + timedelta(days=day) for day in range(min(stage.days, len(_LEAP_YEAR))))
    return season is not None and any(_covers(definitions, season, day) for day in days)


def overlapping(definitions: SeasonDefinitions) -> bool:
    """Whether seasons share days, as months and quarters do: then no date says which is meant."""
    spans = [
        {day for day in _LEAP_YEAR if _covers(definitions, season, day)} for season in definitions.seasons
    ]
    return definitions.cycle_type == "custom" and any(a & b for a, b in combinations(spans, 2))


def with_seasons(stages: Iterable[AnyStage], definitions: SeasonDefinitions | None) -> tuple[AnyStage, ...]:
    """The stages, each with the season it says or, where it says none, that of its first day."""
    stages = tuple(stages)
    if (
        definitions is None
        or all(stage.season_id is not None for stage in stages)
        or overlapping(definitions)
    ):
        return stages
    return tuple(
        stage
        if stage.season_id is not None
        else replace(stage, season_id=season_of(definitions, stage.start_date))
        for stage in stages
    )


def _covers(definitions: SeasonDefinitions, season: Season, day: date) -> bool:
    match definitions.cycle_type:
        case "monthly":
            return season.month_start == day.month
        case "weekly":
            # The last days of a year of 53 weeks belong to its 52nd.
            return season.id == min(day.isocalendar().week, _WEEKS) - 1
        case _:
            start = (season.month_start, season.day_start or 1)
            end = (season.month_end or season.month_start, season.day_end or 31)
            now = (day.month, day.day)
            return start <= now <= end if start <= end else now >= start or now <= end
