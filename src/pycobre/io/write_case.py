"""Writing a case: the files that read back to the same case, byte for byte the same for equal cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from pycobre.errors import OptionError
from pycobre.model.case import SECTIONS, Case
from pycobre.model.table import Table

__all__ = ["case_files", "with_overrides", "write_case"]


def case_files(case: Case) -> dict[str, bytes]:
    """Relative path to content of every file that the case needs; empty optional sections have none."""
    from pycobre.io.json_files import JSON_FILES, dump_json
    from pycobre.io.parquet_files import PARQUET_SECTIONS, dump_parquet

    files: dict[str, bytes] = {}
    for file, spec in JSON_FILES.items():
        sections = {name: getattr(case, name) for name in spec.sections.values()}
        if spec.required or any(value not in ((), None) for value in sections.values()):
            files[file] = dump_json(file, sections)
    for section in PARQUET_SECTIONS:
        table: Table = getattr(case, section)
        if len(table):
            files[SECTIONS[section]] = dump_parquet(table)
    return files


def write_case(case: Case, path: str | PathLike[str]) -> None:
    """Write a case directory; files of a case that are already there are replaced, others left alone."""
    root = Path(path)
    for file, content in case_files(case).items():
        target = root / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def with_overrides(case: Case, overrides: Mapping[str, Any]) -> Case:
    """The case with settings of its configuration replaced by dotted path, e.g. `{"training.tree_seed": 7}`.

    Raises `OptionError` for a path or a value that the configuration does not allow.
    """
    if not overrides:
        return case
    import json

    from pycobre.io.json_files import dump_json, read_json

    data = json.loads(dump_json("config.json", {"config": case.config}))
    for path, value in overrides.items():
        *parents, last = path.split(".")
        holder = data
        for key in parents:
            holder = holder.setdefault(key, {})
            if not isinstance(holder, dict):
                raise OptionError(f"override {path!r}: {key!r} is not a group of settings.")
        holder[last] = value
    found, findings = read_json(json.dumps(data).encode(), "config.json")
    if found is None:
        said = "; ".join(str(finding) for finding in findings)
        raise OptionError(f"config overrides {dict(overrides)}: {said}")
    return replace(case, config=found["config"])
