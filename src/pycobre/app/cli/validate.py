"""`pycobre validate CASE`: every finding about a case, errors and warnings apart."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from pycobre.app.failures import files_absent, findings_hint
from pycobre.app.wording import counted
from pycobre.hydro.model.findings import Finding, Severity

INVALID = 1
NO_FILES = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", type=Path, help="case directory")
    parser.add_argument("--format", choices=("human", "json"), default="human", help="what to print")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 when one of them is an error, 2 when there is nothing to read."""
    from pycobre.hydro.files import validate

    findings = validate(arguments.case)
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if arguments.format == "json":
        print(
            json.dumps({"valid": not errors, "findings": [_plain(finding) for finding in findings]}, indent=2)
        )
    else:
        print(_shown(arguments.case, findings, len(errors)))
    if files_absent(errors):
        return NO_FILES
    return INVALID if errors else 0


def _plain(finding: Finding) -> dict[str, str]:
    document = asdict(finding)
    document["layer"] = finding.layer.name.lower()
    return document


def _shown(case: Path, findings: tuple[Finding, ...], errors: int) -> str:
    if not findings:
        return f"{case}: valid\nnext: pycobre run {case}"
    warnings = len(findings) - errors
    lines = [str(finding) for finding in sorted(findings, key=lambda f: f.severity is not Severity.ERROR)]
    lines.append(f"{case}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    if not errors:
        lines.append(f"next: pycobre run {case}")
    else:
        lines.append(f"hint: {findings_hint(findings)}")
    return "\n".join(lines)
