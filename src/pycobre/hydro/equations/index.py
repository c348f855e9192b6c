"""Positions of a case's entities, and the names that rows and columns get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.hydro.model.case import Case

__all__ = ["Index", "Pair"]


class _Named(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


@frozen()
class Pair:
    """The unit groups of one plant on one bus: turbined flow is decided for each such pair."""

    hydro: int
    bus: int
    groups: tuple[int, ...]


class Index:
    """Entities by position (their order by id), and lookups from ids."""

    def __init__(self, case: Case) -> None:
        self.hydro = _positions(case.hydros)
        self.bus = _positions(case.buses)
        self.thermal = _positions(case.thermals)
        self.line = _positions(case.lines)
        self.source = _positions(case.non_controllable_sources)
        self.contract = _positions(case.energy_contracts)
        self.pump = _positions(case.pumping_stations)
        self.hydro_names = labels(case.hydros)
        self.bus_names = labels(case.buses)
        self.thermal_names = labels(case.thermals)
        self.line_names = labels(case.lines)
        self.source_names = labels(case.non_controllable_sources)
        self.contract_names = labels(case.energy_contracts)
        self.pump_names = labels(case.pumping_stations)
        self.pairs = tuple(self._pairs(case))
        self.pair_hydro = np.array([pair.hydro for pair in self.pairs], dtype=np.intp)
        self.pair_bus = np.array([pair.bus for pair in self.pairs], dtype=np.intp)
        several = Counter(pair.hydro for pair in self.pairs)
        self.pair_names = [
            self.hydro_names[p.hydro]
            if several[p.hydro] == 1
            else f"{self.hydro_names[p.hydro]}@{self.bus_names[p.bus]}"
            for p in self.pairs
        ]

    def _pairs(self, case: Case) -> Iterable[Pair]:
        for h, hydro in enumerate(case.hydros):
            buses = sorted({self.bus[group.bus_id] for group in hydro.unit_groups})
            for bus in buses:
                groups = tuple(
                    g for g, group in enumerate(hydro.unit_groups) if self.bus[group.bus_id] == bus
                )
                yield Pair(h, bus, groups)

    def pairs_of(self, hydro: int) -> NDArray[np.intp]:
        return np.flatnonzero(self.pair_hydro == hydro)


def _positions(entities: Iterable[_Named]) -> dict[int, int]:
    return {entity.id: i for i, entity in enumerate(entities)}


def labels(entities: Iterable[_Named]) -> list[str]:
    """Names, with the id where a name is used twice or would be unreadable inside brackets."""
    entities = list(entities)
    count = Counter(entity.name for entity in entities)
    return [
        e.name if count[e.name] == 1 and e.name and not set(e.name) & set("[],") else f"{e.name}#{e.id}"
        for e in entities
    ]
