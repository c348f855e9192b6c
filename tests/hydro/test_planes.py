"""Planes fitted to a geometry: the least concave majorant of a grid of powers, scaled to fit it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from small_case import hydro, one_reservoir

from pycobre._util.arrays import F64
from pycobre.errors import CaseError
from pycobre.hydro.build import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.equations.planes import Head, fitted_planes
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import Geometry
from pycobre.hydro.model.production import (
    FittingWindow,
    FphaConfig,
    StageRange,
    StageRangeProduction,
)
from pycobre.hydro.model.system import (
    ConstantEfficiency,
    ConstantLosses,
    FactorLosses,
    Hydro,
    PiecewiseTailrace,
    PolynomialTailrace,
    TailracePoint,
)

VOLUME = np.array([0.0, 50.0, 100.0, 150.0, 200.0])
HEIGHT = np.array([350.0, 370.0, 385.0, 395.0, 400.0])
K = 9.81e-3 * 0.92 * 0.97  # MW per m³/s and metre of gross head
COMPUTED = FphaConfig(source="computed")


def plant(slope: float = 0.0, bend: float = 0.0) -> Hydro:
    made = hydro(0, most=50.0, volume=200.0)
    return replace(
        made,
        generation=replace(made.generation, model="fpha"),
        tailrace=PolynomialTailrace(coefficients=(300.0, slope, bend)),
        hydraulic_losses=FactorLosses(value=0.03),
        efficiency=ConstantEfficiency(value=0.92),
    )


def case_of(made: Hydro, config: FphaConfig = COMPUTED, **changes: object) -> Case:
    span = StageRange(start_stage_id=0, model="fpha", fpha_config=config)
    geometry = Geometry(
        hydro_id=np.zeros(5, dtype=np.int32),
        volume_hm3=VOLUME,
        height_m=HEIGHT,
        area_km2=np.linspace(10.0, 75.0, 5),
    )
    values: dict[str, object] = {
        "hydros": (made,),
        "geometry": geometry,
        "production_models": (StageRangeProduction(hydro_id=0, stage_ranges=(span,)),),
    }
    return one_reservoir(**(values | changes))


def planes_of(case: Case, config: FphaConfig = COMPUTED) -> F64:
    return fitted_planes(case, case.hydros[0], case.stages[0], config)


def head_of(made: Hydro) -> Head:
    return Head(made, tuple(VOLUME.tolist()), tuple(HEIGHT.tolist()))


def test_a_flat_tailrace_gives_a_plane_for_every_piece_of_the_geometry() -> None:
    """At full flow power is concave in volume, at none it is 0: each piece spans a plane with the line Q = 0."""
    planes = planes_of(case_of(plant()), COMPUTED)
    power = K * 50.0 * (HEIGHT - 300.0)
    steep = np.append(np.diff(power) / np.diff(VOLUME), 0.0)
    by_flow = (power - steep * VOLUME) / 50.0
    flow = np.linspace(0.0, 50.0, 5)
    exact = K * (HEIGHT - 300.0)[:, None] * flow
    above = (steep * VOLUME[:, None, None] + by_flow * flow[None, :, None]).min(axis=2)
    scale = (exact * above).sum() / (above * above).sum()
    assert scale < 1.0
    np.testing.assert_allclose(planes[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(planes[:, 1], scale * steep, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(planes[:, 2], scale * by_flow, rtol=1e-9)
    np.testing.assert_array_equal(planes[:, 3], 0.0)


@pytest.mark.parametrize(("slope", "bend"), [(0.1, 0.0), (0.1, -0.0005), (0.05, 0.001)])
def test_the_planes_are_the_least_concave_majorant(slope: float, bend: float) -> None:
    """Which, at a point, is the best mixture of grid points that lies there: an LP."""
    made = replace(
        plant(slope, bend),
        generation=replace(plant().generation, max_generation_mw=30.0),  # powers are cut off, too
    )
    config = FphaConfig(source="computed", volume_discretization_points=4, turbine_discretization_points=6)
    head = head_of(made)
    v, q = (g.reshape(-1) for g in np.meshgrid(np.linspace(0, 200, 4), np.linspace(0, 50, 6), indexing="ij"))
    power = head.power(v, q, np.zeros_like(v))
    assert power.max() == 30.0
    planes = planes_of(case_of(made), config)
    draw = np.random.default_rng(1)
    points = np.stack([draw.uniform(0, 200, 30), draw.uniform(0, 50, 30)], axis=1)
    majorant = []
    for point in points:
        right = [1.0, *point]
        found = linprog(-power, A_eq=np.stack([np.ones_like(v), v, q]), b_eq=right, method="highs")
        majorant.append(-found.fun)
    ours = (planes[:, 0] + points[:, :1] * planes[:, 1] + points[:, 1:] * planes[:, 2]).min(axis=1)
    ratio = ours / np.array(majorant)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-7)
    assert 0.8 < ratio[0] < 1.0


def test_spilled_water_takes_away_what_it_raises_the_tailrace() -> None:
    planes = planes_of(case_of(plant(0.1)), COMPUTED)
    expected = {round(-K * 0.1 * flow, 9) for flow in (12.5, 25.0, 37.5, 50.0)}
    assert {round(value, 9) for value in planes[:, 3].tolist()} == expected
    assert planes[0, 3] == pytest.approx(-K * 0.1 * 50.0)  # the plane of full flow


def test_a_plant_at_its_maximum_loses_by_spilling_as_one_without() -> None:
    """As in Cobre 0.18.0: planes that touch the maximum have the slope in spillage that the water gives them."""
    made = replace(plant(0.1), generation=replace(plant().generation, max_generation_mw=34.0))
    planes = planes_of(case_of(made))
    cut_off = planes[planes[:, 0] > 20.0]
    assert cut_off[0] == pytest.approx([23.983019144, 0.0, 0.188930233, -K * 0.1 * 50.0])


def test_other_curves_losses_and_windows() -> None:
    points = tuple(
        TailracePoint(outflow_m3s=x, height_m=y) for x, y in ((0.0, 300.0), (30.0, 304.0), (120.0, 308.0))
    )
    bent = replace(plant(), tailrace=PiecewiseTailrace(points=points))
    at = np.array([0.0, 30.0, 75.0, 200.0])
    found = head_of(bent).power(np.full(4, 100.0), np.full(4, 1.0), at - 1.0)
    np.testing.assert_allclose(found, K * (385.0 - np.array([300.0, 304.0, 306.0, 308.0])), rtol=1e-12)
    lossy = replace(plant(), hydraulic_losses=ConstantLosses(value_m=2.0))
    assert head_of(lossy).power(np.array([100.0]), np.array([10.0]), np.array([0.0])) == pytest.approx(
        9.81e-3 * 0.92 * 10.0 * 83.0
    )
    for window in (
        FittingWindow(volume_min_hm3=50.0, volume_max_hm3=150.0),
        FittingWindow(volume_min_percentile=0.25, volume_max_percentile=0.75),
    ):
        config = FphaConfig(source="computed", fitting_window=window, volume_discretization_points=3)
        planes = planes_of(case_of(plant()), config)
        assert len(planes) == 3  # two pieces of the window, and its highest level


def test_a_study_generates_within_its_fitted_planes() -> None:
    study = build_model(case_of(plant(0.1)))
    rows = [name for name in study.lps[0].template.row_names if name.startswith("production[")]
    assert len(rows) == len(planes_of(study.case, COMPUTED))


def test_what_planes_need_is_named() -> None:
    bare = replace(plant(), tailrace=None, efficiency=None)
    found = [str(finding) for finding in check_case(case_of(bare))]
    assert any("whose FPHA planes are computed has a geometry" in text for text in found)
    assert any("no tailrace, no efficiency" in text for text in found)
    with pytest.raises(CaseError, match="expected tailrace, hydraulic_losses and efficiency"):
        planes_of(case_of(bare), COMPUTED)
    with pytest.raises(CaseError, match="expected the geometry from which its FPHA planes are computed"):
        planes_of(case_of(plant(), geometry=Geometry.empty()), COMPUTED)
    coarse = FphaConfig(source="computed", volume_discretization_points=1)
    texts = [str(finding) for finding in check_case(case_of(plant(), coarse))]
    assert any("a grid has at least two points" in text for text in texts)
