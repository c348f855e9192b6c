"""Nothing that the equations need is missing, and all sizes agree."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from math import ceil

import numpy as np

from pycobre.hydro.checks.registry import Findings, HasId, check, error, warning
from pycobre.hydro.model.config import Config, FileOpenings, IterationLimit
from pycobre.hydro.model.constraints import EnergyProductivity, FphaPlanes, Geometry
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.initial import InitialConditions
from pycobre.hydro.model.production import (
    ProductionModel,
    SeasonalProduction,
    SeasonModel,
    StageRange,
    StageRangeProduction,
    fits_planes,
)
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    Correlation,
    ExternalInflows,
    ExternalLoads,
    ExternalSources,
    InflowHistory,
    InflowStats,
    LoadStats,
    NoiseOpenings,
    SourceStats,
)
from pycobre.hydro.model.system import Bus, Hydro, NonControllableSource
from pycobre.hydro.model.table import NO_ID

COVERAGE = Layer.COVERAGE
FITTED = "computed fpha"
MANY_DAYS = 3660  # of travel: no river is longer, and a number without sense is not counted day by day
GRIDS = tuple(f"{of}_discretization_points" for of in ("volume", "turbine", "spillage"))


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
        if stage.num_openings is None or stage.num_openings < 1:
            yield error(
                COVERAGE,
                "num_openings",
                "stages",
                "num_openings is at least 1",
                entity=entity,
                value=stage.num_openings,
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


@check
def scenario_sources(
    config: Config,
    external_inflows: ExternalInflows,
    external_loads: ExternalLoads,
    external_sources: ExternalSources,
    inflow_history: InflowHistory,
    noise_openings: NoiseOpenings,
) -> Findings:
    """What the scenario schemes read from must be there."""
    for where in ("training", "simulation"):
        source = getattr(config, where).scenario_source
        if source is None:
            continue
        for name, table, section in (
            ("inflow", external_inflows, "external_inflows"),
            ("load", external_loads, "external_loads"),
            ("ncs", external_sources, "external_sources"),
        ):
            scheme = getattr(source, name)
            if scheme is not None and scheme.scheme == "external" and not len(table):
                rule = f"the file has scenarios, since {where} takes {name} from it"
                yield error(COVERAGE, "missing_scenarios", section, rule)
            if scheme is not None and scheme.scheme in ("out_of_sample", "external") and source.seed is None:
                yield error(
                    COVERAGE,
                    "missing_seed",
                    "config",
                    f"a seed is needed for the scheme {scheme.scheme}",
                    where=f"{where}.scenario_source.seed",
                )
        if source.inflow is not None and source.inflow.scheme == "historical" and not len(inflow_history):
            rule = f"the file has a history, since {where} takes inflow from it"
            yield error(COVERAGE, "missing_scenarios", "inflow_history", rule)
        if isinstance(source.openings, FileOpenings) and not len(noise_openings):
            rule = f"the file has openings, since {where} reads them from it"
            yield error(COVERAGE, "missing_scenarios", "noise_openings", rule)


@check
def external_scenarios(
    config: Config,
    stages: tuple[Stage, ...],
    hydros: tuple[Hydro, ...],
    external_inflows: ExternalInflows,
    load_stats: LoadStats,
    external_loads: ExternalLoads,
    source_stats: SourceStats,
    external_sources: ExternalSources,
) -> Findings:
    """Every stage has at least one scenario, and every scenario every entity that it replaces."""
    used = {
        name
        for where in (config.training, config.simulation)
        for name in ("inflow", "load", "ncs")
        if getattr(getattr(where.scenario_source, name, None), "scheme", None) == "external"
    }
    random_buses = set(load_stats.bus_id[load_stats.std_mw > 0.0].tolist())
    for name, section, table, key, ids in (
        ("inflow", "external_inflows", external_inflows, "hydro_id", {h.id for h in hydros}),
        ("load", "external_loads", external_loads, "bus_id", random_buses),
        ("ncs", "external_sources", external_sources, "ncs_id", set(source_stats.ncs_id.tolist())),
    ):
        if name not in used or not len(table):
            continue
        have = set(
            zip(
                table.stage_id.tolist(), table.scenario_id.tolist(), getattr(table, key).tolist(), strict=True
            )
        )
        for stage in stages:
            numbers = {scenario for at, scenario, _ in have if at == stage.id}
            missing = [(n, i) for n in sorted(numbers) for i in sorted(ids) if (stage.id, n, i) not in have]
            if missing or not numbers:
                lack = f"none of {key} {missing[0][1]} in scenario {missing[0][0]}" if missing else "none"
                yield error(
                    COVERAGE,
                    "missing_scenarios",
                    section,
                    "every stage has scenarios, and every scenario every entity",
                    entity=f"stage {stage.id}",
                    value=lack,
                )


@check
def openings_file(
    config: Config,
    stages: tuple[Stage, ...],
    hydros: tuple[Hydro, ...],
    load_stats: LoadStats,
    source_stats: SourceStats,
    noise_openings: NoiseOpenings,
) -> Findings:
    source = config.training.scenario_source
    if source is None or not isinstance(source.openings, FileOpenings) or not len(noise_openings):
        return
    width = len(hydros) + len(set(load_stats.bus_id[load_stats.std_mw > 0.0].tolist()))
    width += len(set(source_stats.ncs_id.tolist()))
    for stage in stages:
        rows = noise_openings.stage_id == stage.id
        openings, entities = noise_openings.opening_index[rows], noise_openings.entity_index[rows]
        count = int(openings.max(initial=-1)) + 1
        fits = (
            openings.min(initial=0) >= 0 and entities.min(initial=0) >= 0 and entities.max(initial=-1) < width
        )
        if (
            not count
            or not fits
            or len(set(zip(openings.tolist(), entities.tolist(), strict=True))) != count * width
        ):
            yield error(
                COVERAGE,
                "missing_openings",
                "noise_openings",
                f"every opening has {width} values: hydros, random loads, random sources",
                entity=f"stage {stage.id}",
                value=f"{int(rows.sum())} values in {count} openings",
            )


@check
def correlation_shape(correlation: Correlation | None) -> Findings:
    if correlation is None:
        return
    if "default" not in correlation.profiles and len(correlation.profiles) != 1:
        yield error(
            COVERAGE,
            "no_default_profile",
            "correlation",
            'one profile is named "default", or there is only one',
            value=sorted(correlation.profiles),
        )
    for name, profile in correlation.profiles.items():
        for group in profile.correlation_groups:
            entity, n = f"profile {name!r}, group {group.name!r}", len(group.entities)
            if not n:
                yield error(COVERAGE, "empty_group", "correlation", "a group has entities", entity=entity)
            if len({member.type for member in group.entities}) > 1:
                yield error(
                    COVERAGE, "mixed_group", "correlation", "a group has entities of one type", entity=entity
                )
            if len(group.matrix) != n or any(len(row) != n for row in group.matrix):
                shape = f"{len(group.matrix)} rows of {sorted({len(row) for row in group.matrix})}"
                rule = f"the matrix is {n} × {n}, as there are entities"
                yield error(COVERAGE, "matrix_shape", "correlation", rule, entity=entity, value=shape)


@check
def releases_observed(
    hydros: tuple[Hydro, ...], initial_conditions: InitialConditions, stages: tuple[Stage, ...]
) -> Findings:
    """Water that has left a plant and not arrived when the study starts has to be known."""
    if not stages:
        return
    start = min(stage.start_date for stage in stages)
    for plant in hydros:
        if not plant.travel_time_hours or plant.downstream_id is None or plant.travel_time_hours < 0.0:
            continue
        days = {
            back
            for window in initial_conditions.past_defluences
            if window.hydro_id == plant.id
            for back in range((start - window.end_date).days, (start - window.start_date).days)
        }
        needed = range(min(ceil(plant.travel_time_hours / 24.0), MANY_DAYS))
        if missing := [back for back in needed if back not in days]:
            yield error(
                COVERAGE,
                "no_releases",
                "initial_conditions",
                f"past_defluences cover the {plant.travel_time_hours:g} hours of travel before {start}",
                entity=f"hydro {plant.id}",
                value=f"nothing for {start - timedelta(days=missing[0] + 1)}",
            )


@check
def lags_observed(
    ar_coefficients: ArCoefficients,
    initial_conditions: InitialConditions,
    inflow_history: InflowHistory,
    stages: tuple[Stage, ...],
    hydros: tuple[Hydro, ...],
) -> Findings:
    order = int(ar_coefficients.lag.max()) if len(ar_coefficients) else 0
    observed = {entry.hydro_id for entry in initial_conditions.recent_observations}
    if stages and len(inflow_history):
        start = np.datetime64(min(stage.start_date for stage in stages))
        recent = (inflow_history.start_date < start) & (inflow_history.end_date > start - 31 * max(0, order))
        observed |= set(inflow_history.hydro_id[recent].tolist())
    for hydro in hydros if order else ():
        if hydro.id not in observed:
            yield warning(
                COVERAGE,
                "no_observations",
                "initial_conditions",
                "inflows before the study are given in recent_observations, or by a history that reaches it",
                entity=f"hydro {hydro.id}",
                suggestion="Without them its lags start at 0.",
            )
