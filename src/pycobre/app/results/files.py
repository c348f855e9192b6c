"""Write and read the tables of a result directory: Parquet with zstd, whole files or none, stable bytes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.files import open_regular, write_atomically
from pycobre.app.results.layout import CONTROL, EVENTS, MANIFEST, PREVIOUS, RECORD, STATUS
from pycobre.app.results.schemas import Table
from pycobre.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "as_arrow",
    "make_directory",
    "read_json",
    "read_table",
    "write_json",
    "write_manifest",
    "write_table",
]

ZSTD_LEVEL = 3
_NOT_RESULTS = (MANIFEST, RECORD, STATUS, EVENTS, CONTROL)  # written after it, or while others read


def as_arrow(table: Table, columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """The columns as an Arrow table of exactly the schema's names, order and types."""
    import pyarrow as pa

    if set(columns) != set(table.names):
        missing = sorted(set(table.names) - set(columns))
        extra = sorted(set(columns) - set(table.names))
        raise OutputError(f"table {table.name}: missing columns {missing}, unexpected columns {extra}")
    arrays = [
        pa.array(np.ascontiguousarray(columns[column.name], dtype=column.dtype)) for column in table.columns
    ]
    fields = [
        pa.field(column.name, array.type, nullable=False)
        for column, array in zip(table.columns, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def write_table(directory: str | os.PathLike[str], table: Table, columns: Mapping[str, NDArray[Any]]) -> Path:
    """Write one table to its place under `directory`; return the path."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = Path(directory) / table.path
    sink = pa.BufferOutputStream()
    parquet.write_table(as_arrow(table, columns), sink, compression="zstd", compression_level=ZSTD_LEVEL)
    make_directory(path.parent)
    write_atomically(path, sink.getvalue().to_pybytes())
    return path


def read_table(directory: str | os.PathLike[str], table: Table) -> pa.Table:
    """Read one table back; raise `OutputError` when it is not there or not a table."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = Path(directory) / table.path
    try:
        with parquet.ParquetFile(path) as source:
            return source.read(use_threads=False)  # a pool's threads could outlive a short command
    except FileNotFoundError as cause:
        raise OutputError(
            f"{path}: there is no {table.name} table here. Check that the run wrote it and that the path is "
            "a result directory."
        ) from cause
    except (OSError, pa.ArrowInvalid) as cause:
        raise OutputError(f"{path}: cannot read the {table.name} table: {cause}") from cause


def write_json(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write a JSON document with sorted keys."""
    make_directory(Path(path).parent)
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
    write_atomically(path, text.encode() + b"\n")


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON document of a result directory."""
    try:
        with open_regular(path) as file:
            document = json.loads(file.read())
    except OSError as cause:
        raise OutputError(f"{path}: cannot read: {cause.strerror}. Is this a result directory?") from cause
    except (ValueError, RecursionError) as cause:
        raise OutputError(f"{path}: not valid JSON: {cause}") from cause
    if not isinstance(document, dict):
        raise OutputError(f"{path}: expected a JSON object, got {type(document).__name__}")
    return document


def write_manifest(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """List every file of the results with its size and SHA-256, last of all: its presence means complete."""
    root = Path(directory)
    files = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = path.relative_to(root).as_posix()
        if name in _NOT_RESULTS or name.startswith(f"{PREVIOUS}/") or path.name.startswith("."):
            continue
        with path.open("rb") as file:
            files[name] = {
                "bytes": path.stat().st_size,
                "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
            }
    manifest = {"format": 1, "files": files}
    write_json(root / MANIFEST, manifest)
    return manifest


def make_directory(directory: Path) -> None:
    """Make a directory and those above it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise OutputError(
            f"{directory}: cannot create the directory: {cause.strerror}. Choose another output directory."
        ) from cause
