"""Whether the inflow history is long and complete enough for what the case wants from it."""

from __future__ import annotations

from collections import Counter
from datetime import date

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, error
from pycobre.hydro.model.config import Config, ScenarioSource, YearRange
from pycobre.hydro.model.findings import Finding, Layer
from pycobre.hydro.model.horizon import PreStudyStage, SeasonDefinitions, Stage
from pycobre.hydro.model.scenarios import ArCoefficients, InflowHistory, InflowStats
from pycobre.hydro.model.system import Hydro

COVERAGE = Layer.COVERAGE
LONGEST_FIT = 60  # lags; models have a handful


@check
def history_dates(inflow_history: InflowHistory) -> Findings:
    wrong = inflow_history.end_date <= inflow_history.start_date
    for row in np.flatnonzero(wrong).tolist():
        yield error(
            Layer.PHYSICAL,
            "dates",
            "inflow_history",
            "an observation ends after it starts",
            where=f"end_date, row {row}",
            entity=f"hydro {inflow_history.hydro_id[row]}",
            value=f"{inflow_history.start_date[row]} to {inflow_history.end_date[row]}",
        )


@check
def history_to_fit(
    inflow_history: InflowHistory,
    inflow_stats: InflowStats,
    ar_coefficients: ArCoefficients,
    season_definitions: SeasonDefinitions | None,
    config: Config,
    hydros: tuple[Hydro, ...],
    stages: tuple[Stage, ...],
    pre_study_stages: tuple[PreStudyStage, ...],
) -> Findings:
    """What is missing of the inflow model is fitted to monthly history."""
    if not len(inflow_history) or not hydros or (len(inflow_stats) and len(ar_coefficients)):
        return
    if not 0 <= config.estimation.max_order <= LONGEST_FIT:
        yield error(
            COVERAGE,
            "estimation",
            "config",
            f"max_order is from 0 to {LONGEST_FIT}",
            where="estimation.max_order",
            value=config.estimation.max_order,
        )
    months = (
        Counter(season.month_start for season in season_definitions.seasons) if season_definitions else {}
    )
    ids = sorted(season.id for season in season_definitions.seasons) if season_definitions else []
    monthly = season_definitions is not None and season_definitions.cycle_type == "monthly"
    if not monthly or months != Counter(range(1, 13)) or ids != list(range(12)):
        yield error(
            COVERAGE,
            "monthly_seasons",
            "season_definitions",
            "seasons 0 to 11 are the months, where inflow models are fitted to history",
            where="season_definitions",
            suggestion="Or give statistics and coefficients.",
        )
        return
    every: list[Stage | PreStudyStage] = [*pre_study_stages, *stages]
    without = [stage.id for stage in every if stage.season_id is None]
    if without:
        rule = "every stage has a season, where inflow models are fitted to history"
        yield error(COVERAGE, "season_id", "stages", rule, entity=f"stage {without[0]}")
    yield from _months(inflow_history, hydros, config.estimation.min_observations_per_season)


def _months(history: InflowHistory, hydros: tuple[Hydro, ...], least: int) -> Findings:
    month = history.start_date.astype("datetime64[M]").astype(int)
    common = set.intersection(*(set(month[history.hydro_id == h.id].tolist()) for h in hydros))
    if not common or max(common) - min(common) + 1 != len(common):
        yield error(
            COVERAGE,
            "history_gaps",
            "inflow_history",
            "every plant has every month of one unbroken span",
            value=f"{len(common)} common months",
            suggestion="Fill the gaps.",
        )
        return
    counts = Counter(m % 12 + 1 for m in common)
    short = {name: counts[name] for name in range(1, 13) if counts[name] < max(least, 1)}
    if short:
        name, count = next(iter(short.items()))
        yield error(
            COVERAGE,
            "short_history",
            "inflow_history",
            f"every month is seen in {max(least, 1)} years (estimation.min_observations_per_season)",
            value=f"{count} of month {name}",
        )


@check
def history_to_replay(
    inflow_history: InflowHistory, config: Config, stages: tuple[Stage, ...], hydros: tuple[Hydro, ...]
) -> Findings:
    """Windows of history as scenarios: a year whose history covers the study."""
    sources = [(where, getattr(config, where).scenario_source) for where in ("training", "simulation")]
    uses = [
        (where, source)
        for where, source in sources
        if source is not None and source.inflow is not None and source.inflow.scheme == "historical"
    ]
    if any(stage.sampling_method == "historical_residuals" for stage in stages):
        uses.append(("training", config.training.scenario_source))
    for where, source in uses if hydros and stages else ():
        years = _years(source, inflow_history)
        place = f"{where}.scenario_source.historical_years"
        if any(not 1 < year < 9990 for year in years) or len(years) > 9990:
            rule = "years have up to four digits"
            yield error(COVERAGE, "years", "config", rule, where=place, value=list(years)[:3])
        elif not len(inflow_history):
            if where == "training" and (source is None or source.inflow is None):
                yield _no_window("the sampling method historical_residuals needs a history")
        elif not any(_covered(inflow_history, hydros, stages, year) for year in years):
            yield _no_window("a year's history covers all stages of every plant")


def _no_window(rule: str) -> Finding:
    return error(COVERAGE, "no_window", "inflow_history", rule)


def _years(source: ScenarioSource | None, history: InflowHistory) -> range | tuple[int, ...]:
    asked = None if source is None else source.historical_years
    if isinstance(asked, YearRange):
        return range(asked.from_, asked.to + 1)
    if asked is not None:
        return tuple(asked)
    return tuple(sorted(set((history.start_date.astype("datetime64[Y]").astype(int) + 1970).tolist())))


def _covered(history: InflowHistory, hydros: tuple[Hydro, ...], stages: tuple[Stage, ...], year: int) -> bool:
    """Every day of the study, moved to that year, is in a window."""
    first = min(stage.start_date for stage in stages)
    shift = year - first.year
    start = int(np.datetime64(_moved(first, shift)).astype(int))
    end = int(np.datetime64(_moved(max(s.end_date for s in stages), shift)).astype(int))
    for hydro in hydros:
        mine = history.hydro_id == hydro.id
        low = np.maximum(history.start_date[mine].astype(np.int64), start)
        high = np.minimum(history.end_date[mine].astype(np.int64), end)
        if int(np.maximum(high - low, 0).sum()) != end - start:
            return False
    return True


def _moved(day: date, years: int) -> date:
    """The same day of another year; 29 February may become the 28th."""
    try:
        return day.replace(year=day.year + years)
    except ValueError:
        return day.replace(year=day.year + years, day=28)
