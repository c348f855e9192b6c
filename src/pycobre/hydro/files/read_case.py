"""Reading a case: all files, all layers, every finding."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pycobre._util.suggest import nearest
from pycobre.errors import CaseError
from pycobre.hydro.checks import format_errors, run_checks
from pycobre.hydro.files.old_form import is_old_form, old_form_finding
from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.findings import Finding, Layer, Severity

__all__ = ["load_case", "read_case_files", "read_directory", "validate", "validate_files"]

UNSUPPORTED_FILES = {
    "post_study_stages.json": "post-study stages",
    "constraints/exchange_factors.json": "exchange factors",
}
INSTEAD = {
    "constraints/exchange_factors.json": "Give limits by block_id in constraints/line_bounds.parquet, and remove it."
}
"""What serves for a file that is not read."""
#: What converters of decks leave beside a case: where it came from.
BESIDE_A_CASE = {"conversion_manifest.json"}
LARGEST_FILE = 4 << 30
"""Bytes of one file of a case; the files of the largest studies are a thousandth of it."""
_FOLDERS = ("system", "scenarios", "constraints")


def load_case(path: str | PathLike[str]) -> Case:
    """Read a case directory in Cobre's 0.18 form.

    Raises `CaseError` with every finding if anything in it is an error; warnings do not hinder.
    """
    sections, findings = _read_directory(Path(path))
    return _case(sections, findings, str(path), Path(path).resolve().name)


def validate(path: str | PathLike[str]) -> tuple[Finding, ...]:
    """Every finding about a case directory, errors and warnings, in a fixed order; empty if all is well."""
    return tuple(_read_directory(Path(path))[1])


def validate_files(files: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """The same for files in memory: relative path to content."""
    return tuple(_read(files)[1])


def read_case_files(files: Mapping[str, bytes], name: str) -> Case:
    """The case that these files (relative path to content) would be in a directory."""
    sections, findings = _read(files)
    return _case(sections, findings, name, name)


def _case(sections: dict[str, Any], findings: list[Finding], where: str, name: str) -> Case:
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise CaseError(format_errors(where, findings), tuple(findings))
    return Case(**sections, name=name).mark_checked()


def read_directory(root: Path) -> tuple[dict[str, bytes], list[Finding]]:
    """The contents of the files that could belong to a case, by relative path, and what cannot be read."""
    if not root.is_dir():
        rule = "expected a case directory"
        return {}, [Finding(kind="missing_case", layer=Layer.FILES, file=str(root), rule=rule)]
    files: dict[str, bytes] = {}
    findings: list[Finding] = []
    try:
        findings += _unknown_folders(root)
        folders = [root, *(root / folder for folder in _FOLDERS)]
        paths = sorted(p for f in folders for pattern in ("*.json", "*.parquet") for p in f.glob(pattern))
        findings += _other_formats(root, folders)
    except OSError as error:
        return {}, [_unreadable(str(root), error)]
    for path in paths:
        file = path.relative_to(root).as_posix()
        try:
            content = _content(path, file)
        except OSError as error:
            findings.append(_unreadable(file, error))
        else:
            if isinstance(content, Finding):
                findings.append(content)
            else:
                files[file] = content
    return files, findings


def _content(path: Path, file: str) -> bytes | Finding:
    """What a regular file holds; a pipe or device, which may have no end or wait for one, is not read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(about.st_mode):
            rule = "expected a regular file"
            value = "a pipe" if stat.S_ISFIFO(about.st_mode) else "a device or socket"
            return Finding(kind="not_a_file", layer=Layer.FILES, file=file, rule=rule, value=value)
        if about.st_size > LARGEST_FILE:
            rule = f"expected a file of at most {LARGEST_FILE:,} bytes"
            value = f"{about.st_size:,}"
            return Finding(kind="file_too_large", layer=Layer.FILES, file=file, rule=rule, value=value)
        return opened.read()


def _unreadable(file: str, error: OSError) -> Finding:
    return Finding(
        kind="unreadable_file",
        layer=Layer.FILES,
        file=file,
        rule="expected a readable file",
        value=error.strerror or str(error),
    )


def _other_formats(root: Path, folders: list[Path]) -> list[Finding]:
    """Files with the name of one of a case's and another ending, such as a table as .csv: nobody reads them."""
    known = {each.file.rpartition(".")[0]: each.file for each in SECTIONS.values()}
    found = []
    for path in sorted(p for folder in folders if folder.is_dir() for p in folder.iterdir()):
        file = path.relative_to(root).as_posix()
        meant = known.get(file.partition(".")[0])
        if (
            meant is not None
            and file != meant
            and not file.endswith((".json", ".parquet"))
            and path.is_file()
        ):
            there = (root / meant).exists()
            found.append(
                Finding(
                    kind="unknown_file",
                    layer=Layer.FILES,
                    file=file,
                    rule=f"the file is not read: expected {meant}",
                    severity=Severity.WARNING if there else Severity.ERROR,
                    suggestion="" if there else "Write it in that format.",
                )
            )
    return found


def _unknown_folders(root: Path) -> list[Finding]:
    """Folders that are meant to be one of a case's and are not; others (results, notes) are the author's own."""
    there = sorted(path.name for path in root.iterdir() if path.is_dir())
    return [
        Finding(
            kind="unknown_folder",
            layer=Layer.FILES,
            file=name,
            rule="the folder is not part of a case and is not read",
            suggestion=f"Did you mean {near!r}?",
        )
        for name in there
        if name not in _FOLDERS and (near := nearest(name, set(_FOLDERS) - set(there), cutoff=0.8))
    ]


def _read_directory(root: Path) -> tuple[dict[str, Any], list[Finding]]:
    files, findings = read_directory(root)
    if not root.is_dir():
        return {}, findings
    sections, findings = _read(files, findings)
    return _with_boundary(root, files, sections, findings)


def _with_boundary(
    root: Path, files: Mapping[str, bytes], sections: dict[str, Any], findings: list[Finding]
) -> tuple[dict[str, Any], list[Finding]]:
    """Take in the cost beyond the last stage, unless the case has it in a file of its own."""
    config, stages = sections.get("config"), sections.get("stages")
    wanted = None if config is None else config.policy.boundary
    if wanted is None or not stages or SECTIONS["boundary_cuts"].file in files:
        return sections, findings
    from pycobre.hydro.files.boundary import read_boundary

    end = max(stage.end_date for stage in stages)
    cuts, problems = read_boundary(root, wanted.path, end)
    if cuts is not None:
        sections["boundary_cuts"] = cuts
    return sections, sorted([*findings, *problems], key=lambda f: f.sort_key)


def _read(
    files: Mapping[str, bytes], found: list[Finding] | None = None
) -> tuple[dict[str, Any], list[Finding]]:
    from pycobre.hydro.files.json_files import JSON_FILES, parse_json, read_json
    from pycobre.hydro.files.parquet_files import PARQUET_SECTIONS, read_parquet

    findings = found or []
    unreadable = {f.file for f in findings}
    parsed: dict[str, Any] = {}
    for file in JSON_FILES:
        if file in files:
            data, problems = parse_json(files[file], file)
            if problems:
                unreadable.add(file)
                findings += problems
            else:
                parsed[file] = data
    if is_old_form(parsed):
        return {}, [old_form_finding(parsed)]
    sections: dict[str, Any] = {}
    for file, data in parsed.items():
        parts, problems = read_json(data, file)
        findings += problems
        sections |= dict.fromkeys(_names(file)) if parts is None else parts
    for section, each in SECTIONS.items():
        if each.file in unreadable:
            sections[section] = None
        elif section in PARQUET_SECTIONS and each.file in files:
            sections[section], problems = read_parquet(files[each.file], section)
            findings += problems
        elif each.required and each.file not in files:
            sections[section] = None
    known = {each.file for each in SECTIONS.values()}
    required = {each.file for each in SECTIONS.values() if each.required}
    findings += [
        Finding(kind="missing_file", layer=Layer.FILES, file=file, rule="the file is required")
        for file in sorted(required - set(files) - unreadable)
    ]
    findings += [_unknown_file(file, files) for file in sorted(set(files) - known - BESIDE_A_CASE)]
    findings += run_checks(sections)
    return sections, sorted(findings, key=lambda f: f.sort_key)


def _names(file: str) -> list[str]:
    return [name for name, each in SECTIONS.items() if each.file == file]


def _unknown_file(file: str, files: Mapping[str, bytes]) -> Finding:
    """A file that looks like a part of the case and is not one that is read.

    One that resembles a file which is not there is that file misspelt; others are the author's own.
    """
    if file in UNSUPPORTED_FILES:
        rule = f"{UNSUPPORTED_FILES[file]} are not supported yet"
        hint = INSTEAD.get(file, "")
        return Finding(kind="unsupported", layer=Layer.SUPPORT, file=file, rule=rule, suggestion=hint)
    folder, _, name = file.rpartition("/")
    known_files = {each.file for each in SECTIONS.values()}
    siblings = {known.rpartition("/")[2]: known for known in known_files if known not in files}
    siblings = {n: known for n, known in siblings.items() if known.rpartition("/")[0] == folder}
    near = nearest(name, siblings, cutoff=0.8)
    return Finding(
        kind="unknown_file",
        layer=Layer.FILES,
        file=file,
        rule="the file is not part of a case and is not read",
        severity=Severity.ERROR if near else Severity.WARNING,
        suggestion=f"Did you mean {siblings[near]!r}?" if near else "",
    )
