"""Whether the parts of a case make sense together: references, coverage, physical sense, support.

registry                        the list of checks and how they run
references · coverage · scenarios · generic · history · seasons · graph  nothing missing
physical · limits · magnitudes · phases · planes · plausible  sensible numbers
enumeration · cycles            how many paths there are, and horizons that repeat
support · no_effect             what is not modelled, and what changes nothing

A check is a generator of findings over the sections it names as parameters; it runs when all of them could be
read, so that a broken file hides only what depends on it.
"""

from __future__ import annotations

from dataclasses import fields

from pycobre.errors import CaseError
from pycobre.hydro.checks import (  # noqa: F401  (they register)
    coverage,
    cycles,
    enumeration,
    generic,
    graph,
    history,
    limits,
    magnitudes,
    no_effect,
    phases,
    physical,
    planes,
    plausible,
    references,
    scenarios,
    seasons,
    support,
)
from pycobre.hydro.checks.registry import run_checks
from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.findings import Finding, Severity

__all__ = ["check_case", "format_errors", "require_sound", "run_checks"]


def check_case(case: Case) -> list[Finding]:
    """Every finding about a case in memory, in a fixed order."""
    sections = {f.name: getattr(case, f.name) for f in fields(case) if f.name in SECTIONS}
    return sorted(run_checks(sections), key=lambda finding: finding.sort_key)


def require_sound(case: Case) -> None:
    """Raise `CaseError` with every finding if any of them is an error; a checked case is not looked at again."""
    if case.checked:
        return
    findings = check_case(case)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise CaseError(format_errors(case.name, findings), tuple(findings))
    case.mark_checked()


def format_errors(name: str, findings: list[Finding]) -> str:
    """The errors as one text; of many, the first twenty."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    shown = "\n".join(f"  {finding}" for finding in errors[:20])
    more = f"\n  … and {len(errors) - 20} more" if len(errors) > 20 else ""
    return f"case {name}: {len(errors)} error{'s' if len(errors) > 1 else ''}:\n{shown}{more}"
