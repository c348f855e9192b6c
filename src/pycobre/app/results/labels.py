"""What the ids in a run's tables stand for: names, dates, buses, kinds, from the run's own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.app.results.files import read_json
from pycobre.app.results.layout import STUDY
from pycobre.app.results.schemas import ENTITIES, Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TEXT_COLUMNS", "Labels", "labelled"]

#: The name column that stands beside a column of ids.
_NAMED = {
    "hydro_id": "hydro",
    "other_hydro_id": "other_hydro",
    "thermal_id": "thermal",
    "bus_id": "bus",
    "line_id": "line",
    "ncs_id": "source",
    "contract_id": "contract",
    "pumping_station_id": "pumping_station",
    "constraint_id": "constraint",
    "stage_id": "stage",
    "state_id": "state",
}
#: Columns of text or dates that are put beside ids: their meaning.
TEXT_COLUMNS = {
    **dict.fromkeys(_NAMED.values(), "name"),
    "stage": "label of the stage",
    "bus": "bus that the row belongs to; of a plant on several buses, all of them",
    "start_date": "first day of the stage",
    "end_date": "first day after the stage",
    "from_bus": "bus where direct flow begins",
    "to_bus": "bus where direct flow ends",
    "type": "import or export",
    "statistic": "mean, or quantile in percent (p10), over the scenarios",
}


@frozen()
class Labels:
    """Names of one run. `system` is empty for results from before runs noted it, or of a problem of one's own."""

    metadata: Mapping[str, Any]
    system: Mapping[str, Any]

    @classmethod
    def of(cls, directory: Path, metadata: Mapping[str, Any]) -> Labels:
        file = directory / STUDY
        return cls(metadata, read_json(file).get("system", {}) if file.is_file() else {})

    def names(self, column: str) -> dict[int, str]:
        """What a column's ids are called; empty for one that holds no ids of anything named."""
        if column == "stage_id":
            return {int(each["id"]): str(each["label"]) for each in self.metadata.get("stages", [])}
        if column == "state_id":
            return dict(enumerate(map(str, self.metadata.get("states", []))))
        kind = ENTITIES.get(column)
        return {int(key): str(name) for key, name in self.metadata.get("entities", {}).get(kind, [])}

    def dates(self, key: str) -> dict[int, date]:
        """`start_date` or `end_date` by stage, where the run noted them."""
        stages = self.metadata.get("stages", [])
        return {int(each["id"]): date.fromisoformat(each[key]) for each in stages if key in each}

    def bus_of(self, column: str) -> dict[int, str]:
        """The bus of every plant; several of a plant are joined by a plus sign."""
        buses = self.names("bus_id")
        found = {}
        for each in self.records(column):
            ids = each["buses"] if "buses" in each else [each["bus"]] if "bus" in each else []
            if ids:
                found[int(each["id"])] = " + ".join(buses.get(number, str(number)) for number in ids)
        return found

    def part_of(self, column: str, key: str) -> dict[int, Any]:
        """One field of what the run noted of every entity."""
        return {int(each["id"]): each[key] for each in self.records(column) if key in each}

    def records(self, column: str) -> list[dict[str, Any]]:
        """What the run noted of the entities whose ids a column holds."""
        kind = "lines" if column == "line_id" else ENTITIES.get(column, "")
        found = self.system.get(kind, [])
        return [each for each in found if isinstance(each, dict)]


def labelled(
    table: Table, columns: Mapping[str, NDArray[Any]], labels: Labels, texts: Mapping[str, list[str]]
) -> pa.Table:
    """An Arrow table of `columns`, names beside ids; fields carry `unit` and `meaning`.

    `texts` are columns of text that are there already; they come first.
    """
    import pyarrow as pa

    known = {column.name: column for column in table.columns}
    arrays: list[Any] = []
    fields: list[Any] = []

    def add(name: str, array: Any, unit: str, meaning: str) -> None:
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"unit": unit, "meaning": meaning}))

    for name, text in texts.items():
        add(name, pa.array(text).dictionary_encode(), "", TEXT_COLUMNS[name])
    for name, values in columns.items():
        column = known.get(name, Column(name, "", "", ""))
        add(name, pa.array(np.ascontiguousarray(values)), column.unit, column.meaning)
        for beside, ids, of_ids in _beside(name, {*columns, *texts}, labels):
            add(beside, _text(values, ids, of_ids), "", TEXT_COLUMNS[beside])
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _beside(name: str, there: set[str], labels: Labels) -> Iterator[tuple[str, list[int], list[Any]]]:
    """The columns to put after a column of ids: name, and values by id."""
    wanted: list[tuple[str, Mapping[int, Any]]] = []
    if name in _NAMED:
        wanted.append((_NAMED[name], labels.names(name)))
    if name == "stage_id":
        wanted += [(key, labels.dates(key)) for key in ("start_date", "end_date")]
    elif name == "line_id":
        buses = labels.names("bus_id")
        for beside, key in (("from_bus", "source"), ("to_bus", "target")):
            ends = labels.part_of(name, key)
            wanted.append((beside, {line: buses.get(end, str(end)) for line, end in ends.items()}))
    elif name in _NAMED and name not in ("bus_id", "other_hydro_id") and "bus_id" not in there:
        if name == "contract_id":
            wanted.append(("type", labels.part_of(name, "type")))
        wanted.append(("bus", labels.bus_of(name)))
    for beside, values in wanted:
        if values and beside not in there:
            ids = sorted(values)
            yield beside, ids, [values[each] for each in ids]


def _text(values: NDArray[Any], ids: list[int], of_ids: list[Any]) -> pa.Array:
    """A dictionary array: the position of every id, missing where an id has no name."""
    import pyarrow as pa

    keys = np.asarray(ids)
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    unknown = keys[at] != values
    if isinstance(of_ids[0], date):
        days = np.array(of_ids, "datetime64[D]")[at]
        return pa.array(days, pa.date32(), mask=unknown)
    shown = [str(each) for each in of_ids]
    distinct = list(dict.fromkeys(shown))
    place = {text: number for number, text in enumerate(distinct)}
    codes = np.array([place[text] for text in shown], np.int32)[at]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=unknown), pa.array(distinct))
