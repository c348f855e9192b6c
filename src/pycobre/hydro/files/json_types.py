"""From the types of the model's records to readers and writers of JSON.

Only the compiled core of the validation library is loaded, and told what to check: its own way from classes to
such descriptions understands all of Python's types, and took longer than everything else that happens between
the call and the first iteration. The model needs a dozen lines of it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic_core import CoreConfig, SchemaSerializer, SchemaValidator

from pycobre.hydro.model.record import Tagged, file_key

__all__ = ["described", "reader", "writer"]

Description = dict[str, Any]  # of a type, in the library's words (`pydantic_core.core_schema`)

_PLAIN = {bool: "bool", int: "int", float: "float", str: "str", date: "date"}
_STRICT = CoreConfig(strict=True, allow_inf_nan=False, extra_fields_behavior="forbid")


@cache
def reader(kind: type) -> SchemaValidator:
    """What makes a record from JSON: unknown keys, wrong types and numbers that are not finite are errors."""
    return SchemaValidator(described(kind))


@cache
def writer(kind: type) -> SchemaSerializer:
    """What makes JSON from a record."""
    return SchemaSerializer(described(kind))


@cache
def described(kind: Any) -> Description:
    """A type in the library's words."""
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if is_dataclass(kind):
        return _record(kind)
    arguments = get_args(kind)
    origin = get_origin(kind)
    if origin is Literal:
        return {"type": "literal", "expected": list(arguments)}
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return {"type": "tuple", "items_schema": [described(arguments[0])], "variadic_item_index": 0}
        return {"type": "tuple", "items_schema": [described(each) for each in arguments]}
    if origin is dict:
        key, value = arguments
        return {"type": "dict", "keys_schema": described(key), "values_schema": described(value)}
    if origin is Annotated:
        union, tagged = arguments
        return _told_apart(union, tagged)
    if origin in (Union, UnionType):
        return _one_of([each for each in arguments if each is not NoneType], NoneType in arguments)
    raise TypeError(f"{kind}: expected a type that records are made of, got another. Describe it here.")


def _record(kind: Any) -> Description:
    hints = _hints(kind)
    parts = []
    for each in fields(kind):
        value = described(hints[each.name])
        if each.default is not MISSING:
            value = {"type": "default", "schema": value, "default": each.default}
        elif each.default_factory is not MISSING:
            value = {"type": "default", "schema": value, "default_factory": each.default_factory}
        key = file_key(each.name)
        parts.append(
            {
                "type": "dataclass-field",
                "name": each.name,
                "schema": value,
                "validation_alias": key,
                "serialization_alias": key,
            }
        )
    return {
        "type": "dataclass",
        "cls": kind,
        "config": _STRICT,
        "fields": [each.name for each in fields(kind)],
        "schema": {"type": "dataclass-args", "dataclass_name": kind.__name__, "fields": parts},
    }


def _one_of(kinds: list[Any], optional: bool) -> Description:
    if len(kinds) == 1:
        inner = described(kinds[0])
    else:
        inner = {"type": "union", "choices": [described(each) for each in kinds]}
    return {"type": "nullable", "schema": inner} if optional else inner


def _told_apart(union: Any, tagged: Tagged) -> Description:
    """Alternatives by the value of one key: what is wrong is said of the one that is meant."""
    choices = {
        word: described(each) for each in get_args(union) for word in get_args(_hints(each)[tagged.key])
    }
    return {
        "type": "tagged-union",
        "choices": choices,
        "discriminator": tagged.key,
        "strict": False,
        "from_attributes": True,
    }


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
