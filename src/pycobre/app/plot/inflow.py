"""What the report shows of an inflow model: orders, correlations, moments by plant, probabilities of the tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.app.results.directory import Results

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["InflowPicture", "Moments", "inflow_picture"]

ONE_YEAR = 12  # stages whose orders are shown: seasons repeat


@dataclass(frozen=True)
class Moments:
    """Mean and deviation of one plant's inflow by stage, in the history and of the openings."""

    name: str
    history: F64  #: [2, stages], NaN without a history
    openings: F64  #: [2, stages]


@dataclass(frozen=True)
class InflowPicture:
    """Everything that is drawn of the inflow model; a part is empty where the run did not write its table."""

    plants: list[str] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    orders: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0), np.int32))  #: [plants, stages]
    correlation: F64 = field(default_factory=lambda: np.empty((0, 0)))  #: of the first stage
    moments: list[Moments] = field(default_factory=list)
    whiteness: F64 = field(default_factory=lambda: np.empty(0))  #: probabilities, ascending
    normality: F64 = field(default_factory=lambda: np.empty(0))


def inflow_picture(results: Results) -> InflowPicture:
    """Read the tables about the inflow model, those that are there."""
    there = results.modelled
    if "inflow_models" not in there:
        return InflowPicture()
    metadata = results.metadata
    models = results.model("inflow_models")
    ids, stages = (np.unique(models[name].to_numpy()) for name in ("hydro_id", "stage_id"))
    names = {int(i): str(name) for i, name in metadata.get("entities", {}).get("hydros", [])}
    labels = {int(stage["id"]): str(stage["label"]) for stage in metadata.get("stages", [])}
    shape = (ids.size, stages.size)
    orders = models["order"].to_numpy().reshape(shape)[:, :ONE_YEAR]
    plants = [names.get(int(i), str(i)) for i in ids]
    whiteness = normality = np.empty(0)
    if "inflow_tests" in there:
        tests = results.model("inflow_tests")
        whiteness, normality = (_ascending(tests[f"{name}_p"]) for name in ("whiteness", "normality"))
    return InflowPicture(
        plants=plants,
        stages=[labels.get(int(stage), str(stage)) for stage in stages],
        orders=orders if orders.any() else np.empty((0, 0), np.int32),
        correlation=_matrix(results.model("inflow_correlations"), ids)
        if "inflow_correlations" in there
        else np.empty((0, 0)),
        moments=_moments(results.model("inflow_moments"), plants, shape) if "inflow_moments" in there else [],
        whiteness=whiteness,
        normality=normality,
    )


def _ascending(column: Any) -> F64:
    values: F64 = column.to_numpy()
    found: F64 = np.sort(values[np.isfinite(values)])
    return found


def _matrix(table: pa.Table, ids: NDArray[Any]) -> F64:
    """The first profile as a symmetric matrix over all plants; 0 between plants that share no group."""
    columns = {name: table[name].to_numpy() for name in table.column_names}
    first = columns["stage_id"] == columns["stage_id"].min()
    i, j = (np.searchsorted(ids, columns[name][first]) for name in ("hydro_id", "other_hydro_id"))
    matrix = np.eye(ids.size)
    matrix[i, j] = matrix[j, i] = columns["correlation"][first]
    return matrix


def _moments(table: pa.Table, plants: list[str], shape: tuple[int, int]) -> list[Moments]:
    def part(kind: str) -> F64:
        return np.stack([table[f"{kind}_{name}_m3s"].to_numpy().reshape(shape) for name in ("mean", "std")])

    history, openings = part("history"), part("openings")
    return [Moments(name, history[:, i], openings[:, i]) for i, name in enumerate(plants)]
