"""Files that are wrong: what is said names the file, the place, and what was expected there."""

from __future__ import annotations

import contextlib
import copy
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from format_files import CORE, INDEP, TIME, msp_lattice, msp_problem, sof_newsvendor, write_msp, write_smps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pycobre.errors import ProblemError
from pycobre.problem import read
from pycobre.problem.formats import text_files

Change = Callable[[dict[str, Any]], object]


def changed(document: dict[str, Any], change: Change) -> dict[str, Any]:
    result = copy.deepcopy(document)
    change(result)
    return result


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.pop("maximize"), "expected a key 'maximize', got none"),
        (
            lambda d: d["variables"][0].update(type="BINARY"),
            "variable 'volume': expected CONTINUOUS, got BINARY",
        ),
        (
            lambda d: d["variables"][0].update(type="FREE"),
            r"variables\[0\].type: expected 'CONTINUOUS' or 'BINARY'",
        ),
        (lambda d: d["variables"][0].update(stage=7), r"expected a stage of the lattice, 0 to 2, got 7"),
        (lambda d: d["variables"][0].update(stage=-1), "expected a whole number of at least 0, got -1"),
        (lambda d: d["variables"].append(d["variables"][0]), "expected one variable 'volume' in stage 0"),
        (lambda d: d["constraints"][0].update(type="LT"), "expected 'EQ' or 'LEQ' or 'GEQ', got \"LT\""),
        (
            lambda d: d["constraints"][0].update(lhs=[]),
            r"constraints\[0\].lhs: expected at least one variable",
        ),
        (lambda d: d["constraints"][0]["lhs"][0].update(name="lake"), "expected a variable of stage 0"),
        (
            lambda d: d["constraints"][0].update(rhs=["rain"]),
            "expected data of the lattice, which has no 'rain'",
        ),
        (
            lambda d: d["constraints"][0].update(rhs=[{"SUB": 1.0}]),
            "expected one of {'ADD': …} and {'MUL': …}",
        ),
        (lambda d: d["constraints"][0].update(rhs=[]), "expected a number, a name, or ADD and MUL"),
        (lambda d: d["constraints"][0].update(rhs=[True]), "expected a number, got true"),
        (lambda d: d["constraints"][0].update(rhs=[10**400]), "expected a finite number"),
        (lambda d: d.update(variables={}), "variables: expected a list, got {}"),
    ],
)
def test_problem_files_of_mspformat(change: Change, text: str, tmp_path: Path) -> None:
    path = write_msp(tmp_path, changed(msp_problem(), change))
    with pytest.raises(ProblemError, match=text) as caught:
        read(path)
    assert "x.problem.json" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.clear(), "expected at least one node"),
        (lambda d: d["8"].update(stage=4), "expected nodes in every stage from 0 to 4.*stage 3 has none"),
        (lambda d: d["8"].update(stage=10**9), "expected nodes in every stage from 0 to 1000000000"),
        (lambda d: d["0"]["successors"].update({"99": 0.0}), "expected nodes of the next stage, got '99'"),
        (lambda d: d["0"]["successors"].update({"3": 0.5}), "node '0' of stage 0: successors: .* sum of 1"),
        (lambda d: d["0"]["successors"].update({"3": -1.0, "4": 1.0, "5": 1.0}), "expected probabilities"),
        (lambda d: d["0"].pop("state"), r"\['0'\]: expected a key 'state'"),
        (lambda d: d["0"]["state"].update(inflow="many"), 'expected a number, got "many"'),
    ],
)
def test_lattices_of_mspformat(change: Change, text: str, tmp_path: Path) -> None:
    path = write_msp(tmp_path, lattice=changed(msp_lattice(), change))
    with pytest.raises(ProblemError, match=text) as caught:
        read(path)
    assert "x.lattice.json" in str(caught.value)


def test_relaxed_integers(tmp_path: Path) -> None:
    document = changed(msp_problem(), lambda d: d["variables"][0].update(type="INTEGER"))
    assert len(read(write_msp(tmp_path, document), relax=True).nodes) == 3


def test_the_other_file_is_missing(tmp_path: Path) -> None:
    path = write_msp(tmp_path)
    elsewhere = tmp_path / "elsewhere.json"
    (tmp_path / "x.lattice.json").rename(elsewhere)
    with pytest.raises(ProblemError, match=r"expected x\.lattice\.json beside it, got none"):
        read(path)
    assert len(read(path, lattice=elsewhere).nodes) == 3
    with pytest.raises(ProblemError, match="expected the problem, got its lattice"):
        read(tmp_path / "x.lattice.json")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d["version"].update(major=0), "expected version 1 of StochOptFormat"),
        (lambda d: d["nodes"]["buy"].update(subproblem="none"), "expected a subproblem of the file"),
        (
            lambda d: d["root"]["successors"].update(lost=0.0),
            "expected nodes of the file, none of them 'lost'",
        ),
        (lambda d: d["nodes"]["sell"].pop("realizations"), r"expected realizations of its random variables"),
        (
            lambda d: d["nodes"]["sell"]["realizations"][0]["support"].clear(),
            "expected a value of each random",
        ),
        (lambda d: d["root"]["state_variables"].update(ink=1.0), r"expected the states of the root"),
        (lambda d: d["validation_scenarios"][0][1].pop("support"), "expected a support with a value of each"),
        (lambda d: d["validation_scenarios"][0].append({"node": "x"}), "expected a node of the file"),
        (lambda d: _selling(d)["objective"].update(sense="min"), "expected one sense in all subproblems"),
        (lambda d: _selling(d)["objective"].update(sense="best"), "expected 'min' or 'max' or 'feasibility'"),
        (
            lambda d: _selling(d)["constraints"][0]["set"].update(type="SOS1"),
            "expected 'EqualTo' or 'LessThan'",
        ),
        (
            lambda d: _selling(d)["constraints"][2]["set"].update(type="Integer"),
            "expected continuous variables",
        ),
        (lambda d: _selling(d)["constraints"][0]["function"].update(type="Log"), "expected 'Variable' or"),
        (
            lambda d: _selling(d)["constraints"][0]["function"]["terms"][0].update(variable="lost"),
            "expected a variable of the subproblem",
        ),
        (
            lambda d: _selling(d)["objective"].update(
                function={
                    "type": "ScalarQuadraticFunction",
                    "affine_terms": [],
                    "quadratic_terms": [{"variable_1": "sold", "variable_2": "had", "coefficient": 1.0}],
                    "constant": 0.0,
                }
            ),
            "expected a product with a random variable",
        ),
    ],
)
def test_stochoptformat(change: Change, text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.sof.json"
    path.write_text(json.dumps(changed(sof_newsvendor(), change)))
    with pytest.raises(ProblemError, match=text) as caught:
        read(path)
    assert "x.sof.json" in str(caught.value)


def _selling(document: dict[str, Any]) -> Any:
    return document["subproblems"]["selling"]["subproblem"]


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        ("core", " N cost", " L cost", "expected an objective, a row of type N"),
        ("core", " G least", " Q least", "line 5: expected the type of a row"),
        ("core", " E meet2\n", " E least\n", "expected a name of its own for the row, not 'least' again"),
        ("core", "run2 meet2 1", "run2 lost 1", "expected a row of the file, not 'lost'"),
        ("core", "run2 meet2 1", "run2 meet2 many", "expected a number, not 'many'"),
        ("core", "run2 meet2 1", "run2 cost 1", "expected one entry of column 'run2' in row 'cost'"),
        ("core", "UP BND build 20", "XX BND build 20", "expected a type of bound"),
        ("core", "UP BND build 20", "UP BND lost 20", "expected a bound of a column of the file"),
        ("core", "UP BND build 20", "UI BND build 20", "expected continuous columns, got an integer one"),
        ("core", "ENDATA", "", "expected ENDATA at the end"),
        ("core", "NAME", "NOISE", "expected a section of an MPS file"),
        (
            "time",
            "run2 serve2 second",
            "lost serve2 second",
            "column 'lost': expected the first column of a period",
        ),
        ("time", "PERIODS LP", "TIMES LP", "expected a section TIME, PERIODS, ROWS or COLUMNS"),
        ("stoch", "INDEP DISCRETE", "INDEP NORMAL", "other distributions have no finite number of openings"),
        ("stoch", "RHS meet3 3", "RHS lost 3", "expected a row of the core, not 'lost'"),
        (
            "stoch",
            "RHS meet2 4 second",
            "RHS meet2 4 third",
            "expected numbers of one period, got those of second",
        ),
        ("stoch", "RHS meet2 4 second", "RHS meet2 4 never", "expected a period of the time file"),
        ("stoch", "0.25", "0.2", "expected.*probabilit"),
    ],
)
def test_smps(file: str, old: str, new: str, text: str, tmp_path: Path) -> None:
    files = {"core": CORE, "time": TIME, "stoch": INDEP}
    assert old in files[file]
    files[file] = files[file].replace(old, new, 1)
    with pytest.raises(ProblemError, match=text):
        read(write_smps(tmp_path, **files))


def test_a_file_of_smps_is_missing(tmp_path: Path) -> None:
    path = write_smps(tmp_path, INDEP)
    (tmp_path / "capacity.tim").unlink()
    with pytest.raises(ProblemError, match=r"expected capacity\.tim beside it, got none"):
        read(path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{", "expected JSON"),
        (b'{"version": 1, "version": 2}', "key 'version': expected once, got it twice"),
        (b'{"a": NaN}', "expected numbers, got NaN"),
        (b"[" * 100_000, "expected JSON"),
        (b"\xff\xfe\x00", "expected text in UTF-8"),
        (b"", "expected JSON"),
        (b"[]", "expected an object"),
    ],
)
def test_what_is_no_json(data: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.sof.json"
    path.write_bytes(data)
    with pytest.raises(ProblemError, match=text):
        read(path)


def test_files_that_are_none_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.sof.json")
    with pytest.raises(ProblemError, match="expected a regular file"):
        read(tmp_path / "pipe.sof.json")
    with pytest.raises(ProblemError, match="cannot read: No such file"):
        read(tmp_path / "none.sof.json")
    (tmp_path / "torn.sof.json.gz").write_bytes(gzip.compress(bytes(range(32, 127)) * 50)[:60])
    with pytest.raises(ProblemError, match="cannot read: Compressed file ended"):
        read(tmp_path / "torn.sof.json.gz")
    monkeypatch.setattr(text_files, "MAX_BYTES", 1000)
    (tmp_path / "bomb.sof.json.gz").write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(ProblemError, match="expected at most 1000 bytes of text, got more"):
        read(tmp_path / "bomb.sof.json.gz")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        # Energy is made from nothing and sold: no state matters.
        ({("turbined", 1): ("lb", "-inf"), ("thermal", 1): ("obj", -1.0)}, "cost falls for ever"),
        # Water is made from nothing, stored without limit, and sold a month later.
        (
            {("spill", 0): ("lb", "-inf"), ("volume", 0): ("ub", "inf"), ("thermal", 1): ("lb", "-inf")},
            "Give a bound on all that follows a node",
        ),
    ],
)
def test_a_problem_without_a_bound(
    changes: dict[tuple[str, int], tuple[str, Any]], text: str, tmp_path: Path
) -> None:
    document = msp_problem()
    for variable in document["variables"]:
        key, value = changes.get((variable["name"], variable["stage"]), ("type", None))
        if value is not None:
            variable[key] = [value]
    path = write_msp(tmp_path, document)
    with pytest.raises(ProblemError, match=text):
        read(path)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_mutations_end_in_an_error_that_says_so(data: st.DataObject, tmp_path: Path) -> None:
    """One changed value somewhere: the file is read, or refused by a ProblemError."""
    document = data.draw(st.sampled_from([msp_problem(), sof_newsvendor()]))
    holder: Any = document
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            holder[key] = data.draw(
                st.sampled_from([None, -1, 0.5, "x", [], {}, True, 1e308, "inf", ["inf"]])
            )
            break
        holder = inner
    if "subproblems" in document:
        path = tmp_path / "x.sof.json"
        path.write_text(json.dumps(document))
    else:
        path = write_msp(tmp_path, document)
    with contextlib.suppress(ProblemError):
        read(path)
