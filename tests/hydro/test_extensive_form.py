"""Bounds of random cases converge to their extensive form: the whole tree as one LP, no SDDP in it."""

from __future__ import annotations

import numpy as np
import pytest
from random_case import FEATURES, random_case

from pycobre.app import train as train_case
from pycobre.comm import LocalBackend
from pycobre.hydro.build import build_model
from pycobre.hydro.model.case import Case
from pycobre.problem.extensive import solve_extensive_form
from pycobre.sddp import IterationLimit, TrainOptions, train

MIXES = 24


def mix(number: int) -> tuple[str, ...]:
    """About half of the features, but for CVaR, which an expectation over the tree is not, wild inflows, and travel
    times where blocks follow each other, which are refused.
    """
    chosen = np.random.default_rng(number).random(len(FEATURES)) < 0.5
    wanted = [f for f, yes in zip(FEATURES, chosen, strict=True) if yes]
    left_out = {"cvar", "wild", "annual"} | ({"travel"} if "chronological" in wanted else set())
    return tuple(f for f in wanted if f not in left_out)


def shape(number: int) -> dict[str, int]:
    draw = np.random.default_rng(1000 + number)
    return {"stages": int(draw.integers(2, 5)), "openings": int(draw.integers(1, 4))}


def bound(case: Case, iterations: int = 40) -> float:
    options = TrainOptions(forward_passes=3, stopping=IterationLimit(iterations))
    return train(build_model(case).problem, LocalBackend(), options).lower_bound


@pytest.mark.parametrize("number", range(MIXES))
def test_the_bound_is_the_extensive_forms_value(number: int) -> None:
    method = ("none", "penalty")[number % 2]
    case = random_case(500 + number, *mix(number), method=method, **shape(number))
    assert bound(case) == pytest.approx(solve_extensive_form(build_model(case).problem), rel=1e-6)


@pytest.mark.parametrize("method", ["truncation", "truncation_with_penalty"])
def test_truncated_inflows_without_lags_are_still_an_lp(method: str) -> None:
    case = random_case(560, "blocks", "withdrawal", "correlation", method=method)
    assert bound(case) == pytest.approx(solve_extensive_form(build_model(case).problem), rel=1e-6)


def test_with_lags_the_penalty_method_alone_gives_a_bound() -> None:
    """Truncated, the same case has a bound that is called an estimate; it cannot be written as one LP."""
    outcomes = {}
    for method in ("penalty", "none", "truncation", "truncation_with_penalty"):
        problem = build_model(random_case(570, "blocks", "lags", "discount", method=method)).problem
        outcomes[method] = train(problem, LocalBackend(), TrainOptions(3, IterationLimit(20)))
    assert outcomes["penalty"].estimate is None
    assert outcomes["none"].estimate is None
    for method in ("truncation", "truncation_with_penalty"):
        assert "truncates a right-hand side that depends on the incoming state" in str(
            outcomes[method].estimate
        )
        assert outcomes[method].bound_name == "estimate of the lower bound"


def test_risk_lies_between_the_expectation_and_the_worst() -> None:
    neutral = random_case(570, "blocks", "lags", "discount")
    averse = random_case(570, "blocks", "lags", "discount", "cvar")
    assert build_model(neutral).problem.nodes[0].noise.openings > 1
    expected = solve_extensive_form(build_model(neutral).problem)
    assert expected < train_case(averse).final_lower_bound
