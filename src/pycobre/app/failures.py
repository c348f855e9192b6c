"""From an exception to an exit code and a line that says what to do next.

0 done   1 the case or an option is wrong   2 files   3 solver   4 processes or backend   130 interrupted
141 standard output was closed
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pycobre._util.error_record import encode_error
from pycobre.errors import (
    BackendError,
    CaseError,
    CobreError,
    CommError,
    InitializationFailed,
    MissingConfiguration,
    OptionError,
    OutputError,
    PolicyError,
    ProblemError,
    SolverError,
    WorkerError,
)

if TYPE_CHECKING:
    from pycobre.hydro.model.findings import Finding

__all__ = [
    "INTERRUPTED",
    "OUTPUT_CLOSED",
    "describe",
    "error_document",
    "exit_code",
    "files_absent",
    "findings_hint",
    "hint",
    "is_lost_rank",
]

INTERRUPTED = 130
OUTPUT_CLOSED = 141  # what a shell shows for a program that a closed pipe ended
_PAGE = "docs/guides/why-did-my-run-stop.md"
_NO_FILES = "check that the path exists and may be read or written; `pycobre init` writes an example case"


def exit_code(error: BaseException) -> int:
    """The exit code of a command that ended with `error`; a worker's own error decides for it, unless it is a bug."""
    if isinstance(error, WorkerError) and isinstance(error.inner, CobreError | OSError | KeyboardInterrupt):
        return exit_code(error.inner)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, CommError | BackendError | WorkerError):
        return 4
    if isinstance(error, SolverError):
        return 3
    if isinstance(error, OutputError | PolicyError | OSError) or _files_absent(error):
        return 2
    return 1


def describe(error: BaseException) -> str:
    """What went wrong, and on the last line what to do about it."""
    plain = isinstance(error, OSError) and error.filename is not None and error.strerror is not None
    said = f"{error.filename}: {error.strerror}." if plain else str(error)  # type: ignore[attr-defined]
    return f"error: {said}\nhint: {hint(error)}"


def is_lost_rank(error: BaseException) -> bool:
    """Whether a worker was ended from outside, by a signal, with nothing wrong in the run itself."""
    return isinstance(error, WorkerError) and error.inner is None and (error.exit_code or 0) < 0


def error_document(error: BaseException) -> dict[str, Any]:
    """The record of an error for programs: what `status.json`, `--format json` and `--format jsonl` hold."""
    inner = error.inner if isinstance(error, WorkerError) and error.inner is not None else error
    rank = getattr(error, "rank", None)
    return {
        "kind": type(inner).__name__,
        "message": str(error),
        "fields": json.loads(encode_error(inner))["fields"],
        "rank": rank if isinstance(rank, int) else None,
        "exit_code": exit_code(error),
        "remedy": hint(error),
    }


def findings_hint(findings: Iterable[Finding]) -> str:
    """What to do about the errors among a case's findings."""
    return _NO_FILES if files_absent(findings) else "errors of later layers may show once these are fixed"


def files_absent(findings: Iterable[Finding]) -> bool:
    """Whether findings say that there are no files to judge, rather than that the case is wrong."""
    return any(finding.kind in {"missing_case", "unreadable_file"} for finding in findings)


def _files_absent(error: BaseException) -> bool:
    return isinstance(error, CaseError) and files_absent(error.findings)


def hint(error: BaseException) -> str:
    """What to do about it."""
    if isinstance(error, WorkerError) and isinstance(error.inner, CobreError | OSError):
        return hint(error.inner)
    if isinstance(error, SolverError) and error.bundle is not None:
        return f"the failing LP is in {error.bundle}: re-solve it in isolation with `pycobre replay {error.bundle}`"
    if isinstance(error, InitializationFailed | MissingConfiguration):
        return f"causes and remedies by message: {_PAGE}; `pycobre doctor` shows which backends work here"
    if isinstance(error, BackendError):
        return "`pycobre doctor` shows which backends work on this machine, and what the others need"
    if is_lost_rank(error):
        return f"--resume goes on from the newest checkpoint; what kills processes from outside: {_PAGE}"
    if isinstance(error, CommError | WorkerError):
        return f"the rank named above failed first; its own output says why ({_PAGE})"
    if isinstance(error, OSError) or _files_absent(error):
        return _NO_FILES
    if isinstance(error.__cause__, ImportError):
        return "install what is named above and repeat the command; `pycobre doctor` shows what is installed"
    if isinstance(error, CaseError):
        return "correct the files named above and check again with `pycobre validate CASE`"
    if isinstance(error, OptionError):
        return "`pycobre COMMAND --help` lists the options, docs/reference/case-format.md the settings"
    if isinstance(error, PolicyError | OutputError):
        return (
            "what was there is untouched; name another file or directory (`pycobre run CASE` makes results)"
        )
    if isinstance(error, ProblemError):
        return "docs/guides/building-problems.md says what a problem needs"
    return f"causes and remedies by message: {_PAGE}"
