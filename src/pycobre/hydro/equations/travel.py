"""Water on its way: a plant's outflow that reaches the next plant hours later.

What leaves a plant evenly over a stage, or over a block where blocks are chronological, arrives `travel_time_hours`
later, as evenly: a part in the same stage, parts in later ones. The state has, for every plant below such a river,
the volume that arrives in the next stage, in the one after it, and so on; where the stage of arrival has
chronological blocks, in each of them. Time is counted in block hours, as all volumes are.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.hydro.equations.index import Index
from pycobre.hydro.model.case import Case

__all__ = ["Shares", "Slot", "Travel", "travel_times"]


HM3_PER_M3S_HOUR = 0.0036
SECONDS_PER_HOUR = 3600.0

Places = NDArray[np.intp]


class Slot(NamedTuple):
    """Water that arrives at a plant `ahead` stages from now, in one part of that stage."""

    below: int
    ahead: int
    part: int


@frozen(eq=False)
class Spans:
    """The horizon cut into what water leaves and arrives in: stages, or blocks where those are chronological."""

    edges: F64  #: [P + 1], hours from the start
    stage: Places  #: [P], its position
    part: Places  #: [P], from 0 within its stage

    @classmethod
    def of(cls, case: Case) -> Spans:
        lengths: list[float] = []
        stage: list[int] = []
        part: list[int] = []
        for t, each in enumerate(case.stages):
            blocks = [block.hours for block in each.blocks] if each.chained else [each.hours]
            lengths += blocks
            stage += [t] * len(blocks)
            part += range(len(blocks))
        edges = np.concatenate([[0.0], np.cumsum(lengths)])
        return cls(edges, np.array(stage, dtype=np.intp), np.array(part, dtype=np.intp))

    def arriving(self, since: float, until: float) -> F64:
        """Hours of a stretch of time in every span."""
        edges = self.edges
        hours: F64 = np.maximum(0.0, np.minimum(edges[1:], until) - np.maximum(edges[:-1], since))
        return hours


@frozen(eq=False)
class Shares:
    """Where the outflows of a plant in one stage arrive, by the spans that they leave in (rows)."""

    at_once: F64  #: [spans of the stage, spans of the stage]
    later: tuple[tuple[Slot, F64], ...]  #: a slot with the share of every row; plants below are not negative


@frozen(eq=False)
class Travel:
    """Shares of outflows by time of arrival, and the slots of the state that remember them."""

    slots: tuple[Slot, ...]  #: in the order of the state
    shares: tuple[dict[int, Shares], ...]  #: by stage: plant above → where its outflow arrives
    initial: F64  #: hm³ by slot, as the study starts
    blocks: bool  #: whether some stage has chronological blocks

    def labels(self, index: Index) -> list[str]:
        """The plant below and the stages until it arrives; the part of the stage where some have several."""
        return [
            f"{index.hydro_names[below]},{ahead}{f',{part}' if self.blocks else ''}"
            for below, ahead, part in self.slots
        ]


def travel_times(case: Case, index: Index) -> Travel | None:
    """The rivers of a case that take time; None where none does."""
    rivers = {
        index.hydro[plant.id]: (index.hydro[plant.downstream_id], plant.travel_time_hours)
        for plant in case.hydros
        if plant.travel_time_hours and plant.downstream_id is not None
    }
    if not rivers:
        return None
    spans = Spans.of(case)
    shares = tuple(
        {above: _shares(spans, t, below, hours) for above, (below, hours) in rivers.items()}
        for t in range(case.num_stages)
    )
    seen = _seen(case, index, rivers, spans)
    slots = _slots(shares, seen)
    initial = np.array([seen.get(slot, 0.0) for slot in slots])
    chained = any(stage.chained for stage in case.stages)
    return Travel(slots, shares, initial, chained)


def _shares(spans: Spans, t: int, below: int, hours: float) -> Shares:
    mine = np.flatnonzero(spans.stage == t)
    since, until = spans.edges[mine], spans.edges[mine + 1]
    arriving = np.stack(
        [spans.arriving(a + hours, b + hours) / (b - a) for a, b in zip(since, until, strict=True)]
    )
    later = tuple(
        (Slot(below, int(spans.stage[p]) - t, int(spans.part[p])), arriving[:, p])
        for p in np.flatnonzero((spans.stage > t) & arriving.any(axis=0)).tolist()
    )
    return Shares(arriving[:, mine], later)


def _seen(case: Case, index: Index, rivers: dict[int, tuple[int, float]], spans: Spans) -> dict[Slot, float]:
    """hm³ already on their way: the first stage takes in those of its next slot."""
    found: dict[Slot, float] = {}
    start = datetime.combine(case.stages[0].start_date, time())
    for window in case.initial_conditions.past_defluences:
        river = rivers.get(index.hydro[window.hydro_id])
        if river is not None:
            below, hours = river
            since, until = (
                min(0.0, (datetime.combine(day, time()) - start).total_seconds() / SECONDS_PER_HOUR)
                for day in (window.start_date, window.end_date)
            )
            volume = window.value_m3s * (spans.arriving(since + hours, until + hours) * HM3_PER_M3S_HOUR)
            for p in np.flatnonzero(volume).tolist():
                slot = Slot(below, int(spans.stage[p]) + 1, int(spans.part[p]))
                found[slot] = found.get(slot, 0.0) + float(volume[p])
    return found


def _slots(shares: Iterable[dict[int, Shares]], seen: Iterable[Slot]) -> tuple[Slot, ...]:
    """As many slots per plant and part of a stage as stages can lie between leaving and arriving."""
    used = [*seen, *(slot for stage in shares for each in stage.values() for slot, _ in each.later)]
    longest: dict[tuple[int, int], int] = {}
    for slot in used:
        place = slot.below, slot.part
        longest[place] = max(longest.get(place, 0), slot.ahead)
    return tuple(
        sorted(
            Slot(below, ahead, part)
            for (below, part), most in longest.items()
            for ahead in range(1, most + 1)
        )
    )
