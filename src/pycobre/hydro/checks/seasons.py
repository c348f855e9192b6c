"""Seasons exist, and every stage lies in its own."""

from __future__ import annotations

from calendar import monthrange

from pycobre.hydro.checks.registry import Findings, check, error, warning
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import PreStudyStage, SeasonDefinitions, Stage
from pycobre.hydro.model.seasons import overlapping, season_of, touches

COVERAGE = Layer.COVERAGE
DAYS_APART = 7  # by which a stage may differ from a month, or from another of its season


@check
def seasons(
    stages: tuple[Stage, ...],
    pre_study_stages: tuple[PreStudyStage, ...],
    season_definitions: SeasonDefinitions | None,
) -> Findings:
    if season_definitions is None:
        return
    known = {season.id for season in season_definitions.seasons}
    every: list[Stage | PreStudyStage] = [*pre_study_stages, *stages]
    for stage in every:
        if stage.season_id is not None and stage.season_id not in known:
            yield error(
                COVERAGE,
                "season_id",
                "stages",
                "season_id is the id of a season",
                entity=f"stage {stage.id}",
                value=stage.season_id,
            )
    for season in season_definitions.seasons:
        if not 1 <= season.month_start <= 12:
            yield error(
                COVERAGE,
                "month",
                "stages",
                "month_start is from 1 to 12",
                entity=f"season {season.id}",
                value=season.month_start,
            )


@check
def season_dates(stages: tuple[Stage, ...], season_definitions: SeasonDefinitions | None) -> Findings:
    """A stage lies in its season: as Cobre, an error for whole months and weeks.

    Parts of a month, and stages of seasons of one's own, only have to touch theirs, and that is a warning.
    """
    if season_definitions is None:
        return
    known = {season.id for season in season_definitions.seasons}
    unclear = overlapping(season_definitions)
    for stage in stages:
        entity, declared = f"stage {stage.id}", stage.season_id
        if declared is None and unclear:
            yield error(
                COVERAGE,
                "season_id",
                "stages",
                "a stage says its season_id, where seasons overlap",
                entity=entity,
            )
        if declared not in known or stage.days < 1:
            continue
        expected = season_of(season_definitions, stage.start_date)
        if not _part_of_a_season(season_definitions.cycle_type, stage) and expected not in (None, declared):
            yield error(
                COVERAGE,
                "season_date",
                "stages",
                f"season_id is that of start_date {stage.start_date}, {expected}",
                entity=entity,
                value=declared,
                suggestion="Without a season_id it is taken from the date.",
            )
        elif expected != declared and not touches(season_definitions, declared, stage):
            yield warning(
                COVERAGE,
                "season_date",
                "stages",
                f"a stage has days in its season, expected {expected} from {stage.start_date} on",
                entity=entity,
                value=declared,
            )


def _part_of_a_season(cycle_type: str, stage: Stage) -> bool:
    """Whether a stage may belong to the season before or after: a week or more is missing to a month."""
    month = monthrange(stage.start_date.year, stage.start_date.month)[1]
    return cycle_type == "custom" or (cycle_type == "monthly" and month - stage.days >= DAYS_APART)


@check
def season_lengths(stages: tuple[Stage, ...]) -> Findings:
    """Weeks and months in one season have one mean and deviation, which cannot be right for both."""
    lengths: dict[int, list[Stage]] = {}
    for stage in stages:
        if stage.season_id is not None:
            lengths.setdefault(stage.season_id, []).append(stage)
    for season, members in sorted(lengths.items()):
        short, long = min(members, key=_days), max(members, key=_days)
        if long.days - short.days > DAYS_APART:
            yield warning(
                COVERAGE,
                "season_lengths",
                "stages",
                "stages of one season are about as long as each other",
                entity=f"season {season}",
                value=f"stage {short.id} of {short.days} days and stage {long.id} of {long.days}",
                suggestion="Cobre refuses this.",
            )


def _days(stage: Stage) -> int:
    return stage.days
