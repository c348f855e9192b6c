"""A case as plain values and arrays, for the way to another process: nothing is checked and no file format involved.

Who receives it gets what was checked where it was read, so reading it back needs neither the validation nor the
Parquet library, which take longer to import than everything else that a worker does before its first iteration.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.codec import Codec
from pycobre.errors import CaseError
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.record import RECORDS
from pycobre.hydro.model.table import Table

__all__ = ["case_from_data", "case_to_data", "identity"]

_CODEC = Codec(
    RECORDS,
    tag="",  # the key that no record has
    root="case",
    error=CaseError,
    foreign="expected values of pycobre.hydro.model, got {}. Build it from those classes.",
)
_CHECKED = "checked"


def case_to_data(case: Case) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The sections as JSON values, and the columns of its tables by `section/column`; empty tables have none."""
    sections: dict[str, Any] = {}
    columns: dict[str, NDArray[Any]] = {}
    for section in fields(case):
        value = getattr(case, section.name)
        if not isinstance(value, Table):
            sections[section.name] = _CODEC.encode(value, section.name)
        elif len(value):
            for column in fields(value):
                array = getattr(value, column.name)
                columns[f"{section.name}/{column.name}"] = (
                    array.view("int64") if array.dtype.kind == "M" else array
                )
    sections[_CHECKED] = case.checked
    return sections, columns


def case_from_data(sections: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> Case:
    """Undo `case_to_data`."""
    tables: dict[str, dict[str, NDArray[Any]]] = {}
    for name, column in columns.items():
        section, _, key = name.partition("/")
        tables.setdefault(section, {})[key] = column
    made: dict[str, Any] = {
        name: _CODEC.decode(value, name) for name, value in sections.items() if name != _CHECKED
    }
    for each in fields(Case):
        if each.name in tables:
            assert each.default_factory is not MISSING  # every table may be absent
            empty = each.default_factory()
            made[each.name] = type(empty)(**tables[each.name])
    case = Case(**made)
    return case.mark_checked() if sections[_CHECKED] else case


def identity(case: Case) -> dict[str, Any]:
    """What a case says, whatever files and versions of libraries it was read from, and whatever it is called.

    One hash of the configuration, one of everything else, both in full. `inputs` are the hashes of what the single
    files hold, by which one can say what has changed.
    """
    from pycobre.hydro.files.json_files import config_data
    from pycobre.hydro.files.write_case import section_files

    sections, columns = case_to_data(case)
    hashes: dict[str, str] = {}
    for file, names in sorted(section_files().items()):
        digest, there = hashlib.sha256(), False
        for name in names:
            parts = {column: array for column, array in columns.items() if column.startswith(f"{name}/")}
            if parts or sections.get(name) not in (None, []):
                there = True
                digest.update(_canonical(name, sections.get(name), parts))
        if there:
            hashes[file] = digest.hexdigest()
    config = hashes.pop("config.json")
    whole = hashlib.sha256("".join(f"{file}:{found};" for file, found in hashes.items()).encode())
    return {
        "input_hash": whole.hexdigest(),
        "config_hash": config,
        "config": config_data(case.config),
        "inputs": hashes,
    }


def _canonical(name: str, value: Any, columns: Mapping[str, NDArray[Any]]) -> bytes:
    """One section as bytes: JSON with sorted keys, then every column, little-endian."""
    parts = [f"{name}={json.dumps(_numbers(value), sort_keys=True, separators=(',', ':'))};".encode()]
    for column in sorted(columns):
        array = columns[column]
        if array.dtype.kind == "f":
            array = array + 0.0  # one zero
            array[np.isnan(array)] = np.nan  # and one NaN, whatever bits a file had
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        parts += [f"{column}:{plain.dtype.str}:{plain.size};".encode(), plain.tobytes()]
    return b"".join(parts)


def _numbers(value: Any) -> Any:
    """The same values with one way to write a number: 1 and 1.0 are equal."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return int(value)
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return {key: _numbers(item) for key, item in value.items()} if isinstance(value, dict) else value
