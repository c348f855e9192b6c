"""Whatever is in the files: validation says it in findings, and what it lets through can be trained."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from mutations import damaged
from old_form import as_old_form
from rich_case import files, historic_files, shortened

from pycobre.app import simulate, train
from pycobre.errors import CaseError, SolverError
from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import read_case_files, validate_files
from pycobre.hydro.files.migration import migrated_files
from pycobre.hydro.model import Case
from pycobre.hydro.model.findings import Severity

CASES = (files, files, historic_files)


def check(content: Mapping[str, bytes]) -> None:
    findings = validate_files(content)
    for finding in findings:
        assert finding.kind
        assert finding.rule
        assert finding.file
    if any(finding.severity is Severity.ERROR for finding in findings):
        with pytest.raises(CaseError) as refused:
            read_case_files(content, "damaged")
        assert refused.value.findings == findings
        return
    case = read_case_files(content, "damaged")
    problem = error_of(case)
    # Limits that no water and no plant can keep are found by the solver, which says where.
    assert problem is None or "infeasible" in problem


def error_of(case: Case) -> str | None:
    """What the solver says against one iteration and one simulated scenario; any other error is a failure."""
    try:
        found = train(case, {"training.stopping_rules": [{"type": "iteration_limit", "limit": 1}]})
        simulate(case, found.policy, 1)
    except SolverError as error:
        return str(error)
    return None


@pytest.mark.timeout(600)
@settings(max_examples=160, suppress_health_check=list(HealthCheck))
@given(damaged(CASES))
def test_damage_is_found_or_harmless(content: Mapping[str, bytes]) -> None:
    check(content)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=5000, suppress_health_check=list(HealthCheck))
@given(damaged(CASES))
def test_much_damage_is_found_or_harmless(content: Mapping[str, bytes]) -> None:
    check(content)


@cache
def old_files() -> Mapping[str, bytes]:
    return as_old_form(shortened(EXAMPLES["cascade"].build(), 3, openings=2))


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(damaged((old_files,)))
def test_migration_of_damage_ends_in_files_or_in_its_own_error(content: Mapping[str, bytes]) -> None:
    with suppress(CaseError):
        validate_files(migrated_files(content).files)
