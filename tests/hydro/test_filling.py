"""Reservoirs that fill their dead volume before the plant serves. The costs are those that Cobre 0.18 gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_case import hydro, inflows, one_reservoir, stages

from pycobre.errors import CaseError
from pycobre.hydro import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import HydroBounds
from pycobre.hydro.model.initial import InitialConditions, InitialStorage
from pycobre.hydro.model.system import Filling, Outflow, Reservoir
from pycobre.problem import solve_extensive_form

DEAD = 10.0


def filling_case(
    *,
    rate: float,
    inflow: float,
    seed: float = 0.0,
    start: int = 1,
    entry: int | None = 3,
    least: float = 0.0,
) -> Case:
    """Two plants on a river over five stages of 100 hours; the upper one fills from `start` to `entry`."""
    upper = hydro(
        0,
        filling=Filling(start_stage_id=start, filling_min_rate_m3s=rate),
        entry_stage_id=entry,
        downstream_id=1,
    )
    upper = replace(
        upper,
        reservoir=Reservoir(min_storage_hm3=DEAD, max_storage_hm3=30.0),
        outflow=Outflow(min_outflow_m3s=least),
    )
    periods = stages(5)
    case = one_reservoir(periods, hydros=(upper, hydro(1)))
    return replace(
        case,
        inflow_stats=inflows(periods, {0: (inflow, 0.0), 1: (3.0, 0.0)}),
        initial_conditions=InitialConditions(
            storage=(InitialStorage(hydro_id=1, value_hm3=50.0),),
            filling_storage=(InitialStorage(hydro_id=0, value_hm3=seed),),
        ),
    )


@pytest.mark.parametrize(
    ("rate", "inflow", "cost"),
    [
        (50.0, 20.0, 507000.0),  # filled in time, then drawn below the minimum for a price
        (50.0, 5.0, 1215555.5555555555),  # never filled: 6.4 hm³ are missing at the entry
        (14.0, 40.0, 450000.0),
        (14.0, 200.0, 451199.4444444444),  # full, and spilling while it fills
    ],
)
def test_the_cost_is_the_peers(rate: float, inflow: float, cost: float) -> None:
    case = filling_case(rate=rate, inflow=inflow)
    assert solve_extensive_form(build_model(case).problem) == pytest.approx(cost, rel=1e-9)


def test_a_dam_that_is_not_there_owes_no_outflow() -> None:
    """Cobre charges 8 m³/s for 100 hours at 500 before the dam exists; we do not, and agree in all else."""
    case = filling_case(rate=14.0, inflow=16.0, least=8.0)
    charged = 8.0 * 100.0 * 500.0
    cost = solve_extensive_form(build_model(case).problem)
    assert cost == pytest.approx(1172771.5555555553 - charged, rel=1e-9)


def test_targets_come_nearer_by_what_the_rate_brings() -> None:
    numbers = build_model(filling_case(rate=14.0, inflow=20.0)).numbers
    targets = [n.hydro.storage_target[0] for n in numbers]
    assert np.isnan(targets[0])
    assert targets[1:] == pytest.approx([DEAD - 14.0 * 0.36, DEAD, DEAD, DEAD])
    assert [bool(n.hydro.operates[0]) for n in numbers] == [False, False, False, True, True]
    assert [bool(n.hydro.exists[0]) for n in numbers] == [False, True, True, True, True]


def test_a_stage_may_have_a_rate_of_its_own() -> None:
    case = filling_case(rate=14.0, inflow=20.0)
    bounds = HydroBounds(hydro_id=[0], stage_id=[2], filling_min_rate_m3s=[20.0])
    numbers = build_model(replace(case, hydro_bounds=bounds)).numbers
    assert numbers[1].hydro.storage_target[0] == pytest.approx(DEAD - 20.0 * 0.36)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"entry": None}, "a reservoir that fills has an entry_stage_id, got None"),
        ({"start": 3}, "filling starts before entry_stage_id, got 3"),
        ({"rate": -1.0}, "filling_min_rate_m3s is not negative"),
        ({"seed": 11.0, "start": 0}, "filling_storage is from 0 to 10, got 11"),
        ({"seed": 1.0}, "filling_storage is 0 before filling starts, got 1"),
    ],
)
def test_what_makes_no_sense_is_named(change: dict[str, float | None], rule: str) -> None:
    with pytest.raises(CaseError, match=rule):
        build_model(filling_case(**({"rate": 20.0, "inflow": 20.0} | change)))  # type: ignore[arg-type]


def test_a_schedule_that_is_too_slow_is_a_warning() -> None:
    (found,) = check_case(filling_case(rate=1.0, inflow=20.0))
    assert str(found) == (
        "warning [filling] system/hydros.json: filling: hydro 0: filling_min_rate_m3s fills the dead volume of "
        "10 hm³ before stage 3, got 0.72 hm³ beside 0."
    )


def test_a_plant_is_in_one_list_of_storages() -> None:
    case = filling_case(rate=14.0, inflow=20.0)
    start = case.initial_conditions
    both = replace(start, storage=(*start.storage, InitialStorage(hydro_id=0, value_hm3=0.0)))
    assert "a hydro is in storage or in filling_storage" in str(
        check_case(replace(case, initial_conditions=both))[0]
    )
