"""Cases with published bounds, solved by an SDDP that shares nothing with the package but the problem's data.

The cases lie beside the repository; where they are not, these tests cannot run and say so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mini_sddp
import numpy as np
import pytest

from pycobre.comm import LocalBackend
from pycobre.hydro.build import HydroModel, build_model
from pycobre.hydro.files import load_case, with_overrides
from pycobre.hydro.uncertainty.scenario_sampler import ScenarioSampler
from pycobre.sddp import IterationLimit, Paths, TrainOptions, train
from pycobre.stochastic import streams

CASES = Path(__file__).parents[2].parent / "shared" / "cases"

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason="the reference cases are not beside the repository"
)

DETERMINISTIC = {
    "d01-thermal-dispatch": 182500,
    "d02-single-hydro": 2626111.111111111,
    "d03-two-hydro-cascade": 1390333.333333334,
    "d04-transmission": 8011330.111111116,
    "d09-multi-deficit": 80738000,
    "d14-block-factors": 176900,
    "d15-non-controllable-source": 437927,
    "d16-par1-lag-shift": 7756250.0,
    "d25-discount-rate": 2611454.584787283,
}


def in_sample(study: HydroModel) -> Callable[[int, int, int], np.ndarray]:
    def choose(iteration: int, scenario: int, t: int) -> np.ndarray:
        noise = study.problem.nodes[t].noise
        stage = study.case.stages[t].id
        return noise.values[
            int(streams.forward_index(study.seed, iteration, scenario, stage, noise.openings))
        ]

    return choose


@pytest.mark.parametrize("name", sorted(DETERMINISTIC))
def test_deterministic_cases_reach_their_value(name: str) -> None:
    study = build_model(load_case(CASES / name))
    trace = mini_sddp.run(study.problem, 10, 1, in_sample(study))
    assert trace.lower[-1] == pytest.approx(DETERMINISTIC[name], rel=1e-9)
    assert trace.upper[-1] == pytest.approx(DETERMINISTIC[name], rel=1e-9)


def test_the_toy_case_follows_the_peers_trace() -> None:
    study = build_model(load_case(CASES / "1dtoy"))
    trace = mini_sddp.run(study.problem, 30, 1, in_sample(study))
    expected = {
        1: 1036235.1443786875,
        2: 1386117.4405759145,
        3: 1399205.110939334,
        10: 1998656.419211813,
        30: 2514770.173191488,
    }
    assert {k: trace.lower[k - 1] for k in expected} == pytest.approx(expected, rel=1e-9)
    assert trace.upper[0] == pytest.approx(2747183.2793478863, rel=1e-9)
    assert trace.upper[29] == pytest.approx(572791.60829, rel=1e-9)


@pytest.mark.parametrize(
    ("overrides", "passes", "risk", "expected"),
    [
        ({}, 5, None, 2605786.8908),
        ({"training.tree_seed": 7}, 1, None, 1797386.8060),
        ({}, 1, (0.5, 0.5), 6160754.566617527),
    ],
    ids=["five passes", "another tree", "CVaR"],
)
def test_variants_of_the_toy_case(
    overrides: dict[str, int], passes: int, risk: tuple[float, float] | None, expected: float
) -> None:
    study = build_model(with_overrides(load_case(CASES / "1dtoy"), overrides))
    trace = mini_sddp.run(study.problem, 30, passes, in_sample(study), risk)
    assert trace.lower[-1] == pytest.approx(expected, rel=1e-9)


def test_four_regions_agree_in_the_first_iteration() -> None:
    study = build_model(load_case(CASES / "4ree"))
    trace = mini_sddp.run(study.problem, 1, 4, in_sample(study))
    assert trace.lower[0] == pytest.approx(60252226351.2903, rel=1e-9)
    assert trace.upper[0] == pytest.approx(102803523496.720, rel=1e-9)


class Draws:
    """Cobre's forward paths for the package's own training."""

    def __init__(self, study: HydroModel) -> None:
        self._forward = ScenarioSampler(study, None)

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        openings, values = self._forward.draw(iteration, first, count)
        depth = openings.shape[1]
        nodes = np.tile(np.arange(depth, dtype=np.int32), (count, 1))
        return Paths(nodes, openings, np.full(count, depth, np.int32), values)


def test_training_follows_the_peers_trace_to_its_end() -> None:
    study = build_model(load_case(CASES / "1dtoy"))
    options = TrainOptions(forward_passes=1, stopping=IterationLimit(128))
    lower = train(study.problem, LocalBackend(), options, sampler=Draws(study)).history.lower_bound
    expected = {1: 1036235.1443786875, 10: 1998656.419211813, 30: 2514770.173191488, 128: 2605295.12100926}
    assert {k: lower[k - 1] for k in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_four_regions_reach_the_peers_bound_after_256_iterations() -> None:
    study = build_model(load_case(CASES / "4ree"))
    options = TrainOptions(forward_passes=4, stopping=IterationLimit(256))
    outcome = train(study.problem, LocalBackend(), options, sampler=Draws(study))
    assert outcome.history.lower_bound[0] == pytest.approx(60252226351.2903, rel=1e-9)
    assert outcome.lower_bound == pytest.approx(60866295708.6, rel=1e-4)
