"""Settings of a case's configuration replaced by dotted path, with the nearest path for one that does not exist."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from pycobre._util.suggest import nearest
from pycobre.errors import OptionError
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import Config
from pycobre.hydro.model.record import Tagged

__all__ = ["with_overrides"]


def with_overrides(case: Case, overrides: Mapping[str, Any]) -> Case:
    """The case with settings of its configuration replaced by dotted path, e.g. `{"training.tree_seed": 7}`.

    A mapping given for a group of settings replaces those it names and leaves the others, unless it chooses
    another variant of the group (`{"training.selection": {"method": "enumerated"}}`), which begins anew.
    Raises `OptionError` for a path or a value that the configuration does not allow.
    """
    if not isinstance(overrides, Mapping):
        raise OptionError(
            f"config overrides: expected a mapping of dotted paths to values, got {overrides!r}."
        )
    if not overrides:
        return case
    from pycobre.hydro.files.json_files import config_data, parse_json, read_json

    data = config_data(case.config)
    for path, value in overrides.items():
        if not isinstance(path, str):
            raise OptionError(f"config override {path!r}: expected a dotted path, got {type(path).__name__}.")
        _set(data, Config, path.split("."), value, path)
    values, findings = parse_json(json.dumps(data, default=_plain).encode(), "config.json")
    found, problems = read_json(values, "config.json") if not findings else (None, findings)
    if found is None:
        reasons = "; ".join(
            f"{finding.where}: {finding.rule}{f', got {finding.value}' if finding.value else ''}."
            f"{f' {finding.suggestion}' if finding.suggestion else ''}"
            for finding in problems
        )
        raise OptionError(f"config overrides: {reasons}")
    return replace(case, config=found["config"])


def _set(holder: Any, kind: Any, steps: list[str], value: Any, path: str) -> None:
    """Put `value` where `steps` lead from `holder`, an object of the type `kind`."""
    name, *rest = steps
    keys = _keys(kind)
    if name not in keys:
        raise OptionError(_unknown_key_message(path, path.split(".")[: -len(steps)], name, keys))
    inner = keys[name]
    if not rest and not (isinstance(value, Mapping) and _records(inner)):
        holder[name] = value
        return
    if not _records(inner):
        raise OptionError(
            f"config override {path}: {name!r} is not a group of settings, got {'.'.join(rest)!r} in it."
        )
    group = holder.get(name)
    if not isinstance(group, dict) or (not rest and _other_variant(inner, group, value)):
        group = holder[name] = {}
    if rest:
        _set(group, inner, rest, value, path)
        return
    for key, part in value.items():
        _set(group, inner, [str(key)], part, f"{path}.{key}")


def _other_variant(kind: Any, group: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    tags = {part.key for part in _parts(kind) if isinstance(part, Tagged)}
    return any(tag in value and value[tag] != group.get(tag) for tag in tags)


def _unknown_key_message(path: str, above: list[str], name: str, keys: Mapping[str, Any]) -> str:
    near = nearest(name, keys)
    if near:
        guess = ".".join([*above, near])
        whole = ".".join([guess, *path.split(".")[len(above) + 1 :]])
        guess = whole if whole in _paths() else guess
    else:  # the right word, perhaps, in the wrong place
        elsewhere = [known for known in _paths() if known.rpartition(".")[2] == name]
        guess = elsewhere[0] if elsewhere else nearest(path, _paths()) or ""
    place = f"in {'.'.join(above)!r}" if above else "in the configuration"
    choice = f"Did you mean {guess!r}?" if guess else f"There are: {', '.join(sorted(keys))}."
    return f"config override {path}: there is no key {name!r} {place}. {choice}"


@cache
def _paths() -> tuple[str, ...]:
    """Every path of the configuration, those nearer to the root first."""

    def below(kind: Any, prefix: str) -> Iterator[str]:
        for name, inner in _keys(kind).items():
            yield f"{prefix}{name}"
            yield from below(inner, f"{prefix}{name}.")

    return tuple(sorted(below(Config, ""), key=lambda path: (path.count("."), path)))


def _keys(kind: Any) -> dict[str, Any]:
    """The keys that an object of a type may have, whichever variant it is, with the type of each."""
    return {
        name.removesuffix("_"): hint
        for record in _records(kind)
        for name, hint in get_type_hints(record, include_extras=True).items()
    }


def _records(kind: Any) -> list[type]:
    return [part for part in _parts(kind) if isinstance(part, type) and is_dataclass(part)]


def _parts(kind: Any) -> Iterator[Any]:
    """The members of a union and the marks on it; a list of records is none of its own."""
    if get_origin(kind) in (tuple, list):
        return
    yield kind
    for part in get_args(kind) if get_origin(kind) is not None else ():
        yield from _parts(part)


def _plain(value: Any) -> Any:
    """A number of an array library as the number it is."""
    if getattr(value, "ndim", None) == 0:
        return value.item()
    raise OptionError(f"config overrides: expected values that JSON can hold, got {value!r}.")
