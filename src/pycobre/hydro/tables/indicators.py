"""What a simulation says of its own physics: load that was shed, water that was created, limits that were violated.

Penalties make every stage feasible, so a plan may look sound in its costs and still do what no plant can. These
figures say how often and how much. Sums are exact (`math.fsum`), so they do not depend on how rows were shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64

__all__ = ["indicators", "physical_warnings"]

HM3_PER_M3S_HOUR = 0.0036
TOLERANCE = 1e-6
"""Amounts up to here (MW, m³/s) are what solving to a tolerance leaves."""


def indicators(tables: Mapping[str, Mapping[str, NDArray[Any]]], scenarios: int) -> dict[str, Any]:
    """The figures of all simulated scenarios; amounts are means over them, by probability where they have one.

    lolp                    share of scenario-stages in which load is shed at any bus
    eens_mwh                energy not served
    water_created_hm3       water added by the slack of inflow
    water_created_share     share of plant-stages in which it was
    water_unneeded_hm3      the part of it beyond what a negative inflow needs
    limits_violated_share   share of plant-stages in which a soft limit of flow or generation is violated
    """
    found: dict[str, Any] = {}
    share = _Weights(tables, scenarios)
    if "buses" in tables:
        buses = tables["buses"]
        shed = buses["deficit_mw"] > TOLERANCE
        found["lolp"] = _ratio(share.of_keys(buses, shed), share.of_keys(buses))
        found["eens_mwh"] = share.mean(buses, buses["deficit_mw"] * buses["hours"], shed)
    if "hydros" in tables:
        plants = tables["hydros"]
        slack, volume = plants["inflow_slack_m3s"], HM3_PER_M3S_HOUR * plants["hours"]
        unneeded = slack - np.maximum(0.0, -plants["inflow_m3s"])
        created, violated = slack > TOLERANCE, plants["violation"] > TOLERANCE
        everything = share.of_keys(plants, of="hydro_id")
        found["water_created_hm3"] = share.mean(plants, slack * volume, created)
        found["water_created_share"] = _ratio(share.of_keys(plants, created, "hydro_id"), everything)
        found["water_unneeded_hm3"] = share.mean(plants, unneeded * volume, created & (unneeded > TOLERANCE))
        found["limits_violated_share"] = _ratio(share.of_keys(plants, violated, "hydro_id"), everything)
    return found


def physical_warnings(found: Mapping[str, Any]) -> list[str]:
    """What a planner has to know before the results are used."""
    unneeded = found.get("water_unneeded_hm3", 0.0)
    if not unneeded:
        return []
    return [
        f"the simulation created {unneeded:.6g} hm³ of water per scenario beyond what negative inflows need: "
        "the penalty inflow_nonnegativity_cost is below what water is worth. Raise it, or choose another "
        "treatment of negative inflows."
    ]


class _Weights:
    """How much a scenario counts: as much as its probability, or all alike."""

    def __init__(self, tables: Mapping[str, Mapping[str, NDArray[Any]]], scenarios: int) -> None:
        self._scenarios = scenarios
        self._probability: F64 | None = tables["scenarios"]["probability"] if "scenarios" in tables else None

    def of_keys(
        self, table: Mapping[str, NDArray[Any]], which: NDArray[np.bool_] | None = None, of: str = ""
    ) -> float:
        """The weight of the scenario-stages, or with `of` of the entities in them, that the rows are about."""
        key = np.zeros(len(table["scenario_id"]), np.int64)
        for name in ("scenario_id", "stage_id", *((of,) if of else ())):
            _, place = np.unique(table[name], return_inverse=True)
            key = key * (int(place.max(initial=0)) + 1) + place
        rows = np.arange(key.size) if which is None else np.flatnonzero(which)
        _, first = np.unique(key[rows], return_index=True)
        if self._probability is None:
            return float(first.size)
        return math.fsum(self._probability[table["scenario_id"][rows[first]]].tolist())

    def mean(self, table: Mapping[str, NDArray[Any]], values: F64, which: NDArray[np.bool_]) -> float:
        """The mean over scenarios of the sum of these rows' values."""
        if self._probability is None:
            return math.fsum(values[which].tolist()) / self._scenarios
        return math.fsum((values * self._probability[table["scenario_id"]])[which].tolist())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
