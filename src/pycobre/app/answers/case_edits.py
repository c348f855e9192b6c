"""A copy of a case with some values replaced: shown first, written when what was shown is confirmed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pycobre._util.suggest import did_you_mean
from pycobre.app.answers.case_differences import diff_cases
from pycobre.app.answers.case_records import CaseEdit, Change
from pycobre.app.answers.cases import case_source, finding_record
from pycobre.app.answers.names import named
from pycobre.errors import CaseError, OptionError, OutputError
from pycobre.hydro.checks import check_case, format_errors
from pycobre.hydro.files import case_files, identity, load_case, read_case_files, with_overrides, write_case
from pycobre.hydro.model import Case
from pycobre.hydro.model.case import SECTIONS
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.model.table import Table

__all__ = ["edit_case", "edited"]

_OWNERS = {
    "hydro_id": "hydros",
    "bus_id": "buses",
    "thermal_id": "thermals",
    "line_id": "lines",
    "ncs_id": "non_controllable_sources",
}


def edit_case(
    source: Path,
    target: Path,
    names: tuple[str, str],
    changes: Sequence[Change],
    confirm: str = "",
    limit: int = 200,
) -> CaseEdit:
    """A copy of the case in `source` with `changes`; written to `target` if `confirm` is what a preview gave.

    Nothing that is there is written over.
    """
    before = load_case(source)
    after = edited(before, changes)
    findings = check_case(after)
    if any(each.severity is Severity.ERROR for each in findings):
        raise CaseError(format_errors(names[1], findings), tuple(findings))
    found, other = identity(before), identity(after)
    said = json.dumps([found["input_hash"], other["input_hash"], other["config_hash"], names[1]])
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    written = False
    if confirm:
        if confirm != digest:
            raise OptionError(
                f"confirm: expected {digest!r}, of the preview of these changes, got {confirm!r}. "
                "Look at the preview again: the case or the changes are not what they were."
            )
        if target.exists():
            raise OutputError(f"{names[1]}: expected a name that is free, got one in use. Choose another.")
        write_case(after, target)
        written = True
    return CaseEdit(
        case=names[0],
        target=names[1],
        written=written,
        confirm=digest,
        changes=diff_cases(before, after, names, limit),
        warnings=[finding_record(each) for each in findings[:limit]],
        sources=[case_source(names[0], found), case_source(names[1], other)],
    )


def edited(case: Case, changes: Sequence[Change]) -> Case:
    """The case with changed values.

    Paths: `config.training.tree_seed`; `hydros.FURNAS.reservoir.max_storage_hm3` (an entity by name or id);
    `initial_conditions.storage.FURNAS.value_hm3`; `penalties.…`; of a table `load_stats.SE.3.mean_mw`, with the id of
    the stage or `*` for all.
    """
    if not changes:
        raise OptionError("changes: expected at least one, got none. Name a path and a value.")
    for change in changes:
        if (change.value is None) == (change.factor is None):
            raise OptionError(f"change of {change.path}: expected a value or a factor, got both or neither.")
        section, _, rest = change.path.partition(".")
        if section == "config":
            if change.factor is not None:
                raise OptionError(f"change of {change.path}: expected a value for a setting, got a factor.")
            case = with_overrides(case, {rest: change.value})
        elif section not in SECTIONS:
            raise OptionError(
                f"change of {change.path}: there is no section {section!r}.{did_you_mean(section, SECTIONS)}"
            )
        elif isinstance(getattr(case, section), Table):
            case = _table_edited(case, section, rest.split("."), change)
        else:
            case = _record_edited(case, section, rest.split("."), change)
    return case


def _record_edited(case: Case, section: str, steps: list[str], change: Change) -> Case:
    """Edit the section as JSON and read it back, so that every value is checked as if a file had held it."""
    files = case_files(case)
    place = SECTIONS[section]
    if place.file not in files:
        raise OptionError(
            f"change of {change.path}: the case has no {place.file}, so there is nothing to change."
        )
    document = json.loads(files[place.file])
    holder = document[place.key] if place.key else document
    for step in steps[:-1]:
        holder = _inner(case, holder, step, change.path)
    last = steps[-1]
    if isinstance(holder, list):
        raise OptionError(f"change of {change.path}: expected a field of an entity, got the entity.")
    if not isinstance(holder, dict) or last not in holder:
        known = list(holder) if isinstance(holder, dict) else []
        raise OptionError(
            f"change of {change.path}: there is no field {last!r} that is set.{did_you_mean(last, known)}"
        )
    holder[last] = _changed(holder[last], change)
    files[place.file] = json.dumps(document).encode()
    return read_case_files(files, case.name)


def _inner(case: Case, holder: Any, step: str, path: str) -> Any:
    if isinstance(holder, dict) and step in holder:
        return holder[step]
    if isinstance(holder, list) and holder and all(isinstance(each, dict) for each in holder):
        for key, kind in (("id", ""), *_OWNERS.items()):
            if all(key in each for each in holder):
                labels = {each.id: each.name for each in getattr(case, kind)} if kind else {}
                known = [(each[key], str(each.get("name", labels.get(each[key], "")))) for each in holder]
                number, _ = named("entity", known, step)
                return next(each for each in holder if each[key] == number)
    if isinstance(holder, list) and step.isdigit() and int(step) < len(holder):
        return holder[int(step)]
    names = list(holder) if isinstance(holder, dict) else []
    raise OptionError(f"change of {path}: there is nothing named {step!r}.{did_you_mean(step, names)}")


def _table_edited(case: Case, section: str, steps: list[str], change: Change) -> Case:
    table: Table = getattr(case, section)
    names = [each.name for each in fields(table)]
    if len(steps) != 3 or steps[2] not in names or steps[2] in table.KEY:
        values = ", ".join(name for name in names if name not in table.KEY)
        raise OptionError(
            f"change of {change.path}: expected {section}.ENTITY.STAGE.COLUMN with a column of {values}, got "
            "another. Use * for all stages."
        )
    who = next((key for key in table.KEY if key in _OWNERS), table.KEY[0])
    keep = np.ones(len(table), np.bool_)
    if steps[0] != "*":
        known = [(each.id, each.name) for each in getattr(case, _OWNERS[who])] if who in _OWNERS else []
        keep &= getattr(table, who) == named("entity", known, steps[0])[0]
    if steps[1] != "*" and "stage_id" in names:
        if not steps[1].lstrip("-").isdigit():
            raise OptionError(f"change of {change.path}: expected the id of a stage or *, got {steps[1]!r}.")
        keep &= table.stage_id == int(steps[1])  # type: ignore[attr-defined]
    if not keep.any():
        raise OptionError(
            f"change of {change.path}: expected rows to change, got none. `describe_case` names them."
        )
    columns = {name: getattr(table, name).copy() for name in names}
    column = columns[steps[2]]
    column[keep] = [_changed(value, change) for value in column[keep].tolist()]
    changed: dict[str, Any] = {section: type(table)(**columns)}
    return replace(case, **changed)


def _changed(value: Any, change: Change) -> Any:
    if change.factor is None:
        return change.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OptionError(f"change of {change.path}: expected a number to multiply, got {value!r}.")
    return value * change.factor
