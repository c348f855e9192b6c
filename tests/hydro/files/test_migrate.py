"""Migration from the 0.5 form: cases said in it by an inverse conversion come back as the same problem."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from old_form import TURBINED, as_old_form, write
from small_case import hydro, inflows, lags, loads, one_reservoir, stages, thermal

from pycobre.app import train
from pycobre.app.cli import main
from pycobre.errors import CaseError, OptionError
from pycobre.hydro.build import build_model
from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import case_files, load_case, migrate, read_case_files, validate, write_case
from pycobre.hydro.files.migration import migrated_files
from pycobre.hydro.model import Case
from pycobre.hydro.model.constraints import (
    FphaPlanes,
    GenericBounds,
    GenericConstraint,
    HydroPenaltyTable,
    LineBounds,
    Slack,
)
from pycobre.hydro.model.production import StageRange, StageRangeProduction
from pycobre.hydro.model.scenarios import InflowHistory
from pycobre.hydro.model.system import Generation, Line, LineCapacity

CASES = Path(__file__).parents[3].parent / "shared" / "cases"


def problem_of(case: Case) -> bytes:
    """Everything that training sees of a case."""
    return build_model(replace(case, name="x")).problem.to_bytes()


#: Without the national study, which takes minutes to build.
SMALL = sorted(p.name for p in CASES.glob("*") if p.is_dir() and not p.name.startswith("pmo"))


def there_and_back(case: Case, **how: bool) -> Case:
    return read_case_files(migrated_files(as_old_form(case, **how)).files, case.name)


@pytest.mark.skipif(not CASES.is_dir(), reason="the reference cases are not beside the repository")
@pytest.mark.parametrize("name", SMALL)
def test_reference_cases_are_the_same_problem_after_migration(name: str) -> None:
    case = load_case(CASES / name)
    assert problem_of(there_and_back(case)) == problem_of(case)
    assert problem_of(there_and_back(case, seasons=False)) == problem_of(case)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_the_same_problem_after_migration(name: str) -> None:
    case = EXAMPLES[name].build()
    assert problem_of(there_and_back(case)) == problem_of(case)


def test_bounds_are_the_same(tmp_path: Path) -> None:
    periods = stages(4, openings=3)
    case = one_reservoir(periods, inflow_stats=inflows(periods, {0: (20.0, 8.0)}))
    write(as_old_form(case), tmp_path / "old")
    migrate(tmp_path / "old", tmp_path / "new")
    assert train(tmp_path / "new").final_lower_bound == train(case).final_lower_bound


def test_lags_without_seasons_become_months_with_statistics() -> None:
    """The 0.5 form finds the statistics of a lag by counting seasons back; the 0.18 form needs rows or seasons."""
    periods = stages(3)
    case = replace(
        one_reservoir(
            periods,
            inflow_stats=inflows(periods, {0: (20.0, 2.0)}, before=1),
            ar_coefficients=lags(periods, {0: (0.4,)}),
        ),
        season_definitions=None,
    )
    old = as_old_form(case, seasons=False)
    initial = json.loads(old["initial_conditions.json"])
    initial["past_inflows"] = [{"hydro_id": 0, "values_m3s": [14.0, 9.0]}]
    old["initial_conditions.json"] = json.dumps(initial).encode()
    migration = migrated_files(old)
    found = read_case_files(migration.files, "x")
    assert [(s.id, s.start_date, s.season_id) for s in found.pre_study_stages] == [
        (-2, date(2023, 11, 1), 10),
        (-1, date(2023, 12, 1), 11),
    ]
    assert [s.season_id for s in found.stages] == [0, 1, 2]
    assert [(o.start_date, o.value_m3s) for o in found.initial_conditions.recent_observations] == [
        (date(2023, 11, 1), 9.0),
        (date(2023, 12, 1), 14.0),
    ]
    assert found.inflow_stats.stage_id.tolist() == [-2, -1, 0, 1, 2]
    assert build_model(found).par.psi[0, 0, 0] == pytest.approx(0.4)
    assert any("residual_std_ratio" in note for note in migration.notes)
    assert any("seasons are now the months" in note for note in migration.notes)


def fpha_case(ranges: dict[int, tuple[StageRange, ...]]) -> Case:
    periods = stages(2)
    plants = tuple(
        hydro(h, volume=200.0)
        if spans[0].model != "fpha"
        else replace(
            hydro(h, volume=200.0),
            generation=Generation(
                model="fpha",
                min_turbined_m3s=0.0,
                max_turbined_m3s=50.0,
                min_generation_mw=0.0,
                max_generation_mw=50.0,
            ),
        )
        for h, spans in ranges.items()
    )
    return one_reservoir(
        periods,
        hydros=plants,
        production_models=tuple(StageRangeProduction(hydro_id=h, stage_ranges=s) for h, s in ranges.items()),
        fpha_planes=FphaPlanes(
            hydro_id=np.zeros(1),
            plane_id=np.zeros(1),
            gamma_0=np.zeros(1),
            gamma_v=np.full(1, 0.01),
            gamma_q=np.ones(1),
            gamma_s=np.full(1, -0.01),
        ),
        inflow_stats=inflows(periods, dict.fromkeys(ranges, (20.0, 0.0))),
    )


def constant(value: float, start: int = 0, end: int | None = None) -> StageRange:
    return StageRange(
        start_stage_id=start, end_stage_id=end, model="constant_productivity", productivity_mw_per_m3s=value
    )


def planes(start: int = 0, end: int | None = None) -> StageRange:
    return StageRange(start_stage_id=start, end_stage_id=end, model="fpha")


def test_turbined_water_costs_what_it_did_fpha_everywhere() -> None:
    found = there_and_back(fpha_case({0: (planes(),)}))
    assert found.penalties.hydro.turbined_cost == TURBINED
    assert found.energy_productivity.hydro_id.tolist() == [0, 0]
    assert (found.energy_productivity.equivalent_productivity_mw_per_m3s > 0).all()


def test_turbined_water_costs_what_it_did_fpha_beside_other_plants() -> None:
    found = there_and_back(fpha_case({0: (planes(),), 1: (constant(0.8),)}))
    assert found.penalties.hydro.turbined_cost == 0.0
    assert [h.penalties and h.penalties.turbined_cost for h in found.hydros] == [TURBINED, None]


def test_turbined_water_costs_what_it_did_fpha_in_some_stages() -> None:
    found = there_and_back(fpha_case({0: (constant(0.9, 0, 0), planes(1))}))
    assert found.penalties.hydro.turbined_cost == 0.0
    table = found.hydro_penalties
    assert (table.stage_id.tolist(), table.turbined_cost.tolist()) == ([1], [TURBINED])


def test_without_fpha_turbined_water_is_free() -> None:
    assert there_and_back(one_reservoir()).penalties.hydro.turbined_cost == 0.0


def test_costs_by_stage_of_plants_that_are_not_fpha_are_dropped() -> None:
    old = as_old_form(
        one_reservoir(
            hydro_penalties=HydroPenaltyTable(
                hydro_id=np.zeros(1),
                stage_id=np.zeros(1),
                turbined_cost=np.array([5.0]),
                spillage_cost=np.ones(1),
            )
        )
    )
    case_table = read_case_files(migrated_files(old).files, "x").hydro_penalties
    assert np.isnan(case_table.turbined_cost).all()
    assert case_table.spillage_cost.tolist() == [1.0]


def test_productivity_of_each_range_and_of_stages_that_no_range_covers() -> None:
    old = as_old_form(fpha_case({0: (constant(0.9, 0, 0), constant(0.7, 1))}))
    models = json.loads(old["system/hydro_production_models.json"])["production_models"]
    assert models[0]["stage_ranges"][1]["productivity_override"] == 0.7
    del models[0]["stage_ranges"][0]
    old["system/hydro_production_models.json"] = json.dumps({"production_models": models}).encode()
    found = read_case_files(migrated_files(old).files, "x").production_models[0]
    assert [(s.start_stage_id, s.productivity_mw_per_m3s) for s in found.stage_ranges] == [(0, 0.9), (1, 0.7)]


@pytest.mark.parametrize(("low", "high"), [(None, 10.0), (3.0, None), (5.0, 5.0)])
def test_generic_constraints_get_their_bounds_by_sense(low: float | None, high: float | None) -> None:
    case = one_reservoir(
        generic_constraints=(
            GenericConstraint(
                id=4, name="g", expression="thermal_generation(0)", slack=Slack(enabled=True, penalty=9.0)
            ),
        ),
        generic_bounds=GenericBounds(
            constraint_id=np.array([4]),
            stage_id=np.array([1]),
            bound_lower=None if low is None else np.array([low]),
            bound_upper=None if high is None else np.array([high]),
        ),
    )
    assert there_and_back(case).generic_bounds == case.generic_bounds
    assert problem_of(there_and_back(case)) == problem_of(case)


def test_history_becomes_windows_of_months() -> None:
    case = one_reservoir(
        ar_coefficients=lags(stages(2), {0: (0.4,)}),
        inflow_history=InflowHistory(
            hydro_id=np.zeros(2),
            start_date=np.array(["2020-11-01", "2020-12-01"], dtype="datetime64[D]"),
            end_date=np.array(["2020-12-01", "2021-01-01"], dtype="datetime64[D]"),
            value_m3s=np.array([3.0, 4.0]),
        ),
    )
    assert there_and_back(case).inflow_history == case.inflow_history


def test_exchange_factors_become_capacities_by_block() -> None:
    line = Line(
        id=0,
        name="L",
        operational_start_date=date(2000, 1, 1),
        source_bus_id=0,
        target_bus_id=1,
        capacity=LineCapacity(direct_mw=100.0, reverse_mw=80.0),
    )
    periods = stages(2, hours=(50.0, 50.0))
    two_buses = one_reservoir(
        periods,
        buses=tuple(replace(one_reservoir().buses[0], id=b, name=f"B{b}") for b in (0, 1)),
        load_stats=loads(periods, {0: 30.0, 1: 30.0}),
        lines=(line,),
        line_bounds=LineBounds(line_id=np.array([0]), stage_id=np.array([1]), direct_mw=np.array([60.0])),
    )
    old = as_old_form(two_buses)
    factor = [{"block_id": 1, "direct_factor": 0.5, "reverse_factor": 0.25}]
    factors = [{"line_id": 0, "stage_id": t, "block_factors": factor} for t in (0, 1)]
    old["constraints/exchange_factors.json"] = json.dumps({"exchange_factors": factors}).encode()
    found = build_model(read_case_files(migrated_files(old).files, "x"))
    assert [n.line_direct[0].tolist() for n in found.numbers] == [[100.0, 50.0], [60.0, 30.0]]
    assert [n.line_reverse[0].tolist() for n in found.numbers] == [[80.0, 20.0], [80.0, 20.0]]


def test_settings_that_changed() -> None:
    old = as_old_form(one_reservoir())
    config = json.loads(old["config.json"])
    config["training"] |= {
        "cut_formulation": "single",
        "stopping_rules": [{"type": "simulation", "replications": 10}],
        "cut_selection": {
            "enabled": True,
            "method": "level1",
            "threshold": 3,
            "check_frequency": 7,
            "cut_activity_tolerance": 1e-6,
        },
    }
    config["simulation"] = {"enabled": True}
    config["policy"] = {"validate_compatibility": True, "boundary": {"path": "p", "source_stage": 3}}
    old["config.json"] = json.dumps(config).encode()
    old["system/thermals.json"] = old["system/thermals.json"].replace(
        b'"name": "T0"', b'"name": "T0", "gnl_config": {"lag_stages": 2}'
    )
    migration = migrated_files(old)
    new = json.loads(migration.files["config.json"])
    assert new["training"]["stopping_rules"] == [{"type": "iteration_limit", "limit": 100}]
    assert new["training"]["cut_selection"] == {
        "row_activity_tolerance": 1e-6,
        "selection": {"method": "level1", "check_frequency": 7},
    }
    assert new["simulation"] == {
        "enabled": True,
        "selection": {"method": "sampled", "num_scenarios": 2000},
    }
    assert new["policy"] == {"boundary": {"path": "p"}}
    assert new["exports"] == {"stochastic": False, "states": False}
    assert b'"lead_stages": 2' in migration.files["system/thermals.json"]
    assert len(migration.notes) == 4


def test_the_old_form_is_refused_with_what_changed(tmp_path: Path) -> None:
    write(as_old_form(one_reservoir()), tmp_path / "old")
    (finding,) = validate(tmp_path / "old")
    assert finding.kind == "old_form"
    for text in (
        "training.forward_passes of config.json is now training.selection",
        "stages.num_scenarios of stages.json is now num_openings",
        "hydro.fpha_turbined_cost of penalties.json is now hydro.turbined_cost",
        "hydros.bus_id of system/hydros.json is now unit_groups",
        "Write it in the new form with `pycobre migrate CASE OUT`.",
    ):
        assert text in str(finding)
    with pytest.raises(CaseError, match=r"got that of 0\.5"):
        load_case(tmp_path / "old")


def test_one_stray_key_is_not_a_form(tmp_path: Path) -> None:
    files = dict(case_files(one_reservoir()))
    files["stages.json"] = files["stages.json"].replace(b"num_openings", b"num_scenarios", 1)
    with pytest.raises(CaseError, match="there is no key 'num_scenarios' here") as caught:
        read_case_files(files, "x")
    assert {f.kind for f in caught.value.findings} == {"unknown_key"}


def test_what_cannot_be_migrated_is_said(tmp_path: Path) -> None:
    write_case(one_reservoir(), tmp_path / "new")
    with pytest.raises(CaseError, match=r"expected the form of Cobre 0\.5, got another"):
        migrate(tmp_path / "new", tmp_path / "out")
    with pytest.raises(CaseError, match="expected a case directory"):
        migrate(tmp_path / "nowhere", tmp_path / "out")
    old = as_old_form(one_reservoir())
    write(old, tmp_path / "old")
    with pytest.raises(OptionError, match="expected a new or empty directory"):
        migrate(tmp_path / "old", tmp_path / "new")
    for file, content, text in (
        ("stages.json", b'{"stages": [{"num_scenarios": 1}]}', "not a sound case of the 0.5 form"),
        ("system/lines.json", b"{", "system/lines.json: expected well-formed JSON"),
        ("scenarios/load_seasonal_stats.parquet", b"PAR1", "expected a readable Parquet file"),
    ):
        with pytest.raises(CaseError, match=text):
            migrated_files(old | {file: content})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(as_old_form(one_reservoir()), tmp_path / "old")
    assert main(["migrate", str(tmp_path / "old"), str(tmp_path / "new")]) == 0
    assert f"next: pycobre run {tmp_path / 'new'}" in capsys.readouterr().out
    assert validate(tmp_path / "new") == ()
    broken = as_old_form(one_reservoir(thermals=(thermal(0, 50.0, bus=9),)))
    write(broken, tmp_path / "broken")
    assert main(["migrate", str(tmp_path / "broken"), str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert "thermal 0: bus_id is the id of a bus, got 9" in shown
    assert "hint: correct these in" in shown
