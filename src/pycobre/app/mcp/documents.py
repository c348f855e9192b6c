"""Errors as clients get them: kind, message, fields, remedy; and answers as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from pycobre.app.failures import error_document
from pycobre.app.results.event_log import finite
from pycobre.errors import CobreError, OptionError, OutputError, PolicyError

__all__ = ["Refused", "answer_document", "failure_document", "refusal"]

Document = dict[str, Any]


class Refused(Exception):
    """A call that is answered with an error; never leaves this package."""

    def __init__(self, document: Document) -> None:
        super().__init__(str(document.get("message", "")))
        self.document = document


def refusal(kind: str, message: str, remedy: str, **fields: Any) -> Refused:
    """An error of the server itself."""
    return Refused({"kind": kind, "message": message, "fields": fields, "remedy": remedy})


def failure_document(error: BaseException, root: Path | None = None) -> Document:
    """The record of an error that answering has raised; of one that nobody foresaw, nothing but its kind.

    Paths are told as clients name them, from the root on.
    """
    if isinstance(error, CobreError):
        found = error_document(error)
        document = {key: found[key] for key in ("kind", "message", "fields", "remedy", "rank")}
        if isinstance(error, OptionError | OutputError | PolicyError):
            document["remedy"] = _last_sentence(found["message"]) or found["remedy"]
    elif isinstance(error, MemoryError):
        document = {
            "kind": "MemoryError",
            "message": "memory: expected enough for this answer, got a refusal of the system.",
            "fields": {},
            "remedy": "ask for less: one plant, fewer stages",
        }
    elif isinstance(error, OSError):
        document = {
            "kind": type(error).__name__,
            "message": f"{error.filename or 'a file'}: {error.strerror or error}",
            "fields": {},
            "remedy": "check that the file exists and may be read",
        }
    else:
        document = {
            "kind": "InternalError",
            "message": f"the answer failed with an unforeseen {type(error).__name__}",
            "fields": {},
            "remedy": "the server's standard error has the details; please report them",
        }
    return document if root is None else _relative(document, str(root))


def answer_document(answer: Any) -> Document:
    """A record as JSON values, without numbers that JSON does not have."""
    plain = asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer
    document: Document = finite(json.loads(json.dumps(plain)))
    return document


def _last_sentence(message: str) -> str:
    """What a message says to do: its last sentence, where it has several."""
    before, _, last = message.rstrip(". ").rpartition(". ")
    return f"{last}." if before else ""


def _relative(value: Any, root: str) -> Any:
    if isinstance(value, str):
        return value.replace(f"{root}/", "").replace(root, ".")
    if isinstance(value, dict):
        return {key: _relative(item, root) for key, item in value.items()}
    return [_relative(item, root) for item in value] if isinstance(value, list) else value
