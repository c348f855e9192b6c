"""Training options as JSON values, so that they travel to workers and go into files without code.

Only the classes listed here are ever built, by name: reading cannot run anything else.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pycobre.errors import OptionError
from pycobre.sddp import risk, selection, stopping
from pycobre.sddp.options import TrainOptions
from pycobre.solver.api import SolverOptions

__all__ = ["decode_options", "encode_options"]

_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        risk.Expectation,
        risk.WorstCase,
        risk.CVaR,
        risk.Entropic,
        risk.ConvexCombination,
        stopping.IterationLimit,
        stopping.TimeLimit,
        stopping.BoundStalling,
        stopping.Gap,
        stopping.SimulatedGap,
        stopping.AnyOf,
        stopping.AllOf,
        selection.Level1,
        selection.LimitedMemoryLevel1,
        SolverOptions,
        TrainOptions,
    )
}
_VARIADIC = (stopping.AnyOf, stopping.AllOf)


def encode_options(options: TrainOptions) -> dict[str, Any]:
    """The options as JSON values; objects of other classes than pycobre's own raise OptionError."""
    document = _encode(options, "options")
    assert isinstance(document, dict)
    return document


def decode_options(document: Mapping[str, Any]) -> TrainOptions:
    """Undo `encode_options`; what does not fit raises OptionError with the path to it."""
    options = _decode(document, "options")
    if not isinstance(options, TrainOptions):
        raise OptionError(f"options: expected TrainOptions, got {type(options).__name__}.")
    return options


def _encode(value: Any, path: str) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        if _CLASSES.get(type(value).__name__) is not type(value):
            raise OptionError(
                f"{path}: expected one of pycobre's own classes, got {type(value).__qualname__}, which cannot travel "
                "to workers. Train in one process, or combine the classes there are."
            )
        inside = {
            item.name: _encode(getattr(value, item.name), f"{path}.{item.name}") for item in fields(value)
        }
        return {"type": type(value).__name__, **inside}
    if isinstance(value, Mapping):
        return {"map": {str(key): _encode(item, f"{path}.{key}") for key, item in value.items()}}
    if isinstance(value, tuple | list):
        return [_encode(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"{path}: expected a plain value, got {type(value).__qualname__}.")


def _decode(value: Any, path: str) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item, f"{path}[{index}]") for index, item in enumerate(value))
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"map"}:
        return {key: _decode(item, f"{path}.{key}") for key, item in value["map"].items()}
    name = value.get("type")
    cls = _CLASSES.get(str(name))
    if cls is None:
        raise OptionError(
            f"{path}: expected one of {', '.join(_CLASSES)}, got {name!r}.{_near(str(name), _CLASSES)}"
        )
    known = {item.name for item in fields(cls)}
    for key in value:
        if key != "type" and key not in known:
            raise OptionError(f"{path}.{key}: {name} has no such option.{_near(key, known)}")
    inside = {key: _decode(item, f"{path}.{key}") for key, item in value.items() if key != "type"}
    try:
        return cls(*inside["rules"]) if cls in _VARIADIC else cls(**inside)
    except (TypeError, KeyError) as cause:
        raise OptionError(f"{path}: {name} cannot be made of {sorted(inside)}: {cause}") from cause


def _near(name: str, names: Any) -> str:
    near = difflib.get_close_matches(name, list(names), 1)
    return f" Did you mean {near[0]!r}?" if near else ""
