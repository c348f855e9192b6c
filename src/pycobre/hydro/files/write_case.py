"""Writing a case: the files that read back to the same case, byte for byte the same for equal cases."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.table import Table

__all__ = ["case_files", "write_case"]


def case_files(case: Case) -> dict[str, bytes]:
    """Relative path to content of every file that the case needs; empty optional sections have none."""
    from pycobre.hydro.files.json_files import JSON_FILES, dump_json
    from pycobre.hydro.files.parquet_files import PARQUET_SECTIONS, dump_parquet

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
