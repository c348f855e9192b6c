"""From the types of the model's records to readers and writers of JSON.

A reader takes what `json.loads` gives: a file is parsed once, and everybody looks at the result.

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

from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.record import Tagged, file_key
from pycobre.hydro.model.section import Section

__all__ = ["described", "file_description", "reader", "section_types", "sections_of", "writer"]

Description = dict[str, Any]  # of a type, in the library's words (`pydantic_core.core_schema`)

LARGEST_INTEGER = 2**63 - 1
_PLAIN = {bool: "bool", float: "float", str: "str"}
_STRICT = CoreConfig(strict=True, allow_inf_nan=False, extra_fields_behavior="forbid")


@cache
def reader(file: str) -> SchemaValidator:
    """What makes records from a file's JSON: unknown keys, wrong types and numbers that are not finite are errors."""
    return SchemaValidator(file_description(file))


@cache
def writer(file: str) -> SchemaSerializer:
    """What makes a file's JSON from records."""
    return SchemaSerializer(file_description(file))


@cache
def file_description(file: str) -> Description:
    """A JSON file of a case in the library's words: one record, or an object with a section under each key."""
    parts = sections_of(file)
    hints = _hints(Case)
    if parts[0].key == "":
        return described(_required(hints[parts[0].name]))
    keys: dict[str, Any] = {}
    for each in parts:
        value = described(hints[each.name])
        if each.nullable:
            value = {"type": "nullable", "schema": value}
        keys[each.key] = {"type": "typed-dict-field", "schema": value, "required": not each.optional}
    return {"type": "typed-dict", "fields": keys, "config": _STRICT, "strict": False}


def sections_of(file: str) -> tuple[Section, ...]:
    """The sections that a file holds."""
    return tuple(each for each in SECTIONS.values() if each.file == file)


def section_types(file: str) -> dict[str, Any]:
    """The type of every section of a file by key ("": of the whole file)."""
    return {each.key: _hints(Case)[each.name] for each in sections_of(file)}


def _required(kind: Any) -> Any:
    """A type without its None: a file that is there holds a record."""
    (found,) = [each for each in get_args(kind) if each is not NoneType] or [kind]
    return found


@cache
def described(kind: Any) -> Description:
    """A type in the library's words."""
    if kind is date:
        # Of text alone: the library would take a number for seconds since 1970.
        return {"type": "chain", "steps": [{"type": "str"}, {"type": "date", "strict": False}]}
    if kind is int:
        return {"type": "int", "ge": -LARGEST_INTEGER, "le": LARGEST_INTEGER}
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
            items = [described(arguments[0])]
            return {"type": "tuple", "items_schema": items, "variadic_item_index": 0, "strict": False}
        return {"type": "tuple", "items_schema": [described(each) for each in arguments], "strict": False}
    if origin is dict:
        key, value = arguments
        return {"type": "dict", "keys_schema": described(key), "values_schema": described(value)}
    if origin is Annotated:
        union, tagged = arguments
        return _tagged_union(union, tagged)
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
        "strict": False,  # made of an object; its fields are strict
        "fields": [each.name for each in fields(kind)],
        "schema": {"type": "dataclass-args", "dataclass_name": kind.__name__, "fields": parts},
    }


def _one_of(kinds: list[Any], optional: bool) -> Description:
    if len(kinds) == 1:
        inner = described(kinds[0])
    else:
        inner = {"type": "union", "choices": [described(each) for each in kinds]}
    return {"type": "nullable", "schema": inner} if optional else inner


def _tagged_union(union: Any, tagged: Tagged) -> Description:
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
