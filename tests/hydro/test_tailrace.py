"""Families of tailrace curves: between levels of the reservoir below, along pieces of polynomials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_case import hydro, inflows, productivity
from test_planes import HEIGHT, VOLUME, K, case_of, planes_of, plant

from pycobre.hydro.checks import check_case
from pycobre.hydro.equations.tailrace import families_of
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import Geometry, TailraceCurves
from pycobre.hydro.model.initial import InitialConditions, InitialStorage
from pycobre.hydro.model.production import ReferenceVolume
from pycobre.hydro.model.system import PolynomialTailrace, Reservoir

Row = tuple[int, float | None, float, float, tuple[float, ...]]
"""Family, level below, least and greatest outflow, coefficients."""

FLAT: list[Row] = [
    (1, 270.0, 0.0, 900.0, (302.0,)),
    (2, 290.0, 0.0, 900.0, (304.0,)),
    (3, 310.0, 0.0, 900.0, (310.0,)),
]


def curves(rows: list[Row], hydro_id: int = 0) -> TailraceCurves:
    number = np.arange(len(rows))
    return TailraceCurves(
        hydro_id=np.full(number.size, hydro_id),
        family_id=[row[0] for row in rows],
        segment_id=number,
        downstream_reference_level_m=[np.nan if row[1] is None else row[1] for row in rows],
        outflow_min_m3s=[row[2] for row in rows],
        outflow_max_m3s=[row[3] for row in rows],
        **{f"coefficient_{i}": [(*row[4], 0.0, 0.0, 0.0, 0.0)[i] for row in rows] for i in range(5)},
    )


def above_a_tank(
    rows: list[Row],
    tank: tuple[float, float] = (0.0, 100.0),
    heights: tuple[float, ...] = (280.0, 296.0, 300.0),
    reference: ReferenceVolume | None = None,
    downstream: bool = True,
) -> Case:
    """A plant over a reservoir whose level rises fast at first: 280, 296 and 300 m at 0, 50 and 100 hm³."""
    upper = replace(plant(), downstream_id=1 if downstream else None)
    lower = replace(hydro(1), reservoir=Reservoir(min_storage_hm3=tank[0], max_storage_hm3=tank[1]))
    (model,) = productivity(lower)
    model = replace(model, stage_ranges=(replace(model.stage_ranges[0], reference_volume=reference),))
    few = len(heights)
    geometry = Geometry(
        hydro_id=[0] * 5 + [1] * few,
        volume_hm3=[*VOLUME, *np.linspace(0.0, 100.0, few)],
        height_m=[*HEIGHT, *heights],
        area_km2=np.linspace(1.0, 9.0, 5 + few),
    )
    case = case_of(upper, geometry=geometry, tailrace_curves=curves(rows))
    return replace(
        case,
        hydros=(upper, lower),
        production_models=(*case.production_models, model),
        inflow_stats=inflows(case.stages, {0: (20.0, 0.0), 1: (5.0, 0.0)}),
        initial_conditions=InitialConditions(
            storage=(
                InitialStorage(hydro_id=0, value_hm3=50.0),
                InitialStorage(hydro_id=1, value_hm3=tank[0]),
            ),
            filling_storage=(),
        ),
    )


def level(case: Case, *outflow: float) -> list[float]:
    found = families_of(case, case.hydros[0], case.stages[0])
    assert found is not None
    values: list[float] = found.level(np.array(outflow)).tolist()
    return values


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (above_a_tank(FLAT), 306.16),  # 65 hm³: 297.2 m
        (above_a_tank(FLAT, (10.0, 60.0)), 305.08),  # 42.5 hm³: 293.6 m
        (above_a_tank(FLAT, (0.0, 50.0)), 304.12),
        (above_a_tank(FLAT, reference=ReferenceVolume(percentile=0.0)), 303.0),  # 280 m
        (above_a_tank(FLAT, heights=(180.0, 196.0, 200.0)), 302.0),
        (above_a_tank(FLAT, heights=(380.0, 396.0, 400.0)), 310.0),
        (above_a_tank(FLAT, heights=()), 302.0),
        (above_a_tank(FLAT[::-1], downstream=False), 302.0),
    ],
)
def test_the_level_below_tells_between_families(case: Case, expected: float) -> None:
    """Levels that planes of Cobre 0.18.0 were computed from, for the same plants."""
    assert level(case, 30.0) == pytest.approx([expected])


def test_pieces_follow_each_other_and_end_where_they_end() -> None:
    rows: list[Row] = [
        (1, None, 10.0, 30.0, (302.0, 0.1)),
        (1, None, 30.0, 100.0, (303.8, 0.05, 0.0, 1e-6, -1e-9)),
    ]
    at = (0.0, 10.0, 20.0, 30.0, 50.0, 100.0, 400.0)
    second = [303.8 + 0.05 * q + 1e-6 * q**3 - 1e-9 * q**4 for q in (30.0, 50.0, 100.0)]
    expected = [303.0, 303.0, 304.0, *second, second[-1]]
    assert level(above_a_tank(rows), *at) == pytest.approx(expected, rel=1e-14)


def test_one_polynomial_gives_the_planes_of_the_plants_own_curve() -> None:
    coefficients = (302.0, 0.01, 1e-4, 1e-6, 1e-8)
    own = replace(plant(), tailrace=PolynomialTailrace(coefficients=coefficients))
    alone = case_of(plant(), tailrace_curves=curves([(1, None, 0.0, 900.0, coefficients)]))
    np.testing.assert_allclose(planes_of(alone), planes_of(case_of(own)), rtol=1e-9, atol=1e-12)


def test_planes_are_computed_from_the_level_of_the_families() -> None:
    """A lake at one height: power is K·(its height − the tailrace's) for every m³/s, and nothing else."""
    case = above_a_tank(FLAT)
    heights = [390.0] * 5 + [280.0, 296.0, 300.0]
    at_390 = replace(case, geometry=Geometry(**vars(case.geometry) | {"height_m": heights}))
    assert planes_of(at_390)[0] == pytest.approx([0.0, 0.0, K * (390.0 - 306.16), 0.0])


WRONG: list[tuple[list[Row], str]] = [
    (
        [(1, None, -5.0, 10.0, (300.0,))],
        "outflow_min_m3s, row 0: an outflow is not negative, got -5",
    ),
    ([(1, None, 50.0, 10.0, (300.0,))], "row 0: outflow_min_m3s is not above outflow_max_m3s, got 50 and 10"),
    (
        [(1, None, 0.0, 30.0, (300.0,)), (1, None, 40.0, 90.0, (300.0,))],
        "hydro 0, family 1: every curve starts where the one before it ends, got 30 and 40 m³/s",
    ),
    (
        [(1, None, 0.0, 30.0, (300.0,)), (1, None, 30.0, 90.0, (300.05,))],
        "warning [tailrace_step] system/tailrace_curves.parquet: hydro 0, family 1: the level of the tailrace has no "
        "step at 30 m³/s, got 300 and 300.05 m",
    ),
    (
        [(1, None, 0.0, 30.0, (300.0,)), (2, 290.0, 0.0, 90.0, (301.0,))],
        "hydro 0: each of several families has a downstream_reference_level_m of its own, got 2 families",
    ),
    (
        [(1, 290.0, 0.0, 30.0, (300.0,)), (2, 290.0, 0.0, 90.0, (301.0,))],
        "each of several families has a downstream_reference_level_m of its own, got 2 families",
    ),
]


@pytest.mark.parametrize(("rows", "text"), WRONG)
def test_what_is_wrong_is_said(rows: list[Row], text: str) -> None:
    found = [str(finding) for finding in check_case(above_a_tank(rows))]
    assert any(text in line for line in found), found


def test_curves_of_nobody_are_named() -> None:
    case = case_of(plant(), tailrace_curves=curves(FLAT, hydro_id=7))
    found = [str(finding) for finding in check_case(case)]
    assert any("hydro_id, row 0: hydro_id is an id in hydros, got 7" in line for line in found), found


def test_a_step_of_centimetres_is_allowed() -> None:
    rows: list[Row] = [(1, None, 0.0, 30.0, (300.0,)), (1, None, 30.0, 90.0, (300.009,))]
    assert not [str(finding) for finding in check_case(above_a_tank(rows)) if "tailrace" in str(finding)]
