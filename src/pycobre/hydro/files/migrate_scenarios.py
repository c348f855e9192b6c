"""What changed in scenarios/ and initial conditions: windows with dates, seasons, statistics before the study."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from pycobre.hydro.files.old_files import OldCase

__all__ = ["migrate_scenarios"]

STATS = "scenarios/inflow_seasonal_stats.parquet"
COEFFICIENTS = "scenarios/inflow_ar_coefficients.parquet"
HISTORY = "scenarios/inflow_history.parquet"
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def migrate_scenarios(case: OldCase) -> None:
    _history(case)
    _coefficients(case)
    past = case.json["initial_conditions.json"].pop("past_inflows", None) or []
    if past or COEFFICIENTS in case.tables:
        _lags(case, past)


def _history(case: OldCase) -> None:
    """A date stands for its calendar month."""
    if HISTORY not in case.tables or "date" not in case.tables[HISTORY].column_names:
        return
    rows = case.rows(HISTORY)
    for row in rows:
        day = row.pop("date")
        row["start_date"] = date(day.year, day.month, 1)
        row["end_date"] = _next_month(row["start_date"])
    types = {"hydro_id": "int32", "start_date": "date32", "end_date": "date32", "value_m3s": "float64"}
    case.put_rows(HISTORY, rows, types)


def _coefficients(case: OldCase) -> None:
    table = case.tables.get(COEFFICIENTS)
    if table is not None and "residual_std_ratio" in table.column_names:
        case.tables[COEFFICIENTS] = table.drop_columns(["residual_std_ratio"])
        case.note(
            f"{COEFFICIENTS}: residual_std_ratio is now derived from the coefficients; the column is left out"
        )


def _lags(case: OldCase, past: list[dict[str, Any]]) -> None:
    """Lags become observations with dates, in seasons that the calendar can find."""
    data = case.json["stages.json"]
    order = max([len(entry["values_m3s"]) for entry in past], default=0)
    order = max([order, *(row["lag"] for row in case.rows(COEFFICIENTS))])
    known = _statistics(case, order)
    _declare_months(case, data, order)
    windows = {-s["id"]: (s["start_date"], s["end_date"]) for s in data["pre_study_stages"]}
    observations = case.json["initial_conditions.json"].setdefault("recent_observations", [])
    for entry in past:
        for lag, value in enumerate(entry["values_m3s"], start=1):
            start, end = windows[lag]
            seen = {"hydro_id": entry["hydro_id"], "start_date": start, "end_date": end}
            observations.append(seen | {"value_m3s": value})
    _rows_before_the_study(case, data, known)


def _statistics(case: OldCase, order: int) -> dict[tuple[int, int], tuple[float, float]]:
    """Mean and deviation that 0.5 used for every plant and stage before the study: its own, or its season's.

    A season is found by counting back from the first stage through as many seasons as the study has.
    """
    rows = {(row["hydro_id"], row["stage_id"]): (row["mean_m3s"], row["std_m3s"]) for row in case.rows(STATS)}
    season = {s["id"]: s["season_id"] for s in case.stages if s.get("season_id") is not None}
    count, start = len(set(season.values())), next(iter(season.values()), 0)
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for hydro in sorted({hydro for hydro, _ in rows}):
        for stage in range(-order, 0):
            if (hydro, stage) in rows:
                found[hydro, stage] = rows[hydro, stage]
            elif count:
                wanted = (stage + start) % count
                like = [t for t, s in season.items() if s == wanted and (hydro, t) in rows]
                if like:
                    found[hydro, stage] = rows[hydro, like[0]]
    return found


def _declare_months(case: OldCase, data: dict[str, Any], order: int) -> None:
    """Seasons by month where none are defined, and a stage before the study for every lag."""
    before = {s["id"]: s for s in data.get("pre_study_stages") or []}
    start = date.fromisoformat(case.stages[0]["start_date"])
    for lag in range(1, order + 1):
        end = date.fromisoformat(before[1 - lag]["start_date"]) if 1 - lag in before else start
        first = (end - timedelta(days=1)).replace(day=1)
        window = {"id": -lag, "start_date": first.isoformat(), "end_date": end.isoformat()}
        before.setdefault(-lag, window)
    data["pre_study_stages"] = [before[key] for key in sorted(before)]
    if "season_definitions" not in data:
        seasons = [{"id": i, "month_start": i + 1, "label": name} for i, name in enumerate(MONTHS)]
        data["season_definitions"] = {"cycle_type": "monthly", "seasons": seasons}
        for stage in (*case.stages, *data["pre_study_stages"]):
            stage["season_id"] = date.fromisoformat(stage["start_date"]).month - 1
        case.note(
            "stages.json: seasons are now the months of the stages; stages of one month share their noise"
        )
    month_of = {s["month_start"]: s["id"] for s in data["season_definitions"]["seasons"]}
    for stage in data["pre_study_stages"]:
        stage.setdefault("season_id", month_of.get(date.fromisoformat(stage["start_date"]).month))
    for stage in case.stages:
        stage.setdefault("state_variables", {})["inflow_lags"] = True


def _rows_before_the_study(
    case: OldCase, data: dict[str, Any], known: dict[tuple[int, int], tuple[float, float]]
) -> None:
    """Statistics of the stages before the study, where the seasons of the new form would not find the same.

    A row there makes its season's inflow all residual in 0.18, so none is added in vain.
    """
    rows = case.rows(STATS)
    if not rows:
        return
    have = {(row["hydro_id"], row["stage_id"]): (row["mean_m3s"], row["std_m3s"]) for row in rows}
    season = {s["id"]: s.get("season_id") for s in (*data["pre_study_stages"], *case.stages)}
    first: dict[tuple[int, int], tuple[float, float]] = {}
    for (hydro, stage), values in sorted(have.items()):
        if season.get(stage) is not None:
            first.setdefault((hydro, season[stage]), values)
    for (hydro, stage), values in known.items():
        if (hydro, stage) not in have and first.get((hydro, season[stage])) != values:
            mean, std = values
            rows.append({"hydro_id": hydro, "stage_id": stage, "mean_m3s": mean, "std_m3s": std})
    rows.sort(key=lambda row: (row["hydro_id"], row["stage_id"]))
    types = {"hydro_id": "int32", "stage_id": "int32", "mean_m3s": "float64", "std_m3s": "float64"}
    case.put_rows(STATS, rows, types)


def _next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)
