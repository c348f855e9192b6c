"""`cobre-bridge` in a process of its own: nothing it prints, and no way it ends, reaches this one.

It is called by its command line, whose `--json` report is its contract. Where the interpreter of this process does
not have it (it needs Python 3.12), `PYCOBRE_BRIDGE_PYTHON` names one that has.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.errors import CaseError, OptionError

__all__ = ["BRIDGE_PYTHON", "Note", "convert"]

BRIDGE_PYTHON = "PYCOBRE_BRIDGE_PYTHON"
OLDEST_PYTHON = (3, 12)
_PACKAGE = "cobre_bridge"
_INSTALL = 'pip install "pycobre[newave]"'
_SEVERITIES = ("info", "warning", "error")


@frozen()
class Note:
    """One remark of the converter about a deck."""

    severity: str  #: info, warning or error
    text: str


def convert(
    kind: str, directory: Path, deck: str, case: str, options: Sequence[str] = ()
) -> tuple[Note, ...]:
    """Convert `directory/deck` to `directory/case` and return the converter's remarks.

    Raises `OptionError` where there is no converter, `CaseError` with its reason where it refuses the deck.
    """
    python = _interpreter()
    command = [python, "-P", "-m", f"{_PACKAGE}.cli", "convert", kind, deck, case, "--json", *options]
    try:
        done = subprocess.run(
            command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as cause:
        raise OptionError(
            f"{BRIDGE_PYTHON}: expected a Python interpreter, got {python}: {cause.strerror}. "
            f"Name one in which `{_INSTALL}` was run."
        ) from cause
    said = done.stderr.decode(errors="replace").strip().splitlines()
    report = _report(done.stdout)
    if report is None:
        last = said[-1] if said else "no message"
        if f"No module named '{_PACKAGE}" in last or f"No module named {_PACKAGE}" in last:
            raise _missing(f"{python}, which does not have it")
        raise CaseError(
            f"{kind} deck: expected a report of cobre-bridge, got none (it ended with {done.returncode}: {last}). "
            f"`{python} -m {_PACKAGE}.cli check {kind} DECK` says what it makes of the deck."
        )
    notes = tuple(_note(each) for each in report["diagnostics"])
    errors = [note.text for note in notes if note.severity == "error"]
    if errors or done.returncode:
        reason = " ".join(errors) or f"it ended with {done.returncode}"
        raise CaseError(
            f"{kind} deck: expected one that cobre-bridge can convert, got: {reason.rstrip('.')}. "
            "Correct the deck's file and repeat the import."
        )
    return notes


def _interpreter() -> str:
    named = os.environ.get(BRIDGE_PYTHON)
    if named:
        return named
    if importlib.util.find_spec(_PACKAGE) is None:
        raise _missing(f"Python {'.'.join(map(str, sys.version_info[:2]))} without it")
    return sys.executable


def _missing(got: str) -> OptionError:
    """What to do where the package is not there, or cannot be."""
    here = f"Install it with `{_INSTALL}`"
    oldest = ".".join(map(str, OLDEST_PYTHON))
    remedy = (
        f"{here}, or name an interpreter that has it in {BRIDGE_PYTHON}."
        if sys.version_info >= OLDEST_PYTHON
        else f"It needs Python {oldest} or newer: `python{oldest} -m venv bridge && "
        f"bridge/bin/pip install cobre-bridge`, then {BRIDGE_PYTHON}=bridge/bin/python."
    )
    return OptionError(f"import: expected the package cobre-bridge, got {got}. {remedy}")


def _report(printed: bytes) -> dict[str, Any] | None:
    """The report, if what was printed is one."""
    try:
        report = json.loads(printed)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or not isinstance(report.get("diagnostics"), list):
        return None
    return report if all(isinstance(each, dict) for each in report["diagnostics"]) else None


def _note(given: dict[str, Any]) -> Note:
    """A remark as one line of text."""
    parts = [
        given.get("summary") or given.get("title"),
        *(given.get("notes") or ()),
        given.get("remediation"),
    ]
    text = " ".join(" ".join(str(part).split()) for part in parts if part)
    severity = given.get("severity")
    return Note(severity if severity in _SEVERITIES else "warning", text)
