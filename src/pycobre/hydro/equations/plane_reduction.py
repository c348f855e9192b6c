"""Fewer FPHA planes: neighbours that hardly differ are replaced by their mean.

Planes are taken in the order of their slope in volume. The mean so far and the next plane become their mean where
they are near enough; else the next one starts a new mean. The last plane, which is 0 without flow at every volume,
stays as it is: without it a plant would generate power without water. A mean lies above the lower of its planes, so
what is left allows at least what the planes did.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.hydro.model.production import AngleReduction, PlaneReduction

__all__ = ["Reach", "reduced"]


@frozen()
class Reach:
    """Where planes are compared: volumes, flows from 0 on, and the power that differences are relative to."""

    low: float  #: hm³
    high: float
    flow: float  #: m³/s
    power: float  #: MW


def reduced(planes: F64, reduction: PlaneReduction, reach: Reach) -> F64:
    """Rows (γ0, γv, γq, γs) of at most as many planes; ties of slope go from flow to flow as a plant's power does."""
    if isinstance(reduction, AngleReduction):
        limit, apart = reduction.tolerance_deg, angle
    else:
        limit = reduction.tolerance_pct

        def apart(a: F64, b: F64) -> float:
            return distance(a, b, reach)

    return _merged(planes[_order(planes)], limit, apart)


def _order(planes: F64) -> list[int]:
    steepest = float(np.abs(planes[:, 1]).max()) or 1.0

    def place(i: int) -> tuple[bool, float, float]:
        """Slopes that rounding alone tells apart are the same."""
        by_volume, constant = round(float(planes[i, 1]) / steepest, 9), float(planes[i, 0])
        return _needs_flow(planes[i]), -by_volume, -constant if by_volume > 0.0 else constant

    return sorted(range(len(planes)), key=place)


def _needs_flow(plane: F64) -> bool:
    """Whether it is 0 without flow, at every volume."""
    return bool(plane[0] == 0.0 and plane[1] == 0.0)


def _merged(planes: F64, limit: float, apart: Callable[[F64, F64], float]) -> F64:
    kept: list[F64] = []
    for plane in planes:
        if kept and not _needs_flow(plane) and apart(kept[-1], plane) <= limit:
            kept[-1] = (kept[-1] + plane) / 2.0
        else:
            kept.append(plane)
    return np.array(kept)


def angle(a: F64, b: F64) -> float:
    """Degrees between the normals (γv, γq, 1)."""
    one, other = np.array([a[1], a[2], 1.0]), np.array([b[1], b[2], 1.0])
    cosine = (one * other).sum() / np.sqrt((one * one).sum() * (other * other).sum())
    return float(np.degrees(np.arccos(min(1.0, cosine))))


def distance(a: F64, b: F64, reach: Reach) -> float:
    """Mean squared difference over the rectangle of volumes and flows, in per cent of the square of the power.

    The mean of a linear function's square is that of its values at the corners and, four times, in the middle of
    the rectangle and of its sides, weighed as Simpson does in both directions.
    """
    volumes = np.array([reach.low, (reach.low + reach.high) / 2.0, reach.high])
    flows = np.array([0.0, reach.flow / 2.0, reach.flow])
    constant, by_volume, by_flow = (a - b)[:3]
    difference = constant + by_volume * volumes[:, None] + by_flow * flows
    simpson = np.array([1.0, 4.0, 1.0]) / 6.0
    mean = float((simpson[:, None] * simpson * difference**2).sum())
    return 100.0 * mean / reach.power**2 if reach.power > 0.0 else 0.0
