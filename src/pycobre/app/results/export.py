"""A run's tables as CSV files or as one workbook; every header says its unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre._util.files import write_atomically
from pycobre.app.results.files import make_directory
from pycobre.app.results.frame import Shape, frame_names, frame_table, labelled_pieces
from pycobre.app.results.workbook import LARGEST_SHEET, Sheet, write_workbook
from pycobre.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa

    from pycobre.app.results.directory import Results

__all__ = ["CSV", "FORMS", "XLSX", "export_tables"]

CSV, XLSX = "csv", "xlsx"
FORMS = (CSV, XLSX)
BLOCK_BYTES = 1 << 20


def export_tables(
    results: Results, form: str, target: Path, names: Sequence[str] = (), shape: Shape | None = None
) -> list[tuple[Path, str, int]]:
    """Write tables (all simulated ones, the balance and the convergence) as `form`; what was written, with rows.

    CSV files go into the directory `target`; a workbook is the file `target`, one sheet per table.
    """
    shape = shape or Shape()
    chosen = [(name, shape) for name in names] or [(name, shape.fitting(name)) for name in _usual(results)]
    if form == XLSX:
        return _workbook(results, target, chosen)
    found = []
    make_directory(target)
    for name, own in chosen:
        path = target / f"{name}.csv"
        found.append((path, name, _csv(path, _pieces(results, name, own))))
    return found


def header(field: pa.Field) -> str:
    """A column's name with its unit, where it has one."""
    unit = (field.metadata or {}).get(b"unit", b"").decode()
    return f"{field.name} [{unit}]" if unit else str(field.name)


def _usual(results: Results) -> tuple[str, ...]:
    there = frame_names(results)
    found = tuple(name for name in there if name in (*results.simulated, "balance", "convergence"))
    if not found:
        raise OutputError(f"{results.directory}: expected a run with tables, got one without. Run it first.")
    return found


def _pieces(results: Results, name: str, shape: Shape) -> Iterator[pa.Table]:
    """The table whole, or piece by piece where every row stands for itself: a large one need not fit in memory."""
    if shape.plain and name != "balance":
        yield from labelled_pieces(results, name)
    else:
        yield frame_table(results, name, shape)


def _csv(path: Path, pieces: Iterator[pa.Table]) -> int:
    """One file, whole or not at all."""
    import pyarrow.csv as csv

    unfinished = path.with_name(f".{path.name}.unfinished")
    rows, writer = 0, None
    try:
        with unfinished.open("wb") as file:
            for piece in pieces:
                flat = _flat(piece)
                if writer is None:
                    writer = csv.CSVWriter(file, flat.schema)
                writer.write_table(flat)
                rows += flat.num_rows
            if writer is not None:
                writer.close()
        unfinished.replace(path)
    except OSError as cause:
        raise OutputError(f"{path}: cannot write: {cause.strerror}. Choose another place.") from cause
    finally:
        unfinished.unlink(missing_ok=True)
    return rows


def _flat(table: pa.Table) -> pa.Table:
    """Names as text, and headers with units."""
    import pyarrow as pa

    columns = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=[header(field) for field in table.schema])


def _workbook(
    results: Results, target: Path, chosen: Sequence[tuple[str, Shape]]
) -> list[tuple[Path, str, int]]:
    sheets, found = [], []
    meanings: list[list[Any]] = []
    for name, own in chosen:
        table = frame_table(results, name, own)
        if table.num_rows >= LARGEST_SHEET:
            raise OutputError(
                f"table {name}: expected at most {LARGEST_SHEET - 1:,} rows, which a sheet can hold, got "
                f"{table.num_rows:,}. Add `--per stage --quantiles 0.1,0.5,0.9`, or export to csv."
            )
        columns = [column.to_pylist() for column in table.columns]
        heads = [header(field) for field in table.schema]
        sheets.append(Sheet(name, heads, zip(*columns, strict=True)))
        found.append((target, name, table.num_rows))
        for field in table.schema:
            about = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
            meanings.append([name, field.name, about.get("unit", ""), about.get("meaning", "")])
    sheets.insert(0, Sheet("columns", ["table", "column", "unit", "meaning"], meanings))
    make_directory(target.parent)
    write_atomically(target, write_workbook(sheets))
    return found
