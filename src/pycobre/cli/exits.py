"""From an exception to an exit code and a line that says what to do next.

0 done   1 the case or an option is wrong   2 files   3 solver   4 processes or backend   130 interrupted
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pycobre.errors import (
    BackendError,
    CaseError,
    CommError,
    OptionError,
    OutputError,
    PolicyError,
    ProblemError,
    SolverError,
    WorkerError,
)

if TYPE_CHECKING:
    from pycobre.model.findings import Finding

_PAGE = "docs/guides/why-did-my-run-stop.md"


def exit_code(error: BaseException) -> int:
    """The exit code of a command that ended with `error`; a worker's own exception decides for it."""
    if isinstance(error, WorkerError) and error.inner is not None:
        return exit_code(error.inner)
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, CommError | BackendError | WorkerError):
        return 4
    if isinstance(error, SolverError):
        return 3
    if isinstance(error, OutputError | PolicyError | OSError) or _files_absent(error):
        return 2
    return 1


def describe(error: BaseException) -> str:
    """What went wrong, and on the last line what to do about it."""
    return f"error: {error}\nhint: {_hint(error)}"


def files_absent(findings: Iterable[Finding]) -> bool:
    """Whether findings say that there are no files to judge, rather than that the case is wrong."""
    return any(finding.kind in {"missing_case", "unreadable_file"} for finding in findings)


def _files_absent(error: BaseException) -> bool:
    return isinstance(error, CaseError) and files_absent(error.findings)


def _hint(error: BaseException) -> str:
    if isinstance(error, WorkerError) and isinstance(error.inner, SolverError | CaseError | OptionError):
        return _hint(error.inner)
    if isinstance(error, SolverError) and error.bundle is not None:
        return f"the failing LP is in {error.bundle}: solve it alone with `pycobre replay {error.bundle}`"
    if isinstance(error, BackendError):
        return "`pycobre doctor` shows which backends work on this machine, and what the others need"
    if isinstance(error, CommError | WorkerError):
        return f"the rank named above failed first; its own output says why ({_PAGE})"
    if isinstance(error, OSError) or _files_absent(error):
        return "check that the path exists and may be read or written; `pycobre init` writes an example case"
    if isinstance(error, CaseError):
        return "mend the files named above and look again with `pycobre validate CASE`"
    if isinstance(error, OptionError):
        return "`pycobre COMMAND --help` lists the options, docs/reference/case-format.md the settings"
    if isinstance(error, PolicyError | OutputError):
        return "nothing was changed; name another file or directory, or make it anew with `pycobre run`"
    if isinstance(error, ProblemError):
        return "docs/guides/building-problems.md says what a problem needs"
    return f"causes and remedies by message: {_PAGE}"
