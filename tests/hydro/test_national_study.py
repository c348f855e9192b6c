"""The Brazilian long-term study of January 2018 opens, as Cobre 0.18 reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pycobre
from pycobre.hydro import build_model
from pycobre.hydro.files import load_case, validate
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.uncertainty.estimation import with_estimates

CASES = Path(__file__).parents[2].parent / "shared" / "cases"
STUDY = CASES / "pmo-2018-01"

pytestmark = pytest.mark.skipif(not STUDY.is_dir(), reason="the national study is not beside the repository")


def test_it_is_valid_and_says_what_has_no_effect() -> None:
    findings = validate(STUDY)
    assert {f.severity for f in findings} == {Severity.WARNING}
    assert {(f.kind, f.where) for f in findings} == {
        ("no_effect", "exports.stochastic"),
        ("no_effect", "training.cut_selection.row_activity_tolerance"),
        ("no_effect", "training.parallelism"),
        ("no_effect", "hydraulic_losses"),
        ("no_effect", "specific_productivity_mw_per_m3s_per_m"),
        ("no_effect", "tailrace"),
    }


@pytest.mark.slow
def test_it_is_built_with_filling_and_commitments() -> None:
    model = build_model(load_case(STUDY))
    names = [state.name for state in model.problem.states]
    assert len(model.problem.nodes) == 120
    assert len(names) == 152 * 7 + 4
    assert names[-4:] == [f"commitment[{name},{j}]" for name in ("LINHARES", "ST.CRUZ NOVA") for j in (0, 1)]
    assert model.problem.initial[-4:].tolist() == pytest.approx([197.064, 153.0, 285.0, 289.4])
    filled = [h for h, plant in enumerate(model.case.hydros) if plant.filling is not None]
    assert [model.case.hydros[h].id for h in filled] == [41, 55, 116, 117, 151]
    for h in filled:
        targets = np.array([n.hydro.storage_target[h] for n in model.numbers])
        plant = model.case.hydros[h]
        assert plant.filling is not None
        assert np.flatnonzero(~np.isnan(targets))[0] == plant.filling.start_stage_id
        assert plant.entry_stage_id is not None
        assert targets[plant.entry_stage_id - 1] == pytest.approx(plant.reservoir.min_storage_hm3)


@pytest.mark.slow
def test_its_inflow_model_is_the_one_that_cobre_fits() -> None:
    """`pmo-2018-01-equal` gives the coefficients and correlations that Cobre fitted."""
    fitted, given = (
        with_estimates(load_case(CASES / "pmo-2018-01-stripped")),
        load_case(CASES / "pmo-2018-01-equal"),
    )
    for name in ("hydro_id", "stage_id", "lag"):
        assert np.array_equal(getattr(fitted.ar_coefficients, name), getattr(given.ar_coefficients, name))
    assert fitted.ar_coefficients.coefficient == pytest.approx(given.ar_coefficients.coefficient, abs=1e-12)
    assert fitted.correlation is not None
    assert given.correlation is not None
    for name, profile in given.correlation.profiles.items():
        mine = fitted.correlation.profiles[name].correlation_groups[0].matrix
        assert np.array(mine) == pytest.approx(np.array(profile.correlation_groups[0].matrix), abs=1e-12)


@pytest.mark.slow
def test_an_iteration_of_it_gives_a_bound() -> None:
    short = {
        "training.selection.forward_passes": 1,
        "training.stopping_rules": [{"type": "iteration_limit", "limit": 1}],
    }
    found = pycobre.train(STUDY, short)
    assert 0.0 < found.final_lower_bound < found.final_upper_bound
    assert found.total_cuts == 119
