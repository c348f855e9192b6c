"""What FPHA planes are computed from: heads, grids, tailrace curves, and how planes are merged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, error, warning
from pycobre.hydro.model.constraints import Geometry, TailraceCurves
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.production import (
    AngleReduction,
    DistanceReduction,
    PlaneReduction,
    ProductionModel,
    SeasonalProduction,
    fits_planes,
)
from pycobre.hydro.model.system import Hydro

COVERAGE = Layer.COVERAGE
GRIDS = tuple(f"{of}_discretization_points" for of in ("volume", "turbine", "spillage"))
TOUCHING = 1e-6  # m³/s between one curve's end and the next one's start
STEP = 0.01  # m that the level may jump there


@check
def heads_of_fitted_planes(
    hydros: tuple[Hydro, ...], production_models: tuple[ProductionModel, ...], geometry: Geometry
) -> Findings:
    """Planes are computed from a geometry, and from what is between its level and the turbines."""
    fitted = {model.hydro_id for model in production_models if fits_planes(model)}
    for hydro in hydros:
        if hydro.id not in fitted:
            continue
        needed = ("tailrace", "hydraulic_losses", "efficiency")
        lacking = [name for name in needed if getattr(hydro, name) is None]
        if np.unique(geometry.volume_hm3[geometry.hydro_id == hydro.id]).size < 2:
            lacking.append("geometry of two volumes")
        if lacking:
            yield error(
                COVERAGE,
                "missing_head",
                "hydros",
                "a plant whose FPHA planes are computed has a geometry, tailrace, hydraulic_losses and efficiency",
                entity=f"hydro {hydro.id}",
                value=f"no {', no '.join(lacking)}",
                suggestion='Or give planes in system/fpha_hyperplanes.parquet and source "precomputed".',
            )


@check
def grids_of_fitted_planes(production_models: tuple[ProductionModel, ...]) -> Findings:
    for model in production_models:
        spans = model.seasons if isinstance(model, SeasonalProduction) else model.stage_ranges
        for config in [span.fpha_config for span in spans if span.fpha_config is not None]:
            for name in GRIDS:
                points = getattr(config, name)
                if points is not None and points < 2:
                    yield error(
                        COVERAGE,
                        "grid",
                        "production_models",
                        "a grid has at least two points",
                        where=name,
                        entity=f"hydro {model.hydro_id}",
                        value=points,
                    )


@check
def reduction_of_planes(fpha_plane_reduction: PlaneReduction | None) -> Findings:
    section = "fpha_plane_reduction"
    if isinstance(fpha_plane_reduction, AngleReduction):
        degrees = fpha_plane_reduction.tolerance_deg
        if not 0.0 <= degrees <= 90.0:
            rule = "an angle is from 0 to 90 degrees"
            yield error(COVERAGE, "reduction", section, rule, where="tolerance_deg", value=f"{degrees:g}")
    elif isinstance(fpha_plane_reduction, DistanceReduction):
        share, samples = fpha_plane_reduction.tolerance_pct, fpha_plane_reduction.n_samples
        if not share >= 0.0:
            rule = "a distance is not negative"
            yield error(COVERAGE, "reduction", section, rule, where="tolerance_pct", value=f"{share:g}")
        if samples < 1:
            rule = "a mean has at least one sample"
            yield error(COVERAGE, "reduction", section, rule, where="n_samples", value=samples)


@check
def tailrace_segments(tailrace_curves: TailraceCurves) -> Findings:
    """The curves of a family follow each other from an outflow that is not negative."""
    table, section = tailrace_curves, "tailrace_curves"
    for row in np.flatnonzero(table.outflow_min_m3s < 0.0).tolist():
        value = f"{table.outflow_min_m3s[row]:g}"
        rule = "an outflow is not negative"
        yield error(
            Layer.PHYSICAL, "negative", section, rule, where=f"outflow_min_m3s, row {row}", value=value
        )
    for row in np.flatnonzero(table.outflow_min_m3s > table.outflow_max_m3s).tolist():
        ends = f"{table.outflow_min_m3s[row]:g} and {table.outflow_max_m3s[row]:g}"
        rule = "outflow_min_m3s is not above outflow_max_m3s"
        yield error(Layer.PHYSICAL, "inverted_bounds", section, rule, where=f"row {row}", value=ends)
    families = zip(table.hydro_id.tolist(), table.family_id.tolist(), strict=True)
    for hydro, family in sorted(set(families)):
        rows = np.flatnonzero((table.hydro_id == hydro) & (table.family_id == family))
        rows = rows[np.argsort(table.outflow_min_m3s[rows], kind="stable")]
        entity = f"hydro {hydro}, family {family}"
        for one, other in pairwise(rows.tolist()):
            end, start = float(table.outflow_max_m3s[one]), float(table.outflow_min_m3s[other])
            if abs(end - start) > TOUCHING:
                rule = "every curve starts where the one before it ends"
                value = f"{end:g} and {start:g} m³/s"
                yield error(Layer.PHYSICAL, "tailrace_gap", section, rule, entity=entity, value=value)
                continue
            left, right = (
                sum(float(getattr(table, f"coefficient_{i}")[row]) * end**i for i in range(5))
                for row in (one, other)
            )
            if abs(left - right) > STEP:
                rule = f"the level of the tailrace has no step at {end:g} m³/s"
                value = f"{left:g} and {right:g} m"
                yield warning(Layer.PHYSICAL, "tailrace_step", section, rule, entity=entity, value=value)


@check
def tailrace_families(tailrace_curves: TailraceCurves) -> Findings:
    """Families are told apart by the level of the reservoir below, one for each."""
    table = tailrace_curves
    for hydro in sorted(set(table.hydro_id.tolist())):
        rows = np.flatnonzero(table.hydro_id == hydro).tolist()
        families = {int(table.family_id[row]) for row in rows}
        levels = {(int(table.family_id[row]), float(table.downstream_reference_level_m[row])) for row in rows}
        if len(families) == 1:
            continue
        distinct = {level for _, level in levels if not np.isnan(level)}
        if len(levels) > len(families) or len(distinct) < len(families):
            yield error(
                COVERAGE,
                "tailrace_levels",
                "tailrace_curves",
                "each of several families has a downstream_reference_level_m of its own",
                entity=f"hydro {hydro}",
                value=f"{len(families)} families and {len(distinct)} levels",
            )
