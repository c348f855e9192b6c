"""FPHA planes fitted to a plant's geometry.

Power is 0.00981·efficiency·turbined·head, with head = (level of the reservoir − level of the tailrace) less
hydraulic losses, and never above the plant's maximum. Over a grid of volumes and flows without spillage its least
concave majorant has finitely many planes, and one factor for all of them fits the grid best. What spilled
water takes away, since it raises the tailrace, is a straight line through powers at the plane's largest flow, as if
the plant had no maximum.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from pycobre._util.arrays import F64
from pycobre.errors import CaseError
from pycobre.hydro.equations.plane_reduction import Reach, reduced
from pycobre.hydro.equations.tailrace import Families, families_of, tailrace_level
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.production import FittingWindow, FphaConfig, PlaneReduction
from pycobre.hydro.model.system import FactorLosses, Hydro

__all__ = ["Head", "fitted_planes"]

Curve = tuple[float, ...]

GRAVITY = 9.81e-3  # MW per (m³/s · m)
POINTS = 5
SPILLED = 2.0  # the largest spillage of the fit, in largest turbined flows
SPILLED_POINTS = 9
NOTHING = 1e-12  # of a plane's coefficients, relative to the size of the grid
FLAT = 1e-9  # planes that differ by less, relative to their size, are one


class Head:
    """What a plant's power is for given volume, turbined and spilled flow."""

    def __init__(self, hydro: Hydro, volume: Curve, height: Curve, families: Families | None = None) -> None:
        self._volume, self._height = np.array(volume), np.array(height)
        if not self._volume.size:
            raise CaseError(
                f"system/hydro_geometry.parquet: hydro {hydro.id} ({hydro.name}): expected the geometry from which "
                "its FPHA planes are computed, got none. Add rows, or give planes."
            )
        if hydro.tailrace is None or hydro.hydraulic_losses is None or hydro.efficiency is None:
            raise CaseError(
                f"system/hydros.json: hydro {hydro.id} ({hydro.name}): expected tailrace, hydraulic_losses and "
                "efficiency, from which its FPHA planes are computed, got not all of them. Add them, or give planes."
            )
        tail = hydro.tailrace
        self._level = partial(tailrace_level, tail) if families is None else families.level
        self._losses = hydro.hydraulic_losses
        self._factor = GRAVITY * hydro.efficiency.value
        self._most = hydro.generation.max_generation_mw

    @property
    def volumes(self) -> tuple[float, float]:
        """The ends of the geometry."""
        return float(self._volume[0]), float(self._volume[-1])

    def power(self, volume: F64, turbined: F64, spilled: F64) -> F64:
        """MW, within the plant's maximum."""
        return np.minimum(self.unlimited(volume, turbined, spilled), self._most)

    def unlimited(self, volume: F64, turbined: F64, spilled: F64) -> F64:
        """MW that the water has."""
        gross = np.interp(volume, self._volume, self._height) - self._level(turbined + spilled)
        if isinstance(self._losses, FactorLosses):
            net = gross * (1.0 - self._losses.value)
        else:
            net = gross - self._losses.value_m
        power: F64 = np.maximum(self._factor * turbined * net, 0.0)
        return power


def fitted_planes(case: Case, hydro: Hydro, stage: Stage, config: FphaConfig) -> F64:
    """Rows (γ0, γv, γq, γs), the steepest in volume first."""
    rows = case.geometry.hydro_id == hydro.id
    volume, height = case.geometry.volume_hm3[rows], case.geometry.height_m[rows]
    curves = tuple(volume.tolist()), tuple(height.tolist()), families_of(case, hydro, stage)
    return _fitted(hydro, config, case.fpha_plane_reduction, *curves)


@lru_cache(maxsize=4096)  # every stage asks for the same planes
def _fitted(
    hydro: Hydro,
    config: FphaConfig,
    reduction: PlaneReduction | None,
    volume_hm3: Curve,
    height_m: Curve,
    families: Families | None,
) -> F64:
    head = Head(hydro, volume_hm3, height_m, families)
    low, high = _window(head, hydro, config.fitting_window)
    most = hydro.generation.max_turbined_m3s
    volume = np.linspace(low, high, config.volume_discretization_points or POINTS)
    flow = np.linspace(0.0, most, config.turbine_discretization_points or POINTS)
    v, q = (grid.reshape(-1) for grid in np.meshgrid(volume, flow, indexing="ij"))
    power = head.power(v, q, np.zeros_like(v))
    planes, at = _majorant(v, q, power)
    above = (planes[:, :1] + planes[:, 1:2] * v + planes[:, 2:] * q).min(axis=0)
    scale = float((power * above).sum() / (above * above).sum()) if above.any() else 1.0
    spilled = np.linspace(0.0, SPILLED * most, SPILLED_POINTS)
    slopes = [_slope(spilled, head.unlimited(v[i], q[i], spilled)) for i in at]
    fitted = np.column_stack([planes * scale, slopes])
    if reduction is not None:
        greatest = float(head.unlimited(v, q, np.zeros_like(v)).max())
        fitted = reduced(fitted, reduction, Reach(low, high, most, greatest))
    fitted.setflags(write=False)
    return fitted


def _slope(x: F64, y: F64) -> float:
    """Of the least-squares line; spilling never helps."""
    apart = x - x.mean()
    return min(0.0, float((apart * (y - y[0])).sum() / (apart * apart).sum())) if apart.any() else 0.0


def _window(head: Head, hydro: Hydro, window: FittingWindow | None) -> tuple[float, float]:
    """Volumes of the grid: the geometry's, or limits of their own; shares are of the operating range."""
    low, high = head.volumes
    if window is None:
        return low, high
    start = hydro.reservoir.min_storage_hm3
    width = hydro.reservoir.max_storage_hm3 - start
    if window.volume_min_percentile is not None:
        low = start + window.volume_min_percentile * width
    if window.volume_max_percentile is not None:
        high = start + window.volume_max_percentile * width
    low = low if window.volume_min_hm3 is None else window.volume_min_hm3
    high = high if window.volume_max_hm3 is None else window.volume_max_hm3
    return low, high


def _through_corners(v: F64, q: F64, power: F64) -> F64:
    """The plane through the powers at the least volume and flow, the greatest volume, and the greatest flow."""
    origin, far, deep = (
        int(np.flatnonzero((v == level) & (q == flow))[0])
        for level, flow in ((v.min(), q.min()), (v.min(), q.max()), (v.max(), q.min()))
    )
    by_volume = (power[deep] - power[origin]) / np.ptp(v)
    by_flow = (power[far] - power[origin]) / (np.ptp(q) or 1.0)
    return np.array([power[origin] - by_volume * v.min() - by_flow * q.min(), by_volume, by_flow])


def _majorant(v: F64, q: F64, power: F64) -> tuple[F64, list[int]]:
    """Planes (constant, by volume, by flow) of the least concave function above the points.

    With each the position of the point with the largest flow that it touches.
    """
    from scipy.spatial import ConvexHull

    if np.ptp(v) == 0.0:  # a lake of one level: power grows with flow alone
        best = int(np.argmax(power))
        return np.array([[0.0, 0.0, power[best] / q[best] if q[best] > 0.0 else 0.0]]), [best]
    size = np.array([np.ptp(v), np.ptp(q) or 1.0, np.ptp(power) or 1.0])
    even = _through_corners(v, q, power)
    if np.abs(even[0] + even[1] * v + even[2] * q - power).max() <= FLAT * size[2]:
        return even[None], [int(np.argmax(q + v / size[0]))]
    hull = ConvexHull(np.stack([v, q, power], axis=1) / size)
    planes: list[F64] = []
    at: list[int] = []
    for equation, corners in zip(hull.equations, hull.simplices, strict=True):  # a·x + b ≤ 0 inside
        if equation[2] <= FLAT:
            continue
        plane = -equation[[3, 0, 1]] / equation[2]
        plane[np.abs(plane) < NOTHING] = 0.0
        far = max(corners.tolist(), key=lambda i: (q[i], v[i]))
        same = [i for i, other in enumerate(planes) if np.abs(plane - other).max() < 100.0 * FLAT]
        if not same:
            planes.append(plane)
            at.append(far)
        elif (q[far], v[far]) > (q[at[same[0]]], v[at[same[0]]]):
            at[same[0]] = far
    order = sorted(range(len(planes)), key=lambda i: (-planes[i][1], planes[i][2]))
    found = np.array(planes)[order] * size[2] / np.array([1.0, size[0], size[1]])
    return found, [at[i] for i in order]
