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
    return sections, columns


def case_from_data(sections: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> Case:
    """Undo `case_to_data`."""
    tables: dict[str, dict[str, NDArray[Any]]] = {}
    for name, column in columns.items():
        section, _, key = name.partition("/")
        tables.setdefault(section, {})[key] = column
    made: dict[str, Any] = {name: _CODEC.decode(value, name) for name, value in sections.items()}
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
