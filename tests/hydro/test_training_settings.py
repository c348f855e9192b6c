"""Settings of pycobre's own in a case's configuration: off by default, passed on, checked."""

from __future__ import annotations

import pytest

from pycobre.errors import CaseError
from pycobre.hydro import build_model
from pycobre.hydro.examples import synthetic
from pycobre.hydro.files.overrides import with_overrides
from pycobre.hydro.study.options import train_options
from pycobre.sddp import GrowingTrajectories, InteriorPoints

CASE = synthetic(hydros=2, stages=3, openings=2)


def options(settings):
    return train_options(build_model(with_overrides(CASE, settings)))


def test_by_default_a_case_is_trained_as_cobre_trains_it():
    found = options({})
    assert (found.interior, found.trajectories) == (None, None)


def test_settings_reach_the_training():
    found = options(
        {
            "training.interior_points": {"initial": 0.25, "decay": "sqrt", "last": 7},
            "training.growing_trajectories": {"initial": 2},
        }
    )
    assert found.interior == InteriorPoints(0.25, "sqrt", 7)
    assert found.trajectories == GrowingTrajectories(2, 5)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"training.interior_points": {"initial": 0.0}}, "a weight is above 0 and up to 1"),
        ({"training.interior_points": {"initial": 1.5}}, "a weight is above 0 and up to 1"),
        ({"training.interior_points": {"last": 0}}, "a count is at least 1"),
        ({"training.growing_trajectories": {"every": 0}}, "a count is at least 1"),
        ({"training.growing_trajectories": {"initial": -1}}, "a count is at least 1"),
    ],
)
def test_settings_are_checked(settings, text):
    with pytest.raises(CaseError, match=text):
        options(settings)
