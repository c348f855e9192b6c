"""The JSON files of a case: strict reading into the model's records, every problem collected.

The validation library looks at whole files, so that one reading reports all wrong keys, types and values;
what it says is turned into findings with the path as the file's author would write it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic_core import ValidationError

from pycobre._util.suggest import nearest
from pycobre.hydro.files.json_types import reader, sections_of, writer
from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.config import Config
from pycobre.hydro.model.findings import Finding, Layer
from pycobre.hydro.model.record import Tagged, file_key

__all__ = ["JSON_FILES", "config_data", "dump_json", "parse_json", "read_json"]

JSON_FILES: tuple[str, ...] = tuple(dict.fromkeys(s.file for s in SECTIONS.values() if s.table is None))
"""The JSON files of a case."""


def parse_json(content: bytes, file: str) -> tuple[Any, list[Finding]]:
    """What a JSON file holds, as Python's own objects, or None and why not; a key twice in an object is an error."""
    try:
        return json.loads(content, object_pairs_hook=_unique, parse_constant=_no_constant), []
    except (ValueError, RecursionError) as error:
        return None, [
            Finding(
                kind="malformed_json",
                layer=Layer.PARSE,
                file=file,
                rule="expected well-formed JSON",
                value=str(error) or type(error).__name__,
                suggestion="Correct the syntax at that place.",
            )
        ]


def read_json(data: Any, file: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Make the sections of one JSON file from what `parse_json` gave, or None and why not."""
    if isinstance(data, dict) and "$schema" in data:
        data = {key: value for key, value in data.items() if key != "$schema"}
    try:
        value = reader(file).validate_python(data)
    except ValidationError as error:
        return None, [_finding(file, data, e) for e in error.errors(include_url=False)]
    parts = sections_of(file)
    if parts[0].key == "":
        return {parts[0].name: value}, []
    found: dict[str, Any] = {}
    for each in parts:
        given = value.get(each.key)
        if given is None and each.optional:
            (given,) = [f.default for f in dataclasses.fields(Case) if f.name == each.name]
        found[each.name] = given
    return found, []


def config_data(config: Config) -> dict[str, Any]:
    """The configuration as the values of its JSON file."""
    data: dict[str, Any] = writer("config.json").to_python(
        config, mode="json", by_alias=True, exclude_none=True
    )
    return data


def dump_json(file: str, sections: Mapping[str, Any], schema: str) -> bytes:
    """The content of one JSON file that reads back to the same sections and names its schema; nulls are left out."""
    parts = sections_of(file)
    value = (
        sections[parts[0].name] if parts[0].key == "" else {each.key: sections[each.name] for each in parts}
    )
    text: bytes = writer(file).to_json(value, indent=2, by_alias=True, exclude_none=True)
    first = f'{{\n  "$schema": {json.dumps(schema)}'.encode()
    return first + (b"," + text[1:] if text != b"{}" else b"\n}") + b"\n"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} twice in one object")
        found[key] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text}, which is not a JSON number")


_KINDS = {
    "missing": "missing_key",
    "missing_keyword_only_argument": "missing_key",
    "unexpected_keyword_argument": "unknown_key",
    "extra_forbidden": "unknown_key",
    "literal_error": "invalid_value",
    "union_tag_invalid": "invalid_value",
    "union_tag_not_found": "missing_key",
    "finite_number": "not_finite",
    "greater_than_equal": "out_of_range",
    "less_than_equal": "out_of_range",
    "int_parsing_size": "out_of_range",
}


#: The library speaks of Python's types, the author of a file wrote JSON.
_TEXTS = {
    "dict_type": "input should be an object",
    "dataclass_type": "input should be an object",
    "greater_than_equal": "input should be an integer of 64 bits",
    "less_than_equal": "input should be an integer of 64 bits",
    "tuple_type": "input should be a valid array",
}


def _finding(file: str, data: Any, error: Any) -> Finding:
    where, holder = _place(data, error["loc"])
    kind = _KINDS.get(error["type"])
    if kind is None:
        kind = "wrong_type" if error["type"].endswith("_type") else "invalid_value"
    key = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "union_tag_not_found":
        key = error["ctx"]["discriminator"].strip("'")
    value = "" if kind == "missing_key" else _short(error["input"])
    text = _TEXTS.get(error["type"], error["msg"])
    rule = {
        "missing_key": f"the key {key!r} is required",
        "unknown_key": f"there is no key {key!r} here",
    }.get(kind, text[:1].lower() + text[1:])
    suggestion = ""
    if kind == "unknown_key":
        value = ""
        near = nearest(key, _allowed_keys(file, holder))
        suggestion = f"Did you mean {near!r}?" if near else "Remove it."
    return Finding(
        kind=kind, layer=Layer.SCHEMA, file=file, where=where, rule=rule, value=value, suggestion=suggestion
    )


def _place(data: Any, loc: tuple[int | str, ...]) -> tuple[str, Any]:
    """The path as an author writes it, and the object that holds its last step.

    The library puts names of union members between real keys; they are recognised by not being in the data.
    """
    text = ""
    holder = data
    for i, step in enumerate(loc):
        last = i == len(loc) - 1
        if isinstance(step, int):
            text += f"[{step}]"
        elif isinstance(data, dict) and (step in data or last):
            text += f".{step}" if text else step
        else:
            continue
        holder = data
        if isinstance(data, dict):
            data = data.get(str(step))
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
    return text, holder


def _allowed_keys(file: str, holder: Any) -> list[str]:
    """The keys of the record that the object most resembles, less those it has."""
    present = set(holder) if isinstance(holder, dict) else set()
    best = max(_records(file), key=lambda keys: len(keys & present) / len(keys), default=frozenset())
    return sorted(best - present)


@cache
def _records(file: str) -> tuple[frozenset[str], ...]:
    """The keys of every record in a file, and those of its root object."""
    parts = sections_of(file)
    found = [frozenset(each.key for each in parts)] if parts[0].key else []
    hints = get_type_hints(Case, include_extras=True)
    todo, seen = [hints[each.name] for each in parts], set()
    while todo:
        item = todo.pop()
        if isinstance(item, type) and item not in seen:
            seen.add(item)
            if dataclasses.is_dataclass(item):
                inside = get_type_hints(item, include_extras=True)
                found.append(frozenset(map(file_key, inside)))
                todo.extend(inside.values())
        todo.extend(a for a in get_args(item) if not isinstance(a, str | int | Tagged))
    return tuple(sorted(found, key=sorted))


def _long(value: Any) -> bool:
    """Whether Python refuses to write a number out."""
    return isinstance(value, int) and value.bit_length() > 10_000


def _short(value: Any) -> str:
    text = json.dumps(value, default=str) if not _long(value) else f"a number of {value.bit_length()} bits"
    return text if len(text) <= 80 else text[:77] + "..."
