"""Nothing that the equations need is missing, and all sizes agree."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pycobre.hydro.checks.registry import Findings, HasId, check, error, warning
from pycobre.hydro.model.config import Config, IterationLimit
from pycobre.hydro.model.constraints import EnergyProductivity, FphaPlanes, Geometry
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.production import (
    ProductionModel,
    SeasonalProduction,
    SeasonModel,
    StageRange,
    StageRangeProduction,
)
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    ExternalInflows,
    InflowHistory,
    InflowStats,
    LoadStats,
    SourceStats,
)
from pycobre.hydro.model.system import Bus, Hydro, NonControllableSource
from pycobre.hydro.model.table import NO_ID

COVERAGE = Layer.COVERAGE
FITTED = "computed fpha"


@check
def horizon(stages: tuple[Stage, ...]) -> Findings:
    if not stages:
        yield error(COVERAGE, "empty_study", "stages", "a study has at least one stage")
        return
    ids = sorted(stage.id for stage in stages)
    if ids != list(range(len(ids))):
        yield error(
            COVERAGE, "stage_ids", "stages", "stages are numbered 0, 1, 2, …", value=str(ids[:10])[:60]
        )
    for stage in stages:
        entity = f"stage {stage.id}"
        if not stage.blocks:
            yield error(COVERAGE, "empty_stage", "stages", "a stage has at least one block", entity=entity)
        elif sorted(b.id for b in stage.blocks) != list(range(len(stage.blocks))):
            found = [b.id for b in stage.blocks]
            yield error(
                COVERAGE, "block_ids", "stages", "blocks are numbered 0, 1, 2, …", entity=entity, value=found
            )
        if stage.sampling_method == "qmc_sobol" and (stage.num_openings or 1).bit_count() != 1:
            yield warning(
                COVERAGE,
                "sobol_openings",
                "stages",
                "Sobol openings are even for powers of two only",
                entity=entity,
                value=stage.num_openings,
            )
        if stage.season_id is not None and stage.season_id < 0:
            yield error(COVERAGE, "season_id", "stages", "season_id is not negative", entity=entity)


@check
def system_not_empty(buses: tuple[Bus, ...]) -> Findings:
    if not buses:
        yield error(COVERAGE, "empty_system", "buses", "a system has at least one bus")


@check
def inflow_rows(
    inflow_stats: InflowStats,
    inflow_history: InflowHistory,
    external_inflows: ExternalInflows,
    ar_coefficients: ArCoefficients,
    config: Config,
    hydros: tuple[Hydro, ...],
    stages: tuple[Stage, ...],
) -> Findings:
    """Statistics are given, fitted to a history, or those of the external scenarios that are trained on."""
    if len(inflow_history) and not len(inflow_stats):
        return
    have = set(zip(inflow_stats.hydro_id.tolist(), inflow_stats.stage_id.tolist(), strict=True))
    chosen = getattr(config.training.scenario_source, "inflow", None)
    if chosen is not None and chosen.scheme == "external" and not len(ar_coefficients):
        table = external_inflows
        have |= set(zip(table.hydro_id.tolist(), table.stage_id.tolist(), strict=True))
    yield from _missing("inflow_stats", "hydro", hydros, stages, have)


@check
def load_rows(load_stats: LoadStats, buses: tuple[Bus, ...], stages: tuple[Stage, ...]) -> Findings:
    if len(load_stats):
        have = set(zip(load_stats.bus_id.tolist(), load_stats.stage_id.tolist(), strict=True))
        yield from _missing("load_stats", "bus", buses, stages, have)


@check
def source_rows(
    source_stats: SourceStats,
    non_controllable_sources: tuple[NonControllableSource, ...],
    stages: tuple[Stage, ...],
) -> Findings:
    named = set(source_stats.ncs_id.tolist())
    have = set(zip(source_stats.ncs_id.tolist(), source_stats.stage_id.tolist(), strict=True))
    listed = [source for source in non_controllable_sources if source.id in named]
    yield from _missing("source_stats", "source", listed, stages, have)


def _missing(
    section: str, what: str, entities: Iterable[HasId], stages: tuple[Stage, ...], have: set[tuple[int, int]]
) -> Findings:
    for entity in entities:
        gaps = [stage.id for stage in stages if (entity.id, stage.id) not in have]
        if gaps:
            yield error(
                COVERAGE,
                "missing_rows",
                section,
                "there is a row for every stage",
                entity=f"{what} {entity.id}",
                value=f"none for stage{'s' if len(gaps) > 1 else ''} {', '.join(map(str, gaps[:8]))}",
            )


@check
def productivity(
    hydros: tuple[Hydro, ...],
    stages: tuple[Stage, ...],
    production_models: tuple[ProductionModel, ...],
    energy_productivity: EnergyProductivity,
    fpha_planes: FphaPlanes,
) -> Findings:
    """Every plant has a production model in every stage, with the numbers that it needs."""
    models = {model.hydro_id: model for model in production_models}
    table = {
        (h, s): value
        for h, s, value in zip(
            energy_productivity.hydro_id.tolist(),
            energy_productivity.stage_id.tolist(),
            energy_productivity.equivalent_productivity_mw_per_m3s.tolist(),
            strict=True,
        )
        if not np.isnan(value)
    }
    planes = set(zip(fpha_planes.hydro_id.tolist(), fpha_planes.stage_id.tolist(), strict=True))
    for hydro in hydros:
        lacking: dict[str, list[int]] = {"productivity": [], "planes": [], "model": []}
        for stage in stages:
            name, value = _model_of(models.get(hydro.id), hydro, stage)
            if name is None:
                lacking["model"].append(stage.id)
            elif name == FITTED:
                continue
            elif name == "fpha":
                if (hydro.id, stage.id) not in planes and (hydro.id, NO_ID) not in planes:
                    lacking["planes"].append(stage.id)
            elif value is None and not {(hydro.id, stage.id), (hydro.id, NO_ID)} & table.keys():
                lacking["productivity"].append(stage.id)
        texts = {
            "model": ("production_models", "missing_model", "a stage range covers every stage"),
            "planes": ("fpha_planes", "missing_planes", "an FPHA plant has planes in every stage"),
            "productivity": (
                "production_models",
                "missing_productivity",
                "a plant has a productivity in every stage, here or in hydro_energy_productivity.parquet",
            ),
        }
        for key, gaps in lacking.items():
            if gaps:
                section, kind, rule = texts[key]
                stages_text = ", ".join(map(str, gaps[:8]))
                yield error(
                    COVERAGE,
                    kind,
                    section,
                    rule,
                    entity=f"hydro {hydro.id}",
                    value=f"none for stage {stages_text}",
                )


def _model_of(
    model: StageRangeProduction | SeasonalProduction | None, hydro: Hydro, stage: Stage
) -> tuple[str | None, float | None]:
    if model is None:
        return hydro.generation.model, None
    if isinstance(model, SeasonalProduction):
        for season in model.seasons:
            if season.season_id == stage.season_id:
                return _kind(season), season.productivity_mw_per_m3s
        return model.default_model, None
    for span in model.stage_ranges:
        if span.start_stage_id <= stage.id and (span.end_stage_id is None or stage.id <= span.end_stage_id):
            return _kind(span), span.productivity_mw_per_m3s
    return None, None


def _kind(chosen: StageRange | SeasonModel) -> str:
    computed = chosen.fpha_config is not None and chosen.fpha_config.source == "computed"
    return FITTED if chosen.model == "fpha" and computed else str(chosen.model)


@check
def evaporation(hydros: tuple[Hydro, ...], geometry: Geometry, stages: tuple[Stage, ...]) -> Findings:
    have = set(geometry.hydro_id.tolist())
    for hydro in hydros:
        if hydro.evaporation is None:
            continue
        entity = f"hydro {hydro.id}"
        if hydro.id not in have:
            rule = "a plant with evaporation has a geometry"
            yield error(COVERAGE, "missing_geometry", "geometry", rule, entity=entity)
        for name in ("coefficients_mm", "reference_volumes_hm3"):
            values = getattr(hydro.evaporation, name)
            if values is not None and len(values) != 12:
                yield error(
                    COVERAGE,
                    "twelve_months",
                    "hydros",
                    f"evaporation.{name} has 12 values",
                    entity=entity,
                    value=len(values),
                )
        if any(stage.season_id is not None and stage.season_id > 11 for stage in stages):
            yield error(
                COVERAGE,
                "season_month",
                "stages",
                "seasons are months 0 to 11 where reservoirs evaporate",
                entity=entity,
            )


@check
def unit_groups(hydros: tuple[Hydro, ...]) -> Findings:
    for hydro in hydros:
        if not hydro.unit_groups:
            yield error(
                COVERAGE, "no_unit_group", "hydros", "a plant has a unit group", entity=f"hydro {hydro.id}"
            )


@check
def training_rules(config: Config) -> Findings:
    rules = config.training.stopping_rules
    if not any(isinstance(rule, IterationLimit) for rule in rules):
        yield error(
            COVERAGE,
            "no_iteration_limit",
            "config",
            "one of the stopping rules is an iteration_limit",
            where="training.stopping_rules",
        )
