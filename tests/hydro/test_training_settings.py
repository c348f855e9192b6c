"""Settings of pycobre's own in a case's configuration: their defaults, passed on, checked."""

from __future__ import annotations

import json

import pytest

from pycobre.errors import CaseError
from pycobre.hydro import build_model
from pycobre.hydro.examples import synthetic
from pycobre.hydro.files import write_case
from pycobre.hydro.files.overrides import with_overrides
from pycobre.hydro.study.options import train_options
from pycobre.sddp import GrowingTrajectories, InteriorPoints

CASE = synthetic(hydros=2, stages=3, openings=2)


def options(settings):
    return train_options(build_model(with_overrides(CASE, settings)))


def test_by_default_cuts_are_made_inside_and_all_trajectories_walk():
    found = options({})
    assert (found.interior, found.trajectories) == (InteriorPoints(least_states=10), None)


def test_weight_zero_makes_cuts_where_cobre_makes_them():
    assert options({"training.interior_points": {"initial": 0}}).interior is None
    assert options({"training.interior_points.initial": 0}).interior is None


def test_a_case_that_says_nothing_is_written_as_cobre_reads_it(tmp_path):
    write_case(CASE, tmp_path / "case")
    written = json.loads((tmp_path / "case" / "config.json").read_text(encoding="utf-8"))
    assert "interior_points" not in written["training"]
    assert "growing_trajectories" not in written["training"]


def test_settings_reach_the_training():
    found = options(
        {
            "training.interior_points": {
                "initial": 0.25,
                "decay": "sqrt",
                "last": 7,
                "graded": False,
                "least_states": 3,
            },
            "training.growing_trajectories": {"initial": 2},
        }
    )
    assert found.interior == InteriorPoints(0.25, "sqrt", 7, False, 3)
    assert found.trajectories == GrowingTrajectories(2, 5)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"training.interior_points": {"initial": -0.5}}, "a weight is from 0 to 1"),
        ({"training.interior_points": {"initial": 1.5}}, "a weight is from 0 to 1"),
        ({"training.interior_points": {"last": 0}}, "a count is at least 1"),
        ({"training.interior_points": {"least_states": 0}}, "a count is at least 1"),
        ({"training.growing_trajectories": {"every": 0}}, "a count is at least 1"),
        ({"training.growing_trajectories": {"initial": -1}}, "a count is at least 1"),
    ],
)
def test_settings_are_checked(settings, text):
    with pytest.raises(CaseError, match=text):
        options(settings)
