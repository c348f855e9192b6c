"""The form of case files before 0.18: how it is recognised, and what to say about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pycobre.hydro.model.findings import Finding, Layer

__all__ = ["is_old_form", "old_form_finding"]

#: Keys that only the old form has: file, path ([] is every element of a list), and what became of them.
_SIGNS = (
    ("config.json", "training.forward_passes", "training.selection"),
    ("config.json", "simulation.num_scenarios", "simulation.selection"),
    ("stages.json", "stages[].num_scenarios", "num_openings"),
    (
        "penalties.json",
        "hydro.fpha_turbined_cost",
        "hydro.turbined_cost, which every plant pays",
    ),
    ("system/hydros.json", "hydros[].bus_id", "unit_groups with a bus each"),
    (
        "system/hydros.json",
        "hydros[].generation.productivity_mw_per_m3s",
        "system/hydro_production_models.json",
    ),
    ("initial_conditions.json", "past_inflows", "recent_observations with dates"),
    (
        "constraints/generic_constraints.json",
        "constraints[].sense",
        "bound_lower and bound_upper",
    ),
)


def is_old_form(files: Mapping[str, Any]) -> bool:
    """Whether at least two files, given as parsed, have the old form; one stray key is a mistake, not a form."""
    return len({file for file, _, _ in _found(files)}) >= 2


def old_form_finding(files: Mapping[str, Any]) -> Finding:
    """One finding that says what changed and how to get there."""
    signs = _found(files)
    told = "; ".join(f"{path.replace('[]', '')} of {file} is now {now}" for file, path, now in signs)
    return Finding(
        kind="old_form",
        layer=Layer.FILES,
        file=signs[0][0],
        rule=f"expected the form of Cobre 0.18, got that of 0.5: {told}; every entity has an operational_start_date",
        suggestion="Write it in the new form with `pycobre migrate CASE OUT`.",
    )


def _found(files: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [sign for sign in _SIGNS if _has(files.get(sign[0]), sign[1].split("."))]


def _has(data: Any, steps: list[str]) -> bool:
    if not steps:
        return True
    key = steps[0].removesuffix("[]")
    if not isinstance(data, dict) or key not in data:
        return False
    if steps[0].endswith("[]"):
        return isinstance(data[key], list) and any(_has(item, steps[1:]) for item in data[key])
    return _has(data[key], steps[1:])
