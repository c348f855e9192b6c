"""What is understood but not modelled yet is refused by name before a run, never ignored."""

from __future__ import annotations

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, error, warning
from pycobre.hydro.model.config import Config, FileOpenings
from pycobre.hydro.model.constraints import HydroBounds, SourceBounds
from pycobre.hydro.model.findings import Finding, Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.scenarios import ArCoefficients, SourceStats
from pycobre.hydro.model.system import Line
from pycobre.hydro.model.table import NO_ID


def _refuse(section: str, what: str, **more: object) -> Finding:
    return error(Layer.SUPPORT, "unsupported", section, f"{what} not supported yet", **more)


@check
def selective(stages: tuple[Stage, ...], config: Config) -> Findings:
    """Openings that somebody selected come from a file; nobody knows by what rule to draw them."""
    source = config.training.scenario_source
    if source is not None and isinstance(source.openings, FileOpenings):
        return
    for stage in stages:
        if stage.sampling_method == "selective":
            yield _refuse(
                "stages",
                "selective sampling without openings from a file is",
                entity=f"stage {stage.id}",
                suggestion='Give scenarios/noise_openings.parquet, and scenario_source.openings the source "file".',
            )


@check
def algorithm(config: Config) -> Findings:
    for where in ("training", "simulation"):
        source = getattr(config, where).scenario_source
        for name in ("load", "ncs"):
            scheme = getattr(source, name, None)
            if scheme is not None and scheme.scheme == "historical":
                yield _refuse(
                    "config",
                    f"historical scenarios of {name} are",
                    where=f"{where}.scenario_source.{name}",
                    suggestion="A case has a history of inflows only: give "
                    f'scenarios/external_{name}_scenarios.parquet and the scheme "external".',
                )


@check
def by_block(hydro_bounds: HydroBounds) -> Findings:
    """Columns that belong to whole stages."""
    for column, what in (
        ("min_storage_hm3", "storage limits"),
        ("max_storage_hm3", "storage limits"),
        ("filling_min_rate_m3s", "rates of filling"),
        ("water_withdrawal_m3s", "withdrawals"),
    ):
        mixed = (hydro_bounds.block_id != NO_ID) & ~np.isnan(getattr(hydro_bounds, column))
        for row in np.flatnonzero(mixed).tolist():
            yield _refuse(
                "hydro_bounds",
                f"{what} by block are",
                where=f"{column}, row {row}",
                entity=f"hydro {hydro_bounds.hydro_id[row]}, stage {hydro_bounds.stage_id[row]}",
                suggestion="Give them in the row of the stage, whose block_id is null.",
            )


@check
def losses(lines: tuple[Line, ...]) -> Findings:
    for line in lines:
        if line.losses_percent:
            yield warning(
                Layer.SUPPORT,
                "losses_not_modelled",
                "lines",
                "flows have no losses, as in Cobre",
                entity=f"line {line.id}",
                value=f"losses_percent {line.losses_percent}",
            )


@check
def lag_flags(stages: tuple[Stage, ...], ar_coefficients: ArCoefficients) -> Findings:
    flags = [
        stage for stage in stages if stage.state_variables is None or not stage.state_variables.inflow_lags
    ]
    if len(ar_coefficients) and flags:
        yield warning(
            Layer.SUPPORT,
            "lags_are_states",
            "stages",
            "state_variables.inflow_lags is true where inflows depend on earlier ones",
            entity=f"stage {flags[0].id}",
            suggestion="The lags are carried anyway: without them the bound would not be one.",
        )


@check
def scheduled_and_random(source_bounds: SourceBounds, source_stats: SourceStats) -> Findings:
    for source in sorted(set(source_bounds.ncs_id.tolist()) & set(source_stats.ncs_id.tolist())):
        yield warning(
            Layer.SUPPORT,
            "schedule_without_effect",
            "source_bounds",
            "a source has a schedule or statistics; statistics win",
            entity=f"source {source}",
        )
