"""Inflows seen before the study: its recent observations, and the history on days without one."""

from __future__ import annotations

from datetime import date

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.index import Index
from pycobre.hydro.model.case import Case

__all__ = ["ObservedInflows"]


NOBODY = -1


class ObservedInflows:
    """Which window says what flowed on which day, by plant, from `since` to the first day of the study."""

    def __init__(self, case: Case, index: Index, since: date) -> None:
        self._first, last = _day(since), _day(case.stages[0].start_date)
        table, recent = case.inflow_history, case.initial_conditions.recent_observations
        windows = list(
            zip(
                (index.hydro[h] for h in table.hydro_id.tolist()),
                table.start_date.astype(np.int64).tolist(),
                table.end_date.astype(np.int64).tolist(),
                table.value_m3s.tolist(),
                strict=True,
            )
        )
        # An observation goes before the history.
        windows += [
            (index.hydro[o.hydro_id], _day(o.start_date), _day(o.end_date), o.value_m3s) for o in recent
        ]
        self._value = np.array([value for *_, value in windows])
        self._owner = np.full((max(0, last - self._first), len(case.hydros)), NOBODY)
        for number, (hydro, start, end, _) in enumerate(windows):
            if start < last and end > self._first:
                self._owner[max(0, start - self._first) : max(0, end - self._first), hydro] = number

    def volume(self, start: date, end: date) -> tuple[F64, F64]:
        """Days seen in a period and the sum of inflow × days over them, both by plant."""
        owners = self._owner[max(0, _day(start) - self._first) : max(0, _day(end) - self._first)]
        days, total = np.zeros(owners.shape[1]), np.zeros(owners.shape[1])
        for hydro in range(owners.shape[1]):
            numbers, counts = np.unique(owners[:, hydro], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                if number != NOBODY:
                    days[hydro] += count
                    total[hydro] += count * self._value[number]
        return days, total


def _day(day: date) -> int:
    return int(np.datetime64(day, "D").astype(np.int64))
