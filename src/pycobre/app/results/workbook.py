"""Workbooks of spreadsheet programs: sheets of plain values; text is never a formula."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pycobre.errors import OptionError, OutputError

__all__ = ["LARGEST_SHEET", "Sheet", "read_workbook", "write_workbook"]

LARGEST_SHEET = 1_048_576
"""Rows of a sheet, its header included."""
LONGEST_TEXT = 32_767
"""Characters of a cell."""
LARGEST_UNPACKED = 1 << 30
"""Bytes of a workbook that is read; one of a large study holds a tenth of it."""


@dataclass(frozen=True)
class Sheet:
    """One sheet: a header and rows of numbers, texts and dates; None is an empty cell."""

    name: str
    header: list[str]
    rows: Iterable[Iterable[Any]]


def write_workbook(sheets: Iterable[Sheet]) -> bytes:
    """The content of an .xlsx file."""
    openpyxl = _openpyxl()
    book = openpyxl.Workbook(write_only=True)
    for sheet in sheets:
        page = book.create_sheet(sheet.name)
        page.freeze_panes = "A2"
        page.append([_cell(page, text) for text in sheet.header])
        try:
            for row in sheet.rows:
                page.append([_cell(page, value) for value in row])
        except OutputError:
            for unfinished in book.worksheets:
                unfinished.close()  # the library keeps a writer open in each
            raise
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def read_workbook(path: Path) -> dict[str, list[list[Any]]]:
    """The rows of every sheet, by its name; of formulas the values that were saved with them."""
    openpyxl = _openpyxl()
    bad = openpyxl.utils.exceptions.InvalidFileException
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > LARGEST_UNPACKED:
            raise ValueError(f"it holds {unpacked:,} bytes, more than {LARGEST_UNPACKED:,}")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        found = {
            sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book.worksheets
        }
        book.close()
    except (OSError, ValueError, KeyError, SyntaxError, zipfile.BadZipFile, bad) as cause:
        raise OutputError(
            f"{path}: expected a workbook (.xlsx), got another: {cause}. Save it again."
        ) from cause
    return found


def _cell(page: Any, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, float) and float(f"{value:.16g}") != value:
        return _as(page, repr(value), "n")  # the library writes 16 digits; a few numbers need 17
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise OutputError(
            f"sheet {page.title}: expected texts of at most {LONGEST_TEXT:,} characters, which a cell can hold, got "
            f"{len(value):,}. Write csv instead."
        )
    if isinstance(value, str) and value.startswith("="):
        return _as(page, value, "s")  # else a spreadsheet program would compute it
    return value


def _as(page: Any, text: str, kind: str) -> Any:
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(page, value=text)
    cell.data_type = kind
    return cell


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as cause:
        raise OptionError(
            "xlsx: expected the package openpyxl, got none. Type `pip install 'pycobre[frames]'`, or use csv."
        ) from cause
    return openpyxl
