"""Domination: cuts within a tolerance, in units of cost, of the best at some visited state."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError
from pycobre.hydro import build_model
from pycobre.hydro.examples import example
from pycobre.sddp import Domination, IterationLimit, Level1, Selection, TrainOptions, train


def trained(selection: Selection | None) -> tuple[float, int]:
    """The bound, and how many cuts are active."""
    problem = build_model(example("one-reservoir").build()).problem
    options = TrainOptions(3, IterationLimit(8), selection=selection, lazy=False)
    outcome = train(problem, LocalBackend(), options)
    return outcome.lower_bound, outcome.policy.active_cuts


def test_tolerances_are_costs() -> None:
    best = np.array([1e6, 0.0])
    assert Domination(tolerance=5.0).level(best).tolist() == [1e6 - 5.0, -5.0]
    assert Level1(tolerance=0.5).level(best).tolist() == [5e5, -0.5]


def test_a_wide_tolerance_keeps_all_cuts_and_a_narrow_one_those_of_level_1() -> None:
    everything, wide = trained(None), trained(Domination(every=2, tolerance=1e15))
    assert wide == everything
    narrow = trained(Domination(every=2, tolerance=0.0))
    assert narrow == trained(Level1(every=2, tolerance=0.0))
    assert narrow[1] < everything[1]


def test_bad_numbers_are_named() -> None:
    with pytest.raises(OptionError, match="selection tolerance: expected a number of at least 0, got -1"):
        Domination(tolerance=-1.0)
    with pytest.raises(OptionError, match="selection every: expected at least 1 iteration, got 0"):
        Domination(every=0)
