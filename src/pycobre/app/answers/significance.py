"""Whether two runs differ by more than chance: standard errors of changes, from what each scenario gave.

Where both runs simulated the same inflows, scenario by scenario, changes are those within a scenario, which have much
smaller errors than two means of different samples. Where every path was simulated there is no chance: the error is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.app.answers.grouping import LARGEST_GRID, Measure, grouped
from pycobre.app.answers.run_tables import RunTables

__all__ = ["BEYOND", "Key", "Sample", "sample_of", "standard_error"]

Key = tuple[str, str, str, int | None, str]
"""Group, quantity, entity, stage and unit of a figure."""

BEYOND = 1.96
"""Standard errors beyond which a change is significant, at 95 %."""


@frozen(eq=False)
class Sample:
    """Figures of every scenario of a run."""

    figures: Mapping[Key, F64]
    inflows: F64 | None  #: a sum over plants and stages, by which two runs are known to have the same
    probability: F64 | None  #: where every path was simulated

    def means(self) -> Iterator[tuple[Key, float]]:
        """Means by probability, where scenarios are not equally likely; else nothing."""
        if self.probability is not None:
            for key, values in self.figures.items():
                if len(values) == len(self.probability):
                    yield key, float(np.sum(values * self.probability))


def sample_of(tables: RunTables) -> Sample:
    """The figures of a run's scenarios; none for a run that has no tables of a power system."""
    inflows = None
    if "hydros" in tables.available:
        table = tables.open("hydros")
        _, (found,), _ = grouped(table, ("scenario_id",), [Measure("sum", "inflow_m3s", weight="hours")], ())
        inflows = found
    probability = None
    if "scenarios" in tables.available:
        _, (probability,), _ = grouped(
            tables.open("scenarios"), ("scenario_id",), [Measure("sum", "probability")], ()
        )
    figures = dict(_figures(tables))
    return Sample(figures, inflows, probability)


def standard_error(key: Key, a: Sample, b: Sample) -> float | None:
    """Of the change of one figure from `a` to `b`; None where a run has fewer than two scenarios."""
    if key not in a.figures or key not in b.figures:
        return None
    one, other = a.figures[key], b.figures[key]
    exact = a.probability is not None, b.probability is not None
    if all(exact):
        return 0.0
    if not any(exact) and len(one) == len(other) > 1 and _same(a.inflows, b.inflows):
        return _error(other - one)
    parts = [0.0 if known else _error(values) for known, values in zip(exact, (one, other), strict=True)]
    if any(part is None for part in parts):
        return None
    return float(np.sqrt(sum((part or 0.0) ** 2 for part in parts)))


def _error(values: F64) -> float | None:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _same(a: F64 | None, b: F64 | None) -> bool:
    # Solutions of LPs: the last digits may differ.
    return a is not None and b is not None and bool(np.allclose(a, b, rtol=1e-6))


def _figures(tables: RunTables) -> Iterator[tuple[Key, F64]]:
    if "costs" in tables.available:
        table = tables.open("costs")
        parts = [name for name in table.names if name.endswith("_cost") and name != "future_cost"]
        measures = [Measure("sum", name, weight="discount_factor") for name in parts]
        _, values, _ = grouped(table, ("scenario_id",), measures, ())
        for name, found in zip(parts, values, strict=True):
            yield ("cost", name, "", None, "$"), found
            if name == "stage_cost":
                yield ("cost", "total cost: mean", "", None, "$"), found
    if "buses" in tables.available:
        yield from _buses(tables)
    if "hydros" in tables.available:
        yield from _storage(tables)


def _buses(tables: RunTables) -> Iterator[tuple[Key, F64]]:
    names = dict(tables.entities("buses"))
    measures = [
        Measure("sum", "marginal_cost", weight="hours"),
        Measure("sum", "hours"),
        Measure("sum", "deficit_mw", weight="hours"),
    ]
    found, (price, hours, deficit), _ = grouped(tables.open("buses"), ("bus_id", "scenario_id"), measures, ())
    for bus in np.unique(found["bus_id"]).tolist():
        own, who = found["bus_id"] == bus, names.get(bus, str(bus))
        yield ("price", "mean price", who, None, "$/MWh"), price[own] / hours[own]
        yield ("deficit", "energy not served", who, None, "MWh"), deficit[own]


def _storage(tables: RunTables) -> Iterator[tuple[Key, F64]]:
    """Storage of all reservoirs at the end of every stage: in its last block."""
    table, keys = tables.open("hydros"), ("stage_id", "scenario_id", "block_id")
    cells = 1
    for low, high in map(table.span, keys):
        cells *= high - low + 1
    if cells > LARGEST_GRID:  # of very many scenarios the change is told without its error
        return
    found, (stored,), _ = grouped(table, keys, [Measure("sum", "storage_final_hm3")], ())
    stage, scenario = found["stage_id"], found["scenario_id"]
    last = np.ones(len(stored), np.bool_)
    last[:-1] = (stage[1:] != stage[:-1]) | (scenario[1:] != scenario[:-1])
    for number in np.unique(stage).tolist():
        yield (
            ("storage", "mean storage", "all reservoirs", number, "hm3"),
            stored[last & (stage == number)],
        )
