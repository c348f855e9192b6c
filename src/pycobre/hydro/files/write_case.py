"""Writing a case: the files that read back to the same case, byte for byte the same for equal cases."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from pycobre._util.files import write_atomically
from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.table import Table

__all__ = ["case_files", "section_files", "write_case"]

UNFINISHED = ".unfinished"


def case_files(case: Case) -> dict[str, bytes]:
    """Relative path to content of every file that the case needs; empty optional sections have none."""
    from pycobre.hydro.files.json_files import dump_json
    from pycobre.hydro.files.json_schema import schema_reference
    from pycobre.hydro.files.parquet_files import dump_parquet

    files: dict[str, bytes] = {}
    for file, names in section_files().items():
        sections = {name: getattr(case, name) for name in names}
        (first, *_) = (SECTIONS[name] for name in names)
        if first.table is not None:
            table: Table = sections[first.name]
            if len(table):
                files[file] = dump_parquet(table)
        elif first.required or any(value not in ((), None) for value in sections.values()):
            files[file] = dump_json(file, sections, schema_reference(file))
    return files


def section_files() -> dict[str, list[str]]:
    """The files of a case with the sections of each: JSON files first."""
    found: dict[str, list[str]] = {}
    for each in sorted(SECTIONS.values(), key=lambda section: section.table is not None):
        found.setdefault(each.file, []).append(each.name)
    return found


def write_case(case: Case, path: str | PathLike[str]) -> None:
    """Write a case directory, and the JSON Schemas that its files refer to.

    A new directory appears with all of its files or not at all. In one that is there, every file is replaced in one
    step, files of sections that this case does not have are removed, and what is no part of a case is left alone.
    """
    from pycobre.hydro.files.json_schema import FOLDER, schema_files, write_schemas

    root, files = Path(path), case_files(case)
    if not root.exists():
        from tempfile import TemporaryDirectory  # workers, which load this module, write no case

        root.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=root.parent, prefix=f".{root.name}.", suffix=UNFINISHED) as scratch:
            made = Path(scratch) / root.name
            schemas = {f"{FOLDER}/{name}": content for name, content in schema_files().items()}
            for file, content in (files | schemas).items():
                (made / file).parent.mkdir(parents=True, exist_ok=True)
                (made / file).write_bytes(content)
            made.rename(root)
        return
    for file, content in files.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(root / file, content)
    for file in section_files():
        if file not in files:
            (root / file).unlink(missing_ok=True)
    write_schemas(root / FOLDER)
