"""What a file says, taken only where it is a number: a file may be torn, foreign, or of another version."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["NAN", "number", "text", "whole"]

NAN = math.nan


def number(value: Any) -> float:
    """The number, or NaN where it is none or is not finite."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return NAN


def whole(value: Any) -> int | None:
    """The whole number, or None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Any) -> str:
    """One line of text; what a terminal would take for an instruction is left out."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value)).strip()
