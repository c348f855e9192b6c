"""The files of a case while it is rewritten: JSON as objects, Parquet as tables, and notes for the author."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from pycobre.errors import CaseError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OldCase"]

#: A day before any study: entities without a date have always been there.
LONG_AGO = date(2000, 1, 1)


class OldCase:
    """Files by relative path, loaded; change them in place."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.json: dict[str, Any] = {}
        self.tables: dict[str, pa.Table] = {}
        self.notes: list[str] = []
        for file, content in files.items():
            if file.endswith(".json"):
                self.json[file] = _object(file, content)
            else:
                self.tables[file] = _table(file, content)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    @property
    def stages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json["stages.json"]["stages"]
        return sorted(found, key=lambda stage: int(stage["id"]))

    def entities(self, name: str) -> list[dict[str, Any]]:
        """The list in `system/<name>.json`; empty without the file."""
        key = "contracts" if name == "energy_contracts" else name
        found: list[dict[str, Any]] = self.json.get(f"system/{name}.json", {}).get(key, [])
        return found

    def rows(self, file: str) -> list[dict[str, Any]]:
        """A table's rows; none without the file."""
        found: list[dict[str, Any]] = self.tables[file].to_pylist() if file in self.tables else []
        return found

    def put_rows(self, file: str, rows: list[dict[str, Any]], types: dict[str, str]) -> None:
        """Replace a table; `types` are its columns: int32, float64 or date32."""
        import pyarrow as pa

        kinds = {"int32": pa.int32(), "float64": pa.float64(), "date32": pa.date32()}
        columns = {
            name: pa.array([row.get(name) for row in rows], type=kinds[kind]) for name, kind in types.items()
        }
        self.tables[file] = pa.table(columns)

    def written(self) -> dict[str, bytes]:
        """Content by path: indented JSON, Parquet with zstd."""
        import pyarrow as pa
        import pyarrow.parquet as parquet

        files: dict[str, bytes] = {}
        for file, data in sorted(self.json.items()):
            files[file] = json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n"
        for file, table in sorted(self.tables.items()):
            sink = pa.BufferOutputStream()
            parquet.write_table(table.replace_schema_metadata(None), sink, compression="zstd")
            files[file] = bytes(sink.getvalue())
        return files


def _object(file: str, content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise CaseError(f"{file}: expected well-formed JSON, got {problem}.") from problem
    if not isinstance(data, dict):
        raise CaseError(f"{file}: expected a JSON object, got {type(data).__name__}.")
    for key in ("$schema", "version"):
        data.pop(key, None)
    return data


def _table(file: str, content: bytes) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        return parquet.ParquetFile(pa.BufferReader(content)).read()
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise CaseError(f"{file}: expected a readable Parquet file, got {problem}.") from problem
