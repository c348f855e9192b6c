"""External scenarios as the model's own statistics: the opening tree is drawn around what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pycobre.hydro.model.case import Case
from pycobre.hydro.model.table import Table

__all__ = ["with_external_statistics"]


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
