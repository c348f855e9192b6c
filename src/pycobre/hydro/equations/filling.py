"""Filling of a reservoir's dead volume before its plant enters service.

Before its first stage of filling the dam is not there, and water passes. While it fills it keeps water and spills,
but turbines none; at the end of every stage its storage reaches a target, or pays for what is missing: the dead
volume before the plant enters, and before that as much less as the minimum rate still brings. From its entry on,
storage below the minimum of such a plant is paid for too, since the water may not have come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.overrides import Overrides
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.system import Hydro

if TYPE_CHECKING:
    from pycobre.hydro.equations.stage_builder import StageLpBuilder

HM3_PER_M3S_HOUR = 0.0036

__all__ = ["add_storage_targets", "filling_targets", "is_filling"]


def is_filling(hydro: Hydro, stage: Stage) -> bool:
    """Whether the reservoir fills its dead volume in this stage."""
    entry = hydro.entry_stage_id
    return (
        hydro.filling is not None and entry is not None and hydro.filling.start_stage_id <= stage.id < entry
    )


def filling_targets(case: Case, index: Index) -> F64:
    """hm³ at the end of every stage [T, N]; NaN where nothing is filled."""
    targets = np.full((len(case.stages), len(case.hydros)), np.nan)
    base = np.array([h.filling.filling_min_rate_m3s if h.filling else 0.0 for h in case.hydros])
    missing = np.zeros(len(case.hydros))
    for t in reversed(range(len(case.stages))):
        stage = case.stages[t]
        rows = Overrides(stage)
        rate = rows.whole(case.hydro_bounds, ("hydro_id",), index.hydro, "filling_min_rate_m3s", base)
        for h, hydro in enumerate(case.hydros):
            if is_filling(hydro, stage):
                targets[t, h] = max(0.0, hydro.reservoir.min_storage_hm3 - missing[h])
                missing[h] += rate[h] * HM3_PER_M3S_HOUR * stage.hours
    return targets


def add_storage_targets(d: StageLpBuilder) -> None:
    """v + missing ≥ target, where a target is soft."""
    hydro = d.numbers.hydro
    plants = np.flatnonzero(hydro.storage_target > 0.0)  # false where it is NaN
    names = [d.index.hydro_names[h] for h in plants]
    rows = d.lp.rows("storage_target", [names], hydro.storage_target[plants], np.inf)
    d.places["storage_missing"] = plants.astype(np.int32)
    d.columns["storage_missing"] = d.lp.columns(
        "storage_missing", [names], 0.0, np.inf, hydro.storage_target_cost[plants]
    )
    d.lp.add(rows, d.columns["storage"][plants], 1.0)
    d.lp.add(rows, d.columns["storage_missing"], 1.0)
