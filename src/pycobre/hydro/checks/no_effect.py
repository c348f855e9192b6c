"""Settings that are understood and change nothing here are said so where they are used, not passed over."""

from __future__ import annotations

from dataclasses import MISSING, fields

from pycobre.hydro.checks.registry import Findings, check, warning
from pycobre.hydro.model.config import Config
from pycobre.hydro.model.findings import Finding, Layer
from pycobre.hydro.model.initial import InitialConditions
from pycobre.hydro.model.production import (
    DistanceReduction,
    PlaneReduction,
    ProductionModel,
    SeasonalProduction,
    fits_planes,
)
from pycobre.hydro.model.system import Hydro

_LAZY = "An LP takes in the cuts that it violates, so that its size needs no cap; every cut stays in play."
_FILES = "Where results go and where a policy comes from are options of the command, such as --output."
_SPEED = "It is about how the LPs are solved; the results are the same."
_EXPORTS = "Every run writes all its tables."
_CHECKPOINTS = "Checkpoints are complete and compressed; interval_iterations says how often they are written."

#: Keys of config.json whose value matters only if it is not the default, and what to know about them.
SETTINGS: dict[str, str] = {
    "training.enabled": "`pycobre run` trains; `pycobre simulate` simulates a stored policy.",
    "training.solver": _SPEED,
    "training.parallelism": _SPEED,
    "training.cut_selection.row_activity_tolerance": _SPEED,
    "training.cut_selection.max_active_per_stage": _LAZY,
    "simulation.solver": _SPEED,
    "simulation.io_channel_capacity": _SPEED,
    "modeling.cost_scale_factor": _SPEED,
    "policy.path": _FILES,
    "policy.mode": "Go on from a checkpoint with --resume, begin with the cuts of a policy with --warm-start.",
    "policy.checkpointing.enabled": _CHECKPOINTS,
    "policy.checkpointing.initial_iteration": _CHECKPOINTS,
    "policy.checkpointing.store_basis": _CHECKPOINTS,
    "policy.checkpointing.compress": _CHECKPOINTS,
    "exports.states": _EXPORTS,
    "exports.stochastic": _EXPORTS,
    "exports.fpha_deviation_points": _EXPORTS,
}
#: Keys of hydros.json that only FPHA planes computed from geometry need.
HEADS = ("tailrace", "hydraulic_losses", "efficiency", "specific_productivity_mw_per_m3s_per_m")


def _says(section: str, where: str, entity: str = "", suggestion: str = "") -> Finding:
    return warning(
        Layer.SUPPORT,
        "no_effect",
        section,
        "the setting has no effect here",
        where=where,
        entity=entity,
        suggestion=suggestion,
    )


def _default(holder: type, name: str) -> object:
    field = next(f for f in fields(holder) if f.name == name)
    return field.default_factory() if field.default_factory is not MISSING else field.default


@check
def settings(config: Config) -> Findings:
    for path, suggestion in SETTINGS.items():
        *parents, last = path.split(".")
        holder: object = config
        for name in parents:
            holder = getattr(holder, name)
        if getattr(holder, last) != _default(type(holder), last):
            yield _says("config", path, suggestion=suggestion)


@check
def heads(hydros: tuple[Hydro, ...], production_models: tuple[ProductionModel, ...]) -> Findings:
    fitted = {model.hydro_id for model in production_models if fits_planes(model)}
    for name in HEADS:
        used = fitted if name != "specific_productivity_mw_per_m3s_per_m" else set()
        given = [hydro.id for hydro in hydros if getattr(hydro, name) is not None and hydro.id not in used]
        if given:
            others = f" and {len(given) - 1} more" if len(given) > 1 else ""
            yield _says(
                "hydros",
                name,
                entity=f"hydro {given[0]}{others}",
                suggestion="Productivities and planes are taken as they are given.",
            )


@check
def fitted_planes(production_models: tuple[ProductionModel, ...]) -> Findings:
    for model in production_models:
        spans = model.seasons if isinstance(model, SeasonalProduction) else model.stage_ranges
        for name in ("max_planes_per_hydro", "spillage_discretization_points"):
            if any(span.fpha_config is not None and getattr(span.fpha_config, name) for span in spans):
                yield _says(
                    "production_models",
                    name,
                    entity=f"hydro {model.hydro_id}",
                    suggestion="All planes are kept, and spillage has nine points, as in Cobre.",
                )


@check
def inner_approximation(config: Config) -> Findings:
    if config.upper_bound_evaluation.enabled:
        yield _says(
            "config",
            "upper_bound_evaluation",
            suggestion="No upper bound is computed by inner approximation, and Cobre shows none either.",
        )


@check
def plane_reduction(
    production_models: tuple[ProductionModel, ...], fpha_plane_reduction: PlaneReduction | None
) -> Findings:
    if fpha_plane_reduction is not None and not any(fits_planes(model) for model in production_models):
        yield _says(
            "fpha_plane_reduction",
            "fpha_plane_reduction",
            suggestion="Planes that are given stay as they are; only computed ones are merged.",
        )
    elif isinstance(fpha_plane_reduction, DistanceReduction):
        yield _says(
            "fpha_plane_reduction",
            "n_samples",
            suggestion="The mean distance is computed exactly; Cobre samples it.",
        )


@check
def water_on_its_way(hydros: tuple[Hydro, ...], initial_conditions: InitialConditions) -> Findings:
    slow = {plant.id for plant in hydros if plant.travel_time_hours and plant.downstream_id is not None}
    for plant in hydros:
        if plant.travel_time_hours and plant.downstream_id is None:
            yield _says("hydros", "travel_time_hours", entity=f"hydro {plant.id}")
    for hydro_id in sorted({window.hydro_id for window in initial_conditions.past_defluences} - slow):
        yield _says("initial_conditions", "past_defluences", entity=f"hydro {hydro_id}")
