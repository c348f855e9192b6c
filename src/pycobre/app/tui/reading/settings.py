"""The settings of runs, by path, and those in which runs differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pycobre.app.tui.reading.numbers import text

__all__ = ["differing", "flat_settings"]


def flat_settings(study: dict[str, Any]) -> dict[str, str]:
    """Every setting of `study.json` by its path, in the order of paths."""
    settings = study.get("settings")
    return _flat(settings, "") if isinstance(settings, dict) else {}


def _flat(tree: dict[str, Any], prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in sorted(tree):
        value = tree[key]
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{prefix}{text(key)}.")
        else:
            said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found[f"{prefix}{text(key)}"] = text(said)
    return found


def differing(studies: Sequence[dict[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """Path and values of each setting that is not the same in all; a dash where it is not there."""
    flat = [flat_settings(study) for study in studies]
    paths = sorted({path for each in flat for path in each})
    rows = [(path, tuple(each.get(path, "–") for each in flat)) for path in paths]
    return [(path, values) for path, values in rows if len(set(values)) > 1]
