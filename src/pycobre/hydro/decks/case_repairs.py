"""What a converted case lacks before it can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pycobre._util.files import write_atomically
from pycobre.hydro.decks.deck_repairs import Repair
from pycobre.hydro.files.parquet_files import dump_parquet, read_parquet
from pycobre.hydro.model.scenarios import InflowHistory

__all__ = ["repair_case"]

_HISTORY = "scenarios/inflow_history.parquet"
_HYDROS = "system/hydros.json"


def repair_case(case: Path) -> tuple[Repair, ...]:
    """Give plants without turbines and without a gauge a history of zeros; fictitious plants are such.

    A plant that can generate and has no history is left as it is: validation says so.
    """
    hydros = _hydros(case / _HYDROS)
    path = case / _HISTORY
    table = read_parquet(path.read_bytes(), "inflow_history")[0] if path.is_file() else None
    if not isinstance(table, InflowHistory) or not len(table):
        return ()
    bare = [hydro for hydro in hydros if hydro["id"] not in table.hydro_id and not _turbines(hydro)]
    if not bare:
        return ()
    starts, first = np.unique(table.start_date, return_index=True)
    ends = table.end_date[first]
    months = len(starts)
    ids = np.repeat([hydro["id"] for hydro in bare], months)
    added = InflowHistory(
        hydro_id=np.concatenate([table.hydro_id, ids]),
        start_date=np.concatenate([table.start_date, np.tile(starts, len(bare))]),
        end_date=np.concatenate([table.end_date, np.tile(ends, len(bare))]),
        value_m3s=np.concatenate([table.value_m3s, np.zeros(len(ids))]),
    )
    write_atomically(path, dump_parquet(added))
    return tuple(
        Repair(
            _HISTORY,
            f"hydro {hydro['id']} ({hydro.get('name', '')})",
            f"{months} months of zero inflow: it has no turbines and the deck no gauge for it",
        )
        for hydro in bare
    )


def _hydros(path: Path) -> list[dict[str, Any]]:
    """The plants as the file has them; none where it is not what it should be, which validation says."""
    try:
        given = json.loads(path.read_bytes())["hydros"]
        return [hydro for hydro in given if isinstance(hydro["id"], int)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _turbines(hydro: dict[str, Any]) -> bool:
    groups = hydro.get("unit_groups") or [{}]
    return any(group.get("max_turbined_m3s", 1.0) != 0.0 for group in groups)
