"""A case on its way to another process: the same case comes out, without the libraries that read files."""

import json
import subprocess
import sys

import pytest
from random_case import random_case
from rich_case import rich

from pycobre.errors import CaseError
from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import case_files, case_from_data, case_to_data, identity
from pycobre.hydro.model import Case

TO_CASE = """
import json, sys
from pycobre.app.request import CaseSource, Request
from pycobre.app.study import make_study
request = Request.from_bytes(sys.stdin.buffer.read())
study = make_study(request)
libraries = {"pydantic", "pydantic_core", "pyarrow"} & set(sys.modules)
print(json.dumps([study.problem.fingerprint, study.metadata["input_hash"], sorted(libraries)]))
"""


@pytest.mark.parametrize(
    "case",
    [*(example.build() for example in EXAMPLES.values()), rich(), random_case(3)],
    ids=[*EXAMPLES, "rich", "random"],
)
def test_the_same_case_comes_out(case: Case) -> None:
    sections, columns = case_to_data(case)
    found = case_from_data(json.loads(json.dumps(sections)), columns)
    assert found == case
    assert case_files(found) == case_files(case)
    assert identity(found) == identity(case)


def test_what_is_not_of_the_model_is_refused() -> None:
    case = EXAMPLES["one-reservoir"].build()
    object.__setattr__(case, "hydros", (object(),))
    with pytest.raises(CaseError, match=r"expected values of pycobre\.hydro\.model, got object"):
        case_to_data(case)


def test_a_worker_needs_no_library_that_reads_files() -> None:
    from pycobre.app.request import CaseSource, Request
    from pycobre.app.study import make_study

    request = Request(CaseSource(EXAMPLES["one-reservoir"].build()))
    done = subprocess.run(
        [sys.executable, "-c", TO_CASE],
        input=request.to_bytes(),
        capture_output=True,
        timeout=250,
        check=True,
    )
    study = make_study(request)
    assert json.loads(done.stdout) == [study.problem.fingerprint, study.metadata["input_hash"], []]
