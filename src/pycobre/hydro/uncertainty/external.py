"""External scenarios: their values by stage, and their statistics, around which the opening tree is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pycobre._util.arrays import F64
from pycobre.errors import CaseError
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.table import Table

__all__ = ["external_values", "scenario_numbers", "with_external_statistics"]


def with_external_statistics(case: Case) -> Case:
    """The case with the mean and deviation over its scenarios of whatever class trains on external ones.

    Inflows that depend on earlier ones keep their model, which scenarios alone do not give.
    """
    source = case.config.training.scenario_source
    for kind, section, table, key, value, mean, std in (
        ("inflow", "inflow_stats", case.external_inflows, "hydro_id", "value_m3s", "mean_m3s", "std_m3s"),
        ("load", "load_stats", case.external_loads, "bus_id", "value_mw", "mean_mw", "std_mw"),
        ("ncs", "source_stats", case.external_sources, "ncs_id", "availability_factor", "mean", "std"),
    ):
        chosen = getattr(source, kind, None)
        modelled = kind == "inflow" and (len(case.ar_coefficients) or len(case.annual_components))
        if chosen is not None and chosen.scheme == "external" and not modelled:
            stats = _replaced(getattr(case, section), table, key, value, mean, std)
            case = replace(case, **{section: stats})
    return case


def scenario_numbers(table: Table, stage: Stage) -> list[int]:
    """The ids of a stage's external scenarios, in order: that of row i of its values is the i-th."""
    rows = getattr(table, "stage_id") == stage.id  # noqa: B009 (tables are of several types)
    return sorted(set(getattr(table, "scenario_id")[rows].tolist()))  # noqa: B009


def external_values(
    table: Table, key: str, column: str, ids: list[int], stages: Sequence[Stage]
) -> list[F64]:
    """Values [scenarios, entities] of every stage; every entity must have every scenario."""
    position = {entity: i for i, entity in enumerate(ids)}
    found = []
    for stage in stages:
        rows = np.flatnonzero(getattr(table, "stage_id") == stage.id)  # noqa: B009
        known = {s: i for i, s in enumerate(scenario_numbers(table, stage))}
        rows = rows[[e in position for e in getattr(table, key)[rows].tolist()]]
        numbers = getattr(table, "scenario_id")[rows]  # noqa: B009
        values = np.full((len(known), len(ids)), np.nan)
        where = [known[s] for s in numbers.tolist()]
        values[where, [position[e] for e in getattr(table, key)[rows].tolist()]] = getattr(table, column)[
            rows
        ]
        if not known or np.isnan(values).any():
            raise CaseError(
                f"external scenarios: stage {stage.id}: expected {column} of every {key} in every scenario, got "
                f"{rows.size} values for {len(ids)} entities."
            )
        found.append(values)
    return found


def _replaced(stats: Any, table: Table, key: str, value: str, mean: str, std: str) -> Any:
    """Statistics with the rows of (entity, stage) that scenarios are given for changed or added."""
    columns = {name: getattr(stats, name).tolist() for name in (key, "stage_id", mean, std)}
    rows = {pair: i for i, pair in enumerate(zip(columns[key], columns["stage_id"], strict=True))}
    entity, stage, values = (getattr(table, name) for name in (key, "stage_id", value))
    for e, t in sorted(set(zip(entity.tolist(), stage.tolist(), strict=True))):
        seen = values[(entity == e) & (stage == t)]
        new = {key: e, "stage_id": t, mean: float(seen.mean()), std: float(seen.std())}
        for name, column in columns.items():
            if (e, t) in rows:
                column[rows[e, t]] = new[name]
            else:
                column.append(new[name])
    return type(stats)(**{name: np.array(column) for name, column in columns.items()})
