"""Every key of the published 0.18 schemas is read, refused or warned of by name; none is passed over."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic.json_schema import GenerateJsonSchema

import pycobre
from pycobre.hydro.checks.no_effect import HEADS, SETTINGS
from pycobre.hydro.files.json_files import JSON_FILES
from pycobre.hydro.files.json_types import file_description, section_types
from pycobre.hydro.files.parquet_files import PARQUET_SECTIONS
from pycobre.hydro.files.read_case import UNSUPPORTED_FILES
from pycobre.hydro.model.config import DynamicSelection, SolverProfile

SCHEMAS = Path(__file__).parents[3].parent / "shared" / "schemas"
published = pytest.mark.skipif(
    not SCHEMAS.is_dir(),
    reason="the published schemas are not beside the repository: nothing to compare with",
)

FILES = {
    "production_models": "system/hydro_production_models.json",
    "load_factors": "scenarios/load_factors.json",
    "non_controllable_factors": "scenarios/non_controllable_factors.json",
    "correlation": "scenarios/correlation.json",
    "generic_constraints": "constraints/generic_constraints.json",
    "generic_parameters": "constraints/generic_parameters.json",
    **{
        name: f"{name}.json"
        for name in ("config", "stages", "penalties", "initial_conditions", "post_study_stages")
    },
}


#: Read as any word, and refused by name where they are not supported.
#: Settings that Cobre does not know.
OWN = ("training.interior_points", "training.growing_trajectories")
WORDS_REFUSED: set[str] = set()


@dataclass
class Keys:
    """What a schema says about one path, over all alternatives."""

    required: bool = False
    words: set[Any] = field(default_factory=set)


def keys_of(schema: dict[str, Any]) -> dict[str, Keys]:
    """The paths of a JSON Schema: `stages[].blocks[].id`; alternatives are laid over each other."""
    found: dict[str, Keys] = {}

    def walk(part: dict[str, Any], path: str, seen: tuple[str, ...]) -> None:
        if "$ref" in part:
            name = part["$ref"].rpartition("/")[2]
            if name not in seen:
                walk(schema["$defs"][name], path, (*seen, name))
            return
        if path:
            words = part.get("enum", [part["const"]] if "const" in part else [])
            found.setdefault(path, Keys()).words |= set(words) - {None}
        for alternatives in ("anyOf", "oneOf", "allOf"):
            for alternative in part.get(alternatives, ()):
                walk(alternative, path, seen)
        for items in (part.get("items"), part.get("additionalProperties")):
            if isinstance(items, dict):
                walk(items, f"{path}[]", seen)
        for key, value in part.get("properties", {}).items():
            inner = f"{path}.{key}" if path else key
            found.setdefault(inner, Keys()).required |= key in part.get("required", ())
            walk(value, inner, seen)

    walk(schema, "", ())
    return {path: keys for path, keys in found.items() if path.rpartition(".")[2] != "$schema"}


def published_schemas() -> list[str]:
    return (
        sorted(p.name.removesuffix(".schema.json") for p in SCHEMAS.glob("*.json"))
        if SCHEMAS.is_dir()
        else []
    )


@published
@pytest.mark.parametrize("name", published_schemas())
def test_keys_and_words_are_the_published_ones(name: str) -> None:
    file = FILES.get(name, f"system/{name}.json")
    if file in UNSUPPORTED_FILES:
        return
    theirs = keys_of(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
    ours = keys_of(GenerateJsonSchema().generate(file_description(file)))
    named = {path for path in theirs if not path.endswith("[]")}
    assert named - set(ours) == set()
    own = {path for path in ours if not path.endswith("[]") and not path.startswith(OWN)}
    assert own - named == set()
    assert {path for path in named if ours[path].required and not theirs[path].required} == set()
    # A key that tells alternatives apart has its only value in Python, and must be in the file nevertheless.
    looser = {path for path in named if theirs[path].required and not ours[path].required}
    assert {path for path in looser if not ours[path].words} == set()
    words = {path: keys.words for path, keys in theirs.items() if keys.words and path not in WORDS_REFUSED}
    assert {path: ours[path].words for path in words} == words


@published
def test_no_published_file_is_unknown() -> None:
    known = {*JSON_FILES, *UNSUPPORTED_FILES}
    assert {FILES.get(name, f"system/{name}.json") for name in published_schemas()} <= known


_FITTED = "where planes were fitted; they hold everywhere"
_CALENDAR = "stages say themselves which season they are in"

#: Fields that no equation needs: kept, and written back as they were.
KEPT = {
    "operational_start_date": "entry_stage_id and exit_stage_id say when an entity is in service",
    "description": "for readers",
    "plane_id": "tells rows apart",
    "annual_mean_m3s": "the means of the twelve lags stand for it, as in Cobre",
    "reference_outflow_m3s": "of reports of stored energy",
    **dict.fromkeys(("month_end", "day_start", "day_end"), _CALENDAR),
    **dict.fromkeys(("valid_v_min_hm3", "valid_v_max_hm3", "valid_q_max_m3s"), _FITTED),
    "segment_id": "tells rows apart",
}

#: Parts of settings that are refused, or said to have no effect, as a whole.
PARTS = {
    **dict.fromkeys(("lipschitz", "fallback_value", "scale_factor"), "upper_bound_evaluation"),
    **dict.fromkeys(("points", "outflow_m3s"), "tailrace"),
    **dict.fromkeys(("retry_max_attempts", "retry_time_budget_seconds", "forward", "backward"), "solver"),
    **{f.name: "solver" for f in fields(SolverProfile)},
    **{f.name: "cut_selection" for f in fields(DynamicSelection)},  # lazy cuts are exact without them
    **dict.fromkeys(("backward_scheduler", "block_size"), "parallelism"),
    "value_m": "hydraulic_losses",
}


def records(kind: Any) -> Iterator[type]:
    """The record types that a type leads to."""
    if isinstance(kind, type) and is_dataclass(kind):
        yield kind
        for hint in get_type_hints(kind, include_extras=True).values():
            yield from records(hint)
    elif get_origin(kind) is not None or isinstance(kind, UnionType):
        for argument in get_args(kind):
            yield from records(argument)


def model_fields() -> set[str]:
    """The name of every field that a file can fill."""
    types = [kind for file in JSON_FILES for kind in section_types(file).values()]
    found = {kind for each in types for kind in records(each)}
    return {f.name for kind in (*found, *PARQUET_SECTIONS.values()) for f in fields(kind)}


def names_in(*places: str) -> set[str]:
    """Every attribute and every text that the code of these places uses."""
    found: set[str] = set()
    root = Path(pycobre.__file__).parent
    for place in places:
        for path in sorted((root / place).rglob("*.py")) if (root / place).is_dir() else [root / place]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute):
                    found.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= set(node.value.replace("[", ".").split("."))
    return found


def test_every_field_is_used_refused_or_said_to_be_kept() -> None:
    used = names_in(
        *(
            "hydro/build.py",
            "hydro/equations",
            "hydro/uncertainty",
            "hydro/tables",
            "hydro/model/parameters.py",
            "hydro/model/anticipation.py",
            "hydro/model/horizon.py",
            "hydro/model/graph.py",
            "hydro/model/boundary.py",
            "hydro/files/read_case.py",
        ),
        *(
            "hydro/checks/coverage.py",
            "hydro/checks/scenarios.py",
            "hydro/study/case_study.py",
            "hydro/study/options.py",
            "app/study.py",
            "app/pipeline.py",
        ),
    )
    said = names_in("hydro/checks/support.py", "hydro/checks/no_effect.py")
    used |= {f"{name}_cost" for name in used}  # penalties are looked up without their ending
    assert {path.rpartition(".")[2] for path in SETTINGS} | set(HEADS) <= said
    assert set(PARTS.values()) <= said
    silent = model_fields() - used - said - set(KEPT) - set(PARTS) - {"selection_mode"}
    assert silent == set(), "fields that are read and then passed over"
