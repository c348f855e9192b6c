"""The JSON files of a case: strict reading into the model's records, every problem collected.

The validation library looks at whole files, so that one reading reports all wrong keys, types and values;
what it says is turned into findings with the path as the file's author would write it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

from pydantic_core import ValidationError

from pycobre._util.frozen import frozen
from pycobre._util.suggest import nearest
from pycobre.hydro.files.json_types import reader, writer
from pycobre.hydro.model.config import Config
from pycobre.hydro.model.constraints import GenericConstraint, NamedExpression, ScalarParameter
from pycobre.hydro.model.findings import Finding, Layer
from pycobre.hydro.model.horizon import PolicyGraph, PreStudyStage, SeasonDefinitions, Stage
from pycobre.hydro.model.initial import InitialConditions
from pycobre.hydro.model.penalties import Penalties
from pycobre.hydro.model.production import AngleReduction, DistanceReduction, ProductionModel
from pycobre.hydro.model.record import Tagged, file_key
from pycobre.hydro.model.scenarios import Correlation, LoadFactors, SourceFactors
from pycobre.hydro.model.system import (
    Bus,
    EnergyContract,
    Hydro,
    Line,
    NonControllableSource,
    PumpingStation,
    Thermal,
)

__all__ = ["JSON_FILES", "dump_json", "read_json"]


# Files whose root object holds several sections of the case, each under a key.


@frozen(kw_only=True)
class _Buses:
    buses: tuple[Bus, ...]


@frozen(kw_only=True)
class _Lines:
    lines: tuple[Line, ...]


@frozen(kw_only=True)
class _Thermals:
    thermals: tuple[Thermal, ...]


@frozen(kw_only=True)
class _Hydros:
    hydros: tuple[Hydro, ...]


@frozen(kw_only=True)
class _Sources:
    non_controllable_sources: tuple[NonControllableSource, ...]


@frozen(kw_only=True)
class _Pumping:
    pumping_stations: tuple[PumpingStation, ...]


@frozen(kw_only=True)
class _Contracts:
    contracts: tuple[EnergyContract, ...]


@frozen(kw_only=True)
class _Production:
    production_models: tuple[ProductionModel, ...]
    fpha_plane_reduction: Annotated[AngleReduction | DistanceReduction, Tagged("method")] | None = None


@frozen(kw_only=True)
class _Stages:
    policy_graph: PolicyGraph
    stages: tuple[Stage, ...]
    pre_study_stages: tuple[PreStudyStage, ...] | None = None
    season_definitions: SeasonDefinitions | None = None


@frozen(kw_only=True)
class _LoadFactors:
    load_factors: tuple[LoadFactors, ...]


@frozen(kw_only=True)
class _SourceFactors:
    non_controllable_factors: tuple[SourceFactors, ...]


@frozen(kw_only=True)
class _Constraints:
    constraints: tuple[GenericConstraint, ...]
    expressions: tuple[NamedExpression, ...] = ()


@frozen(kw_only=True)
class _Parameters:
    scalar_parameters: tuple[ScalarParameter, ...]


@frozen()
class JsonFile:
    """One file: the type of its root, and which key of it is which section ("" is the root itself)."""

    type: Any
    sections: dict[str, str]
    required: bool = False


JSON_FILES: dict[str, JsonFile] = {
    "config.json": JsonFile(Config, {"": "config"}, True),
    "penalties.json": JsonFile(Penalties, {"": "penalties"}, True),
    "stages.json": JsonFile(
        _Stages,
        {k: k for k in ("policy_graph", "stages", "pre_study_stages", "season_definitions")},
        True,
    ),
    "initial_conditions.json": JsonFile(InitialConditions, {"": "initial_conditions"}, True),
    "system/buses.json": JsonFile(_Buses, {"buses": "buses"}, True),
    "system/lines.json": JsonFile(_Lines, {"lines": "lines"}, True),
    "system/thermals.json": JsonFile(_Thermals, {"thermals": "thermals"}, True),
    "system/hydros.json": JsonFile(_Hydros, {"hydros": "hydros"}, True),
    "system/non_controllable_sources.json": JsonFile(
        _Sources, {"non_controllable_sources": "non_controllable_sources"}
    ),
    "system/pumping_stations.json": JsonFile(_Pumping, {"pumping_stations": "pumping_stations"}),
    "system/energy_contracts.json": JsonFile(_Contracts, {"contracts": "energy_contracts"}),
    "system/hydro_production_models.json": JsonFile(
        _Production,
        {"production_models": "production_models", "fpha_plane_reduction": "fpha_plane_reduction"},
    ),
    "scenarios/load_factors.json": JsonFile(_LoadFactors, {"load_factors": "load_factors"}),
    "scenarios/non_controllable_factors.json": JsonFile(
        _SourceFactors, {"non_controllable_factors": "source_factors"}
    ),
    "scenarios/correlation.json": JsonFile(Correlation, {"": "correlation"}),
    "constraints/generic_constraints.json": JsonFile(
        _Constraints, {"constraints": "generic_constraints", "expressions": "generic_expressions"}
    ),
    "constraints/generic_parameters.json": JsonFile(_Parameters, {"scalar_parameters": "generic_parameters"}),
}


def read_json(content: bytes, file: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Read the content of one JSON file into its sections, or None and why not."""
    spec = JSON_FILES[file]
    try:
        data = json.loads(content, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return None, [
            Finding(
                kind="malformed_json",
                layer=Layer.PARSE,
                file=file,
                rule="expected well-formed JSON",
                value=str(error) or type(error).__name__,
                suggestion="Correct the syntax at that place.",
            )
        ]
    # The library reads the bytes themselves, faster than objects, unless there is more in them than it should see.
    text: bytes | str = content
    if json.detect_encoding(content) != "utf-8" or (isinstance(data, dict) and "$schema" in data):
        text = json.dumps(
            {k: v for k, v in data.items() if k != "$schema"} if isinstance(data, dict) else data
        )
    try:
        value = reader(spec.type).validate_json(text)
    except ValidationError as error:
        return None, [_finding(file, spec.type, data, e) for e in error.errors(include_url=False)]
    if "" in spec.sections:
        return {spec.sections[""]: value}, []
    sections = {section: getattr(value, key) for key, section in spec.sections.items()}
    return {name: () if name == "pre_study_stages" and v is None else v for name, v in sections.items()}, []


def dump_json(file: str, sections: Mapping[str, Any]) -> bytes:
    """The content of one JSON file that `read_json` reads back to the same sections; nulls are left out."""
    spec = JSON_FILES[file]
    if "" in spec.sections:
        value = sections[spec.sections[""]]
    else:
        value = spec.type(**{key: sections[name] for key, name in spec.sections.items()})
    text = writer(spec.type).to_json(value, indent=2, by_alias=True, exclude_none=True)
    return text + b"\n"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} twice in one object")
        found[key] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text}, which is not a JSON number")


_KINDS = {
    "missing": "missing_key",
    "missing_keyword_only_argument": "missing_key",
    "unexpected_keyword_argument": "unknown_key",
    "extra_forbidden": "unknown_key",
    "literal_error": "invalid_value",
    "union_tag_invalid": "invalid_value",
    "union_tag_not_found": "missing_key",
    "finite_number": "not_finite",
    "json_invalid": "malformed_json",
}


def _finding(file: str, root: Any, data: Any, error: Any) -> Finding:
    where, holder = _place(data, error["loc"])
    kind = _KINDS.get(error["type"])
    if kind is None:
        kind = "wrong_type" if error["type"].endswith("_type") else "invalid_value"
    key = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "union_tag_not_found":
        key = error["ctx"]["discriminator"].strip("'")
    value = "" if kind in ("missing_key", "malformed_json") else _short(error["input"])
    rule = {
        "missing_key": f"the key {key!r} is required",
        "unknown_key": f"there is no key {key!r} here",
    }.get(kind, error["msg"][:1].lower() + error["msg"][1:])
    suggestion = ""
    if kind == "unknown_key":
        value = ""
        near = nearest(key, _allowed_keys(root, holder))
        suggestion = f"Did you mean {near!r}?" if near else "Remove it."
    layer = Layer.PARSE if kind == "malformed_json" else Layer.SCHEMA
    return Finding(
        kind=kind, layer=layer, file=file, where=where, rule=rule, value=value, suggestion=suggestion
    )


def _place(data: Any, loc: tuple[int | str, ...]) -> tuple[str, Any]:
    """The path as an author writes it, and the object that holds its last step.

    The library puts names of union members between real keys; they are recognised by not being in the data.
    """
    text = ""
    holder = data
    for i, step in enumerate(loc):
        last = i == len(loc) - 1
        if isinstance(step, int):
            text += f"[{step}]"
        elif isinstance(data, dict) and (step in data or last):
            text += f".{step}" if text else step
        else:
            continue
        holder = data
        if isinstance(data, dict):
            data = data.get(str(step))
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
    return text, holder


def _allowed_keys(root: Any, holder: Any) -> list[str]:
    """The keys of the record that the object most resembles, less those it has."""
    present = set(holder) if isinstance(holder, dict) else set()
    best = max(_records(root), key=lambda keys: len(keys & present) / len(keys), default=frozenset())
    return sorted(best - present)


@cache
def _records(root: Any) -> tuple[frozenset[str], ...]:
    found: list[frozenset[str]] = []
    todo, seen = [root], set()
    while todo:
        item = todo.pop()
        if isinstance(item, type) and item not in seen:
            seen.add(item)
            if dataclasses.is_dataclass(item):
                hints = get_type_hints(item, include_extras=True)
                found.append(frozenset(map(file_key, hints)))
                todo.extend(hints.values())
        todo.extend(a for a in get_args(item) if not isinstance(a, str | int | Tagged))
    return tuple(sorted(found, key=sorted))


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
