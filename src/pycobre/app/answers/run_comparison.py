"""Two runs beside each other: costs, prices, storage and deficits, as a planner compares two months."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pycobre.app.answers.case_records import Source
from pycobre.app.answers.grouping import Measure, grouped
from pycobre.app.answers.run_records import Quantity, RunComparison
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.significance import BEYOND, Key, sample_of, standard_error
from pycobre.app.results.layout import METADATA
from pycobre.errors import OutputError

__all__ = ["compare_runs"]

_TRAINING = (
    ("lower_bound", "$"),
    ("upper_bound", "$"),
    ("gap", "1"),
    ("iterations", ""),
    ("total_cuts", ""),
)


def compare_runs(a: RunTables, b: RunTables, limit: int = 200) -> RunComparison:
    """The figures of both, each with its change; stages are matched by their first day, entities by name."""
    found = [dict(_figures(tables)) for tables in (a, b)]
    if not found[0] or not found[1]:
        raise OutputError(
            "compare: expected two runs with results, got one without. Wait for it, or run it again."
        )
    samples = [sample_of(tables) for tables in (a, b)]
    for figures, sample in zip(found, samples, strict=True):
        figures.update(sample.means())
    place = _same_stages(a, b)
    found[1] = {key: value for old, value in found[1].items() if (key := _at(old, place)) is not None}
    samples[1] = replace(
        samples[1],
        figures={
            k: values for old, values in samples[1].figures.items() if (k := _at(old, place)) is not None
        },
    )
    keys = [*found[0], *(key for key in found[1] if key not in found[0])]
    rows = [
        _quantity(key, found[0].get(key), found[1].get(key), standard_error(key, *samples)) for key in keys
    ]
    whole = [row for row in rows if row.stage is None]
    # By stage, what changed most first: the rest is in the tables.
    staged = sorted(
        (row for row in rows if row.stage is not None),
        key=lambda row: (-abs(row.relative or 0.0), row.group, row.quantity, row.entity, row.stage or 0),
    )
    return RunComparison(
        a=a.run,
        b=b.run,
        sentences=_sentences(whole, staged),
        quantities=[*whole, *staged][:limit],
        total=len(rows),
        truncated=len(rows) > limit,
        sources=[source for tables in (a, b) for source in _sources(tables)],
    )


def _same_stages(a: RunTables, b: RunTables) -> dict[int, int]:
    """The stages of `a` by those of `b` that begin on the same day: studies of two months overlap."""
    days = [
        {
            int(each["id"]): str(each.get("start_date", each["label"]))
            for each in tables.results.metadata.get("stages", [])
        }
        for tables in (a, b)
    ]
    if any(len(set(each.values())) < len(each) for each in days):  # labels of weeks: the months they begin in
        return {number: number for number in days[0] if number in days[1]}
    own = {day: number for number, day in days[0].items()}
    return {number: own[day] for number, day in days[1].items() if day in own}


def _at(key: Key, place: dict[int, int]) -> Key | None:
    """A figure's key with the stage of the first run; None where that has no such stage."""
    group, name, entity, stage, unit = key
    if stage is None:
        return key
    return (group, name, entity, place[stage], unit) if stage in place else None


def _figures(tables: RunTables) -> Iterator[tuple[Key, float]]:
    metadata = tables.results.metadata
    for name, unit in _TRAINING:
        if isinstance(metadata.get(name), int | float):
            yield ("training", name, "", None, unit), float(metadata[name])
    simulation = metadata.get("simulation", {})
    for name, unit in (("mean", "$"), ("std", "$"), ("half_width", "$"), ("scenarios", "")):
        if isinstance(simulation.get(name), int | float):
            yield ("cost", f"total cost: {name}", "", None, unit), float(simulation[name])
    for name, value in simulation.get("indicators", {}).items():
        group = "deficit" if name in ("lolp", "eens_mwh") else "water"
        yield (group, name, "", None, ""), float(value)
    if "costs" in tables.available:
        yield from _costs(tables)
    if "buses" in tables.available:
        yield from _buses(tables)
    if "hydros" in tables.available:
        yield from _storage(tables)


def _costs(tables: RunTables) -> Iterator[tuple[Key, float]]:
    """Discounted means over the scenarios, by origin."""
    table = tables.open("costs")
    parts = [name for name in table.names if name.endswith("_cost") and name != "future_cost"]
    measures = [Measure("sum", name, weight="discount_factor") for name in parts]
    low, high = table.span("scenario_id")
    _, values, _ = grouped(table, (), measures, ())
    for name, value in zip(parts, values, strict=True):
        yield ("cost", name, "", None, "$"), float(value[0]) / (high - low + 1)
    keys, (stage_cost,), _ = grouped(table, ("stage_id",), [Measure("mean", "stage_cost")], ())
    for stage, value in zip(keys["stage_id"].tolist(), stage_cost.tolist(), strict=True):
        yield ("cost", "stage_cost", "", int(stage), "$"), value


def _buses(tables: RunTables) -> Iterator[tuple[Key, float]]:
    """Prices averaged by hours, and energy not served per scenario."""
    table = tables.open("buses")
    names = dict(tables.entities("buses"))
    low, high = table.span("scenario_id")
    measures = [
        Measure("sum", "marginal_cost", weight="hours"),
        Measure("sum", "hours"),
        Measure("sum", "deficit_mw", weight="hours"),
    ]
    for keys in (("bus_id",), ("bus_id", "stage_id")):
        found, (price, hours, deficit), _ = grouped(table, keys, measures, ())
        stages = found["stage_id"].tolist() if "stage_id" in found else [None] * len(price)
        for place, bus in enumerate(found["bus_id"].tolist()):
            who = names.get(bus, str(bus))
            mean = float(price[place] / hours[place])
            yield ("price", "mean price", who, stages[place], "$/MWh"), mean
            energy = float(deficit[place]) / (high - low + 1)
            yield ("deficit", "energy not served", who, stages[place], "MWh"), energy


def _storage(tables: RunTables) -> Iterator[tuple[Key, float]]:
    """Mean storage at the end of each stage, of every plant and of all."""
    table = tables.open("hydros")
    names = dict(tables.entities("hydros"))
    found, (stored,), _ = grouped(
        table, ("stage_id", "block_id", "hydro_id"), [Measure("mean", "storage_final_hm3")], ()
    )
    stages, plants = found["stage_id"], found["hydro_id"]
    last: dict[tuple[int, int], float] = {
        (int(stage), int(plant)): float(value)
        for stage, plant, value in zip(stages, plants, stored, strict=True)
    }
    for stage in np.unique(stages).tolist():
        total = 0.0
        for plant in np.unique(plants).tolist():
            value = last[(stage, plant)]
            total += value
            yield ("storage", "mean storage", names.get(plant, str(plant)), stage, "hm3"), value
        yield ("storage", "mean storage", "all reservoirs", stage, "hm3"), total


def _quantity(key: Key, a: float | None, b: float | None, error: float | None) -> Quantity:
    change = None if a is None or b is None else b - a
    relative = None if change is None or not a else change / abs(a)
    group, name, entity, stage, unit = key
    known = change is not None and error is not None
    significant = abs(change or 0.0) > BEYOND * (error or 0.0) if known else None
    return Quantity(group, name, entity, stage, unit, a, b, change, relative, error, significant)


def _sentences(whole: list[Quantity], staged: list[Quantity]) -> list[str]:
    told = []
    for row in whole:
        if row.change and row.a is not None and row.b is not None and abs(row.relative or 1.0) > 1e-9:
            who = f" of {row.entity}" if row.entity else ""
            part = "" if row.relative is None else f" ({100 * row.relative:+.2f} %)"
            told.append(f"{row.quantity}{who}: {row.a:.6g} → {row.b:.6g} {row.unit}{part}".rstrip() + ".")
    for group in ("price", "storage"):
        most = next((row for row in staged if row.group == group and row.relative), None)
        if most is not None:
            told.append(
                f"The largest change of {most.quantity} is at {most.entity} in stage {most.stage}: "
                f"{most.a:.6g} → {most.b:.6g} {most.unit} ({100 * (most.relative or 0.0):+.2f} %)."
            )
    return told or ["The two runs have the same figures."]


def _sources(tables: RunTables) -> list[Source]:
    names = [name for name in ("costs", "buses", "hydros") if name in tables.available]
    return [Source("run", tables.run, METADATA), *(tables.source(name) for name in names)]
