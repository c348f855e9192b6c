"""The system of a case in a few figures, for those who look at a run: who is where, and how large."""

from __future__ import annotations

from typing import Any

from pycobre.hydro.model import Case

__all__ = ["system_of"]


def system_of(case: Case) -> dict[str, Any]:
    """Buses, lines, rivers and plants with their capacities, as JSON values; references are ids."""
    return {
        "buses": [{"id": bus.id, "name": bus.name} for bus in case.buses],
        "lines": [
            {
                "id": line.id,
                "name": line.name,
                "source": line.source_bus_id,
                "target": line.target_bus_id,
                "direct_mw": line.capacity.direct_mw,
                "reverse_mw": line.capacity.reverse_mw,
                "losses_percent": line.losses_percent,
            }
            for line in case.lines
        ],
        "hydros": [
            {
                "id": hydro.id,
                "name": hydro.name,
                "buses": sorted({group.bus_id for group in hydro.unit_groups}),
                "downstream": hydro.downstream_id,
                "min_storage_hm3": hydro.reservoir.min_storage_hm3,
                "max_storage_hm3": hydro.reservoir.max_storage_hm3,
                "max_turbined_m3s": hydro.generation.max_turbined_m3s,
                "max_mw": hydro.generation.max_generation_mw,
            }
            for hydro in case.hydros
        ],
        "thermals": [
            {
                "id": plant.id,
                "name": plant.name,
                "bus": plant.bus_id,
                "min_mw": plant.generation.min_mw,
                "max_mw": plant.generation.max_mw,
                "cost_per_mwh": plant.cost_per_mwh,
            }
            for plant in case.thermals
        ],
        "non_controllables": [
            {"id": source.id, "name": source.name, "bus": source.bus_id, "max_mw": source.max_generation_mw}
            for source in case.non_controllable_sources
        ],
        "contracts": [
            {
                "id": contract.id,
                "name": contract.name,
                "bus": contract.bus_id,
                "type": contract.type,
                "max_mw": contract.limits.max_mw,
                "cost_per_mwh": contract.price_per_mwh,
            }
            for contract in case.energy_contracts
        ],
        "pumping": [
            {
                "id": station.id,
                "name": station.name,
                "bus": station.bus_id,
                "source": station.source_hydro_id,
                "destination": station.destination_hydro_id,
                "max_m3s": station.flow.max_m3s,
            }
            for station in case.pumping_stations
        ],
    }
