"""The rows of sparse tables that replace an entity's values in one stage, or in one block of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.table import NO_ID, Table

__all__ = ["Overrides"]


class Overrides:
    """Applies tables to base values of one stage; null values keep the base."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.num_blocks = len(stage.blocks)
        self._block = {block.id: k for k, block in enumerate(stage.blocks)}

    def whole(
        self, table: Table, keys: tuple[str, ...], position: dict[Any, int], column: str, base: F64
    ) -> F64:
        """One value per entity: the row for the whole stage."""
        values = base.copy()
        for entity, block, value in self._rows(table, keys, column):
            if block == NO_ID:
                values[position[entity]] = value
        return values

    def blocks(
        self, table: Table, keys: tuple[str, ...], position: dict[Any, int], column: str, base: F64
    ) -> F64:
        """One value per entity and block: the row for the stage, then the row for the block."""
        values = np.repeat(base[:, None], self.num_blocks, axis=1)
        for entity, block, value in self._rows(table, keys, column):
            if block == NO_ID:
                values[position[entity], :] = value
            else:
                values[position[entity], self._block[block]] = value
        return values

    def _rows(self, table: Any, keys: tuple[str, ...], column: str) -> list[tuple[Any, int, float]]:
        """(entity, block id, value) of this stage, whole-stage rows first (null ids sort first).

        An entity is its id, or the tuple of its ids where it has several.
        """
        if not len(table):
            return []
        rows = np.flatnonzero(table.stage_id == self.stage.id)
        rows = rows[~np.isnan(getattr(table, column)[rows])]
        ids = [getattr(table, key)[rows].tolist() for key in keys]
        entities = ids[0] if len(keys) == 1 else list(zip(*ids, strict=True))
        blocks = table.block_id[rows].tolist() if hasattr(table, "block_id") else [NO_ID] * rows.size
        return list(zip(entities, blocks, getattr(table, column)[rows].tolist(), strict=True))
