"""Penalties of hydro plants: the global value, then the plant's, then the stage's."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.overrides import Overrides
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.penalties import DEFAULT_INFLOW_NONNEGATIVITY_COST

__all__ = ["HydroPenaltyBook"]


_SYMMETRIC = {
    "evaporation_violation_pos": "evaporation_violation",
    "evaporation_violation_neg": "evaporation_violation",
    "water_withdrawal_violation_pos": "water_withdrawal_violation",
    "water_withdrawal_violation_neg": "water_withdrawal_violation",
}
_PLAIN = (
    "spillage",
    "turbined",
    "diversion",
    "storage_violation_below",
    "filling_target_violation",
    "turbined_violation_below",
    "outflow_violation_below",
    "outflow_violation_above",
    "generation_violation_below",
    "inflow_nonnegativity",
)


class HydroPenaltyBook:
    """A direction (`_pos`, `_neg`) takes its symmetric cost at each level that does not name it."""

    def __init__(self, case: Case, index: Index) -> None:
        self._case, self._index = case, index
        self._base = {name: self._of_plants(name) for name in (*_PLAIN, *_SYMMETRIC)}

    def stage(self, rows: Overrides) -> dict[str, F64]:
        """Penalty by name (without `_cost`), one value per plant."""
        table, key, position = self._case.hydro_penalties, ("hydro_id",), self._index.hydro
        found = {}
        for name, base in self._base.items():
            symmetric = _SYMMETRIC.get(name)
            if symmetric is not None:
                base = rows.whole(table, key, position, f"{symmetric}_cost", base)
            found[name] = rows.whole(table, key, position, f"{name}_cost", base)
        return found

    def _of_plants(self, name: str) -> F64:
        common, symmetric = self._case.penalties.hydro, _SYMMETRIC.get(name)
        levels = [getattr(common, f"{name}_cost"), getattr(common, f"{symmetric}_cost", None)]
        base = _first(*levels, DEFAULT_INFLOW_NONNEGATIVITY_COST)
        own = [
            base
            if h.penalties is None
            else _first(
                getattr(h.penalties, f"{name}_cost", None),
                getattr(h.penalties, f"{symmetric}_cost", None),
                base,
            )
            for h in self._case.hydros
        ]
        return np.array(own, dtype=np.float64)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
