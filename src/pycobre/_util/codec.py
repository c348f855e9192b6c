"""Frozen classes as JSON values and back, for files and for other processes.

    null, true, 1, 0.5, "text"   themselves
    a tuple or a list            a list
    a date                       {TAG: "date", "day": "2026-01-31"}
    a mapping                    {TAG: "mapping", "items": [[key, value], ...]}
    an object                    {TAG: its class's name, its fields ...}

Only the classes that a codec was given are ever built, by name: reading runs nothing else. What does not fit is
said with the path to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any

from pycobre._util.suggest import did_you_mean
from pycobre.errors import CobreError

__all__ = ["Codec"]

_DATE, _MAPPING = "date", "mapping"


class Codec:
    """Writes and reads objects of `classes`; `root` names the whole in errors, which are raised as `error`.

    `classes` may grow after the codec was made. `makers` build those classes whose constructor does not take
    their fields by name. `foreign` is the sentence about an object of another class.
    """

    def __init__(
        self,
        classes: Mapping[str, type[Any]],
        *,
        tag: str,
        root: str,
        error: type[CobreError],
        foreign: str,
        makers: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
    ) -> None:
        self._classes = classes
        self._tag = tag
        self._root = root
        self._error = error
        self._foreign = foreign
        self._makers = {} if makers is None else makers

    def encode(self, value: Any, path: str | None = None) -> Any:
        """`value` as JSON values."""
        path = self._root if path is None else path
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, tuple | list):
            return [self.encode(item, f"{path}[{index}]") for index, item in enumerate(value)]
        if isinstance(value, date):
            return {self._tag: _DATE, "day": value.isoformat()}
        if isinstance(value, Mapping):
            items = [[key, self.encode(item, f"{path}.{key}")] for key, item in value.items()]
            return {self._tag: _MAPPING, "items": items}
        name = type(value).__name__
        if not is_dataclass(value) or self._classes.get(name) is not type(value):
            raise self._error(f"{path}: {self._foreign.format(type(value).__qualname__)}")
        inside = {
            each.name: self.encode(getattr(value, each.name), f"{path}.{each.name}") for each in fields(value)
        }
        return {self._tag: name, **inside}

    def decode(self, data: Any, path: str | None = None) -> Any:
        """Undo `encode`; lists become tuples."""
        path = self._root if path is None else path
        if isinstance(data, list):
            return tuple(self.decode(item, f"{path}[{index}]") for index, item in enumerate(data))
        if not isinstance(data, Mapping):
            return data
        name = data.get(self._tag)
        if name == _DATE:
            return self._date(data, path)
        if name == _MAPPING:
            return self._mapping(data, path)
        cls = self._classes.get(str(name))
        if cls is None:
            raise self._error(
                f"{path}: expected one of {', '.join(sorted(self._classes))}, got {name!r}."
                + did_you_mean(str(name), self._classes, "Write it again with this version.")
            )
        known = {each.name for each in fields(cls)}
        inside = {}
        for key, item in data.items():
            if key == self._tag:
                continue
            if key not in known:
                hint = did_you_mean(key, known, f"There are: {', '.join(sorted(known))}.")
                raise self._error(f"{path}.{key}: expected a field of {name}, got another.{hint}")
            inside[key] = self.decode(item, f"{path}.{key}")
        try:
            return self._makers[str(name)](inside) if name in self._makers else cls(**inside)
        except (TypeError, KeyError) as cause:
            raise self._error(
                f"{path}: expected the fields of {name}, got {sorted(inside)}: {cause}. Write it again."
            ) from cause

    def _date(self, data: Mapping[str, Any], path: str) -> date:
        try:
            return date.fromisoformat(data["day"])
        except (KeyError, TypeError, ValueError) as cause:
            raise self._error(f"{path}: expected a date, got {dict(data)!r}. Write it again.") from cause

    def _mapping(self, data: Mapping[str, Any], path: str) -> dict[str, Any]:
        try:
            return {key: self.decode(item, f"{path}.{key}") for key, item in data["items"]}
        except (KeyError, TypeError, ValueError) as cause:
            raise self._error(f"{path}: expected a mapping, got {dict(data)!r}. Write it again.") from cause
