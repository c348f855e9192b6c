"""Settings of the training of a problem, by dotted path or in groups, as Python users give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pycobre._util.suggest import did_you_mean
from pycobre.errors import OptionError
from pycobre.sddp import AnyOf, IterationLimit, RiskMeasure, TimeLimit, TrainOptions

__all__ = ["problem_options"]

_SHORTHANDS = {"iteration_limit": (IterationLimit, int), "time_limit": (TimeLimit, float)}


def problem_options(options: TrainOptions, overrides: Mapping[str, Any]) -> TrainOptions:
    """`options` with settings replaced; a path that does not exist raises OptionError with the nearest one.

    Besides the fields of `TrainOptions` (`forward_passes`, `solver.primal_tolerance`, …) there are the stopping
    rules `iteration_limit` and `time_limit` (seconds): together they replace `stopping`, whichever comes first.
    A mapping given for a group of settings (`{"solver": {"primal_tolerance": 1e-8}}`) replaces those it names.
    """
    if not isinstance(overrides, Mapping) or not all(isinstance(path, str) for path in overrides):
        raise OptionError(
            f"config overrides: expected a mapping of dotted paths to values, got {overrides!r}."
        )
    rules = []
    for name, (rule, expected) in _SHORTHANDS.items():
        if name in overrides:
            _check_type(name, overrides[name], expected)
            rules.append(rule(overrides[name]))
    if rules:
        options = replace(options, stopping=rules[0] if len(rules) == 1 else AnyOf(*rules))
    for path, value in overrides.items():
        if path not in _SHORTHANDS:
            options = _replaced(options, path.split("."), value, path)
    return options


def _replaced(holder: Any, steps: list[str], value: Any, path: str) -> Any:
    """`holder` with `value` where `steps` lead; a mapping goes on into a group, setting by setting.

    Not into a risk measure: in its place a mapping gives every node its own.
    """
    name, *rest = steps
    names = [item.name for item in fields(holder)]
    if name not in names:
        known = [*names, *_SHORTHANDS]
        hint = did_you_mean(name, known, f"There are: {', '.join(known)}.")
        raise OptionError(f"{path}: there is no such option.{hint}")
    before = getattr(holder, name)
    if rest:
        if not is_dataclass(before):
            raise OptionError(f"{path}: expected a group of options at {name!r}, got {before!r}.")
        value = _replaced(before, rest, value, path)
    elif isinstance(value, Mapping) and is_dataclass(before) and not isinstance(before, RiskMeasure):
        group: Any = before
        for key, part in value.items():
            group = _replaced(group, str(key).split("."), part, f"{path}.{key}")
        value = group
    else:
        _check_type(path, value, type(before))
    return replace(holder, **{name: value})


def _check_type(path: str, value: Any, expected: type) -> None:
    """Numbers and switches only: what else there is checks itself."""
    accepted = (int, float) if expected is float else (expected,)
    if expected in (int, float, bool) and type(value) not in accepted:
        raise OptionError(f"{path}: expected {expected.__name__}, got {value!r}.")
