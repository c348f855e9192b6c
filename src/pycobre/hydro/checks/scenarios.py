"""Whether scenarios, openings, correlations and observations are there for every stage that needs them."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, error, warning
from pycobre.hydro.model.config import Config, FileOpenings
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.initial import InitialConditions
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    Correlation,
    ExternalInflows,
    ExternalLoads,
    ExternalSources,
    InflowHistory,
    LoadStats,
    NoiseOpenings,
    SourceStats,
)
from pycobre.hydro.model.system import Hydro

COVERAGE = Layer.COVERAGE
MANY_DAYS = 3660  # of travel: no river is longer, and a number without sense is not counted day by day


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
