"""What a run was made from, in its output directory, so that a resumed run can say what has changed since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pycobre.app.results.files import read_json, write_json
from pycobre.app.results.layout import ORIGIN, STUDY
from pycobre.app.study import Study
from pycobre.errors import OutputError, PolicyError

__all__ = ["differences", "flat_settings", "refuse_another_case", "write_origin", "write_study"]

STUDY_SCHEMA = 1
_PARTS = ("config", "inputs")
# What may change between a run and its resumption: how long, and what comes after training.
_FREE = ("training.stopping_", "simulation.", "policy.", "exports.")
_LISTED = 5


def write_origin(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Note a case's settings and the hashes of its files; a problem built in Python has neither."""
    if "config" in metadata:
        write_json(directory / ORIGIN, {part: metadata[part] for part in _PARTS})
    else:
        (directory / ORIGIN).unlink(missing_ok=True)


def write_study(directory: Path, study: Study) -> None:
    """Note the settings and the system, so that those who watch the run need not read its case."""
    settings = study.metadata.get("config") or study.options.settings()
    write_json(
        directory / STUDY, {"schema": STUDY_SCHEMA, "settings": settings, "system": dict(study.system)}
    )


def refuse_another_case(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Raise `PolicyError` with what is different from the run in `directory`; return where that is not known."""
    if "config" not in metadata:
        return
    try:
        before = read_json(directory / ORIGIN)
    except OutputError:
        return
    changed = [
        f"{path} was {old}, is {new}"
        for path, old, new in differences(before.get("config", {}), metadata["config"])
        if not path.startswith(_FREE)
    ]
    changed += [
        f"{name} has changed" for name, *_ in differences(before.get("inputs", {}), metadata["inputs"])
    ]
    if changed:
        listed = (
            changed if len(changed) <= _LISTED else [*changed[:_LISTED], f"and {len(changed) - _LISTED} more"]
        )
        raise PolicyError(
            f"resume: expected the case of the earlier run, got another: {'; '.join(listed)}. "
            "Train afresh, or warm-start from its policy."
        )


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What two trees of settings do not share: dotted path, value of the one, value of the other, as JSON."""
    a, b = flat_settings(one), flat_settings(other)
    return [
        (path, _said(a, path), _said(b, path))
        for path in sorted({*a, *b})
        if _said(a, path) != _said(b, path)
    ]


def _said(flat: Mapping[str, Any], path: str) -> str:
    return json.dumps(flat[path], ensure_ascii=False) if path in flat else "not set"


def flat_settings(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree of settings by dotted path."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= (
            flat_settings(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
        )
    return flat
