"""A collection of broken cases: each is said in full, and nothing else is said about it."""

from __future__ import annotations

import pytest
from broken import Broken
from broken_files import BROKEN_FILES
from broken_numbers import BROKEN_NUMBERS
from broken_references import BROKEN_REFERENCES
from rich_case import files

from pycobre.errors import CaseError
from pycobre.hydro.files import read_case_files, validate_files
from pycobre.hydro.model.findings import Severity

COLLECTION = (*BROKEN_FILES, *BROKEN_REFERENCES, *BROKEN_NUMBERS)


def test_the_rich_case_is_sound() -> None:
    assert validate_files(files()) == ()


def test_names_are_unique() -> None:
    assert len({case.name for case in COLLECTION}) == len(COLLECTION)


@pytest.mark.parametrize("case", COLLECTION, ids=lambda case: case.name.replace(" ", "_"))
def test_every_finding_of_a_broken_case(case: Broken) -> None:
    content = files()
    for mutate in case.mutations:
        mutate(content)
    findings = validate_files(content)
    shown = "\n".join(f"{f} | where {f.where!r} entity {f.entity!r}" for f in findings)
    assert len(findings) == len(case.findings), shown
    for expected in case.findings:
        assert sum(expected.is_said_by(finding) for finding in findings) == 1, f"{expected}\n{shown}"
    if any(finding.severity is Severity.ERROR for finding in findings):
        with pytest.raises(CaseError) as refused:
            read_case_files(content, "broken")
        assert refused.value.findings == findings
    else:
        read_case_files(content, "doubtful")
