"""What changed between two cases: field by field of every plant, row by row of every table, and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from pycobre.app.answers.case_records import CaseDifferences, Difference
from pycobre.app.answers.cases import case_source
from pycobre.app.answers.difference_words import category_of, sentences
from pycobre.app.origin import differences as setting_differences
from pycobre.hydro.files import identity
from pycobre.hydro.files.case_data import case_to_data
from pycobre.hydro.model import Case
from pycobre.hydro.model.case import SECTIONS
from pycobre.hydro.model.table import Table

__all__ = ["diff_cases"]

_KEYS = ("hydro_id", "bus_id", "thermal_id", "ncs_id", "stage_id", "start_date")
_OWNERS = {
    "hydro_id": "hydros",
    "bus_id": "buses",
    "thermal_id": "thermals",
    "line_id": "lines",
    "ncs_id": "non_controllable_sources",
    "contract_id": "energy_contracts",
    "pumping_station_id": "pumping_stations",
    "constraint_id": "generic_constraints",
}


def diff_cases(a: Case, b: Case, names: tuple[str, str], limit: int = 200) -> CaseDifferences:
    """What `b` has that `a` has not, and the other way round."""
    one, other = identity(a), identity(b)
    found = [
        Difference(category_of("config", path, before, after), "config", "", path, before, after, 1)
        for path, before, after in setting_differences(one["config"], other["config"])
    ]
    plain_a, _ = case_to_data(a)
    plain_b, _ = case_to_data(b)
    owners = _owners(a, b)
    dates = {stage.id: stage.start_date.isoformat()[:7] for case in (a, b) for stage in case.stages}
    for section in SECTIONS:
        if section == "config":
            continue
        before, after = getattr(a, section), getattr(b, section)
        if isinstance(before, Table):
            found += _table(section, before, after, owners, dates)
        elif plain_a[section] != plain_b[section]:
            found += _records(section, plain_a[section], plain_b[section], owners)
    return CaseDifferences(
        equal=not found,
        sentences=sentences(found),
        differences=found[:limit],
        total=len(found),
        truncated=len(found) > limit,
        sources=[case_source(names[0], one), case_source(names[1], other)],
    )


def _records(section: str, a: Any, b: Any, owners: Mapping[str, Mapping[int, str]]) -> Iterator[Difference]:
    """Differences of a section that is no table: by entity, then field by field."""
    if isinstance(a, list) and isinstance(b, list):
        one, other = _by_key(a), _by_key(b)
        for key in sorted(one.keys() | other.keys(), key=str):
            label = _label(section, one.get(key) or other.get(key), owners)
            if key not in other or key not in one:
                there = "there" if key in one else "absent"
                after = "absent" if key in one else "there"
                yield Difference("system", section, label, "", there, after, 1)
            else:
                yield from _fields(section, label, one[key], other[key])
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            one_part, other_part = a.get(key), b.get(key)
            if one_part == other_part:
                continue
            if _are_records(one_part) and _are_records(other_part):
                yield from _records(f"{section}.{key}", one_part, other_part, owners)
            else:
                yield from _fields(section, "", {key: one_part}, {key: other_part})
        return
    yield from _fields(section, "", {section: a}, {section: b})


def _are_records(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _fields(section: str, label: str, a: Any, b: Any) -> Iterator[Difference]:
    for path, before, after in setting_differences(_wrapped(a), _wrapped(b)):
        numbers = _number(before), _number(after)
        known = numbers[0] is not None and numbers[1] is not None
        yield Difference(
            category_of(section, path, before, after),
            section,
            label,
            path,
            before,
            after,
            1,
            numbers[0] if known else None,
            numbers[1] if known else None,
            numbers[1] - numbers[0] if numbers[0] is not None and numbers[1] is not None else None,
        )


def _table(
    section: str, a: Table, b: Table, owners: Mapping[str, Mapping[int, str]], dates: Mapping[int, str]
) -> Iterator[Difference]:
    """Differences of a table: its rows matched by key, those of one entity and column told together."""
    if a == b:
        return
    keys = a.KEY
    one, other = _rows(a, keys), _rows(b, keys)
    who = next((key for key in keys if key in _OWNERS), keys[0])
    place = keys.index(who)
    columns: list[str] = [each.name for each in fields(a) if each.name not in keys]
    groups: dict[Any, list[Any]] = {}
    for key in sorted({*one, *other}):
        if one.get(key) is None or other.get(key) is None or not _same(one[key], other[key]):
            groups.setdefault(key[place], []).append(key)
    for entity, changed in sorted(groups.items()):
        label = _named(who, entity, owners)
        gone = sum(key not in other for key in changed)
        new = sum(key not in one for key in changed)
        if gone or new:
            yield Difference(
                category_of(section, "", "", ""),
                section,
                label,
                "",
                f"{gone} rows that are gone" if gone else "",
                f"{new} rows that are new" if new else "",
                gone + new,
                when=_when(keys, [key for key in changed if key not in other or key not in one], dates),
            )
        both = [key for key in changed if key in one and key in other]
        for column_at, column in enumerate(columns):
            there = [
                key
                for key in both
                if not _same(one[key][column_at : column_at + 1], other[key][column_at : column_at + 1])
            ]
            pairs = [(one[key][column_at], other[key][column_at]) for key in there]
            if pairs:
                yield replace(_column(section, label, column, pairs), when=_when(keys, there, dates))


def _when(keys: tuple[str, ...], rows: list[tuple[Any, ...]], dates: Mapping[int, str]) -> str:
    """The first and the last stage or date of rows; "" where they have none."""
    name = next((each for each in ("stage_id", "start_date") if each in keys), None)
    if name is None or not rows:
        return ""
    place = keys.index(name)
    found = sorted({row[place] for row in rows})
    ends = [
        dates.get(each, f"stage {each}") if name == "stage_id" else str(each)
        for each in (found[0], found[-1])
    ]
    return ends[0] if len(found) == 1 else f"{ends[0]} to {ends[1]}"


def _column(section: str, label: str, column: str, pairs: list[tuple[Any, Any]]) -> Difference:
    before = np.array([_float(pair[0]) for pair in pairs])
    after = np.array([_float(pair[1]) for pair in pairs])
    change = after - before
    finite = change[np.isfinite(change)]
    one, other = _mean(before), _mean(after)
    said = (
        f"{one:.10g}" if one is not None else "not set",
        f"{other:.10g}" if other is not None else "not set",
    )
    return Difference(
        category_of(section, column, *said),
        section,
        label,
        column,
        *said,
        len(pairs),
        one,
        other,
        float(finite[np.argmax(np.abs(finite))]) if finite.size else None,
    )


def _rows(table: Table, keys: tuple[str, ...]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    values = [each.name for each in fields(table) if each.name not in keys]
    names: list[str] = [*keys, *values]
    columns = [_listed(getattr(table, name)) for name in names]
    width = len(keys)
    return {row[:width]: row[width:] for row in zip(*columns, strict=True)}


def _listed(column: NDArray[Any]) -> list[Any]:
    listed: list[Any] = column.astype(str).tolist() if column.dtype.kind == "M" else column.tolist()
    return listed


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def _mean(values: NDArray[np.float64]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None


def _float(value: Any) -> float:
    try:
        return float(value)
    except ValueError:  # a date
        return float("nan")


def _by_key(items: list[Any]) -> dict[Any, Any]:
    """List items by what names them; those with one name more than once, or none, by position too."""
    found: dict[Any, Any] = {}
    for position, item in enumerate(items):
        key: Any = position
        if isinstance(item, dict):
            parts = tuple(str(item[name]) for name in _KEYS if name in item)
            key = item.get("id", parts or item.get("name", position))
        found[key if key not in found else (key, position)] = item
    return found


def _owners(a: Case, b: Case) -> dict[str, dict[int, str]]:
    return {
        kind: {each.id: each.name for case in (a, b) for each in getattr(case, kind)}
        for kind in _OWNERS.values()
    }


def _label(section: str, item: Any, owners: Mapping[str, Mapping[int, str]]) -> str:
    if isinstance(item, dict):
        if "name" in item and "id" in item:
            return f"{item['name']} ({item['id']})"
        for key, kind in _OWNERS.items():
            if key in item:
                at = f", stage {item['stage_id']}" if "stage_id" in item else ""
                return f"{owners[kind].get(item[key], '?')} ({item[key]}){at}"
        if "id" in item:
            return f"{section.rstrip('s')} {item['id']}"
        return str(item.get("name", ""))
    return str(item)


def _named(key: str, entity: Any, owners: Mapping[str, Mapping[int, str]]) -> str:
    kind = _OWNERS.get(key)
    if kind is None:
        return f"{key.removesuffix('_id')} {entity}"
    return f"{owners[kind].get(entity, '?')} ({entity})"


def _wrapped(value: Any) -> dict[str, Any]:
    """A tree whose lists are numbered, so that differences inside them have a path."""
    if isinstance(value, dict):
        return {key: _numbered(item) for key, item in value.items() if key != ""}
    return {"value": _numbered(value)}


def _numbered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(item) for key, item in value.items() if key != ""}
    if isinstance(value, list):
        return {str(position): _numbered(item) for position, item in enumerate(value)}
    return value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
