"""Recorded inflows as one table: all plants, the months that all of them have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre.errors import CaseError
from pycobre.hydro.model.case import Case

__all__ = ["MonthlyHistory", "why_no_history"]


class MonthlyHistory:
    """Monthly inflows of all plants over the months that all of them have, without gaps.

    Raises `CaseError` where there is no such table (`why_no_history`).
    """

    def __init__(self, case: Case) -> None:
        common = _common_months(case)
        reason = _reason(case, common)
        if reason:
            raise CaseError(reason)
        table, definitions = case.inflow_history, case.season_definitions
        assert definitions is not None
        by_month = {season.month_start: season.id for season in definitions.seasons}
        self.season = np.array([by_month[m % 12 + 1] for m in common.tolist()], dtype=np.intp)
        self.seasons = len(definitions.seasons)
        month = _months(case)
        there = np.isin(month, common)
        hydros, place = np.unique(table.hydro_id[there], return_inverse=True)
        self.values = np.empty((hydros.size, common.size))  #: by plant and month
        self.values[place, month[there] - common[0]] = table.value_m3s[there]

    def require_years(self, least: int) -> None:
        """Raise `CaseError` where a season is seen in fewer years than a fit needs."""
        counts = np.bincount(self.season, minlength=self.seasons)
        fewest = int(counts[counts > 0].min())
        if fewest < least:
            raise CaseError(
                f"scenarios/inflow_history.parquet: expected at least {least} years "
                f"(estimation.min_observations_per_season), got {fewest} observations of a season."
            )


def why_no_history(case: Case) -> str:
    """Why a case has no `MonthlyHistory`; empty where it has one."""
    if not len(case.inflow_history):
        return "scenarios/inflow_history.parquet: expected rows, got none."
    return _reason(case, _common_months(case))


def _months(case: Case) -> NDArray[np.int_]:
    months: NDArray[np.int_] = case.inflow_history.start_date.astype("datetime64[M]").astype(int)
    return months


def _common_months(case: Case) -> NDArray[np.int_]:
    """The months that every plant has, in order."""
    months, count = np.unique(
        np.unique(np.stack([_months(case), case.inflow_history.hydro_id]), axis=1)[0], return_counts=True
    )
    common: NDArray[np.int_] = months[count == len(case.hydros)]
    return common


def _reason(case: Case, common: NDArray[np.int_]) -> str:
    definitions = case.season_definitions
    if definitions is None or definitions.cycle_type != "monthly":
        return (
            "stages.json: season_definitions: expected monthly seasons to fit inflow models from history, "
            f"got {definitions.cycle_type if definitions else 'none'}. Give statistics instead "
            "(scenarios/inflow_seasonal_stats.parquet)."
        )
    if not common.size or common[-1] - common[0] + 1 != common.size:
        return (
            "scenarios/inflow_history.parquet: expected every hydro in every month of one unbroken span, "
            f"got {common.size} common months. Fill the gaps."
        )
    return ""
