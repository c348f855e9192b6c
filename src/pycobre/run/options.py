"""Settings of a training run by dotted path, as Python users and the command line give them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pycobre.errors import OptionError
from pycobre.sddp import AnyOf, IterationLimit, TimeLimit, TrainOptions

__all__ = ["by_path", "problem_options"]

_SHORTHANDS = {"iteration_limit": IterationLimit, "time_limit": TimeLimit}


def by_path(overrides: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by dotted path, of a mapping whose values may be groups of settings, as in a file.

    A group changes what it names and leaves the rest, except where it names a `method`: then it is a whole choice.
    """
    if not isinstance(overrides, Mapping) or not all(isinstance(path, str) for path in overrides):
        raise OptionError(
            f"config overrides: expected a mapping of dotted paths to values, got {overrides!r}."
        )
    flat: dict[str, Any] = {}
    for name, value in overrides.items():
        if isinstance(value, Mapping) and value and "method" not in value:
            flat |= by_path(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def problem_options(options: TrainOptions, overrides: Mapping[str, Any]) -> TrainOptions:
    """`options` with settings replaced; a path that does not exist raises OptionError with the nearest one.

    Besides the fields of `TrainOptions` (`forward_passes`, `solver.primal_tolerance`, …) there are the stopping
    rules `iteration_limit` and `time_limit` (seconds): together they replace `stopping`, whichever comes first.
    """
    rules = [rule(overrides[name]) for name, rule in _SHORTHANDS.items() if name in overrides]
    if rules:
        options = replace(options, stopping=rules[0] if len(rules) == 1 else AnyOf(*rules))
    for path, value in overrides.items():
        if path not in _SHORTHANDS:
            options = _replaced(options, path.split("."), value, path)
    return options


def _replaced(holder: Any, parts: list[str], value: Any, path: str) -> Any:
    name, *rest = parts
    names = [item.name for item in fields(holder)]
    if name not in names:
        near = difflib.get_close_matches(name, [*names, *_SHORTHANDS], 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join([*names, *_SHORTHANDS])}."
        raise OptionError(f"{path}: there is no such option.{hint}")
    if rest:
        inner = getattr(holder, name)
        if not is_dataclass(inner):
            raise OptionError(f"{path}: expected a group of options at {name!r}, got {inner!r}.")
        value = _replaced(inner, rest, value, path)
        return replace(holder, **{name: value})
    expected = type(getattr(holder, name))
    accepted = (int, float) if expected is float else (expected,)
    if expected in (int, float, bool) and type(value) not in accepted:
        raise OptionError(f"{path}: expected {expected.__name__}, got {value!r}.")
    return replace(holder, **{name: value})
