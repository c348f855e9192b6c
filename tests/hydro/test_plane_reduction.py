"""Merging of computed FPHA planes: which ones are neighbours, how far apart they are, and what is left."""

from __future__ import annotations

import numpy as np
import pytest
from test_planes import HEIGHT, VOLUME, K, case_of, head_of, planes_of, plant

from pycobre._util.arrays import F64
from pycobre.hydro.build import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.equations.plane_reduction import Reach, angle, distance, reduced
from pycobre.hydro.model.constraints import FphaPlanes
from pycobre.hydro.model.production import AngleReduction, DistanceReduction, FphaConfig, PlaneReduction

REACH = Reach(low=0.0, high=200.0, flow=50.0, power=K * 50.0 * 100.0)


def merged(reduction: PlaneReduction, slope: float = 0.0) -> F64:
    return planes_of(case_of(plant(slope), fpha_plane_reduction=reduction))


def test_the_mean_of_neighbours_takes_their_place() -> None:
    """Of a flat tailrace: planes are 3.06, 4.50 and 5.74 degrees apart, the first two's mean and the third 6.03."""
    planes = planes_of(case_of(plant()))
    apart = [angle(planes[i], planes[i + 1]) for i in range(3)]
    assert apart == pytest.approx([3.0576, 4.4982, 5.7414], abs=1e-4)
    np.testing.assert_array_equal(merged(AngleReduction(tolerance_deg=3.05)), planes)
    four = merged(AngleReduction(tolerance_deg=3.06))
    np.testing.assert_allclose(four, [(planes[0] + planes[1]) / 2.0, *planes[2:]])
    three = merged(AngleReduction(tolerance_deg=5.75))
    np.testing.assert_allclose(three, [four[0], (planes[2] + planes[3]) / 2.0, planes[4]])


def test_the_plane_that_needs_flow_stays() -> None:
    """As Cobre 0.18.0 has it: at 90 degrees all become one, half of what is there at a time, but for that one."""
    planes = planes_of(case_of(plant()))
    found = merged(AngleReduction(tolerance_deg=90.0))
    assert found[0, 1:3] == pytest.approx([0.079655389, 0.589449877])
    np.testing.assert_array_equal(found[1], planes[-1])
    assert len(merged(DistanceReduction(tolerance_pct=1e9, n_samples=1))) == 2


def test_what_the_peer_merges() -> None:
    """Numbers of Cobre 0.18.0, of a sloping tailrace, whose slopes in spillage are means too."""
    case = case_of(plant(0.1, -0.0005), fpha_plane_reduction=AngleReduction(tolerance_deg=10.0))
    assert planes_of(case) == pytest.approx(
        np.array(
            [
                [0.029364839, 0.078141657, 0.559917324, 0.0],
                [0.0, 0.002349187, 0.815271889, -0.003761675],
                [0.0, 0.0, 0.841549523, -0.004103646],
            ]
        ),
        abs=1e-9,
    )


def test_a_distance_is_a_mean_over_the_rectangle() -> None:
    """By many random points; as Cobre 0.18.0 finds 5.85 for these two with 100,000 samples of its own."""
    a, b = np.array([0.0, 0.172931387, 0.432328467, 0.0]), np.array([0.0, 0.043232847, 0.691725547, 0.0])
    draw = np.random.default_rng(4)
    v, q = draw.uniform(0.0, 200.0, 400_000), draw.uniform(0.0, 50.0, 400_000)
    difference = (a - b)[0] + (a - b)[1] * v + (a - b)[2] * q
    sampled = 100.0 * float((difference**2).mean()) / REACH.power**2
    assert distance(a, b, REACH) == pytest.approx(sampled, rel=0.01)
    assert distance(a, b, REACH) == pytest.approx(5.852967, rel=1e-3)
    pair = np.array([a, b])
    assert len(reduced(pair, DistanceReduction(tolerance_pct=5.85, n_samples=1), REACH)) == 2
    assert len(reduced(pair, DistanceReduction(tolerance_pct=5.86, n_samples=1), REACH)) == 1


def test_what_is_left_allows_what_the_planes_did() -> None:
    """At every point the fewer planes lie above the many, and 0 without flow; how far above grows with the angle."""
    full = planes_of(case_of(plant(0.1)))
    v, q = (
        g.reshape(-1) for g in np.meshgrid(np.linspace(0, 200, 21), np.linspace(0, 50, 21), indexing="ij")
    )

    def allowed(planes: F64) -> F64:
        return np.asarray((planes[:, :1] + planes[:, 1:2] * v + planes[:, 2:3] * q).min(axis=0))

    most = head_of(plant(0.1)).power(v, q, np.zeros_like(v)).max()
    apart = [0.0]
    for degrees in (1.0, 4.0, 12.0, 90.0):
        few = merged(AngleReduction(tolerance_deg=degrees), 0.1)
        assert len(few) < len(full)
        above = allowed(few) - allowed(full)
        assert above.min() >= -1e-12
        assert np.abs(allowed(few)[q == 0.0]).max() < 1e-12
        assert above.max() >= apart[-1]
        apart.append(float(above.max()))
    assert apart[1] < 0.02 * most < apart[-1]


def test_a_study_generates_within_the_fewer_planes() -> None:
    case = case_of(plant(0.1), fpha_plane_reduction=AngleReduction(tolerance_deg=10.0))
    rows = [name for name in build_model(case).lps[0].template.row_names if name.startswith("production[")]
    assert len(rows) == len(planes_of(case)) < len(planes_of(case_of(plant(0.1))))


WRONG: list[tuple[PlaneReduction, str]] = [
    (AngleReduction(tolerance_deg=91.0), "tolerance_deg: an angle is from 0 to 90 degrees, got 91"),
    (AngleReduction(tolerance_deg=-1.0), "tolerance_deg: an angle is from 0 to 90 degrees, got -1"),
    (
        DistanceReduction(tolerance_pct=-1.0, n_samples=1),
        "tolerance_pct: a distance is not negative, got -1",
    ),
    (DistanceReduction(tolerance_pct=1.0, n_samples=0), "n_samples: a mean has at least one sample, got 0"),
    (
        DistanceReduction(tolerance_pct=1.0, n_samples=9),
        "n_samples: the setting has no effect here. The mean distance is computed exactly; Cobre samples it.",
    ),
]


@pytest.mark.parametrize(("reduction", "text"), WRONG)
def test_what_is_wrong_is_said(reduction: PlaneReduction, text: str) -> None:
    found = [str(finding) for finding in check_case(case_of(plant(), fpha_plane_reduction=reduction))]
    assert any(text in line for line in found), found


def test_given_planes_stay() -> None:
    given = FphaPlanes(
        hydro_id=(0, 0),
        plane_id=(0, 1),
        gamma_0=(0.0, 9.0),
        gamma_v=(0.1, 0.0),
        gamma_q=(0.5, 0.4),
        gamma_s=(0, 0),
    )
    config = FphaConfig(source="precomputed")
    case = case_of(
        plant(), config, fpha_planes=given, fpha_plane_reduction=AngleReduction(tolerance_deg=90.0)
    )
    assert any("only computed ones are merged" in str(finding) for finding in check_case(case))
    rows = [name for name in build_model(case).lps[0].template.row_names if name.startswith("production[")]
    assert len(rows) == 2
    assert VOLUME.size == HEIGHT.size
