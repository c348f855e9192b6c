"""Risk measures: published weights, definitions computed another way, properties of convex measures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sddp_runs import PATIENT

from pycobre.errors import OptionError
from pycobre.sddp import (
    ConvexCombination,
    CVaR,
    Entropic,
    Expectation,
    RiskMeasure,
    WorstCase,
    expectation_and_cvar,
    risk_weights,
)

P = (0.1, 0.2, 0.3, 0.4)
COSTS = (5.0, 4.0, 6.0, 2.0)
MEASURES = [Expectation(), WorstCase(), CVaR(0.3), CVaR(0.0), expectation_and_cvar(0.4, 0.2), Entropic(0.7)]


@pytest.mark.parametrize(
    ("measure", "weights"),
    [
        (Expectation(), P),
        (WorstCase(), (0, 0, 1, 0)),
        (CVaR(0.5), (0.2, 0.2, 0.6, 0)),
        (CVaR(1.0), P),
        (CVaR(0.0), (0, 0, 1, 0)),
        (Entropic(10.0), (1.51331e-5, 1.37408e-9, 0.9999848655, 5.66e-18)),
    ],
    ids=str,
)
def test_published_weights(measure: RiskMeasure, weights):
    assert risk_weights(measure, P, COSTS) == pytest.approx(weights, rel=1e-4, abs=1e-12)


def test_rewards_are_risky_when_they_are_small():
    assert risk_weights(CVaR(0.2), P, (1.0, 2.0, 3.0, 4.0), maximise=True) == pytest.approx((0.5, 0.5, 0, 0))


def test_worst_case_ignores_what_cannot_happen():
    assert risk_weights(WorstCase(), (0.0, 1.0), (9.0, 1.0)).tolist() == [0.0, 1.0]
    assert risk_weights(Entropic(1.0), (0.0, 1.0), (5000.0, 1.0)).tolist() == [0.0, 1.0]
    assert risk_weights(CVaR(0.5), (0.0, 1.0), (9.0, 1.0)).tolist() == [0.0, 1.0]


def test_each_row_is_answered_alone():
    costs = np.random.default_rng(0).normal(size=(20, 4))
    for measure in MEASURES:
        together = measure.weights(np.array(P), costs)
        for row in range(20):
            alone = measure.weights(np.array(P), costs[row : row + 1])
            assert together.weight[row].tobytes() == alone.weight[0].tobytes()
            assert together.offset[row] == alone.offset[0]


@st.composite
def lotteries(draw):
    size = draw(st.integers(1, 6))
    shares = np.array(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)), float)
    costs = draw(st.lists(st.integers(-40, 40), min_size=size, max_size=size))
    return shares / shares.sum(), np.array(costs) / 4


@PATIENT
@given(lotteries(), st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_cvar_is_the_minimum_over_thresholds(lottery, tail):
    """CVaR = min_t t + E[max(Z − t, 0)]/tail, attained at one of the outcomes."""
    p, z = lottery
    direct = min(t + float(p @ np.maximum(z - t, 0)) / tail for t in z)
    assert CVaR(tail).value(p, z) == pytest.approx(direct, abs=1e-9)


@PATIENT
@given(lotteries())
def test_entropic_is_its_logarithm(lottery):
    p, z = lottery
    direct = math.log(sum(pk * math.exp(0.7 * zk) for pk, zk in zip(p, z, strict=True))) / 0.7
    assert Entropic(0.7).value(p, z) == pytest.approx(direct, abs=1e-9)


@PATIENT
@given(lotteries(), st.integers(-20, 20))
def test_between_mean_and_worst_and_translation_equivariant(lottery, shift):
    p, z = lottery
    for measure in MEASURES:
        weight, _ = measure.weights(p, z[None])
        assert weight.sum() == pytest.approx(1.0)
        assert np.all(weight >= 0)
        assert np.all(weight[0, p == 0] == 0)
        value = measure.value(p, z)
        assert Expectation().value(p, z) - 1e-9 <= value <= WorstCase().value(p, z) + 1e-9
        assert measure.value(p, z + shift) == pytest.approx(value + shift, abs=1e-8)


@PATIENT
@given(lotteries(), st.data())
def test_weights_support_the_measure_from_below(lottery, data):
    """A cut is valid because the weights at z under-estimate the risk of every other y."""
    p, z = lottery
    y = np.array(data.draw(st.lists(st.integers(-40, 40), min_size=len(z), max_size=len(z)))) / 4
    for measure in MEASURES:
        weight, offset = measure.weights(p, z[None])
        assert float(weight[0] @ y + offset[0]) <= measure.value(p, y) + 1e-8


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: CVaR(1.5), "CVaR tail: expected a probability from 0 to 1, got 1.5"),
        (lambda: Entropic(0.0), "Entropic gamma: expected a finite number above 0, got 0.0"),
        (lambda: ConvexCombination(((0.5, Expectation()),)), "expected numbers ≥ 0 that sum to 1, got"),
        (lambda: ConvexCombination(()), "expected numbers ≥ 0 that sum to 1, got"),
    ],
)
def test_nonsense_is_refused(make, text):
    with pytest.raises(OptionError, match=text):
        make()
