"""Load shed, water created and limits violated, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.hydro.tables.indicators import indicators, physical_warnings

HOURS = 100.0


def buses(deficit: list[float]) -> dict[str, np.ndarray]:
    """Two scenarios of two stages of one block at two buses."""
    return {
        "scenario_id": np.repeat(np.arange(2, dtype=np.int32), 4),
        "stage_id": np.tile(np.repeat(np.arange(2, dtype=np.int32), 2), 2),
        "bus_id": np.tile(np.array([5, 9], np.int32), 4),
        "hours": np.full(8, HOURS),
        "deficit_mw": np.array(deficit),
    }


def plants(inflow: list[float], slack: list[float], violation: list[float]) -> dict[str, np.ndarray]:
    """One scenario of two stages, each of two blocks, with one plant; of 100 hours each."""
    return {
        "scenario_id": np.zeros(4, np.int32),
        "stage_id": np.array([0, 0, 1, 1], np.int32),
        "block_id": np.array([0, 1, 0, 1], np.int32),
        "hydro_id": np.full(4, 3, np.int32),
        "hours": np.full(4, HOURS),
        "inflow_m3s": np.array(inflow),
        "inflow_slack_m3s": np.array(slack),
        "violation": np.array(violation),
    }


def test_load_that_is_shed_counts_once_per_stage_and_in_full_as_energy() -> None:
    found = indicators({"buses": buses([0, 0, 10, 5, 0, 0, 0, 1e-9])}, 2)
    assert found == {"lolp": 0.25, "eens_mwh": (10 + 5) * HOURS / 2}


def test_water_beyond_a_negative_inflow_is_told_apart() -> None:
    table = plants([-20.0, -20.0, 36.0, 36.0], [20.0, 20.0, 97.0, 97.0], [0.0, 0.0, 0.0, 2.0])
    found = indicators({"hydros": table}, 1)
    assert found["water_created_hm3"] == pytest.approx(0.0036 * HOURS * (20 + 20 + 97 + 97))
    assert found["water_unneeded_hm3"] == pytest.approx(0.0036 * HOURS * (97 + 97))
    assert (found["water_created_share"], found["limits_violated_share"]) == (1.0, 0.5)
    (warning,) = physical_warnings(found)
    assert "created 69.84 hm³ of water per scenario beyond what negative inflows need" in warning
    assert "Raise it" in warning


def test_a_sound_simulation_has_no_warning() -> None:
    found = indicators({"hydros": plants([-20.0, -20.0, 5.0, 5.0], [20.0, 20.0, 0.0, 0.0], [0.0] * 4)}, 1)
    assert found["water_unneeded_hm3"] == 0.0
    assert found["water_created_share"] == 0.5
    assert physical_warnings(found) == []


def test_nothing_is_said_of_what_is_not_there() -> None:
    assert indicators({}, 3) == {}
    assert physical_warnings({}) == []
