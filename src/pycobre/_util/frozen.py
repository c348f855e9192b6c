"""Frozen dataclasses whose methods are shared instead of compiled for each class.

The standard library writes and compiles six functions for every frozen dataclass, half a millisecond each time. Two
hundred classes are needed before a run can begin, so that was a quarter of the time until its first iteration. Here
the functions exist once and look at the fields. Everything else is as of `dataclasses.dataclass(frozen=True)`:
`fields`, `replace`, `asdict`, defaults, `__post_init__`, comparison, hashing and the signature that help shows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

__all__ = ["frozen"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False, eq: bool = True, repr: bool = True) -> Callable[[type[T]], type[T]]:
    """Make a class a frozen dataclass; the arguments mean what they mean for `dataclass`."""

    def decorate(cls: type[T]) -> type[T]:
        undocumented = cls.__doc__ is None
        if undocumented:
            cls.__doc__ = cls.__name__  # else `dataclass` works out a signature to write there
        made = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        if undocumented:
            made.__doc__ = None
        named = tuple(each for each in fields(made) if each.init)  # type: ignore[arg-type]
        made.__frozen_fields__ = named  # type: ignore[attr-defined]
        made.__frozen_names__ = {each.name for each in named}  # type: ignore[attr-defined]
        made.__frozen_order__ = tuple(each.name for each in named if not each.kw_only)  # type: ignore[attr-defined]
        methods: dict[str, Any] = {"__init__": _init, "__setattr__": _refuse, "__delattr__": _refuse}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= {"__eq__": _eq, "__hash__": _hash}
        written = {name for name in ("__init__", "__repr__", "__eq__") if name in made.__dict__}
        for name, method in methods.items():
            if name not in written:
                setattr(made, name, method)
        made.__signature__ = _Signature()  # type: ignore[attr-defined]
        return made

    return decorate


def _init(self: Any, *given: Any, **named: Any) -> None:
    cls = type(self)
    if given:
        order = cls.__frozen_order__
        if len(given) > len(order):
            raise TypeError(
                f"{cls.__qualname__}: expected at most {len(order)} positional values, got {len(given)}."
            )
        twice = named.keys() & order[: len(given)]
        if twice:
            raise TypeError(f"{cls.__qualname__}: {min(twice)!r} is given twice.")
        named.update(zip(order, given, strict=False))
    if named.keys() == cls.__frozen_names__:  # objects that are made thousands of times name every field
        self.__dict__.update(named)
    else:
        _fill(self, cls, named)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()


def _fill(self: Any, cls: Any, named: dict[str, Any]) -> None:
    """Fields from `named`, which has not all of them or others, and from defaults."""
    own = self.__dict__
    for each in cls.__frozen_fields__:
        name = each.name
        if name in named:
            own[name] = named.pop(name)
        elif each.default is not MISSING:
            own[name] = each.default
        elif each.default_factory is not MISSING:
            own[name] = each.default_factory()
        else:
            raise TypeError(f"{cls.__qualname__}: expected a value for {name!r}, got none.")
    if named:
        raise TypeError(f"{cls.__qualname__}: there is no {min(named)!r}. There are: {', '.join(own)}.")


def _repr(self: Any) -> str:
    inside = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({inside})"


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, each.name) for each in fields(self) if each.compare)


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse(self: Any, name: str, *value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


class _Signature:
    """The signature that help and editors show, worked out when they ask."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        return inspect.Signature([_parameter(each) for each in owner.__frozen_fields__])


def _parameter(each: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY if each.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    default = inspect.Parameter.empty if each.default is MISSING else each.default
    if each.default_factory is not MISSING:
        default = ...
    return inspect.Parameter(each.name, kind, default=default, annotation=each.type)
