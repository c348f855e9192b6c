"""The level below a plant's turbines, by its outflow: one curve, or families of curves.

A family holds for one level of the reservoir below, which may stand in the river up to the plant: its curves are
polynomials, each for a range of outflows. Between the levels of two families the tailrace lies between their curves,
in proportion; beyond them the nearest family holds, as a curve's end does beyond its outflows.
"""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import ComputedParameter
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.parameters import PlantData
from pycobre.hydro.model.system import Hydro, PiecewiseTailrace, PolynomialTailrace

__all__ = ["Families", "families_of", "tailrace_level"]

COEFFICIENTS = ("coefficient_0", "coefficient_1", "coefficient_2", "coefficient_3", "coefficient_4")

Segment = tuple[float, float, tuple[float, ...]]
"""The least and the greatest outflow, and the coefficients of 1, q, q², …"""


@frozen()
class Families:
    """Curves of one plant, by rising level of the reservoir below, and what that level is."""

    levels: tuple[float, ...]  #: m; of a single family it does not matter
    curves: tuple[tuple[Segment, ...], ...]  #: by rising outflow
    below: float  #: m, of the reservoir below

    def level(self, outflow: F64) -> F64:
        """Of the tailrace, in metres."""
        upper = int(np.searchsorted(self.levels, self.below))
        if upper in (0, len(self.levels)):
            return _curve(self.curves[min(upper, len(self.levels) - 1)], outflow)
        low, high = self.levels[upper - 1], self.levels[upper]
        share = (self.below - low) / (high - low)
        return (1.0 - share) * _curve(self.curves[upper - 1], outflow) + share * _curve(
            self.curves[upper], outflow
        )


def families_of(case: Case, hydro: Hydro, stage: Stage) -> Families | None:
    """The families of a plant; None where it has none.

    The reservoir below stands at its reference volume. Without one, or without its geometry, the lowest family holds.
    """
    table = case.tailrace_curves
    mine = np.flatnonzero(table.hydro_id == hydro.id)
    if not mine.size:
        return None
    found: dict[tuple[float, int], list[Segment]] = {}
    for row in mine.tolist():
        level = float(np.nan_to_num(table.downstream_reference_level_m[row]))
        family = found.setdefault((level, int(table.family_id[row])), [])
        coefficients = tuple(float(getattr(table, name)[row]) for name in COEFFICIENTS)
        family.append((float(table.outflow_min_m3s[row]), float(table.outflow_max_m3s[row]), coefficients))
    ordered = sorted(found)
    below = _level_below(case, hydro, stage)
    return Families(
        tuple(level for level, _ in ordered),
        tuple(tuple(sorted(found[key])) for key in ordered),
        ordered[0][0] if below is None else below,
    )


def tailrace_level(tail: PolynomialTailrace | PiecewiseTailrace, outflow: F64) -> F64:
    """Of the plant's own curve, in metres."""
    level: F64
    if isinstance(tail, PolynomialTailrace):
        level = np.polynomial.polynomial.polyval(outflow, np.array(tail.coefficients))
        return level
    points = sorted((p.outflow_m3s, p.height_m) for p in tail.points)
    level = np.interp(outflow, *np.array(points).T)
    return level


def _level_below(case: Case, hydro: Hydro, stage: Stage) -> float | None:
    geometry = case.geometry
    rows = np.flatnonzero(geometry.hydro_id == (-1 if hydro.downstream_id is None else hydro.downstream_id))
    if hydro.downstream_id is None or not rows.size:
        return None
    plants = PlantData(case.hydros, case.production_models, case.energy_productivity)
    volume = plants.value(ComputedParameter(tag="reference_volume", hydro_id=hydro.downstream_id), stage)
    return float(np.interp(volume or 0.0, geometry.volume_hm3[rows], geometry.height_m[rows]))


def _curve(segments: tuple[Segment, ...], outflow: F64) -> F64:
    """The polynomial of the segment of the outflow; where two meet, of the second."""
    inside = np.clip(outflow, segments[0][0], segments[-1][1])
    chosen = np.searchsorted([start for start, _, _ in segments[1:]], inside, side="right")
    polynomials = np.array([coefficients for *_, coefficients in segments])[chosen]
    level: F64 = polynomials[..., -1]
    for power in range(len(COEFFICIENTS) - 2, -1, -1):
        level = level * inside + polynomials[..., power]
    return level
