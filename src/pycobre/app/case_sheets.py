"""A case as tables for spreadsheets, a folder of CSV files or a workbook, and back: the same case, checked as any.

Lists of records have a row per record, with nested keys joined by points; what is no list of records is a table
`….settings` of path and value. A list in a cell is JSON, and so is text that would else be read as a number.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre.app.results.files import make_directory
from pycobre.app.results.workbook import Sheet, read_workbook, write_workbook
from pycobre.errors import CaseError, OutputError
from pycobre.hydro.files import case_files, read_case_files
from pycobre.hydro.model.case import SECTIONS

if TYPE_CHECKING:
    from pycobre.hydro.model import Case

__all__ = ["case_to_sheets", "read_sheets", "sheets_to_case", "write_sheets"]

Grid = list[list[Any]]
LARGEST_CELL = 1 << 28
"""Characters of a cell of a CSV file: matrices of large systems are one."""
_SETTINGS = "settings"
_INDEX = "tables"


def case_to_sheets(case: Case) -> dict[str, Grid]:
    """Tables by name (`system/hydros`, `config.settings`, …), the header first."""
    found: dict[str, Grid] = {}
    for file, content in case_files(case).items():
        stem = file.rpartition(".")[0]
        if file.endswith(".parquet"):
            found[stem] = _parquet_grid(content)
            continue
        document = {key: value for key, value in json.loads(content).items() if key != "$schema"}
        for key in [key for key, value in document.items() if _records(value)]:
            found[stem if key == stem.rpartition("/")[2] else f"{stem}.{key}"] = _grid(document.pop(key))
        if document:
            rows = [[path, _cell(value)] for path, value in _flat(document).items()]
            found[f"{stem}.{_SETTINGS}"] = [["path", "value"], *rows]
    return found


def sheets_to_case(sheets: Mapping[str, Grid], name: str) -> Case:
    """The case that the tables make up; `CaseError` with every finding where it has errors."""
    documents: dict[str, dict[str, Any]] = {}
    files: dict[str, bytes] = {}
    known = {each.file.rpartition(".")[0]: each for each in SECTIONS.values()}
    for sheet, grid in sheets.items():
        folder, slash, last = sheet.rpartition("/")
        stem, _, part = last.partition(".")
        where = f"{folder}{slash}{stem}"
        if where not in known:
            there = ", ".join(sorted(known))
            raise CaseError(f"table {sheet}: expected one of a case's, got another. There are: {there}.")
        if known[where].table is not None:
            files[known[where].file] = _parquet(sheet, grid, known[where].table)
            continue
        document = documents.setdefault(known[where].file, {})
        if part == _SETTINGS:
            for row in grid[1:]:
                _put(document, str(row[0]), _value(row[1]), sheet)
        else:
            document[part or stem] = [_record(grid[0], row, sheet) for row in grid[1:]]
    files |= {file: json.dumps(document).encode() for file, document in documents.items()}
    return read_case_files(files, name)


def write_sheets(sheets: Mapping[str, Grid], form: str, target: Path) -> None:
    """A folder of CSV files, or one workbook with an index of its sheets."""
    if form == "xlsx":
        names = {name: f"{number} {name.rpartition('/')[2]}"[:31] for number, name in enumerate(sheets, 1)}
        index = Sheet(_INDEX, ["sheet", "table"], [[sheet, name] for name, sheet in names.items()])
        pages = [Sheet(names[name], grid[0], grid[1:]) for name, grid in sheets.items()]
        make_directory(target.parent)
        target.write_bytes(write_workbook([index, *pages]))
        return
    for name, grid in sheets.items():
        path = target / f"{name}.csv"
        make_directory(path.parent)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[_text(cell) for cell in row] for row in grid])


def read_sheets(form: str, source: Path) -> dict[str, Grid]:
    """What `write_sheets` wrote, edited or not; empty rows are left out."""
    if form == "xlsx":
        pages = read_workbook(source)
        index = {str(row[0]): str(row[1]) for row in pages.pop(_INDEX, [[]])[1:] if any(row)}
        found = {index.get(name, name): grid for name, grid in pages.items()}
    else:
        paths = sorted(source.rglob("*.csv"))
        if not paths:
            raise OutputError(f"{source}: expected a folder with CSV files, got none there. Check the path.")
        found = {path.relative_to(source).with_suffix("").as_posix(): _csv(path) for path in paths}
    kept = {
        name: [row for row in grid if any(cell not in (None, "") for cell in row)]
        for name, grid in found.items()
    }
    return {name: grid for name, grid in kept.items() if grid}


def _csv(path: Path) -> Grid:
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    try:
        return [
            list(row) for row in csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline=""), strict=True)
        ]
    except (UnicodeDecodeError, csv.Error) as cause:
        raise CaseError(
            f"{path}: expected a CSV file in UTF-8, got another: {cause}. Save it again."
        ) from cause


def _records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _grid(records: list[dict[str, Any]]) -> Grid:
    flat = [_flat(record) for record in records]
    names = list(dict.fromkeys(name for record in flat for name in record))
    return [names, *([_cell(record[name]) if name in record else None for name in names] for record in flat)]


def _flat(value: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Values by path; an empty object is a value."""
    found: dict[str, Any] = {}
    for key, inside in value.items():
        if isinstance(inside, dict) and inside:
            found |= _flat(inside, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = inside
    return found


def _cell(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and value and _value(value) == value and value.strip() == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def _value(cell: Any) -> Any:
    """What a cell says: a number, a truth value, a list, an object, or text."""
    if isinstance(cell, datetime | date):
        return (cell.date() if isinstance(cell, datetime) else cell).isoformat()
    if not isinstance(cell, str):
        return cell
    try:
        return json.loads(cell, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {"TRUE": True, "FALSE": False}.get(cell, cell)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else cell.isoformat() if isinstance(cell, date) else json.dumps(cell)


def _record(names: list[Any], row: list[Any], sheet: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, cell in zip(names, row, strict=False):
        if cell not in (None, "") and name not in (None, ""):
            _put(found, str(name), _value(cell), sheet)
    return found


def _put(document: dict[str, Any], path: str, value: Any, sheet: str) -> None:
    *above, last = path.split(".")
    for key in above:
        document = document.setdefault(key, {})
        if not isinstance(document, dict):
            raise CaseError(
                f"table {sheet}, {path}: expected {key} to be a group, got a value too. Remove one."
            )
    document[last] = value


def _parquet_grid(content: bytes) -> Grid:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    table = parquet.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    columns = [column.to_pylist() for column in table.columns]
    return [list(table.column_names), *(list(row) for row in zip(*columns, strict=True))]


def _parquet(sheet: str, grid: Grid, table: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    kinds = {field.name: field.metadata["dtype"] for field in fields(table)}
    columns: dict[str, Any] = {}
    for place, name in enumerate(grid[0]):
        cells = [row[place] if place < len(row) else None for row in grid[1:]]
        kind = kinds.get(str(name), "")
        types = {"int32": pa.int64(), "float64": pa.float64(), "datetime64[D]": pa.date32()}
        values = [
            None if cell in (None, "") else _typed(cell, kind, f"table {sheet}, row {number}, {name}")
            for number, cell in enumerate(cells, 2)
        ]
        columns[str(name)] = pa.array(values, types.get(kind, pa.string()))
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink, compression="zstd")
    return bytes(sink.getvalue())


def _typed(cell: Any, kind: str, where: str) -> Any:
    try:
        if kind == "int32":
            number = float(cell)
            if number != int(number):
                raise ValueError
            return int(number)
        if kind == "float64":
            return float(cell)
        if kind == "datetime64[D]":
            return date.fromisoformat(str(_value(cell))[:10])
    except (ValueError, OverflowError):
        words = {
            "int32": "a whole number",
            "float64": "a number",
            "datetime64[D]": "a date such as 2026-03-01",
        }
        raise CaseError(f"{where}: expected {words[kind]}, got {cell!r}. Correct the cell.") from None
    return str(cell)
