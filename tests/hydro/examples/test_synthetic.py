"""Synthetic systems: the same for the same arguments, valid at every size, and worth solving."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from pycobre.app import simulate, train
from pycobre.errors import OptionError
from pycobre.hydro.examples import synthetic
from pycobre.hydro.files import case_files, read_case_files

PRODUCTION = {
    "hydros": 160,
    "thermals": 130,
    "buses": 5,
    "blocks": 3,
    "stages": 60,
    "lags": 2,
    "openings": 20,
}


def digest(case) -> str:
    sha = hashlib.sha256()
    for name, content in sorted(case_files(case).items()):
        sha.update(name.encode() + content)
    return sha.hexdigest()


def test_the_same_arguments_give_the_same_bytes():
    assert digest(synthetic(seed=3)) == digest(synthetic(seed=3))
    assert digest(synthetic(seed=3)) != digest(synthetic(seed=4))


@pytest.mark.parametrize(
    "sizes",
    [
        {"hydros": 0, "thermals": 3, "buses": 1, "stages": 2},
        {"hydros": 1, "thermals": 0, "buses": 1, "stages": 1, "openings": 1, "lags": 3, "blocks": 1},
        {"hydros": 9, "cascades": 9, "lags": 0, "buses": 4, "sources": 2, "blocks": 2, "stages": 14},
        {"hydros": 12, "cascades": 1, "lags": 6, "blocks": 5, "stages": 3},
        PRODUCTION,
    ],
    ids=["no hydro", "one of each", "no lags", "many lags and blocks", "production"],
)
def test_any_size_is_a_valid_case(sizes):
    case = synthetic(**sizes)
    assert read_case_files(case_files(case), "synthetic") == case
    counts = {
        "hydros": len(case.hydros),
        "thermals": len(case.thermals),
        "buses": len(case.buses),
        "sources": len(case.non_controllable_sources),
        "stages": case.num_stages,
        "blocks": len(case.stages[0].blocks),
    }
    assert {name: counts[name] for name in sizes if name in counts} == {
        name: sizes[name] for name in sizes if name in counts
    }


def test_water_flows_down_and_reservoirs_differ():
    case = synthetic(hydros=40, cascades=4)
    rivers = [h for h in case.hydros if h.downstream_id is None]
    assert len(rivers) == 4
    assert all(h.downstream_id is None or h.downstream_id > h.id for h in case.hydros)
    sizes = [h.reservoir.max_storage_hm3 / h.generation.max_turbined_m3s for h in case.hydros]
    assert 0.2 < np.mean([size > 0.5 for size in sizes]) < 0.7


def test_operation_mixes_water_and_fuel_and_looks_ahead():
    case = synthetic(hydros=6, thermals=8, buses=2, stages=6, openings=4, lags=1, seed=1)
    trained = train(case, {"training.stopping_rules": [{"type": "iteration_limit", "limit": 12}]})
    tables = simulate(case, trained.policy, 20).tables

    def energy(table: str, column: str) -> float:
        return float(np.dot(tables[table][column].to_numpy(), tables[table]["hours"].to_numpy()))

    load = energy("buses", "load_mw")
    assert 0.4 < energy("hydros", "generation_mw") / load < 0.9
    assert 0.1 < energy("thermals", "generation_mw") / load < 0.6
    assert energy("buses", "deficit_mw") / load < 0.02
    costs = tables["costs"]
    first = costs["stage_id"].to_numpy() == 0
    assert (costs["future_cost"].to_numpy()[first] > costs["stage_cost"].to_numpy()[first]).all()


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"hydros": -1}, "hydros: expected at least 0, got -1"),
        ({"buses": 0}, "buses: expected at least 1, got 0"),
        ({"hydros": 2, "cascades": 3}, r"cascades: expected at most one per hydro \(2\), got 3"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(sizes, text):
    with pytest.raises(OptionError, match=text):
        synthetic(**sizes)
