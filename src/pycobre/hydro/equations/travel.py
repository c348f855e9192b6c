"""Water on its way: a plant's outflow that reaches the next plant hours later.

What leaves a plant evenly over a stage arrives `travel_time_hours` later, as evenly: a part in the same stage, parts
in later ones. The state has, for every plant below such a river, the volume that arrives in the next stage, in the
one after it, and so on. Time is counted in block hours, as all volumes are.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.hydro.equations.index import Index
from pycobre.hydro.model.case import Case

__all__ = ["Travel", "travel_times"]


HM3_PER_M3S_HOUR = 0.0036
SECONDS_PER_HOUR = 3600.0


@frozen(eq=False)
class Travel:
    """Shares of outflows by stage of arrival, and the slots of the state that remember them."""

    slots: tuple[tuple[int, int], ...]  #: (plant below, stages until it arrives, from 1), in this order
    shares: tuple[dict[int, F64], ...]  #: by stage: plant above → share arriving 0, 1, … stages later
    initial: F64  #: hm³ by slot, as the study starts


def travel_times(case: Case, index: Index) -> Travel | None:
    """The rivers of a case that take time; None where none does."""
    rivers = {
        index.hydro[plant.id]: (index.hydro[plant.downstream_id], plant.travel_time_hours)
        for plant in case.hydros
        if plant.travel_time_hours and plant.downstream_id is not None
    }
    if not rivers:
        return None
    edges = np.concatenate([[0.0], np.cumsum([stage.hours for stage in case.stages])])
    shares: list[dict[int, F64]] = []
    for t in range(case.num_stages):
        length = edges[t + 1] - edges[t]
        shares.append(
            {
                above: _arriving(edges, edges[t] + hours, edges[t + 1] + hours)[t:] / length
                for above, (_, hours) in rivers.items()
            }
        )
    seen = _seen(case, index, rivers, edges)
    slots = _slots(rivers, shares, seen)
    initial = np.array([seen[below][later - 1] for below, later in slots])
    return Travel(slots, tuple(shares), initial)


def _seen(case: Case, index: Index, rivers: dict[int, tuple[int, float]], edges: F64) -> dict[int, F64]:
    """hm³ already on their way, by plant below and stage of arrival."""
    found = {below: np.zeros(edges.size - 1) for below, _ in rivers.values()}
    start = datetime.combine(case.stages[0].start_date, time())
    for window in case.initial_conditions.past_defluences:
        river = rivers.get(index.hydro[window.hydro_id])
        if river is not None:
            below, hours = river
            since, until = (
                min(0.0, (datetime.combine(day, time()) - start).total_seconds() / SECONDS_PER_HOUR)
                for day in (window.start_date, window.end_date)
            )
            volume = _arriving(edges, since + hours, until + hours) * HM3_PER_M3S_HOUR
            found[below] += window.value_m3s * volume
    return found


def _slots(
    rivers: dict[int, tuple[int, float]], shares: Iterable[dict[int, F64]], seen: dict[int, F64]
) -> tuple[tuple[int, int], ...]:
    """As many slots per plant as stages can lie between leaving and arriving."""
    longest = {below: _count(volumes) for below, volumes in seen.items()}
    for stage in shares:
        for above, share in stage.items():
            below = rivers[above][0]
            longest[below] = max(longest[below], _count(share[1:]))
    return tuple((below, later) for below in sorted(longest) for later in range(1, longest[below] + 1))


def _count(values: F64) -> int:
    """How many, up to the last that is not 0."""
    there = np.flatnonzero(values)
    return int(there[-1]) + 1 if there.size else 0


def _arriving(edges: F64, since: float, until: float) -> F64:
    """Hours of a span in every stage."""
    hours: F64 = np.maximum(0.0, np.minimum(edges[1:], until) - np.maximum(edges[:-1], since))
    return hours
