"""What a run notes of its settings and its system, for those who watch it."""

import json
from pathlib import Path

from run_helpers import options, problem

import pycobre
from pycobre.hydro.examples import EXAMPLES

LIMIT = {"type": "iteration_limit", "limit": 2}


def test_a_run_notes_its_settings_and_its_system(tmp_path: Path) -> None:
    case = EXAMPLES["four-regions"].build()
    settings = {"training.selection.forward_passes": 2, "training.stopping_rules": [LIMIT]}
    pycobre.train(case, settings, output=tmp_path / "case")
    study = json.loads((tmp_path / "case" / "study.json").read_text())
    assert study["settings"]["training"]["selection"]["forward_passes"] == 2
    system = study["system"]
    assert [bus["name"] for bus in system["buses"]] == [bus.name for bus in case.buses]
    assert {plant["id"]: plant["max_storage_hm3"] for plant in system["hydros"]} == {
        plant.id: plant.reservoir.max_storage_hm3 for plant in case.hydros
    }
    assert {plant["id"]: (plant["bus"], plant["max_mw"]) for plant in system["thermals"]} == {
        plant.id: (plant.bus_id, plant.generation.max_mw) for plant in case.thermals
    }
    pycobre.train(problem(), options=options(2), output=tmp_path / "problem")
    study = json.loads((tmp_path / "problem" / "study.json").read_text())
    assert study["settings"]["forward_passes"] == "4"
    assert study["settings"]["stopping"] == "IterationLimit(limit=2)"
    assert study["system"] == {"nodes": 6, "states": [state.name for state in problem().states]}
