"""Out-of-sample noise: Cobre's own draws, and hypercubes that are whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from small_case import config, hydro, inflows, loads, one_reservoir, stages, weeks

from pycobre.hydro.build import build_model
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import SampledScenarios, SimulationConfig
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.uncertainty.out_of_sample import OutOfSampleNoise
from pycobre.stochastic import streams

#: Noise of three plants in stage 1 (its own period) with seed 77, from the inflows of 37 scenarios that Cobre
#: 0.18.0 simulated; by scenario.
PEER = {
    "lhs": {
        0: [-0.6682811577476958, 0.9730228850946117, -0.6486739330093055],
        5: [0.08894024818990247, -1.6700191508721784, -0.18288020350704648],
        36: [-0.14704055591489962, -0.16163899040993324, 0.6200263251412705],
    },
    "qmc_sobol": {
        0: [-0.5336632425071757, 1.335246303223242, 0.03855115744638497],
        5: [1.4171965983710608, 0.7861224626165015, -0.27833950133428426],
        36: [-0.15753332688954508, -1.2147688803413477, 0.31798245862863866],
    },
}


def three_plants(periods: tuple[Stage, ...], passes: int = 1, simulated: int = 37) -> Case:
    case = one_reservoir(
        periods,
        hydros=tuple(hydro(h) for h in range(3)),
        config=config("penalty", passes=passes),
        inflow_stats=inflows(periods, dict.fromkeys(range(3), (20.0, 5.0))),
        load_stats=loads(periods, {0: 80.0}, std=6.0),
    )
    simulation = SimulationConfig(enabled=True, selection=SampledScenarios(num_scenarios=simulated))
    return replace(case, config=replace(case.config, simulation=simulation))


def fresh(case: Case) -> OutOfSampleNoise:
    return OutOfSampleNoise(build_model(case), 77)


@pytest.mark.parametrize("method", PEER)
def test_stratified_noise_is_the_peers(method: str) -> None:
    drawn = fresh(three_plants(stages(2, sampling_method=method))).draw(1, 0, np.arange(37))
    for scenario, expected in PEER[method].items():
        assert drawn[scenario, :3] == pytest.approx(expected, abs=1e-12)


def test_classes_of_noise_have_the_peers_streams() -> None:
    """First numbers of scenario 0 of a simulation with seed 77, from Cobre's loads and sources."""
    for name, expected in (("load", 0.5590603505339963), ("ncs", -0.11543900172653987)):
        seeds = streams.grouped_forward_seed(streams.class_seed(77, name), 0, np.arange(1), 0)
        assert streams.forward_normal(seeds, 1)[0, 0] == pytest.approx(expected, abs=1e-12)


def test_every_pass_of_an_iteration_has_its_own_part_of_a_hypercube() -> None:
    sampler = fresh(three_plants(stages(2, sampling_method="lhs"), passes=20))
    parts = np.sort((ndtr(sampler.draw(1, 3, np.arange(20))) * 20).astype(int), axis=0)
    assert np.array_equal(parts, np.tile(np.arange(20)[:, None], 4))


def test_more_scenarios_than_the_case_asks_for_are_in_further_hypercubes() -> None:
    sampler = fresh(three_plants(stages(2, sampling_method="lhs"), simulated=10))
    drawn = sampler.draw(1, 0, np.arange(30))
    parts = (ndtr(drawn) * 10).astype(int)
    for cube in np.split(parts, 3):
        assert np.array_equal(np.sort(cube, axis=0), np.tile(np.arange(10)[:, None], 4))
    assert not np.array_equal(parts[:10], parts[10:20])


@pytest.mark.parametrize("method", ["saa", "lhs", "qmc_sobol"])
def test_a_scenario_does_not_depend_on_its_block(method: str) -> None:
    case = three_plants(stages(2, sampling_method=method), passes=5)
    whole = fresh(case).draw(1, 2, np.arange(12))
    again = fresh(case)
    again.draw(1, 4, np.arange(3))
    assert np.array_equal(again.draw(1, 2, np.arange(4, 9)), whole[4:9])


@pytest.mark.parametrize("method", ["saa", "lhs", "qmc_sobol"])
def test_weeks_of_a_month_share_their_draw(method: str) -> None:
    periods = tuple(replace(week, sampling_method=method) for week in weeks(6))
    sampler = fresh(three_plants(periods, passes=4))
    january, last, february = (sampler.draw(t, 1, np.arange(4)) for t in (0, 4, 5))
    assert np.array_equal(january, last)
    assert not np.isclose(january, february).any()
