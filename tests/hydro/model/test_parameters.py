"""Computed parameters: the values that Cobre 0.18 resolves for the same plants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_case import hydro, inflows, one_reservoir, stages

from pycobre.hydro import build_model
from pycobre.hydro.checks import check_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import (
    ComputedParameter,
    EnergyProductivity,
    GenericBounds,
    GenericConstraint,
    ScalarParameter,
    Slack,
)
from pycobre.hydro.model.initial import InitialConditions, InitialStorage
from pycobre.hydro.model.production import ReferenceVolume, StageRange, StageRangeProduction
from pycobre.hydro.model.system import Reservoir
from pycobre.hydro.model.table import NO_ID


def case_with(tag: str, used: bool = True) -> Case:
    """A plant of 0.7, then 0.9 MW per m³/s above one of 0.4, and a constraint with the parameter as a factor."""
    periods = stages(2)
    upper = replace(
        hydro(0, downstream_id=1), reservoir=Reservoir(min_storage_hm3=10.0, max_storage_hm3=30.0)
    )
    lower = replace(hydro(1), reservoir=Reservoir(min_storage_hm3=5.0, max_storage_hm3=60.0))
    constant = "constant_productivity"
    models = (
        StageRangeProduction(
            hydro_id=0,
            stage_ranges=(
                StageRange(start_stage_id=0, end_stage_id=0, model=constant, productivity_mw_per_m3s=0.7),
                StageRange(
                    start_stage_id=1,
                    model=constant,
                    productivity_mw_per_m3s=0.9,
                    reference_volume=ReferenceVolume(volume_hm3=22.0),
                ),
            ),
        ),
        StageRangeProduction(
            hydro_id=1,
            stage_ranges=(StageRange(start_stage_id=0, model=constant, productivity_mw_per_m3s=0.4),),
        ),
    )
    factor = "@p * " if used else ""
    spec = ComputedParameter(tag=tag, hydro_id=0)  # type: ignore[arg-type]
    return replace(
        one_reservoir(periods, hydros=(upper, lower)),
        production_models=models,
        inflow_stats=inflows(periods, {0: (1.0, 0.0), 1: (1.0, 0.0)}),
        initial_conditions=InitialConditions(
            storage=tuple(InitialStorage(hydro_id=h, value_hm3=14.0) for h in (0, 1)), filling_storage=()
        ),
        generic_parameters=(ScalarParameter(id=0, name="p", kind="computed", computed_spec=spec),),
        generic_constraints=(
            GenericConstraint(
                id=0,
                name="g",
                expression=f"{factor}thermal_generation(0)",
                slack=Slack(enabled=True, penalty=1.0),
            ),
        ),
        generic_bounds=GenericBounds(constraint_id=[0, 0], stage_id=[0, 1], bound_lower=[1.0, 1.0]),
    )


def coefficients(case: Case) -> list[float]:
    """Of the thermal plant in the constraint's row, by stage."""
    found = []
    for lp in build_model(case).lps:
        template, column, row = lp.template, lp.columns["thermal"][0, 0], lp.rows["generic"][0]
        entries = range(template.starts[column], template.starts[column + 1])
        found += [float(template.values[e]) for e in entries if template.rows[e] == row]
    return found


@pytest.mark.parametrize(
    ("tag", "values"),
    [
        ("equivalent_productivity", [0.7, 0.9]),
        ("accumulated_productivity", [1.1, 1.3]),
        ("integrated_equivalent_productivity", [0.7, 0.9]),
        ("integrated_accumulated_productivity", [1.1, 1.3]),
        ("max_stored_energy", [22.0, 26.0]),
        ("reference_volume", [23.0, 22.0]),
        ("reference_turbine", [50.0, 50.0]),
        ("min_storage", [10.0, 10.0]),
        ("max_storage", [30.0, 30.0]),
    ],
)
def test_the_values_are_the_peers(tag: str, values: list[float]) -> None:
    assert coefficients(case_with(tag)) == pytest.approx(values, rel=1e-12)


def test_what_nothing_is_known_of_is_missing_where_it_is_used() -> None:
    (first, *_) = check_case(case_with("specific_productivity"))
    assert str(first).startswith(
        "error [missing_parameter] constraints/generic_parameters.json: parameter 'p'"
    )
    assert check_case(case_with("specific_productivity", used=False)) == []


def test_a_row_without_a_stage_holds_for_all_others() -> None:
    table = EnergyProductivity(
        hydro_id=[0, 0],
        stage_id=[NO_ID, 1],
        equivalent_productivity_mw_per_m3s=[0.3, np.nan],
        specific_productivity_mw_per_m3s_per_m=[0.008, 0.009],
    )
    case = replace(case_with("specific_productivity"), energy_productivity=table)
    assert coefficients(case) == pytest.approx([0.008, 0.009])
    plain = replace(
        case,
        production_models=(replace(case.production_models[1], hydro_id=1),),
        generic_parameters=(
            replace(
                case.generic_parameters[0],
                computed_spec=ComputedParameter(tag="equivalent_productivity", hydro_id=0),
            ),
        ),
    )
    assert coefficients(plain) == pytest.approx([0.3, 0.3])
    assert [p.productivity for p in build_model(plain).lps and _productions(plain)] == [0.3, 0.4]


def _productions(case: Case) -> list[object]:
    from pycobre.hydro.equations.production import productions

    return list(productions(case, case.stages[0]))
