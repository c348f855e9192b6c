"""Exceptions as records: the one way for an error to cross from one process to another.

A record is JSON: the name of the class, its arguments, its declared fields and its notes. The name is looked up in
a closed registry (the classes of `pycobre.errors` and some of Python's own), every value is checked against the
declared type of its field, and nothing in a record is ever executed or imported. An exception of any other class
arrives as a `RuntimeError` with its text, a malformed record as a `CommError` that says what is wrong with it.
"""

from __future__ import annotations

import builtins
import json
import types
from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Integral, Real
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pycobre import errors
from pycobre.errors import CobreError, CommError

__all__ = [
    "MAX_RECORD_BYTES",
    "carried_by_errors",
    "decode_error",
    "encode_error",
    "mark_origin",
    "origin_of",
]

MAX_RECORD_BYTES = 16 << 20
"""No longer record is written or read: of an error that would need one, only the start of its text travels."""

_MAX_TEXT = 1 << 16
_MAX_DEPTH = 4  # a WorkerError carries another error, which may be a WorkerError again

_BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        *("ArithmeticError", "AssertionError", "AttributeError", "ConnectionError", "ConnectionResetError"),
        *("BrokenPipeError", "EOFError", "Exception", "FileExistsError", "FileNotFoundError"),
        *("FloatingPointError", "IndexError", "InterruptedError", "IsADirectoryError", "KeyError"),
        *("LookupError", "MemoryError", "NotADirectoryError", "NotImplementedError", "OSError"),
        *("OverflowError", "PermissionError", "ProcessLookupError", "RecursionError", "RuntimeError"),
        *("TimeoutError", "TypeError", "ValueError", "ZeroDivisionError"),
    )
}
# Neither SystemExit nor KeyboardInterrupt: a record must not be able to end the process that reads it.
_CLASSES: dict[str, type[Exception]] = {name: getattr(errors, name) for name in errors.__all__} | _BUILTINS

_ORIGIN = "_origin_rank"

_VALUE_CLASSES: dict[str, type] = {}

T = TypeVar("T")


class _MalformedRecordError(Exception):
    """A record that breaks the rules; never leaves this package."""


def carried_by_errors(cls: type[T]) -> type[T]:
    """Let the fields of errors hold instances of a frozen dataclass of texts, numbers and enumerations."""
    _VALUE_CLASSES[cls.__name__] = cls
    return cls


def mark_origin(error: Exception, rank: int) -> Exception:
    """Note which rank raised an error that all ranks raise; it travels with the error."""
    error.__dict__[_ORIGIN] = rank
    return error


def origin_of(error: BaseException | None) -> int | None:
    """The rank that raised an error first, where that was noted."""
    return getattr(error, _ORIGIN, None)


def encode_error(error: BaseException) -> bytes:
    """The record of an error."""
    data = json.dumps(_record(error, _MAX_DEPTH)).encode()
    try:
        _decoded(data)
    except _MalformedRecordError:  # a field that holds something undeclared: the text is what is left
        data = json.dumps(_as_text(error)).encode()
    return data


def decode_error(data: bytes, sender: str) -> Exception:
    """The error of a record that `sender` (such as "rank 0") gave; never raises."""
    try:
        return _decoded(data)
    except _MalformedRecordError as reason:
        return CommError(
            f"the error record of {sender}: expected {reason}. "
            "Check that all processes of the run have the same version of pycobre."
        )


def _decoded(data: bytes) -> Exception:
    if len(data) > MAX_RECORD_BYTES:
        raise _MalformedRecordError(f"at most {MAX_RECORD_BYTES} bytes, got {len(data)}")
    try:
        return _error(json.loads(data), _MAX_DEPTH)
    except (ValueError, RecursionError) as error:
        raise _MalformedRecordError(f"JSON, got {data[:40]!r} ({type(error).__name__})") from None


def _record(error: BaseException, depth: int) -> dict[str, Any]:
    kind, name = type(error), type(error).__name__
    if _CLASSES.get(name) is not kind or depth == 0:
        return _as_text(error)
    arguments = error.args
    if isinstance(error, OSError) and error.errno is not None:
        path = [] if error.filename is None else [str(error.filename)]
        arguments = (error.errno, error.strerror, *path)
    return {
        "class": name,
        "args": [_plain(value, depth) for value in arguments],
        "fields": {field: _plain(getattr(error, field), depth) for field in _declared(kind)},
        "notes": _notes(error),
        "origin": origin_of(error),
    }


def _as_text(error: BaseException) -> dict[str, Any]:
    """The record of an error whose class does not cross: a RuntimeError with its class and text."""
    try:
        text = str(error)
    except Exception as failure:  # noqa: BLE001 - a foreign class may raise anything from its __str__
        text = f"(its text cannot be given: {type(failure).__name__})"
    said = f"{type(error).__qualname__}: {text}"[:_MAX_TEXT]
    notes, origin = _notes(error), origin_of(error)
    return {"class": "RuntimeError", "args": [said], "fields": {}, "notes": notes, "origin": origin}


def _notes(error: BaseException) -> list[str]:
    return [str(note)[:_MAX_TEXT] for note in getattr(error, "__notes__", ())]


def _plain(value: object, depth: int) -> Any:
    """A value as JSON can hold it; what it cannot hold becomes its text."""
    if value is None or isinstance(value, (bool, str)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, (tuple, list)):
        return [_plain(each, depth) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each, depth) for key, each in value.items()}
    if isinstance(value, BaseException):
        return _record(value, depth - 1)
    if is_dataclass(value) and _VALUE_CLASSES.get(type(value).__name__) is type(value):
        inside = {each.name: _plain(getattr(value, each.name), depth) for each in fields(value)}
        return {"value": type(value).__name__, "fields": inside}
    return str(value)


def _declared(kind: type) -> dict[str, Any]:
    """The fields that a class of pycobre declares, with their types."""
    return get_type_hints(kind) if issubclass(kind, CobreError) or is_dataclass(kind) else {}


def _error(document: object, depth: int) -> Exception:
    if not isinstance(document, dict) or document.keys() != {"class", "args", "fields", "notes", "origin"}:
        raise _MalformedRecordError("an object of class, args, fields, notes and origin, got another value")
    kind = _CLASSES.get(document["class"]) if isinstance(document["class"], str) else None
    if kind is None or depth < 0:
        raise _MalformedRecordError(f"a known class of errors, got {str(document['class'])[:80]!r}")
    arguments = _checked(tuple[object, ...], document["args"], depth)
    values = _checked_fields(kind, document["fields"], depth)
    error = _made(kind, arguments)
    error.__dict__.update(values)
    for note in _checked(tuple[str, ...], document["notes"], depth):
        error.add_note(note)
    origin = _checked(int | None, document["origin"], depth)
    return error if origin is None else mark_origin(error, origin)


def _made(kind: type[Exception], arguments: tuple[Any, ...]) -> Exception:
    if issubclass(kind, CobreError):  # its fields follow: they are not what its constructor takes
        error = kind.__new__(kind)
        error.args = arguments
        return error
    try:
        return kind(*arguments)
    except (TypeError, ValueError) as refusal:
        raise _MalformedRecordError(f"arguments of {kind.__name__}, got others ({refusal})") from None


def _checked_fields(kind: type, given: object, depth: int) -> dict[str, Any]:
    declared = _declared(kind)
    if not isinstance(given, dict) or given.keys() != declared.keys():
        raise _MalformedRecordError(f"the fields {sorted(declared)} of {kind.__name__}, got others")
    try:
        return {name: _checked(declared[name], value, depth) for name, value in given.items()}
    except _MalformedRecordError as reason:
        raise _MalformedRecordError(f"{kind.__name__} with fields as declared, in one {reason}") from None


def _checked(hint: Any, value: Any, depth: int) -> Any:
    """The value as an instance of the declared type."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _one_of(inside, value, depth)
    if origin is tuple and isinstance(value, list):
        return tuple(_checked(inside[0], each, depth) for each in value)
    if origin is dict and isinstance(value, dict):
        return {key: _checked(inside[1], each, depth) for key, each in value.items()}
    if hint in (object, Any):
        return _any_value(value, depth)
    if hint is BaseException:
        return _error(value, depth - 1)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            pass
    elif hint is float and type(value) in (int, float):
        return float(value)
    elif type(value) is hint:
        return value
    raise _MalformedRecordError(f"{getattr(hint, '__name__', hint)}, got {str(value)[:80]!r}")


def _one_of(hints: tuple[Any, ...], value: Any, depth: int) -> Any:
    for hint in hints:
        if hint is not types.NoneType or value is None:
            try:
                return value if hint is types.NoneType else _checked(hint, value, depth)
            except _MalformedRecordError:
                continue
    names = " or ".join(getattr(hint, "__name__", str(hint)) for hint in hints)
    raise _MalformedRecordError(f"{names}, got {str(value)[:80]!r}")


def _any_value(value: Any, depth: int) -> Any:
    """A value of a field that may hold anything: what JSON holds, lists as tuples, and registered classes."""
    if isinstance(value, list):
        return tuple(_any_value(each, depth) for each in value)
    if isinstance(value, dict):
        if value.keys() == {"value", "fields"} and isinstance(value["value"], str):
            kind = _VALUE_CLASSES.get(value["value"])
            if kind is not None:
                return kind(**_checked_fields(kind, value["fields"], depth))
        return {key: _any_value(each, depth) for key, each in value.items()}
    return value
