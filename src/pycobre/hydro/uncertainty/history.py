"""Inflow history as scenarios: a window is the study's calendar moved to an earlier year."""

from __future__ import annotations

from datetime import date

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import CaseError
from pycobre.hydro.equations.index import Index
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import ScenarioSource, YearRange
from pycobre.stochastic.par import Par

__all__ = ["Windows", "history_windows"]


@frozen(eq=False)
class Windows:
    """W windows of history over the study's T stages."""

    years: tuple[int, ...]  #: calendar year of the first stage
    inflow: F64  #: [W, T, N]

    def noise(self, par: Par, past: F64) -> F64:
        """Standardised residuals [W, T, N]: the noise with which the model gives these inflows.

        They follow the study's own `past` [L, N] (lag 1 first), as they will when they are drawn.
        """
        before = np.broadcast_to(past[::-1], (len(self.years), *past.shape))
        chain = np.concatenate([before, self.inflow], axis=1)
        found = np.empty_like(self.inflow)
        for t in range(self.inflow.shape[1]):
            found[:, t] = par.noise(t, chain[:, t : t + par.order][:, ::-1], self.inflow[:, t])
        return found


def history_windows(case: Case, index: Index, source: ScenarioSource | None) -> Windows:
    """All complete windows, of the years the source names or of all years."""
    lookup = _Lookup(case, index)
    first = case.stages[0].start_date.year
    asked = source.historical_years if source is not None else None
    if isinstance(asked, YearRange):
        asked = tuple(range(asked.from_, asked.to + 1))
    years, inflow = [], []
    for year in asked if asked is not None else lookup.years:
        shift = year - first
        spans = [(_moved(s.start_date, shift), _moved(s.end_date, shift)) for s in case.stages]
        values = np.array([lookup.mean(*span) for span in spans])
        if np.isfinite(values).all():
            years.append(year)
            inflow.append(values)
    if not years:
        raise CaseError(
            "scenarios/inflow_history.parquet: expected at least one year whose history covers all stages "
            "for every hydro, got none."
        )
    return Windows(tuple(years), np.stack(inflow))


class _Lookup:
    """Mean inflow of all plants over any dates, from the windows of the history; NaN where it has a gap."""

    def __init__(self, case: Case, index: Index) -> None:
        table = case.inflow_history
        self._start = table.start_date.astype(np.int64)
        self._end = table.end_date.astype(np.int64)
        self._hydro = np.array([index.hydro[h] for h in table.hydro_id.tolist()], dtype=np.intp)
        self._value = table.value_m3s
        self._count = len(case.hydros)
        seen = table.start_date.astype("datetime64[Y]").astype(int) + 1970
        self.years = tuple(sorted(set(seen.tolist())))

    def mean(self, start: date, end: date) -> F64:
        first, last = (int(np.datetime64(day, "D").astype(np.int64)) for day in (start, end))
        days = np.minimum(self._end, last) - np.maximum(self._start, first)
        rows = np.flatnonzero(days > 0)
        weight, total = np.zeros(self._count), np.zeros(self._count)
        np.add.at(weight, self._hydro[rows], days[rows])
        np.add.at(total, self._hydro[rows], days[rows] * self._value[rows])
        return np.where(weight == last - first, total / np.maximum(weight, 1.0), np.nan)


def _moved(day: date, years: int) -> date:
    try:
        return day.replace(year=day.year + years)
    except ValueError:  # 29 February in a year without one
        return day.replace(year=day.year + years, day=28)
