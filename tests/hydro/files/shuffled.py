"""The files of a case with everything in another order that has none: entities, rows, keys of objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich_case import Files, parquet_of, table_of

#: Lists whose order says something: the first that fits is taken, or one goes with the other.
ORDERED = ("deficit_segments", "stage_ranges", "matrix", "coefficients_mm", "reference_volumes_hm3")


def shuffled(files: Mapping[str, bytes], seed: int) -> Files:
    """The same case, said in another order."""
    rng = np.random.default_rng(seed)
    changed: Files = {}
    for name in rng.permutation(sorted(files)).tolist():
        if name.endswith(".json"):
            data = _shuffle(json.loads(files[name]), "", rng)
            changed[name] = json.dumps(data).encode()
        else:
            table = table_of(files[name])
            table = table.take(rng.permutation(table.num_rows))
            changed[name] = parquet_of(table.select(rng.permutation(table.column_names).tolist()))
    return changed


def _shuffle(data: Any, key: str, rng: np.random.Generator) -> Any:
    if isinstance(data, dict):
        if "matrix" in data:
            order = rng.permutation(len(data["entities"]))
            data["entities"] = [data["entities"][i] for i in order]
            data["matrix"] = [[data["matrix"][i][j] for j in order] for i in order]
            return data
        keys = rng.permutation(sorted(data)).tolist()
        return {name: _shuffle(data[name], name, rng) for name in keys}
    if isinstance(data, list):
        items = [_shuffle(item, "", rng) for item in data]
        return items if key in ORDERED else [items[i] for i in rng.permutation(len(items))]
    return data
