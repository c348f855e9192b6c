"""The system of a run as a tree: buses with their plants, rivers from the sources down, lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from pycobre.app.tui.reading.numbers import number, text
from pycobre.app.tui.widgets.rows import role_style

__all__ = ["SystemTree"]

Records = list[dict[str, Any]]


class SystemTree(Tree[None]):
    """Buses, rivers, plants and lines with their capacities; of a problem its nodes and states."""

    DEFAULT_CSS = "SystemTree { height: 1fr; background: $background; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("system", id=id)
        self.show_root = False
        self._shown: Mapping[str, Any] | None = None

    def show(self, system: Any) -> None:
        """Build the tree, once for a system."""
        if self._shown is not None and system == self._shown:
            return
        self._shown = system
        self.clear()
        if not isinstance(system, dict) or not system:
            self.root.add_leaf("the run has not written its system")
            return
        if "buses" not in system:
            self._problem(system)
            return
        self._buses(system)
        self._rivers(_records(system, "hydros"))
        self._lines(system)
        self._pumping(system)

    def _problem(self, system: Mapping[str, Any]) -> None:
        self.root.add_leaf(self._label(f"{text(system.get('nodes', '?'))} nodes"))
        states = system.get("states")
        names = states if isinstance(states, list) else []
        branch = self.root.add(self._label(f"{len(names)} states"), expand=True)
        for name in names:
            branch.add_leaf(text(name))

    def _buses(self, system: Mapping[str, Any]) -> None:
        buses = _records(system, "buses")
        branch = self.root.add(self._label("Buses", f"{len(buses)}"), expand=True)
        hydros, thermals = _records(system, "hydros"), _records(system, "thermals")
        others, contracts = _records(system, "non_controllables"), _records(system, "contracts")
        for bus in buses:
            here = bus.get("id")
            of = [plant for plant in hydros if here in (plant.get("buses") or ())]
            heat = [plant for plant in thermals if plant.get("bus") == here]
            rest = [plant for plant in others if plant.get("bus") == here]
            total = sum(_figure(plant, "max_mw") for plant in (*of, *heat, *rest))
            node = branch.add(self._label(text(bus.get("name")), f"{total:,.0f} MW"), expand=len(buses) <= 6)
            self._plants(
                node, "hydro", of, lambda plant: f"{_shown(plant, 'max_mw', 'MW')}, {_volume(plant)}"
            )
            self._plants(node, "thermal", heat, _thermal)
            self._plants(node, "non-controllable", rest, lambda plant: _shown(plant, "max_mw", "MW"))
            deals = [deal for deal in contracts if deal.get("bus") == here]
            self._plants(
                node,
                "contracts",
                deals,
                lambda deal: f"{text(deal.get('type'))}, {_shown(deal, 'max_mw', 'MW')}",
            )

    def _plants(self, node: TreeNode[None], word: str, plants: Records, said: Any) -> None:
        if not plants:
            return
        total = sum(_figure(plant, "max_mw") for plant in plants)
        branch = node.add(self._label(word, f"{len(plants)}, {total:,.0f} MW"))
        for plant in plants:
            branch.add_leaf(self._label(text(plant.get("name")), said(plant)))

    def _rivers(self, hydros: Records) -> None:
        """Each plant below the one that it flows into; the last of a river stands at the top."""
        if not hydros:
            return
        known = {plant.get("id") for plant in hydros}
        above: dict[Any, Records] = {}
        for plant in hydros:
            below = plant.get("downstream")
            above.setdefault(below if below in known else None, []).append(plant)
        ends = above.get(None, [])
        branch = self.root.add(
            self._label("Rivers", f"{len(ends)}, from the last plant upstream"), expand=True
        )
        waiting = [(branch, plant) for plant in reversed(ends)]
        seen = set()
        while waiting:
            node, plant = waiting.pop()
            if plant.get("id") in seen:  # a file may say anything, a circle too
                continue
            seen.add(plant.get("id"))
            label = self._label(
                text(plant.get("name")), f"{_volume(plant)}, {_shown(plant, 'max_turbined_m3s', 'm³/s')}"
            )
            more = above.get(plant.get("id"), [])
            if more:
                inner = node.add(label, expand=True)
                waiting += [(inner, each) for each in reversed(more)]
            else:
                node.add_leaf(label)

    def _lines(self, system: Mapping[str, Any]) -> None:
        lines = _records(system, "lines")
        if not lines:
            return
        names = {bus.get("id"): text(bus.get("name")) for bus in _records(system, "buses")}
        branch = self.root.add(self._label("Lines", f"{len(lines)}"))
        for line in lines:
            ends = f"{names.get(line.get('source'), '?')} → {names.get(line.get('target'), '?')}"
            sizes = f"{_shown(line, 'direct_mw', 'MW')}, back {_shown(line, 'reverse_mw', 'MW')}"
            branch.add_leaf(self._label(text(line.get("name")), f"{ends}: {sizes}"))

    def _pumping(self, system: Mapping[str, Any]) -> None:
        stations = _records(system, "pumping")
        if stations:
            branch = self.root.add(self._label("Pumping", f"{len(stations)}"))
            for station in stations:
                branch.add_leaf(self._label(text(station.get("name")), _shown(station, "max_m3s", "m³/s")))

    def _label(self, name: str, figures: str = "") -> Text:
        made = Text(name)
        if figures:
            made.append(f"  {figures}", style=role_style(self, "quiet"))
        return made


def _records(system: Mapping[str, Any], name: str) -> Records:
    found = system.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, Iterable) else []


def _figure(record: Mapping[str, Any], name: str) -> float:
    value = number(record.get(name))
    return value if value == value else 0.0


def _shown(record: Mapping[str, Any], name: str, unit: str) -> str:
    value = number(record.get(name))
    return f"{value:,.6g} {unit}" if value == value else f"– {unit}"


def _volume(plant: Mapping[str, Any]) -> str:
    low, high = number(plant.get("min_storage_hm3")), number(plant.get("max_storage_hm3"))
    return "no storage" if not high > low else f"{low:,.6g}–{high:,.6g} hm³"


def _thermal(plant: Mapping[str, Any]) -> str:
    cost = number(plant.get("cost_per_mwh"))
    return _shown(plant, "max_mw", "MW") + (f" at {cost:,.2f} $/MWh" if cost == cost else "")
