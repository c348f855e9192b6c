"""Reading a case: all files, all layers, every finding."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pycobre._util.suggest import nearest
from pycobre.errors import CaseError
from pycobre.hydro.checks import run_checks, said
from pycobre.hydro.files.old_form import is_old_form, old_form_finding
from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.findings import Finding, Layer, Severity

__all__ = ["load_case", "read_case_files", "read_directory", "validate", "validate_files"]

UNSUPPORTED_FILES = {
    "post_study_stages.json": "post-study stages",
    "system/tailrace_curves.parquet": "tailrace curve families",
    "constraints/exchange_factors.json": "exchange factors",
}
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
        raise CaseError(said(where, findings), tuple(findings))
    return Case(**sections, name=name)


def read_directory(root: Path) -> tuple[dict[str, bytes], list[Finding]]:
    """The contents of the files that could belong to a case, by relative path, and what cannot be read."""
    if not root.is_dir():
        rule = "expected a case directory"
        return {}, [Finding(kind="missing_case", layer=Layer.FILES, file=str(root), rule=rule)]
    files: dict[str, bytes] = {}
    findings: list[Finding] = []
    try:
        findings += _strange_folders(root)
        folders = [root, *(root / folder for folder in _FOLDERS)]
        paths = sorted(p for f in folders for pattern in ("*.json", "*.parquet") for p in f.glob(pattern))
    except OSError as error:
        return {}, [_unreadable(str(root), error)]
    for path in paths:
        file = path.relative_to(root).as_posix()
        try:
            files[file] = path.read_bytes()
        except OSError as error:
            findings.append(_unreadable(file, error))
    return files, findings


def _unreadable(file: str, error: OSError) -> Finding:
    return Finding(
        kind="unreadable_file",
        layer=Layer.FILES,
        file=file,
        rule="expected a readable file",
        value=error.strerror or str(error),
    )


def _strange_folders(root: Path) -> list[Finding]:
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
    return _read(files, findings) if root.is_dir() else ({}, findings)


def _read(
    files: Mapping[str, bytes], found: list[Finding] | None = None
) -> tuple[dict[str, Any], list[Finding]]:
    from pycobre.hydro.files.json_files import JSON_FILES, read_json
    from pycobre.hydro.files.parquet_files import PARQUET_SECTIONS, read_parquet

    if is_old_form(files):
        return {}, [old_form_finding(files)]
    findings = found or []
    unreadable = {f.file for f in findings}
    sections: dict[str, Any] = {}
    for file, spec in JSON_FILES.items():
        if file in files:
            parts, problems = read_json(files[file], file)
            findings += problems
            sections |= dict.fromkeys(spec.sections.values()) if parts is None else parts
        elif file in unreadable or spec.required:
            sections |= dict.fromkeys(spec.sections.values())
            if file not in unreadable:
                findings.append(
                    Finding(kind="missing_file", layer=Layer.FILES, file=file, rule="the file is required")
                )
    for section in PARQUET_SECTIONS:
        if SECTIONS[section] in files:
            sections[section], problems = read_parquet(files[SECTIONS[section]], section)
            findings += problems
        elif SECTIONS[section] in unreadable:
            sections[section] = None
    findings += [_stranger(file, files) for file in sorted(set(files) - set(SECTIONS.values()))]
    findings += run_checks(sections)
    return sections, sorted(findings, key=lambda f: f.sort_key)


def _stranger(file: str, files: Mapping[str, bytes]) -> Finding:
    """A file that looks like a part of the case and is not one that is read.

    One that resembles a file which is not there is that file misspelt; others are the author's own.
    """
    if file in UNSUPPORTED_FILES:
        rule = f"{UNSUPPORTED_FILES[file]} are not supported yet"
        return Finding(kind="unsupported", layer=Layer.SUPPORT, file=file, rule=rule)
    folder, _, name = file.rpartition("/")
    siblings = {known.rpartition("/")[2]: known for known in SECTIONS.values() if known not in files}
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
