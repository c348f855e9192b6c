"""A case as plain values and arrays, for the way to another process: nothing is checked and no file format involved.

Who receives it gets what was checked where it was read, so reading it back needs neither the validation nor the
Parquet library, which take longer to import than everything else that a worker does before its first iteration.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import date
from typing import Any

from numpy.typing import NDArray

from pycobre.errors import CaseError
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.record import RECORDS
from pycobre.hydro.model.table import Table

__all__ = ["case_from_data", "case_to_data", "identity"]

# The key that no record has: under it stands what an object is.
_KIND = ""


def case_to_data(case: Case) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The sections as JSON values, and the columns of its tables by `section/column`; empty tables have none."""
    sections: dict[str, Any] = {}
    columns: dict[str, NDArray[Any]] = {}
    for section in fields(case):
        value = getattr(case, section.name)
        if not isinstance(value, Table):
            sections[section.name] = _plain(value)
        elif len(value):
            for column in fields(value):
                array = getattr(value, column.name)
                columns[f"{section.name}/{column.name}"] = (
                    array.view("int64") if array.dtype.kind == "M" else array
                )
    return sections, columns


def case_from_data(sections: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> Case:
    """Undo `case_to_data`."""
    tables: dict[str, dict[str, NDArray[Any]]] = {}
    for name, column in columns.items():
        section, _, key = name.partition("/")
        tables.setdefault(section, {})[key] = column
    made: dict[str, Any] = {name: _value(value) for name, value in sections.items()}
    for each in fields(Case):
        if each.name in tables:
            assert each.default_factory is not MISSING  # every table may be absent
            empty = each.default_factory()
            made[each.name] = type(empty)(**tables[each.name])
    return Case(**made)


def identity(case: Case) -> dict[str, Any]:
    """What a case's files say of it: one hash of the configuration, one of everything else, both in full.

    `inputs` are the hashes of the single files, by which one can say what has changed.
    """
    from pycobre.hydro.files.write_case import case_files

    files = case_files(case)
    digest = hashlib.sha256()
    for name in sorted(files):
        if name != "config.json":
            digest.update(f"{name}:{len(files[name])};".encode() + files[name])
    return {
        "input_hash": digest.hexdigest(),
        "config_hash": hashlib.sha256(files["config.json"]).hexdigest(),
        "config": json.loads(files["config.json"]),
        "inputs": {
            name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files) if name != "config.json"
        },
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, date):
        return {_KIND: "date", "day": value.isoformat()}
    if isinstance(value, Mapping):
        return {_KIND: "mapping", "items": [[key, _plain(item)] for key, item in value.items()]}
    kind = type(value).__name__
    if RECORDS.get(kind) is not type(value):
        raise CaseError(
            f"case: expected values of pycobre.hydro.model, got {value!r}. Build it from those classes."
        )
    return {_KIND: kind, **{each.name: _plain(getattr(value, each.name)) for each in fields(value)}}


def _value(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_value(item) for item in data)
    if not isinstance(data, dict):
        return data
    kind = data[_KIND]
    if kind == "date":
        return date.fromisoformat(data["day"])
    if kind == "mapping":
        return {key: _value(item) for key, item in data["items"]}
    return RECORDS[kind](**{name: _value(value) for name, value in data.items() if name != _KIND})
