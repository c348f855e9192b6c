"""The cases below a directory, what one of them is about, what is wrong with it, and the schemas of its files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from pycobre._util.suggest import did_you_mean
from pycobre.app.answers.case_records import (
    CaseDescription,
    CaseEntry,
    CaseList,
    Entity,
    FindingRecord,
    SchemaText,
    Source,
    Validation,
)
from pycobre.app.answers.run_index import Sound, everything, folders
from pycobre.app.results.layout import METADATA, RECORD, default_output
from pycobre.errors import OptionError

__all__ = ["case_source", "describe_case", "finding_record", "list_cases", "schema_text", "validate_case"]

_FILES = ("config.json", "stages.json", "initial_conditions.json")


def list_cases(root: Path, limit: int = 200, sound: Sound = everything) -> CaseList:
    """The case directories below `root`, in those of its directories that are `sound`."""
    found = []
    for folder in folders(root):
        if (
            sound(folder)
            and all((folder / name).is_file() for name in _FILES)
            and (folder / "system").is_dir()
        ):
            newest = max((folder / name).stat().st_mtime for name in _FILES)
            output = default_output(folder)
            found.append(
                CaseEntry(
                    case=folder.relative_to(root).as_posix(),
                    modified=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(newest)),
                    runs=(output / RECORD).is_file() or (output / METADATA).is_file(),
                )
            )
    return CaseList(found[:limit], len(found), len(found) > limit)


def describe_case(directory: Path, name: str, kind: str = "", limit: int = 50) -> CaseDescription:
    """Horizon, sizes, capacities and settings of a case; `kind` (hydros, thermals, …) chooses what is listed."""
    from pycobre.app.origin import flat_settings
    from pycobre.hydro.files import identity, load_case
    from pycobre.hydro.study.system import system_of

    case = load_case(directory)
    found = identity(case)
    system = system_of(case)
    if kind and kind not in system:
        raise OptionError(
            f"kind {kind!r}: expected one of {', '.join(system)}, got another.{did_you_mean(kind, system)}"
        )
    listed = [
        Entity(group, int(each["id"]), str(each["name"]), _figures(each))
        for group, entities in system.items()
        if not kind or group == kind
        for each in entities
    ]
    stages = case.stages
    load = case.load_stats
    first = load.stage_id == stages[0].id
    storage = case.initial_conditions.storage
    return CaseDescription(
        case=name,
        name=case.name,
        begins=stages[0].start_date.isoformat(),
        ends=stages[-1].end_date.isoformat(),
        stages=len(stages),
        blocks=len(stages[0].blocks),
        openings=stages[0].num_openings or 1,
        counts={group: len(entities) for group, entities in system.items() if entities},
        totals={
            "hydro_mw": sum(float(each["max_mw"]) for each in system["hydros"]),
            "thermal_mw": sum(float(each["max_mw"]) for each in system["thermals"]),
            "storage_hm3": sum(float(each["max_storage_hm3"]) for each in system["hydros"]),
            "initial_storage_hm3": sum(each.value_hm3 for each in storage),
            "load_first_stage_mw": float(load.mean_mw[first].sum()),
        },
        settings=flat_settings(found["config"]),
        entities=listed[:limit],
        entities_total=len(listed),
        truncated=len(listed) > limit,
        sources=[case_source(name, found)],
    )


def validate_case(directory: Path, name: str, limit: int = 100) -> Validation:
    """Every finding about a case, errors first."""
    from pycobre.hydro.files import validate
    from pycobre.hydro.model.findings import Severity

    findings = sorted(validate(directory), key=lambda each: each.severity is not Severity.ERROR)
    errors = sum(each.severity is Severity.ERROR for each in findings)
    return Validation(
        case=name,
        valid=errors == 0,
        errors=errors,
        warnings=len(findings) - errors,
        findings=[finding_record(each) for each in findings[:limit]],
        truncated=len(findings) > limit,
        sources=[Source("case", name, "all files")],
    )


def schema_text(name: str = "") -> SchemaText:
    """The JSON Schema of a case's file, by its path or name, of `status` or `events`; without one, their names."""
    from pycobre.app.results.event_log import event_schema
    from pycobre.app.results.status import status_schema
    from pycobre.hydro.files.json_files import JSON_FILES
    from pycobre.hydro.files.json_schema import json_schema

    made = {"status": status_schema, "events": event_schema}
    available = [*JSON_FILES, *made]
    if not name:
        return SchemaText("", {}, available)
    if name in made:
        return SchemaText(name, made[name](), available)
    meant = [file for file in JSON_FILES if name in (file, Path(file).name, Path(file).stem)]
    if not meant:
        raise OptionError(
            f"schema {name!r}: expected one of {', '.join(available)}, got another.{did_you_mean(name, available)}"
        )
    return SchemaText(meant[0], json.loads(json.dumps(json_schema(meant[0]))), available)


def finding_record(finding: Any) -> FindingRecord:
    """A finding as plain values."""
    return FindingRecord(
        kind=finding.kind,
        severity=str(finding.severity),
        file=finding.file,
        where=finding.where,
        entity=finding.entity,
        value=finding.value,
        rule=finding.rule,
        suggestion=finding.suggestion,
    )


def case_source(name: str, identity: dict[str, Any]) -> Source:
    """A case with the hash of what it says, its configuration apart."""
    return Source("case", name, "all files", str(identity["input_hash"]))


def _figures(entity: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entity.items() if key not in ("id", "name")}
