"""Tables of a result directory: exact schema, stable bytes, clear errors."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from pycobre.app.results.files import read_json, read_table, write_json, write_manifest, write_table
from pycobre.app.results.schemas import CONVERGENCE, TABLES, Table
from pycobre.errors import OutputError


def filled(table: Table, rows: int = 3) -> dict[str, np.ndarray]:
    return {c.name: np.arange(rows).astype(c.dtype) for c in reversed(table.columns)}


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_a_table_comes_back_with_its_schema(table: Table, tmp_path: Path) -> None:
    columns = filled(table)
    path = write_table(tmp_path, table, columns)
    back = read_table(tmp_path, table)
    assert tuple(back.column_names) == table.names
    for name in table.names:
        assert np.array_equal(back[name].to_numpy(), columns[name])
        assert back[name].to_numpy().dtype == columns[name].dtype
    assert parquet.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"


def test_the_bytes_are_a_function_of_the_content(tmp_path: Path) -> None:
    first = write_table(tmp_path / "a", CONVERGENCE, filled(CONVERGENCE)).read_bytes()
    second = write_table(tmp_path / "b", CONVERGENCE, filled(CONVERGENCE)).read_bytes()
    assert first == second


def test_wrong_columns_are_named(tmp_path: Path) -> None:
    columns = filled(CONVERGENCE)
    columns["lowerbound"] = columns.pop("lower_bound")
    with pytest.raises(OutputError, match=r"missing columns \['lower_bound'\], unexpected columns \['lowerb"):
        write_table(tmp_path, CONVERGENCE, columns)


def test_a_missing_or_broken_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"convergence\.parquet: there is no convergence table here"):
        read_table(tmp_path, CONVERGENCE)
    path = write_table(tmp_path, CONVERGENCE, filled(CONVERGENCE))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(OutputError, match="cannot read the convergence table"):
        read_table(tmp_path, CONVERGENCE)


def test_the_manifest_lists_every_file_with_its_hash(tmp_path: Path) -> None:
    write_json(tmp_path / "metadata.json", {"b": 1, "a": "β"})
    path = write_table(tmp_path, CONVERGENCE, filled(CONVERGENCE))
    manifest = write_manifest(tmp_path)
    assert list(manifest["files"]) == ["metadata.json", "training/convergence.parquet"]
    entry = manifest["files"]["training/convergence.parquet"]
    assert entry == {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert read_json(tmp_path / "manifest.json") == manifest
    assert write_manifest(tmp_path) == manifest


def test_json_errors_say_what_and_where(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="Is this a result directory"):
        read_json(tmp_path / "metadata.json")
    (tmp_path / "metadata.json").write_text("{")
    with pytest.raises(OutputError, match="not valid JSON"):
        read_json(tmp_path / "metadata.json")
    (tmp_path / "metadata.json").write_text("[]")
    with pytest.raises(OutputError, match="expected a JSON object, got list"):
        read_json(tmp_path / "metadata.json")


def test_an_impossible_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot create the directory: Not a directory"):
        write_table(tmp_path / "file", CONVERGENCE, filled(CONVERGENCE))
    assert os.listdir(tmp_path) == ["file"]
