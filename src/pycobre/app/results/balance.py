"""The energy balance of every bus, one row per scenario, stage and block: what each kind of source gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.app.results.labels import Labels
from pycobre.app.results.schemas import SIMULATION_TABLES, Column, Table
from pycobre.errors import OutputError

__all__ = ["BALANCE", "energy_balance"]

_BUSES = next(table for table in SIMULATION_TABLES if table.name == "buses")
_KEYS = ("scenario_id", "stage_id", "block_id")
_MEANINGS = {
    "load_mw": "realised load",
    "hydro_mw": "generation of hydro plants on the bus",
    "thermal_mw": "generation of thermal plants",
    "source_mw": "generation of non-controllable sources",
    "import_mw": "bought by contracts",
    "export_mw": "sold by contracts",
    "pumping_mw": "drawn by pumping stations",
    "exchange_mw": "received over lines less what is sent, after losses",
    "deficit_mw": "load not served",
    "excess_mw": "generation that nobody takes",
}

#: load = hydro + thermal + source + import − export − pumping + exchange + deficit − excess
BALANCE = Table(
    "balance",
    "",
    "Energy balance of every bus by kind of source.",
    (
        *(column for column in _BUSES.columns if column.dtype == "int32" or column.name == "hours"),
        *(Column(name, "float64", "MW", meaning) for name, meaning in _MEANINGS.items()),
    ),
)
Columns = dict[str, NDArray[Any]]


def energy_balance(read: Callable[[str], Columns | None], labels: Labels) -> Columns:
    """The columns of `BALANCE`; `read` gives a table's columns, or None for one that the run has not."""
    buses = read("buses")
    assert buses is not None
    found: Columns = {name: buses[name] for name in (*_KEYS[:2], "node_id", *_KEYS[2:], "hours", "bus_id")}
    rows = _Rows(buses)
    found["load_mw"] = buses["load_mw"]

    hydro_buses = read("hydro_buses")
    if hydro_buses is not None:
        found["hydro_mw"] = rows.added(hydro_buses, hydro_buses["bus_id"], hydro_buses["generation_mw"])
    else:
        found["hydro_mw"] = rows.of(read("hydros"), "hydro_id", "generation_mw", _one_bus(labels))
    found["thermal_mw"] = rows.of(read("thermals"), "thermal_id", "generation_mw", _bus(labels, "thermal_id"))
    found["source_mw"] = rows.of(read("non_controllables"), "ncs_id", "generation_mw", _bus(labels, "ncs_id"))
    contracts, where = read("contracts"), _bus(labels, "contract_id")
    sides = labels.part_of("contract_id", "type")
    for side in ("import", "export"):
        of_side = {number: bus for number, bus in where.items() if sides.get(number) == side}
        found[f"{side}_mw"] = rows.of(contracts, "contract_id", "power_mw", of_side, others=True)
    found["pumping_mw"] = rows.of(
        read("pumping"), "pumping_station_id", "power_mw", _bus(labels, "pumping_station_id")
    )
    found["exchange_mw"] = _exchange(rows, read("exchanges"), labels)
    found["deficit_mw"], found["excess_mw"] = buses["deficit_mw"], buses["excess_mw"]
    return found


class _Rows:
    """The rows of the table of buses, found by scenario, stage, block and bus."""

    def __init__(self, buses: Columns) -> None:
        self._keys = [buses[name].astype(np.int64) for name in (*_KEYS, "bus_id")]
        self._low = [int(key.min()) if key.size else 0 for key in self._keys]
        self._size = [
            int(key.max()) - low + 1 if key.size else 1
            for key, low in zip(self._keys, self._low, strict=True)
        ]
        self.count = len(self._keys[0])
        cells = self._cells(self._keys)
        self._order = np.argsort(cells, kind="stable")
        self._cell = cells[self._order]

    def of(
        self,
        table: Columns | None,
        ids: str,
        amount: str,
        bus_of: Mapping[int, int],
        *,
        others: bool = False,
    ) -> F64:
        """Sums of an amount by the bus of each row's plant; `others` leaves out plants without one."""
        if table is None:
            return np.zeros(self.count)
        known = np.array(sorted(bus_of), np.int64)
        bus = np.array([bus_of[number] for number in known.tolist()], np.int64)
        plant = table[ids].astype(np.int64)
        if not known.size and not others and plant.size:
            raise OutputError(
                f"balance: expected the buses of the plants in study.json, got none for {ids}. Run the case again."
            )
        there = np.isin(plant, known)
        kept = {name: table[name][there] for name in (*_KEYS, amount)}
        at = np.searchsorted(known, plant[there])
        return self.added(kept, bus[at], kept[amount])

    def added(self, table: Columns, bus: NDArray[Any], amount: NDArray[Any]) -> F64:
        """Sums of `amount` by row, in the order of the table."""
        keys = [*(table[name].astype(np.int64) for name in _KEYS), bus.astype(np.int64)]
        at = self._order[np.searchsorted(self._cell, self._cells(keys))]
        return np.bincount(at, amount, self.count).astype(np.float64, copy=False)

    def _cells(self, keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        cells = np.zeros(len(keys[0]), np.int64)
        for key, low, size in zip(keys, self._low, self._size, strict=True):
            cells = cells * size + (key - low)
        return cells


def _exchange(rows: _Rows, lines: Columns | None, labels: Labels) -> F64:
    if lines is None:
        return np.zeros(rows.count)
    source, target = (labels.part_of("line_id", key) for key in ("source", "target"))
    losses = labels.part_of("line_id", "losses_percent")
    kept = np.array([1.0 - losses.get(number, 0.0) / 100.0 for number in lines["line_id"].tolist()])
    direct, reverse = lines["direct_mw"], lines["reverse_mw"]
    at_target = {**lines, "amount": direct * kept - reverse}
    at_source = {**lines, "amount": reverse * kept - direct}
    return rows.of(at_target, "line_id", "amount", target) + rows.of(at_source, "line_id", "amount", source)


def _bus(labels: Labels, column: str) -> dict[int, int]:
    return {number: int(bus) for number, bus in labels.part_of(column, "bus").items()}


def _one_bus(labels: Labels) -> dict[int, int]:
    """The bus of every hydro plant; a plant on several has the table `hydro_buses` in newer results."""
    return {number: int(buses[0]) for number, buses in labels.part_of("hydro_id", "buses").items() if buses}
