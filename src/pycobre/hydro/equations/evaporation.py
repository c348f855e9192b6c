"""Evaporation of a reservoir as a linear function of its storage.

The month's depth c (mm) over the surface A(v) (km²) during the stage is c·A(v) / (3.6·hours) m³/s. A(v) comes
from the geometry and is replaced by its tangent at a reference volume: evaporation = k0 + kv·v.
"""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.system import Hydro

__all__ = ["LinearEvaporation", "linear_evaporation"]


@frozen()
class LinearEvaporation:
    """m³/s at zero storage, and m³/s per hm³."""

    k0: float
    kv: float

    def most(self, max_storage: float) -> float:
        """Twice the evaporation of the full reservoir: room enough for any operation, and for net rain."""
        return 2.0 * abs(self.k0 + self.kv * max_storage)


def linear_evaporation(case: Case, hydro: Hydro, stage: Stage) -> LinearEvaporation | None:
    """The model of one plant in one stage; None where nothing is known to evaporate."""
    if hydro.evaporation is None:
        return None
    rows = case.geometry.rows_of(hydro.id)
    volume, area = case.geometry.volume_hm3[rows], case.geometry.area_km2[rows]
    month = stage.season_id if stage.season_id is not None else stage.start_date.month - 1
    low, high = hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3
    volumes = hydro.evaporation.reference_volumes_hm3
    reference = volumes[month] if volumes is not None else low + (high - low) / 2.0
    depth = hydro.evaporation.coefficients_mm[month] / (3.6 * 24.0 * stage.days)
    kv = depth * _slope(volume, area, reference)
    return LinearEvaporation(depth * float(np.interp(reference, volume, area)) - kv * reference, kv)


def _slope(volume: F64, area: F64, at: float) -> float:
    """dA/dv of the piece that starts at or before `at`; the outer pieces go on beyond the ends."""
    if volume.size < 2:
        return 0.0
    i = int(np.clip(np.searchsorted(volume, at, side="right") - 1, 0, volume.size - 2))
    width = volume[i + 1] - volume[i]
    return float((area[i + 1] - area[i]) / width) if width > 0.0 else 0.0
