"""Errors cross processes as records: whole, checked, and without running anything."""

from __future__ import annotations

import inspect
import json
import math
import os
import pickle
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycobre import errors
from pycobre._util.error_record import MAX_RECORD_BYTES, decode_error, encode_error, mark_origin, origin_of
from pycobre.errors import CaseError, CobreError, CollectiveFailed, CommError, SolverError, WorkerError
from pycobre.hydro.model.findings import Finding, Layer, Severity

CLASSES = [getattr(errors, name) for name in errors.__all__]
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
FINDINGS = st.builds(
    Finding,
    kind=st.text(),
    layer=st.sampled_from(Layer),
    file=st.text(),
    rule=st.text(),
    value=st.text(),
    severity=st.sampled_from(Severity),
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a declared type, as the constructors of the errors take them."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of(*(values(each) for each in inside))
    if origin is tuple:
        return st.lists(FINDINGS if inside[0] is Any else values(inside[0]), max_size=4).map(tuple)
    if origin is dict:
        return st.dictionaries(st.text(), values(inside[1]), max_size=4)
    return {
        str: st.text(),
        int: st.integers(),
        float: st.floats(allow_nan=False),
        object: SIMPLE,
        types.NoneType: st.none(),
        BaseException: st.builds(ValueError, st.text())
        | st.builds(CollectiveFailed, st.text(), st.integers(), st.text()),
    }[hint]


def build(kind: type[CobreError]) -> st.SearchStrategy[CobreError]:
    hints = get_type_hints(kind.__init__) if "__init__" in vars(kind) else {}
    hints.pop("return", None)
    if not hints:
        return st.builds(kind, st.text())
    wanted = inspect.signature(kind.__init__).parameters
    positional = [n for n, p in wanted.items() if n in hints and p.kind is not p.KEYWORD_ONLY]
    named = {n: values(hints[n]) for n in hints if n not in positional}
    return st.builds(
        lambda given, rest: kind(*given, **rest),
        *[
            st.tuples(*(values(hints[n]) for n in positional)),
            st.fixed_dictionaries(named),
        ],
    )


def same(found: object, wanted: object) -> bool:
    if isinstance(wanted, BaseException):
        return type(found) is type(wanted) and str(found) == str(wanted) and same(vars(found), vars(wanted))
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(same(found[key], wanted[key]) for key in wanted)
        )
    return type(found) is type(wanted) and found == wanted


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_class_arrives_whole(kind, data):
    error = data.draw(build(kind))
    error.add_note(data.draw(st.text()))
    found = decode_error(encode_error(error), "rank 0")
    assert same(found, error)
    assert found.args == error.args


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such node", 3),
        KeyError("depth"),
        FileNotFoundError(2, "No such file or directory", "/case/config.json"),
        OSError("the history file is gone"),
        MemoryError(),
        ZeroDivisionError("division by zero"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_common_errors_of_python_arrive_as_themselves(error):
    found = decode_error(encode_error(error), "rank 0")
    assert (type(found), str(found), found.args) == (type(error), str(error), error.args)
    assert getattr(found, "filename", None) == getattr(error, "filename", None)


class _ForeignError(Exception):
    """An exception of a user's package."""


class ValueError_(ValueError):
    """A subclass of a class that crosses does not cross itself."""


class _UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text either")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (_ForeignError("from a package of the user"), "_ForeignError: from a package of the user"),
        (ValueError_("narrow"), "ValueError_: narrow"),
        (_UnprintableError(), "_UnprintableError: (its text cannot be given: RuntimeError)"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (SystemExit(0), "SystemExit: 0"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "UnicodeDecodeError: 'utf-8' codec can't decode"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_classes_arrive_as_text(error, text):
    error.add_note("on rank 1")
    found = decode_error(encode_error(error), "rank 1")
    assert type(found) is RuntimeError
    assert str(found).startswith(text)
    assert found.__notes__ == ["on rank 1"]


def test_a_field_of_an_undeclared_type_leaves_the_text():
    error = SolverError("no optimum", stage=2)
    error.scenario = "the third"  # type: ignore[assignment]
    assert str(decode_error(encode_error(error), "rank 0")) == "SolverError: no optimum"


def test_numbers_of_numpy_and_infinite_values_arrive_as_numbers():
    error = SolverError("no optimum", scenario=np.int64(3), incoming={"volume": np.float64("inf")})
    found = decode_error(encode_error(error), "rank 0")
    assert isinstance(found, SolverError)
    assert (found.scenario, type(found.scenario)) == (3, int)
    assert math.isinf(found.incoming["volume"])


def test_nested_errors_arrive_to_a_stated_depth():
    inner: BaseException = ValueError("at the bottom")
    for rank in range(8):
        inner = WorkerError(rank, 1, inner)
    found = decode_error(encode_error(inner), "rank 0")
    depth = 0
    while isinstance(found, WorkerError):
        found, depth = found.inner, depth + 1
    assert depth == 4
    assert isinstance(found, RuntimeError)
    assert "at the bottom" in str(found)


def test_an_error_too_large_for_a_record_arrives_as_text():
    findings = tuple("x" * 1000 for _ in range(MAX_RECORD_BYTES // 1000 + 1))
    found = decode_error(encode_error(CaseError("too much is wrong", findings)), "rank 0")
    assert (type(found), str(found)) == (RuntimeError, "CaseError: too much is wrong")


class Malicious:
    """Pickled, this makes a directory at the reader."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def record(**changes: Any) -> bytes:
    document = {"class": "ValueError", "args": ["x"], "fields": {}, "notes": [], "origin": None} | changes
    return json.dumps(document).encode()


GOOD_FIELDS = {"operation": "barrier", "mpi_error_code": 0, "message": "gone", "rank": 1}
MALFORMED = {
    "nothing": (b"", "expected JSON, got b''"),
    "not JSON": (b"{", "expected JSON"),
    "not UTF-8": (b"\xff\xfe\xfa", "expected JSON"),
    "deep nesting": (b"[" * 100_000, "expected JSON"),
    "endless number": (b"9" * 100_000, "expected JSON"),
    "a list": (b"[]", "expected an object of class, args, fields, notes and origin"),
    "keys missing": (b"{}", "expected an object of class, args, fields, notes and origin"),
    "one key more": (record(module="os"), "expected an object of class, args, fields, notes and origin"),
    "class of another module": (record(**{"class": "os.system"}), "got 'os.system'"),
    "function": (record(**{"class": "eval"}), "a known class of errors, got 'eval'"),
    "an end of the process": (record(**{"class": "SystemExit"}), "got 'SystemExit'"),
    "class is a list": (record(**{"class": ["ValueError"]}), "a known class of errors"),
    "arguments no list": (record(args="x"), "expected tuple"),
    "fields unknown": (record(fields={"__class__": "x"}), "the fields [] of ValueError, got others"),
    "fields missing": (record(**{"class": "CollectiveFailed"}), "of CollectiveFailed, got others"),
    "dunder field": (
        record(**{"class": "CollectiveFailed", "fields": GOOD_FIELDS | {"__cause__": None}}),
        "of CollectiveFailed, got others",
    ),
    "type of a field": (
        record(**{"class": "CollectiveFailed", "fields": GOOD_FIELDS | {"rank": "one"}}),
        "CollectiveFailed with fields as declared, in one int or NoneType, got 'one'",
    ),
    "number too true": (
        record(**{"class": "CollectiveFailed", "fields": GOOD_FIELDS | {"mpi_error_code": True}}),
        "int, got 'True'",
    ),
    "notes": (record(notes=[1]), "expected str, got '1'"),
    "origin": (record(origin="me"), "expected int or NoneType, got 'me'"),
    "inner error": (
        record(**{"class": "WorkerError", "fields": {"rank": 0, "exit_code": 1, "inner": {"class": "exec"}}}),
        "WorkerError with fields as declared",
    ),
    "finding": (
        record(
            **{"class": "CaseError", "fields": {"findings": [{"value": "Finding", "fields": {"kind": "x"}}]}}
        ),
        "of Finding, got others",
    ),
    "too long": (b" " * (MAX_RECORD_BYTES + 1), f"at most {MAX_RECORD_BYTES} bytes"),
}


@pytest.mark.parametrize(("data", "text"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_record_is_a_named_error(data, text):
    found = decode_error(data, "rank 3")
    assert type(found) is CommError
    assert str(found).startswith("the error record of rank 3: expected ")
    assert text in str(found)
    assert len(str(found)) < 400


@pytest.mark.parametrize("error", [ValueError("x"), CaseError("y"), _ForeignError("z")], ids=repr)
def test_the_rank_that_raised_an_error_travels_with_it(error):
    assert origin_of(decode_error(encode_error(error), "rank 1")) is None
    once = decode_error(encode_error(mark_origin(error, 3)), "rank 1")
    assert origin_of(decode_error(encode_error(once), "rank 2")) == 3


def test_a_pickle_is_not_read(tmp_path):
    target = tmp_path / "made"
    found = decode_error(pickle.dumps(Malicious(str(target))), "rank 0")
    assert type(found) is CommError
    assert not target.exists()


@given(
    st.binary(max_size=200)
    | st.recursive(SIMPLE, lambda s: st.lists(s) | st.dictionaries(st.text(), s)).map(
        lambda value: json.dumps(value).encode()
    )
)
def test_any_bytes_become_an_error(data):
    assert isinstance(decode_error(data, "rank 0"), Exception)
