"""What Python callers may pass: said in words before anything is read or started."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from pycobre.errors import OptionError

__all__ = ["at_least", "at_least_one", "callable_or_none"]


def at_least_one(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is not a whole number above 0 (or None where that is allowed)."""
    if not (optional and value is None):
        at_least(name, value, 1)


def at_least(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number from `least` on."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise OptionError(f"{name}: expected a whole number of at least {least}, got {value!r}.")
    if value < least:
        raise OptionError(f"{name}: expected at least {least}, got {value}.")


def callable_or_none(name: str, value: Any) -> None:
    """Refuse a callback that cannot be called."""
    if value is not None and not callable(value):
        raise OptionError(f"{name}: expected something to call with each event, got {value!r}.")
