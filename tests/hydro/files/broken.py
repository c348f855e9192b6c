"""How a broken case is written down: what is done to the rich case, and every finding that should follow."""

from __future__ import annotations

from dataclasses import dataclass

from rich_case import Mutation

from pycobre.hydro.model.findings import Finding, Severity

CONFIG, STAGES, PENALTIES = "config.json", "stages.json", "penalties.json"
BUSES, HYDROS, THERMALS = "system/buses.json", "system/hydros.json", "system/thermals.json"
INITIAL = "initial_conditions.json"
INFLOW, LOAD = "scenarios/inflow_seasonal_stats.parquet", "scenarios/load_seasonal_stats.parquet"
HISTORY = "scenarios/inflow_history.parquet"
LIMITS = "constraints/hydro_bounds.parquet"
LINES, SOURCES = "system/lines.json", "system/non_controllable_sources.json"
MODELS, GEOMETRY = "system/hydro_production_models.json", "system/hydro_geometry.parquet"
PLANES = "system/fpha_hyperplanes.parquet"
LAGS, CORRELATION = "scenarios/inflow_ar_coefficients.parquet", "scenarios/correlation.json"
FACTORS, WIND = "scenarios/load_factors.json", "scenarios/non_controllable_stats.parquet"
THERMAL_LIMITS, LINE_LIMITS = "constraints/thermal_bounds.parquet", "constraints/line_bounds.parquet"
COSTS = "constraints/penalty_overrides_hydro.parquet"
GENERIC, PARAMETERS = "constraints/generic_constraints.json", "constraints/generic_parameters.json"
SIDES = "constraints/generic_constraint_bounds.parquet"
MATRIX = "profiles.default.correlation_groups.0.matrix"


@dataclass(frozen=True)
class Said:
    """One finding: its kind and place exactly, and a part of its sentence."""

    kind: str
    file: str
    text: str
    where: str = ""
    entity: str = ""
    severity: Severity = Severity.ERROR

    def is_said_by(self, finding: Finding) -> bool:
        same = all(
            getattr(self, name) == getattr(finding, name)
            for name in ("kind", "file", "where", "entity", "severity")
        )
        return same and self.text in str(finding)


def doubt(kind: str, file: str, text: str, where: str = "", entity: str = "") -> Said:
    """A finding that is only a warning."""
    return Said(kind, file, text, where, entity, Severity.WARNING)


@dataclass(frozen=True)
class Broken:
    """A case that is wrong in one way, or in several at once."""

    name: str
    mutations: tuple[Mutation, ...]
    findings: tuple[Said, ...]


def broken(name: str, mutation: Mutation, *findings: Said) -> Broken:
    return Broken(name, (mutation,), findings)
